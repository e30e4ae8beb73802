//! How a child ended: seen without reaping it, so that its number stays ours, and reaped later.

use super::fd::check;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It exited with this code, 0 to 255.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

/// What the process used, its own waited-for children included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ResourceUse {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    pub(crate) max_rss_bytes: u64,
}

/// One look at a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    Running,
    Ended(Exit, Option<ResourceUse>),
    /// It is not, or no longer, a child to wait for: somebody else has reaped it, or the kernel for an ignored SIGCHLD.
    NotOurs,
}

/// Looks at one child, never at any other. With `reap` its number is free afterwards.
pub(super) fn look(pid: i32, reap: bool) -> io::Result<Waited> {
    wait(pid, libc::WEXITED | libc::WNOHANG | if reap { 0 } else { libc::WNOWAIT })
}

/// Blocks until the child has ended, and leaves it unreaped.
pub(super) fn wait_noreap(pid: i32) -> io::Result<Waited> {
    wait(pid, libc::WEXITED | libc::WNOWAIT)
}

fn wait(pid: i32, options: libc::c_int) -> io::Result<Waited> {
    // A pid is positive, so this keeps its value on every system.
    let id = pid as libc::id_t;
    loop {
        // A zeroed siginfo is how WNOHANG says "not yet": the call then leaves si_pid alone on some systems.
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        match check(waitid(id, info.as_mut_ptr(), options, usage.as_mut_ptr())) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Waited::NotOurs),
            Err(error) => return Err(error),
        }
        // SAFETY: all-zero bytes are a siginfo_t, and the kernel has written over them or not.
        let info = unsafe { info.assume_init() };
        // SAFETY: likewise for rusage.
        let usage = unsafe { usage.assume_init() };
        // SAFETY: a siginfo of waitid, or a zeroed one, has the child's fields.
        if unsafe { info.si_pid() } == 0 {
            return Ok(Waited::Running);
        }
        // SAFETY: likewise.
        let status = unsafe { info.si_status() };
        let exit = if info.si_code == libc::CLD_EXITED { Exit::Code(status) } else { Exit::Signal(status) };
        return Ok(Waited::Ended(exit, cfg!(target_os = "linux").then(|| resource_use(&usage))));
    }
}

/// waitid(2). Linux's own call has a fifth argument, which the C library hides: what the child used, even when it stays
/// unreaped.
fn waitid(
    id: libc::id_t,
    info: *mut libc::siginfo_t,
    options: libc::c_int,
    usage: *mut libc::rusage,
) -> libc::c_int {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: `info` and `usage` point to writable structures of the caller.
        let result = unsafe { libc::syscall(libc::SYS_waitid, libc::P_PID, id, info, options, usage) };
        i32::try_from(result).unwrap_or(-1)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = usage;
        // SAFETY: `info` points to a writable structure of the caller.
        unsafe { libc::waitid(libc::P_PID, id, info, options) }
    }
}

fn resource_use(usage: &libc::rusage) -> ResourceUse {
    let time = |value: libc::timeval| {
        let seconds = Duration::from_secs(u64::try_from(value.tv_sec).unwrap_or(0));
        seconds + Duration::from_micros(u64::try_from(value.tv_usec).unwrap_or(0))
    };
    // Linux counts in KiB, getrusage(2).
    let kib = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    ResourceUse { user: time(usage.ru_utime), system: time(usage.ru_stime), max_rss_bytes: kib * 1024 }
}

/// A status word as wait(2) lays it out.
pub(super) fn from_status(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}
