//! Hosts whose children are reaped by somebody else: the kernel, or a thread of the host.

use crate::commands::{argv, bash, execute, run, run_past_its_deadline};
use crate::expect::{Outcome, ensure, equal, eventually, fact};
use crate::look::{self, unique};
use shell_executor::{Error, ExecRequest, SubprocessService};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// T1, T3: SIGCHLD ignored, or its children not kept as zombies.
pub(crate) fn sigchld_ignored(how: &str, rounds: u32) -> Outcome {
    match how {
        "ignored" => ignore_sigchld(),
        "no-wait" => {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: a zeroed action is SIG_DFL with an empty mask and no flags.
            let action = unsafe { action.assume_init_mut() };
            action.sa_flags = libc::SA_NOCLDWAIT;
            // SAFETY: the action is initialised, and installs no handler.
            unsafe { libc::sigaction(libc::SIGCHLD, std::ptr::from_ref(action), std::ptr::null_mut()) };
        }
        _ => return Err(format!("no such way: {how}").into()),
    }
    let service = SubprocessService::new();
    tell_codes(&service, rounds)?;
    service.dispose();
    Ok(())
}

fn ignore_sigchld() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Every `exit 7` gives 7 or "lost".
fn tell_codes(service: &SubprocessService, rounds: u32) -> Outcome {
    let bash = bash(service)?;
    let (mut told, mut lost) = (0, 0);
    for _ in 0..rounds {
        match run(&bash, ExecRequest::new("exit 7")) {
            Ok(result) if result.exit_code == Some(7) && result.signal.is_none() => told += 1,
            Err(Error::StatusLost) => lost += 1,
            other => return Err(format!("neither 7 nor lost: {other:?}").into()),
        }
    }
    fact("told", told);
    fact("lost", lost);
    Ok(())
}

/// T4, T6: a leader that nobody holds as a zombie does not cost the hold on its range.
pub(crate) fn range_without_a_leader() -> Outcome {
    ignore_sigchld();
    let service = SubprocessService::new();
    let bash = bash(&service)?;
    let number = unique();
    let execution = execute(&bash, ExecRequest::new(format!("sleep {number} & exit 3")))?;
    let outcome = execution.result();
    let known = match &outcome {
        Ok(result) => result.exit_code == Some(3) && result.survivors == 1,
        Err(error) => *error == Error::StatusLost,
    };
    ensure(known, || format!("{outcome:?}"))?;
    eventually("it sleeps", || look::sleepers(&number).len() == 1)?;
    ensure(execution.kill_survivors(), || "no survivors to kill".to_owned())?;
    look::gone(&number)?;
    ensure(execution.wait_range(Some(crate::expect::PATIENCE)), || "the range is not over".to_owned())?;

    let number = unique();
    let command = format!("sleep {number} & sleep {number}");
    let outcome = run_past_its_deadline(&bash, &command);
    let known = match &outcome {
        Ok(result) => result.timed_out && result.signal == Some(libc::SIGTERM),
        Err(error) => *error == Error::StatusLost,
    };
    ensure(known, || format!("{outcome:?}"))?;
    look::gone(&number)?;
    equal("what the disposal could not stop", service.dispose().survivors, 0)
}

/// T3: a thread of the host takes every status there is.
pub(crate) fn foreign_reaper(rounds: u32) -> Outcome {
    let service = SubprocessService::new();
    let stop = Arc::new(AtomicBool::new(false));
    let reaper = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            while !stop.load(Ordering::SeqCst) {
                // SAFETY: a null status is allowed.
                if unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } < 0 {
                    std::thread::yield_now();
                }
            }
        }
    });
    tell_codes(&service, rounds)?;
    // A start that fails in the child is told by its report, whoever takes the status.
    for _ in 0..20 {
        let failure = crate::battery::failure(
            service.spawn(argv(["/nonexistent/program"])).and_then(|process| process.result()),
        )?;
        equal("errno", failure.raw_os_error(), Some(libc::ENOENT))?;
    }
    service.dispose();
    stop.store(true, Ordering::SeqCst);
    reaper.join().map_err(|_| "the reaper panicked")?;
    Ok(())
}

/// T2, case 34: the host's own child stays the host's.
pub(crate) fn own_child() -> Outcome {
    // SAFETY: this process has one thread; the child only ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child at once, without the parent's exit hooks.
        unsafe { libc::_exit(9) };
    }
    ensure(child > 0, || "no fork".to_owned())?;
    let service = SubprocessService::new();
    let bash = bash(&service)?;
    for _ in 0..50 {
        equal("the code", run(&bash, ExecRequest::new("true"))?.exit_code, Some(0))?;
    }
    service.dispose();
    let mut status = 0;
    // SAFETY: the status is writable.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    equal("who was waited for", waited, child)?;
    fact("own-child", libc::WEXITSTATUS(status));
    Ok(())
}
