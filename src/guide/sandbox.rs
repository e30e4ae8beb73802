//! The sandbox: confinement of what a command does to files, or no command.
//!
//! # What is governed
//!
//! Effects on files: creating, writing, truncating, renaming, linking, removing, and changing mode, owner, times and
//! extended attributes.
//!
//! | mode | may change |
//! |---|---|
//! | [`ReadOnly`](crate::SandboxMode::ReadOnly) | nothing but sinks such as `/dev/null`; `native` and `bwrap` give it a private directory in memory as `TMPDIR` |
//! | [`WorkspaceWrite`](crate::SandboxMode::WorkspaceWrite) | the workspace and the host's temp directory as well |
//! | [`DangerFullAccess`](crate::SandboxMode::DangerFullAccess) | everything: no provider is asked |
//!
//! Not governed is everything else: the network, signals to processes of the same user, what can be read, and what a
//! daemon outside (a container engine, a session bus) does on request. A sandbox for files keeps a command from breaking
//! what lies outside its workspace. It does not contain a hostile one.
//!
//! # Confined or not run
//!
//! A [`SandboxProvider`](crate::SandboxProvider) changes what is about to be started so that it is confined, or fails. Then the
//! command is not run, and the error is [`SandboxUnavailable`](crate::Error::SandboxUnavailable) with the reason. A
//! confined spec that is given to an executor without a sandbox is refused likewise.
//!
//! [`SandboxChain`](crate::SandboxChain) is the usual provider: it uses the first of this system's backends that works. What
//! works is found out by running a shell under one after the other, which must be able to write where it may and unable where
//! it may not; once per chain. What comes after the first that works is not touched.
//!
//! | backend | enforcement | by |
//! |---|---|---|
//! | [`Native`](crate::SandboxBackend::Native) | full | two walls that the child puts round itself before it executes |
//! | [`Bwrap`](crate::SandboxBackend::Bwrap) | full; for root, partial | the installed bubblewrap |
//! | [`Landlock`](crate::SandboxBackend::Landlock) | partial | the second wall alone: metadata is not governed |
//! | [`Seatbelt`](crate::SandboxBackend::Seatbelt) | partial | `sandbox-exec` on macOS, never run there by its authors |
//!
//! [`require_full`](crate::SandboxChain::require_full) refuses the partial ones.
//! [`SubprocessService::sandbox_rungs`](crate::SubprocessService::sandbox_rungs) tells what became of each.
//!
//! # How the native backend holds
//!
//! Behind the first wall, a mount namespace, all is read-only but the writable directories, whose mounts keep what they
//! were and open no device. The second, a Landlock domain over the same directories, forbids mounting, tracing, other
//! processes' roots under `/proc` and writing to devices, all of which would lead round the first. As root the child also
//! gives up the capabilities that would. Both are made by system calls between the clone and the exec, from what was
//! prepared before; either missing, the command does not start.
//!
//! A directory is opened by the path it had when the request was resolved, without following a link on the way. One that
//! somebody has led elsewhere meanwhile is refused.
//!
//! A backend that is a program of its own is not steered by what it is to run: it gets `PATH`, `LD_PRELOAD`, `BASH_ENV` and
//! their kin as the host has them. env(1) gives the command its own, within the sandbox.
//!
//! # What is known afterwards
//!
//! [`SandboxInfo`](crate::SandboxInfo) stands on the handle and in the result before the execution settles: the mode, the
//! backend, how completely it is enforced, whether the runner failed, and whether something was denied. That the
//! command was started comes from a side channel (the spawn's own pipe, bubblewrap's status descriptor), never from
//! text: a command that prints `bwrap: …` is a command that prints. `denied` is careful: the command has failed, by
//! an exit code of its own, and its stderr has the text that this backend's denials have. Under Landlock alone that is
//! the text of any missing permission, so nothing is ever called denied there.
//!
//! # Widening
//!
//! [`ExecSpec::escalate`](crate::ExecSpec::escalate) asks an [`Approver`](crate::Approver) whether this very call may have a
//! strictly wider mode, for a reason. The grant changes the mode of that spec and nothing else.
//!
//! ```
//! # use shell_executor::*;
//! # use std::sync::Arc;
//! # let service = SubprocessService::new();
//! let policy = SandboxPolicy::new(SandboxMode::ReadOnly, std::env::temp_dir());
//! let bash = BashExecutor::new(&service, Config::default())?.with_sandbox(Arc::new(SandboxChain::new()), policy)?;
//! let spec = bash.resolve(ExecRequest::new("make install"))?;
//!
//! let person = |asked: &Escalation| asked.requested == SandboxMode::WorkspaceWrite; // shown `asked`, and says yes
//! let spec = spec.escalate(SandboxMode::WorkspaceWrite, "it writes below build/", &person)?;
//! assert_eq!(spec.sandbox_policy.unwrap().mode, SandboxMode::WorkspaceWrite);
//! # Ok::<(), shell_executor::Error>(())
//! ```
//!
//! Which mode and workspace a call begins with is decided by the host; [`SandboxPolicyService`](crate::SandboxPolicyService)
//! does it by session. A runner of the host's choice takes the chain's place with [`SandboxRunner`](crate::SandboxRunner).
//!
//! # What to watch
//!
//! `workspace-write` opens the whole temp directory, where the service's own private files lie by default. `native` and
//! `bwrap` keep them from the service's own commands. Under `landlock` alone, and beside other services of the same user, a
//! host sets [`ServiceConfig::spill_root`](crate::ServiceConfig::spill_root) to a place outside of it.
