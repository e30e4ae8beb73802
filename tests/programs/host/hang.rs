//! Starts that hang between `clone` and the command: on a dead mount's `chdir`, or in `execve` itself.

use crate::commands::{Scratch, bash_with, execute, run};
use crate::expect::{Outcome, PATIENCE, ensure, equal, fact};
use crate::filter;
use crate::kernels::become_kernel;
use crate::look::Belongings;
use shell_executor::{
    AbortToken, BashExecutor, Cause, Error, ExecRequest, Execution, ProcessStatus, RunResult,
    SubprocessService,
};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// `_IOWR('!', 0, struct seccomp_notif)` and `_IOWR('!', 1, struct seccomp_notif_resp)` of the kernel's
/// `uapi/linux/seccomp.h`.
const RECEIVE: u32 = (3 << 30) | ((size_of::<libc::seccomp_notif>() as u32) << 16) | ((b'!' as u32) << 8);
const SEND: u32 =
    (3 << 30) | ((size_of::<libc::seccomp_notif_resp>() as u32) << 16) | ((b'!' as u32) << 8) | 1;

/// Whoever answers for the call that hangs.
struct Warden {
    listener: Arc<OwnedFd>,
    /// Whether calls are held, rather than let through.
    holds: Arc<AtomicBool>,
    held: Receiver<u64>,
}

impl Warden {
    /// To be called before any other thread is started.
    fn of(step: &str) -> Outcome<io::Result<Warden>> {
        let call = match step {
            "chdir" => libc::SYS_chdir,
            "execve" => libc::SYS_execve,
            _ => return Err(format!("no such step: {step}").into()),
        };
        let listener = match filter::hang(call) {
            Ok(listener) => Arc::new(listener),
            Err(error) => return Ok(Err(error)),
        };
        let holds = Arc::new(AtomicBool::new(true));
        let (sender, held) = channel();
        let (fd, hold) = (Arc::clone(&listener), Arc::clone(&holds));
        std::thread::spawn(move || {
            loop {
                let Ok(id) = receive(&fd) else { continue };
                if hold.load(Ordering::SeqCst) {
                    let _ = sender.send(id);
                } else {
                    // The caller may have been killed meanwhile.
                    let _ = let_through(&fd, id);
                }
            }
        });
        Ok(Ok(Warden { listener, holds, held }))
    }

    /// Blocks until a call hangs.
    fn wait(&self) -> Outcome<u64> {
        Ok(self.held.recv_timeout(PATIENCE).map_err(|_| "nothing hangs")?)
    }

    /// A start that hangs before its deadline, and the call it hangs in. On a machine so busy that the deadline comes
    /// first, the next one gets more time.
    fn hanging_start(
        &self,
        bash: &BashExecutor,
        request: impl Fn() -> ExecRequest,
    ) -> Outcome<(Execution, u64)> {
        const TRIES: u32 = 8;
        for tried in 0..TRIES {
            let deadline = Duration::from_millis(300) * 2_u32.pow(tried);
            let execution = execute(bash, request().timeout(deadline))?;
            loop {
                if let Ok(call) = self.held.recv_timeout(Duration::from_millis(2)) {
                    if execution.try_wait().is_none() {
                        return Ok((execution, call));
                    }
                    let _ = let_through(&self.listener, call);
                }
                if execution.try_wait().is_some() && execution.wait_range(Some(Duration::ZERO)) {
                    break;
                }
            }
        }
        Err("every deadline comes before the start".into())
    }
}

fn receive(listener: &OwnedFd) -> io::Result<u64> {
    let mut call = MaybeUninit::<libc::seccomp_notif>::zeroed();
    // SAFETY: the structure is writable, of the size the request names, and zeroed as the call wants.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, call.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: integers only, zeroed before and written by the call.
    Ok(unsafe { call.assume_init() }.id)
}

