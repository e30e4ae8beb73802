//! Deadlines and promotion: who ends a command, which of several wins, and how a late command is kept.
//!
//! # The first cause
//!
//! A command ends by itself, or one of four cuts it short: its deadline, its [`AbortToken`](crate::AbortToken),
//! [`kill`](crate::Execution::kill), or the disposal of the service. Several can come at once, and while the first is
//! still at its work. One of them is recorded, by a single compare-and-swap: the first. The others change nothing, so
//! [`timed_out`](crate::RunResult::timed_out) and [`aborted`](crate::RunResult::aborted) are never both true, and a
//! deadline that passes between the exit of the shell and the closing of its streams is too late.
//!
//! The cause says nothing about how the shell ended, and the exit code nothing about the cause. A command that traps
//! SIGTERM and exits 0 after its deadline has `timed_out`, exit code 0 and no signal. One that exits with 124 has exited
//! with 124.
//!
//! | | `status` | `timed_out` | `aborted` | [`cause`](crate::RunResult::cause) |
//! |---|---|---|---|---|
//! | it exited, with whatever code | `Completed` | | | `Exit` |
//! | it died of a signal, its own included | `Killed` | | | `Exit` |
//! | the deadline passed, or an offer was not accepted | `Killed` | true | | `Timeout` |
//! | the token was fired | `Killed` | | true | `Abort` |
//! | `kill()` | `Killed` | | | `Kill` |
//! | the service was disposed of | `Killed` | | | `Disposal` |
//!
//! # The ladder
//!
//! Whoever cuts a command short starts the same ladder over its whole [range](super::range): SIGTERM and SIGCONT, the
//! [grace](crate::ExecSpec::grace) (3 s by default), SIGKILL, and two seconds of patience for the kernel. It goes on when
//! the shell has ended and a descendant has not. A grace of zero begins with SIGKILL.
//!
//! # The deadline
//!
//! It counts from `execute`. What is prepared before the process exists (the search for the shell, the sandbox's trial,
//! the spawn) is under it: a command whose deadline passes there never starts, however late the preparation comes back,
//! and has a result with `timed_out`, without exit code, signal or output.
//!
//! A request for more than [`Config::max_timeout`](crate::Config::max_timeout) is clamped;
//! [`RunResult::timeout`](crate::RunResult::timeout) has the value that applied. [`OnExpiry::None`](crate::OnExpiry::None)
//! is a command without a deadline. Time is monotonic: setting the clock changes nothing, and the time that the machine
//! was suspended does not count.
//!
//! One thread serves all deadlines of a service. It sleeps until the next is due; a host that waits for idle commands is
//! not woken at all.
//!
//! # Keeping a late command
//!
//! Many commands that outrun their deadline are not stuck but servers, watchers, or slow. Under
//! [`OnExpiry::Offer`](crate::OnExpiry::Offer) the deadline opens an offer instead of killing.
//! [`promotion`](crate::Execution::promotion) blocks until then and gives a [`PromotionOffer`](crate::PromotionOffer), or
//! `None` as soon as the command has settled before it. So this is all that a host has to do:
//!
//! ```
//! # use shell_executor::{BashExecutor, Config, ExecRequest, OnExpiry, ShellExecutor, SubprocessService};
//! # use std::time::Duration;
//! # let service = SubprocessService::new();
//! # let bash = BashExecutor::new(&service, Config::default())?;
//! let request = ExecRequest::new("echo working; sleep 1000").timeout(Duration::from_millis(500)).on_expiry(OnExpiry::Offer);
//! let execution = bash.execute(bash.resolve(request)?);
//! if execution.promotion().is_some_and(|offer| offer.accept()) {
//!     // A background job from now on: the same handle, output and input.
//!     execution.kill();
//! }
//! let result = execution.result()?;
//! # Ok::<(), shell_executor::Error>(())
//! ```
//!
//! An accepted command has no deadline and no token any more; `kill()` and disposal remain. An offer answers once.
//! Dropped, or not answered within the [window](crate::ExecSpec::answer_window) (1 s from the deadline, whether or not
//! anybody has taken it), it declines, and the command is stopped as an ordinary timeout: a host that forgets an offer
//! never has a process that nobody watches. While it is open, the command's end, an abort and a kill go first;
//! `accept` then gives `false`.
