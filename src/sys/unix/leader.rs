//! The leader: our own child, with the one rule that its number is never used once it may be somebody else's.

use super::wait::{self, Exit, Waited};
use super::{PidFd, Told, Wake};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A child that leads its session and process group, from its birth to its reaping.
///
/// An unreaped child keeps its number, and with it the numbers of its group and session, out of circulation. `reaped` is
/// the lock under which it stops being so: whoever signals by number holds it, and so does the reaper.
#[derive(Debug)]
pub(crate) struct Leader {
    pid: i32,
    pidfd: Option<PidFd>,
    reaped: Mutex<bool>,
}

impl Leader {
    pub(super) fn new(pid: i32, pidfd: Option<PidFd>) -> Leader {
        Leader { pid, pidfd, reaped: Mutex::new(false) }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Readable once the leader has ended; `None` where the kernel has no process descriptors, see
    /// [`watch_from_a_thread`](Leader::watch_from_a_thread).
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// How the leader ended, without reaping it. Where somebody else has reaped it, what the process descriptor still
    /// tells (since Linux 6.15); [`Waited::NotOurs`] when nobody tells any more.
    pub(crate) fn look(&self) -> io::Result<Waited> {
        let seen = {
            let reaped = self.lock();
            if *reaped { Waited::NotOurs } else { wait::look(self.pid, false)? }
        };
        // The descriptor needs no number, so this waits without the lock.
        Ok(if seen == Waited::NotOurs { self.look_behind_the_reaper() } else { seen })
    }

    fn look_behind_the_reaper(&self) -> Waited {
        /// The reaper takes the child away in one moment, and the status can be asked for in the next.
        const TRIES: usize = 100;
        const PAUSE: Duration = Duration::from_micros(100);
        let Some(pidfd) = &self.pidfd else { return Waited::NotOurs };
        for _ in 0..TRIES {
            match pidfd.status_after_reap() {
                Told::Status(status) => return Waited::Ended(wait::from_status(status), None),
                Told::NotYet => std::thread::sleep(PAUSE),
                Told::Never => break,
            }
        }
        Waited::NotOurs
    }

    /// Gives the leader's number back, if it has ended. Called twice, or on a running leader, it does nothing.
    pub(crate) fn reap(&self) {
        let mut reaped = self.lock();
        if !*reaped {
            *reaped = matches!(wait::look(self.pid, true), Ok(Waited::Ended(..) | Waited::NotOurs));
        }
    }

    /// Whether the number is still the leader's, alive or a zombie, for as long as the caller does not let it be reaped.
    pub(crate) fn is_pinned(&self) -> bool {
        let reaped = self.lock();
        !*reaped && !matches!(wait::look(self.pid, false), Ok(Waited::NotOurs) | Err(_))
    }

    /// Signals every process of the leader's group.
    ///
    /// # Errors
    ///
    /// ESRCH when there is none, or none that can be named safely; EPERM when none of them may be signalled.
    pub(crate) fn signal_group(&self, signal: i32) -> io::Result<()> {
        if let Some(pidfd) = &self.pidfd {
            match pidfd.signal_group(signal) {
                // Before Linux 6.9 the flag is unknown, and a filter may refuse the call. Where EPERM is the members' own
                // answer, the other call gives it again.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EPERM)) => {}
                done => return done,
            }
        }
        let reaped = self.lock();
        if *reaped || matches!(wait::look(self.pid, false), Ok(Waited::NotOurs) | Err(_)) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // SAFETY: kill takes integers. The leader is ours and unreaped, and the lock keeps it so: the number is its.
        super::fd::check(unsafe { libc::kill(-self.pid, signal) }).map(drop)
    }

    /// Without process descriptors: a thread that blocks until the leader has ended, and then says so through `wake`.
    pub(crate) fn watch_from_a_thread(self: &Arc<Self>, wake: Arc<Wake>) -> io::Result<JoinHandle<()>> {
        let leader = Arc::clone(self);
        super::spawn_thread("shx-wait", move || {
            // The thread lives only while the leader is unreaped, so the number is its; any outcome is for `look`.
            let _ = wait::wait_noreap(leader.pid);
            wake.notify();
        })
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.reaped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exit {
    pub(crate) fn code(self) -> Option<i32> {
        match self {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) => None,
        }
    }

    pub(crate) fn signal(self) -> Option<i32> {
        match self {
            Exit::Code(_) => None,
            Exit::Signal(signal) => Some(signal),
        }
    }
}
