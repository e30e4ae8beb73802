//! Hosts with signals ignored, blocked, handled, or left at a default that kills.

use crate::commands::{argv, bash, execute, run};
use crate::expect::{Outcome, ensure, equal, eventually, fact};
use crate::kernels::become_kernel;
use crate::look::{self, unique};
use shell_executor::{ExecRequest, SubprocessService};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// T1, case 35: what the host blocks, the command does not.
pub(crate) fn blocked_sigterm() -> Outcome {
    block(&[libc::SIGTERM]);
    let service = SubprocessService::new();
    let number = unique();
    let began = Instant::now();
    let request = ExecRequest::new(format!("sleep {number}")).timeout(Duration::from_secs(1));
    let result = run(&bash(&service)?, request)?;
    ensure(result.timed_out, || format!("{result:?}"))?;
    fact("signal", result.signal.unwrap_or_default());
    fact("milliseconds", began.elapsed().as_millis());
    service.dispose();
    look::gone(&number)
}

/// T1, case 35: default dispositions and an empty mask, whatever the host has; and T2: the host keeps what it has.
pub(crate) fn clean_child(kernel: &str) -> Outcome {
    extern "C" fn handler(_: libc::c_int) {}
    if !become_kernel(kernel)? {
        return Ok(());
    }
    let real_time = libc::SIGRTMIN() + 3;
    let ignored = [libc::SIGPIPE, libc::SIGINT, libc::SIGHUP, libc::SIGTERM, libc::SIGQUIT, real_time];
    for signal in ignored {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR2, handler as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    let every: Vec<i32> = (1..=64).collect();
    block(&every);
    let before = (dispositions(), mask());
    let service = SubprocessService::new();
    let status = service.spawn(argv(["cat", "/proc/self/status"]))?.result()?.stdout.text;
    for key in ["SigBlk", "SigIgn", "SigCgt"] {
        fact(key, look::status_field(&status, key).unwrap_or_default());
    }
    // The same through the shell, which is told of ignored signals and would pass them on for ever.
    let result = run(&bash(&service)?, ExecRequest::new("kill -TERM $$; echo survived"))?;
    equal("the end of a shell that asks for it", result.signal, Some(libc::SIGTERM))?;
    service.dispose();
    ensure((dispositions(), mask()) == before, || "the host's own signals have changed".to_owned())
}

/// T2, case 37: a host as C makes it, which a write to a closed pipe would kill.
pub(crate) fn default_sigpipe(rounds: u32) -> Outcome {
    // SAFETY: no handler is installed; it undoes what the Rust runtime did before `main`.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let before = (dispositions(), mask());
    let service = SubprocessService::new();
    let bash = bash(&service)?;
    let input = vec![b'x'; 1 << 20];
    let mut truncated = 0;
    for _ in 0..rounds {
        let result = run(&bash, ExecRequest::new("true").stdin(input.clone()))?;
        equal("the code", (result.exit_code, result.signal), (Some(0), None))?;
        truncated += u32::from(result.stdin_truncated);
    }
    equal("the runs that did not take their input", truncated, rounds)?;
    service.dispose();
    let after = (dispositions(), mask());
    equal("SIGPIPE's disposition", after.0[libc::SIGPIPE as usize - 1].0, libc::SIG_DFL)?;
    ensure(after == before, || "the host's own signals have changed".to_owned())?;
    fact("rounds", rounds);
    Ok(())
}

/// T2: a signal for the process never lands on a thread of the library.
pub(crate) fn deaf_threads(kernel: &str) -> Outcome {
    if !become_kernel(kernel)? {
        return Ok(());
    }
    let service = SubprocessService::new();
    let guard = service.dispose_on_signals()?;
    let number = unique();
    let execution = execute(&bash(&service)?, ExecRequest::new(format!("echo begun; exec sleep {number}")))?;
    ensure(execution.wait_output(None), || "no output".to_owned())?;
    // A thread has the name of the one that started it until it has set its own.
    let named = |name: &str| look::threads().iter().any(|thread| thread == name);
    // Where there are no process descriptors, a thread waits for the leader.
    let waiter = (kernel == "no-pidfd").then_some("shx-wait");
    for name in ["shx-run", "shx-deadline", "shx-signals"].into_iter().chain(waiter) {
        eventually(&format!("there is a thread {name}"), || named(name))?;
    }
    // KILL and STOP cannot be blocked; the C library keeps those below SIGRTMIN for itself.
    let blockable = (1..=64_u32)
        .filter(|&signal| ![libc::SIGKILL, libc::SIGSTOP].contains(&(signal as i32)))
        .filter(|&signal| !(32..libc::SIGRTMIN().unsigned_abs()).contains(&signal))
        .fold(0_u64, |mask, signal| mask | 1 << (signal - 1));
    let masks = look::thread_status("shx-", "SigBlk");
    for (name, blocked) in &masks {
        let blocked = u64::from_str_radix(blocked, 16)?;
        ensure(blocked & blockable == blockable, || format!("{name} blocks only {blocked:016x}"))?;
    }
    let mut names: Vec<String> = masks.into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    fact("threads", names.join(","));
    drop(guard);
    service.dispose();
    eventually("no thread of the library is left", || look::thread_status("shx-", "Name").is_empty())?;
    look::gone(&number)
}

fn block(signals: &[i32]) {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: initialises the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for &signal in signals {
        // SAFETY: the set is initialised; a number the C library keeps for itself is refused.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    }
    // SAFETY: the set is initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
}

/// The mask of this thread, as the kernel shows it.
fn mask() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    look::status_field(&status, "SigBlk").unwrap_or_default()
}

/// Handler and flags of every signal.
fn dispositions() -> Vec<(libc::sighandler_t, libc::c_int)> {
    let of = |signal| {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a null new action only asks, and `action` is writable.
        unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
        // SAFETY: zeroed before, and written by the call or not: valid either way.
        let action = unsafe { action.assume_init() };
        (action.sa_sigaction, action.sa_flags)
    };
    (1..=64).map(of).collect()
}
