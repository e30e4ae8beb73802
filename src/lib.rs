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
//! - [`BashExecutor`] and [`PwshExecutor`] are the local [`ShellExecutor`]s: [`resolve`](ShellExecutor::resolve) is the only
//!   place where defaults and caps are applied, [`execute`](ShellExecutor::execute) the only way a command is started. It
//!   returns the live [`Execution`] at once and never fails. Foreground and background are what the caller waits for.
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
//! # Further pages
//!
//! - [`guide::output`]: what is kept, where the rest goes, and which of the ways to read loses nothing.
//! - [`guide::deadlines`]: who ends a command, which of several wins, and how a late command is kept.
//! - [`guide::range`]: what a kill reaches, what survives a command, and when it dies.
//! - [`guide::environment`]: what a command is told, and what is kept from it.
//! - [`guide::sandbox`]: what confinement stops, how it is known to hold, and how to widen it.
//!
//! # Limits
//!
//! - A process that left its session, lost its parent *and* cleared its environment is not found by a kill. On Unix systems
//!   other than Linux the range is the process group.
//! - A host that dies by SIGKILL leaves its commands running.
//! - The sandbox governs effects on files, and nothing else.
//! - A command of the same user can read the host's own environment under `/proc`.
//! - There is no terminal for commands, and no parsing of shell language.
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
//! 5 faces        lib.rs · guide/ · capi/ · bin/shx/
//! 4 executors    shell/{mod,request,execution,config,local,start,bash,pwsh}
//! 3 service      process/{service,subprocess,exit}
//! 2 mechanisms   process/{supervisor,range,table,deadline,live,launch,confiner} · output/{collector,spill,shared,observe} ·
//!                sandbox/{provider,chain,way,probe,native,bwrap,seatbelt,runner,verdict} · host
//! 1 values       error · result · abort · process/{cause,spec,promotion,reader} · output/{ring,text} · environment/* ·
//!                sandbox/{mode,policy,service,escalation,denial} · shell/render
//! 0 platform     sys/{unix,linux}                 the only unsafe but that of capi/
//! ```
//!
//! The local executors are one, `shell/local`, that speaks the dialect of a shell, `bash` or `pwsh`. A sandbox is part of
//! the `Preparation` of a launch (floor 2), which the supervisor runs under the deadline. What later versions add has its
//! place: another provider implements [`ShellExecutor`] and [`ExecutionBackend`]; another shell is a dialect; a system is a
//! folder under `sys` with the same names. Which thread does what, which lock guards what, and why no two are ever held at
//! once stands in `process/mod.rs`.

pub mod guide;

mod abort;
#[cfg(feature = "capi")]
mod capi;
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

pub use abort::{AbortSubscription, AbortToken};
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
    PwshExecutor, ShellExecutor, Stdin, parse_exit_status, render_read, render_result,
};
