//! How a host ends, and what becomes of its ranges and files.

use crate::commands::{argv, bash, bash_with, execute, run, this_program};
use crate::expect::{Outcome, ensure, equal, eventually, fact};
use crate::look::sleepers;
use shell_executor::{ExecRequest, Execution, ServiceConfig, SubprocessService};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A live range of two, one of them in a session of its own; the leader waits for a line and gives it back.
fn range(service: &SubprocessService, number: &str) -> Outcome<Execution> {
    let host = this_program()?;
    let command =
        format!("sleep {number} & {host} own-session sleep {number} & read -r line; echo \"$line\"; wait");
    let execution = execute(&bash(service)?, ExecRequest::new(command).stdin_piped())?;
    execution.wait_started()?;
    eventually("both sleep", || sleepers(number).len() == 2)?;
    Ok(execution)
}

/// T10: an orderly exit of the host kills what is alive, wherever it is.
pub(crate) fn exit(number: &str) -> Outcome {
    let service = SubprocessService::new();
    let execution = range(&service, number)?;
    fact("ready", number);
    // As a C host ends, and a Rust one that calls `exit`: nothing is dropped.
    std::mem::forget((service, execution));
    std::process::exit(0);
}

/// T10: an exit so soon after the start that it meets it somewhere on the way.
pub(crate) fn exit_soon(microseconds: u64, number: &str) -> Outcome {
    let service = SubprocessService::new();
    let execution = execute(&bash(&service)?, ExecRequest::new(format!("sleep {number} & sleep {number}")))?;
    let until = Instant::now() + Duration::from_micros(microseconds);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    std::mem::forget((service, execution));
    std::process::exit(0);
}

/// T10: a child that the host forked runs the host's exit hooks; the ranges are not its own.
pub(crate) fn forked_exit() -> Outcome {
    let service = SubprocessService::new();
    let number = crate::look::unique();
    let execution = range(&service, &number)?;
    // SAFETY: the child only exits. Its copies of locks may be held, but the hook of a foreign process takes none.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: runs the exit hooks, which is the point.
        unsafe { libc::exit(0) };
    }
    ensure(child > 0, || "no fork".to_owned())?;
    let mut status = 0;
    // SAFETY: the status is writable.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    equal("the child's end", (waited, status), (child, 0))?;
    // What the exit had killed would be dead by now: the signal is sent before the exit is over.
    ensure_untouched(&execution, &number)?;
    service.dispose();
    crate::look::gone(&number)
}

/// All of the range are there; a dead leader answers not.
fn ensure_untouched(execution: &Execution, number: &str) -> Outcome {
    let mut stdin = execution.take_stdin().ok_or("no stdin")?;
    stdin.write_all(b"alive\n")?;
    ensure(execution.wait_output(None), || "no output".to_owned())?;
    equal("the answer", execution.read_output().delta.as_str(), "alive\n")?;
    equal("the sleepers", sleepers(number).len(), 2)
}

/// T10: a process that the host forked is a host as well, once it has ranges of its own. They go with it, and the parent's
/// do not.
pub(crate) fn forked_host() -> Outcome {
    let service = SubprocessService::new();
    equal("the code", run(&bash(&service)?, ExecRequest::new("exit 7"))?.exit_code, Some(7))?;
    let number = crate::look::unique();
    let execution = range(&service, &number)?;
    let of_child = crate::look::unique();
    let (mut ours, theirs) = UnixStream::pair()?;
    // SAFETY: every other thread of this process waits in the kernel and holds no lock, so the child may use its copies.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // Its copy of the parent's end would keep it from seeing the parent gone.
        drop(ours);
        let code = match range_of_child(theirs, &of_child) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("the forked host: {error}");
                1
            }
        };
        // SAFETY: runs the exit hooks, which is the point.
        unsafe { libc::exit(code) };
    }
    ensure(child > 0, || "no fork".to_owned())?;
    drop(theirs);
    let mut told = [0; 4];
    ours.read_exact(&mut told)?;
    let told = i32::from_ne_bytes(told);
    // A process that has just passed `execve` may have no arguments to show yet.
    eventually("it sleeps for the child", || sleepers(&of_child) == [told])?;
    ours.write_all(b"!")?;
    let mut status = 0;
    // SAFETY: the status is writable.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    equal("the child's end", (waited, status), (child, 0))?;
    crate::look::gone(&of_child)?;
    ensure_untouched(&execution, &number)?;
    equal("a run after it", run(&bash(&service)?, ExecRequest::new("exit 7"))?.exit_code, Some(7))?;
    equal("what the disposal could not stop", service.dispose().survivors, 0)?;
    crate::look::gone(&number)
}

