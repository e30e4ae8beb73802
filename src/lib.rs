//! Runs shell commands for programs that must not be surprised by them: coding agents, CI runners, editors, small hosts.
//!
//! A blocking API without an async runtime. A caller resolves a request to a fully explicit spec, executes it, and looks
//! at the one live execution through whichever view it needs.
//!
//! ```
//! use shell_executor::{BashExecutor, Config, ExecRequest, ShellExecutor, SubprocessService};
//! use std::time::Duration;
//!
//! let service = SubprocessService::new();
//! let bash = BashExecutor::new(&service, Config::default())?;
//!
//! let spec = bash.resolve(ExecRequest::new("seq 1 100000").timeout(Duration::from_secs(10)))?;
//! let result = bash.run(spec)?;
//!
//! assert_eq!(result.exit_code, Some(0));
//! assert!(result.stdout.truncated && result.stdout.text.ends_with("100000\n")); // the tail, bounded
//! assert_eq!(result.stdout.total_bytes, 588_895);                              // of this many bytes
//! let whole = std::fs::read_to_string(result.stdout.spill_path.unwrap()).unwrap(); // all of them in a private file
//! assert!(whole.starts_with("1\n2\n3\n"));
//! # Ok::<(), shell_executor::Error>(())
//! ```
//!
//! # The model
//!
//! - [`SubprocessService`] owns everything that runs: ranges, threads, spill files. Disposing of it, or dropping its last
//!   reference, takes all of it down. Processes belong to the service, not to handles or executors.
//! - [`BashExecutor`] is the local [`ShellExecutor`]: [`resolve`](ShellExecutor::resolve) is the only place where defaults
//!   and caps are applied, [`execute`](ShellExecutor::execute) the only way a command is started. It returns the live
//!   [`Execution`] at once and never fails. Foreground and background are what the caller waits for.
//! - [`Execution`] is one command for as long as anybody holds it. [`result`](Execution::result) blocks for the outcome;
//!   [`read_output`](Execution::read_output) takes what is new; [`observed`](Execution::observed) reads at any offset;
//!   [`promotion`](Execution::promotion) offers to keep a command that has outrun its deadline;
//!   [`kill`](Execution::kill) brings it down.
//! - [`SubprocessService::spawn`] runs an argv without a shell on the same mechanics.
//!
//! # What happens to a command
//!
//! 1. Its supervisor, a thread of 128 KiB of stack, prepares everything and starts the process in a session of its own,
//!    with default signals and only the descriptors 0, 1 and 2. The cost does not grow with the host.
//! 2. The supervisor reads both streams into rings that keep the last bytes. A stream that overflows its ring goes, whole,
//!    into a private file as well. Overflow never blocks or kills the command.
//! 3. The first of leader exit, timeout, abort, kill and disposal is the [`Cause`]; the others come too late. All but the
//!    first bring down the whole range: SIGTERM and SIGCONT, the grace, SIGKILL, two seconds of patience.
//! 4. When the leader has ended and the streams are at their end, the execution settles, once. A stream that a descendant
//!    still holds is given up when it has been quiet for 250 ms, or the grace is over; the result then says `pipes_held`.
//! 5. What the leader has left running goes on, and is still read, until it ends, [`Execution::kill_survivors`] is called,
//!    the service is disposed of, or the host exits.
//!
//! # The range
//!
//! On Linux a kill reaches the leader's process group at one stroke, and by the process table every member of its session
//! in any group, every descendant of a member, and every process that carries the range's marker variable
//! (`SHELL_EXECUTOR_RANGE`) in the environment it was started with: also a daemon that left the session and lost its
//! parent. Not found is only a process that did both and cleared its environment as well. Signals go to process
//! descriptors, never to a number that may be another process's by now. On other Unix systems the range is the group.
//! [`Execution::containment`] says which.
//!
//! A host that dies by SIGKILL leaves its commands running.
//!
//! # The sandbox
//!
//! [`BashExecutor::with_sandbox`] confines what commands do to files, and to nothing else: a [`SandboxPolicy`] says what a
//! command may change, a [`SandboxProvider`] sees to it or fails, and a command whose provider fails is not run.
//! [`SandboxChain`] uses the first backend that works here. The facts of each run ([`SandboxInfo`]) stand on its handle and
//! in its result before it settles; whether the command or its sandbox has failed is never guessed from what it printed,
//! except with a [`SandboxRunner`] of the host's own, which has no better way to tell.
//!
//! The `native` backend is two walls that the child puts round itself before it executes. Behind the first, a mount
//! namespace, all is read-only but the writable directories, whose mounts keep what they were and open no device. The
//! second, a Landlock domain over the same directories, forbids mounting, tracing, other processes' roots under `/proc` and
//! writing to devices, all of which would lead round the first. As root the child also gives up the capabilities that
//! would. Either wall missing, the command does not start.
//!
//! # The environment
//!
//! The command gets the host's environment without what looks like a credential (`GH_TOKEN`, `PGPASSWORD`, a URL with a
//! password), without the managed namespace `DSH_*`, and without what would run code before it (`BASH_ENV`, exported
//! functions); then `NO_COLOR`, `TERM=dumb`, and pagers and editors that never wait; then the caller's entries, which always
//! win; then managed facts. [`Scrub`] adds names and exempts them. The host's own environment is still readable under
//! `/proc` by a command of the same user: a host that must hide it can make itself undumpable (prctl(2)).
//!
//! # Time
//!
//! All time is `CLOCK_MONOTONIC`: a jump of the wall clock changes nothing. On Linux and macOS it stands still while the
//! machine is suspended, so a deadline counts the time that the machine was awake.
//!
//! # The house
//!
//! A module imports its own floor and those below.
//!
//! ```text
//! 5 faces        lib.rs · bin/shx/
//! 4 executors    shell/{mod,request,execution,bash}
//! 3 service      process/{service,subprocess,exit}
//! 2 mechanisms   process/{supervisor,range,table,deadline,live,launch,confiner} · output/{collector,spill,shared,observe} ·
//!                sandbox/{provider,chain,way,probe,native,bwrap,seatbelt,runner,verdict} · host
//! 1 values       error · result · abort · process/{cause,spec,promotion,reader} · output/{ring,text} · environment/* ·
//!                sandbox/{mode,policy,service,escalation,denial} · shell/render
//! 0 platform     sys/{unix,linux}                 the only unsafe
//! ```
//!
//! A sandbox is part of the `Preparation` of a launch (floor 2), which the supervisor runs under the deadline. What later
//! versions add has its place: another provider implements [`ShellExecutor`] and [`ExecutionBackend`]; a system is a folder under `sys`
//! with the same names. Which thread does what, which lock guards what, and why no two are ever held at once stands in
//! `process/mod.rs`.