fn let_through(listener: &OwnedFd, id: u64) -> io::Result<()> {
    // SECCOMP_USER_NOTIF_FLAG_CONTINUE
    let mut answer = libc::seccomp_notif_resp { id, val: 0, error: 0, flags: 1 };
    // SAFETY: the structure is of the size the request names.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw mut answer) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Short, so that a start that has passed the gate is given up soon.
const SHORT: Duration = Duration::from_millis(200);

fn executor(service: &SubprocessService) -> Outcome<BashExecutor> {
    bash_with(service, |config| config.grace = SHORT)
}

/// E6, case 46: cut short while it hangs, the command never starts, and nothing is left.
pub(crate) fn play(step: &str, how: &str, kernel: &str, rounds: u32) -> Outcome {
    if !become_kernel(kernel)? {
        return Ok(());
    }
    let warden = match Warden::of(step)? {
        Ok(warden) => warden,
        Err(error) => {
            fact("skip", format!("no listener for system calls here: {error}"));
            return Ok(());
        }
    };
    let before = Belongings::now();
    let mut longest = Duration::ZERO;
    for _ in 0..rounds {
        let scratch = Scratch::new()?;
        let touched = scratch.path().join("touched");
        longest = longest.max(one_round(&warden, how, &touched)?);
        before.ensure_as_before()?;
        ensure(!touched.exists(), || "the command was started".to_owned())?;
    }
    fact("longest-ms", longest.as_millis());
    Ok(())
}

/// One hanging start, cut short. Gives how long its settlement took from then on.
fn one_round(warden: &Warden, how: &str, touched: &Path) -> Outcome<Duration> {
    let service = SubprocessService::new();
    let bash = executor(&service)?;
    let token = AbortToken::new();
    let request = || ExecRequest::new(format!("touch '{}'", touched.display())).abort(&token);
    warden.holds.store(true, Ordering::SeqCst);
    let (execution, call) = if how == "timeout" {
        warden.hanging_start(&bash, request)?
    } else {
        (execute(&bash, request().timeout(Duration::from_secs(600)))?, warden.wait()?)
    };
    let cut = Instant::now();
    match how {
        "timeout" => {}
        "abort" => ensure(token.fire(), || "the token was fired".to_owned())?,
        "kill" => ensure(execution.kill(), || "the kill was not the first".to_owned())?,
        "dispose" => drop(service.dispose()),
        _ => return Err(format!("no such way: {how}").into()),
    }
    ensure(execution.wait_timeout(PATIENCE).is_some(), || "not settled".to_owned())?;
    let took = cut.elapsed();
    let outcome = execution.result();
    ensure(is_told(how, &outcome), || format!("{how}: {outcome:?}"))?;
    equal("the exit code", execution.exit_code(), None)?;
    equal("the status", execution.status(), ProcessStatus::Killed)?;

    // Answered late, if anybody is left to hear it.
    let _ = let_through(&warden.listener, call);
    warden.holds.store(false, Ordering::SeqCst);
    if how != "dispose" {
        let result = run(&bash, ExecRequest::new("echo works"))?;
        equal("a start that does not hang", result.stdout.text.as_str(), "works\n")?;
    }
    equal("what the disposal could not stop", service.dispose().survivors, 0)?;
    Ok(took)
}

/// How an execution without a process says why.
fn is_told(how: &str, outcome: &Result<RunResult, Error>) -> bool {
    let nothing = |result: &RunResult| {
        let streams = (&result.stdout.text[..], &result.stderr.text[..]);
        result.exit_code.is_none() && result.signal.is_none() && streams == ("", "")
    };
    match (how, outcome) {
        ("timeout", Ok(result)) => {
            nothing(result) && result.timed_out && !result.aborted && result.cause == Some(Cause::Timeout)
        }
        ("kill", Ok(result)) => nothing(result) && !result.timed_out && result.cause == Some(Cause::Kill),
        ("abort", Err(Error::Aborted)) | ("dispose", Err(Error::Disposed)) => true,
        // Past the gate it is a process that was killed, whatever it had become by then.
        ("dispose", Ok(result)) => result.exit_code.is_none() && result.cause == Some(Cause::Disposal),
        _ => false,
    }
}

/// E6 where a hanging child cannot be killed, because the kernel has no process descriptors: the result does not wait for
/// it, and the command does not start when it comes back.
pub(crate) fn late_answer(how: &str) -> Outcome {
    if !become_kernel("no-pidfd")? {
        return Ok(());
    }
    let warden = match Warden::of("chdir")? {
        Ok(warden) => warden,
        Err(error) => {
            fact("skip", format!("no listener for system calls here: {error}"));
            return Ok(());
        }
    };
    let before = Belongings::now();
    let scratch = Scratch::new()?;
    let touched = scratch.path().join("touched");
    let service = SubprocessService::new();
    let bash = executor(&service)?;
    let request = || ExecRequest::new(format!("touch '{}'", touched.display()));
    let (execution, call) = warden.hanging_start(&bash, request)?;
    let outcome = execution.result();
    ensure(is_told("timeout", &outcome), || format!("{outcome:?}"))?;
    if how == "dispose" {
        // Bounded, and it says that somebody was left.
        equal("what the disposal could not stop", service.dispose().survivors, 1)?;
    }
    let_through(&warden.listener, call).map_err(|error| format!("nobody hangs any more: {error}"))?;
    warden.holds.store(false, Ordering::SeqCst);
    if how != "dispose" {
        equal("the code", run(&bash, ExecRequest::new("exit 7"))?.exit_code, Some(7))?;
        equal("what the disposal could not stop", service.dispose().survivors, 0)?;
    }
    before.ensure_as_before()?;
    ensure(!touched.exists(), || "the command was started".to_owned())
}
