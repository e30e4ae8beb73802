//! The range: a command and everything it has started, directly or not.
//!
//! # What a kill reaches
//!
//! The shell is the leader of a session and a process group of its own, and carries a variable in its environment
//! (`SHELL_EXECUTOR_RANGE`) that is unique to the range. On Linux a kill reaches
//!
//! - the leader's group, at one stroke;
//! - by the process table, every member of the leader's session in any group (jobs of `set -m`, a `timeout` in the
//!   background), every descendant of a member, and every process that was started with the marker in its
//!   environment: also a daemon that left the session and lost its parent.
//!
//! Not found is only a process that has left the session, lost its parent *and* cleared its environment. Signals go to
//! process descriptors, never to a number that may be another process's by now; the leader is reaped last. A process of
//! another user that cannot be signalled is counted in [`survivors`](crate::RunResult::survivors).
//!
//! On other Unix systems the range is the process group. [`containment`](crate::Execution::containment) says which it
//! is.
//!
//! # What outlives a command
//!
//! `server & echo started` ends at once, and the server is meant to go on. When the leader has exited and a descendant
//! still holds one of its streams, the settlement waits until that stream has been quiet for the
//! [drain idle](crate::ExecSpec::drain_idle) (250 ms by default), and in any case for no longer than the grace. The result
//! then has everything that was read, and says [`pipes_held`](crate::RunResult::pipes_held).
//!
//! What is left running stays in the range. Its output is still read, so it does not die of a closed pipe. It goes on
//! until it ends by itself, [`kill_survivors`](crate::Execution::kill_survivors) is called, the service is disposed of, or
//! the host exits.
//!
//! ```
//! # use shell_executor::{BashExecutor, Config, ExecRequest, ShellExecutor, SubprocessService};
//! # let service = SubprocessService::new();
//! # let bash = BashExecutor::new(&service, Config::default())?;
//! let execution = bash.start(bash.resolve(ExecRequest::new("sleep 1000 & echo started"))?)?;
//! let result = execution.result()?;
//! assert_eq!((result.exit_code, result.pipes_held), (Some(0), true));
//! assert!(execution.kill_survivors());
//! assert!(execution.wait_range(None));
//! # Ok::<(), shell_executor::Error>(())
//! ```
//!
//! # The service
//!
//! Ranges belong to the [`SubprocessService`](crate::SubprocessService). Dropping an execution or an executor stops
//! nothing. [Disposing](crate::SubprocessService::dispose) of the service, or dropping its last clone, stops every range by
//! the ladder, waits for all of them, joins every thread, removes the spill files, and reports what could not be stopped.
//!
//! # The host
//!
//! At `exit` of the host, every range that is still alive is killed at once, whether or not its service was disposed of.
//! [`dispose_on_signals`](crate::SubprocessService::dispose_on_signals) does the same for SIGINT, SIGTERM and SIGHUP, and
//! then dies of that signal as the host would have. A host that dies by SIGKILL, or of a fault, leaves its commands
//! running.
//!
//! A process that the host has forked has copies of its handles and no part in the ranges: it can neither start nor stop
//! anything with them.
//!
//! # Whatever the host's state
//!
//! The leader gets default signal dispositions, an empty signal mask and the descriptors 0, 1 and 2, also in a host that
//! ignores or blocks signals, has closed its standard streams, or leaks descriptors. It has no controlling terminal, so
//! whatever asks for a password there fails at once. The library waits for no child but its own, and installs no handler
//! for SIGCHLD. In a host that ignores SIGCHLD or reaps every child, the exit status comes from the process descriptor
//! (since Linux 6.15); where the kernel has lost it too, the result is [`Error::StatusLost`](crate::Error::StatusLost),
//! never a guess.
