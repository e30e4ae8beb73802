//! Hosts that fork workers which never become another program: each has copies of all the descriptors of its moment.

use crate::commands::argv;
use crate::expect::{Outcome, equal, fact};
use crate::look::Belongings;
use shell_executor::SubprocessService;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// At most so many, each in the middle of a start.
const WORKERS: usize = 60;

/// E1, T1: no start waits for a worker that was forked in the middle of it.
pub(crate) fn forks_beside_starts(rounds: usize) -> Outcome {
    let before = Belongings::now();
    let service = SubprocessService::new();
    let (starting, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let (workers, started) = std::thread::scope(|scope| {
        let forker = scope.spawn(|| fork_workers(&starting, &done));
        let started = start(&service, rounds, &starting);
        done.store(true, Ordering::SeqCst);
        (forker.join().unwrap_or_default(), started)
    });
    let alive = workers.0.iter().filter(|&&pid| is_running(pid)).count();
    let forked = workers.0.len();
    drop(workers);
    started?;
    fact("forked", forked);
    equal("the workers that have lived on", alive, forked)?;
    equal("what the disposal could not stop", service.dispose().survivors, 0)?;
    before.ensure_as_before()
}

fn start(service: &SubprocessService, rounds: usize, starting: &AtomicBool) -> Outcome {
    for _ in 0..rounds {
        starting.store(true, Ordering::SeqCst);
        let process = service.spawn(argv(["true"]));
        starting.store(false, Ordering::SeqCst);
        // A worker may hold the streams, which is never an error.
        equal("the code", process?.result()?.exit_code, Some(0))?;
    }
    Ok(())
}

/// The workers, which end with this.
#[derive(Default)]
struct Workers(Vec<libc::pid_t>);

impl Drop for Workers {
    fn drop(&mut self) {
        for &pid in &self.0 {
            // SAFETY: integers only; the worker is our child, and unreaped.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            // SAFETY: a null status is allowed.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        }
    }
}

fn fork_workers(starting: &AtomicBool, done: &AtomicBool) -> Workers {
    let mut workers = Workers::default();
    while workers.0.len() < WORKERS && !done.load(Ordering::SeqCst) {
        if !starting.load(Ordering::SeqCst) {
            std::thread::yield_now();
            continue;
        }
        // Each at another point of a start.
        let into = u64::try_from(workers.0.len() % 20).unwrap_or_default() * 40;
        let until = Instant::now() + Duration::from_micros(into);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        // SAFETY: the child makes system calls only.
        let child = unsafe { libc::fork() };
        if child == 0 {
            work();
        }
        if child > 0 {
            workers.0.push(child);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    workers
}

fn work() -> ! {
    // SAFETY: takes an integer. Its signal ends a worker whose host was killed by the watchdog.
    unsafe { libc::alarm(120) };
    loop {
        // SAFETY: takes nothing.
        unsafe { libc::pause() };
    }
}

fn is_running(pid: libc::pid_t) -> bool {
    // SAFETY: a null status is allowed. One that has ended is reaped by this, and told from one that has not.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) == 0 }
}