/// Starts a range in a service of its own, tells its process, and comes back when the parent has seen it.
fn range_of_child(mut parent: UnixStream, number: &str) -> Outcome {
    let service = SubprocessService::new();
    let process = service.spawn(argv(["sleep", number]))?;
    parent.write_all(&process.pid().ok_or("no number")?.to_ne_bytes())?;
    parent.read_exact(&mut [0])?;
    // Nothing is dropped by the exit.
    std::mem::forget((service, process));
    Ok(())
}

/// T10: a fatal signal disposes first, and then ends the host as it would have.
pub(crate) fn dispose_on_signals(number: &str) -> Outcome {
    // Below nohup, or in the background of a script, a host is born with some of them ignored.
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let service = SubprocessService::new();
    let _guard = service.dispose_on_signals()?;
    let execution = range(&service, number)?;
    fact("ready", number);
    execution.wait();
    // The test's signal ends this process; one that survives it is told from one that died.
    std::thread::sleep(crate::expect::PATIENCE);
    Err("the signal did not end the host".into())
}

/// T10: a signal that the host ignores, as SIGHUP below nohup, ends nothing; the others do.
pub(crate) fn dispose_on_signals_below_nohup(number: &str) -> Outcome {
    for (signal, disposition) in [(libc::SIGHUP, libc::SIG_IGN), (libc::SIGTERM, libc::SIG_DFL)] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, disposition) };
    }
    let service = SubprocessService::new();
    let _guard = service.dispose_on_signals()?;
    equal("whether SIGHUP is ignored under the guard", ignores(libc::SIGHUP)?, true)?;
    equal("whether SIGTERM is", ignores(libc::SIGTERM)?, false)?;
    let execution = range(&service, number)?;
    // SAFETY: takes an integer. The signal is dropped before the call returns.
    unsafe { libc::raise(libc::SIGHUP) };
    ensure_untouched(&execution, number)?;
    equal("whether SIGHUP is ignored after it came", ignores(libc::SIGHUP)?, true)?;
    let again = run(&bash(&service)?, ExecRequest::new("exit 7"))?;
    equal("the code after it", again.exit_code, Some(7))?;
    fact("ready", number);
    execution.wait();
    // As above.
    std::thread::sleep(crate::expect::PATIENCE);
    Err("the signal did not end the host".into())
}

/// Whether this process ignores the signal, as the kernel tells.
fn ignores(signal: libc::c_int) -> Outcome<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = crate::look::status_field(&status, "SigIgn").ok_or("no SigIgn")?;
    Ok(u64::from_str_radix(&mask, 16)? & (1 << (signal - 1)) != 0)
}

/// O8: a service with a spill file, until the host's stdin ends or the host is killed.
pub(crate) fn spill(root: &str, number: &str) -> Outcome {
    let mut config = ServiceConfig::default();
    config.spill_root = root.into();
    let service = SubprocessService::with_config(config);
    let bash = bash_with(&service, |config| config.output_max_bytes = 1_000)?;
    let result = run(&bash, ExecRequest::new("head -c 200000 /dev/zero"))?;
    let path =
        result.stdout.spill_path.ok_or_else(|| format!("no spill file: {:?}", result.stdout.spill_error))?;
    equal("the size", std::fs::metadata(&path)?.len(), 200_000)?;
    // Killed in the middle of a run, a host leaves its command behind; the test takes it down by closing its stdin.
    let live = execute(&bash, ExecRequest::new("head -c 5000 /dev/zero; cat").stdin_piped())?;
    let stdin = live.take_stdin().ok_or("no stdin")?;
    let observed = live.observed().ok_or("no readers")?;
    eventually("the live run spills", || observed.stdout.read_from(0).spill_path.is_some())?;
    fact("number", number);
    fact("spill", path.display());
    fact("ready", number);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(stdin);
    live.wait();
    service.dispose();
    ensure(!path.exists(), || format!("{} is still there", path.display()))
}