mod abort;
mod environment;
mod error;
mod host;
mod output;
mod process;
mod result;
mod sandbox;
mod shell;
mod sync;
mod sys;

pub use abort::AbortToken;
pub use environment::{
    EnvCall, EnvContributor, EnvDeclaration, EnvEntry, EnvRegistration, EnvRegistry, EnvSnapshot,
    EnvVariable, Scrub,
};
pub use error::{Error, SpawnError, SpawnStage};
pub use host::{Facility, HostFacts, HostLimit, HostLimits, HostProgram, KernelFacts};
pub use output::OutputStream;
pub use process::{
    Cause, Disposal, Disposition, Input, Observed, OfferBackend, OnExpiry, OutputBytes, OutputReader,
    PromotionOffer, ReadAt, ServiceConfig, SignalGuard, SpawnSpec, Subprocess, SubprocessService,
};
pub use result::{
    CollectedOutput, Containment, OutputRead, ProcessRead, ProcessStatus, ResourceUsage, RunResult,
};
pub use sandbox::{
    Approver, Confined, Enforcement, Escalation, SandboxBackend, SandboxChain, SandboxInfo, SandboxMode,
    SandboxPlan, SandboxPolicy, SandboxPolicyService, SandboxProvider, SandboxRung, SandboxRunner,
};
pub use shell::{
    BashExecutor, Config, ExecRequest, ExecSpec, Execution, ExecutionBackend, ExitStatus, ParsedOutput,
    ShellExecutor, Stdin, parse_exit_status, render_read, render_result,
};
