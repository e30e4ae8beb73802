//! A process descriptor: a process by identity, where a number could be somebody else by now (since Linux 5.3).

use crate::sys::unix::fd::{adopt, check, lift};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Since Linux 6.9: the signal goes to the group that the process leads, found by identity and not by number.
const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 1 << 2;
/// Since Linux 6.15: how a process ended that has been reaped.
const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, struct pidfd_info)` with the structure's first published size, 64 bytes.
const PIDFD_GET_INFO: u32 = (3 << 30) | (64 << 16) | (0xFF << 8) | 11;

/// The first published `struct pidfd_info` of the kernel's `uapi/linux/pidfd.h`.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup_id: u64,
    /// pid, tgid, ppid, and the eight user and group ids.
    ids: [u32; 11],
    exit_code: i32,
}

/// What a process descriptor tells of a process that has been reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sys) enum Told {
    /// Its wait status (since Linux 6.15).
    Status(i32),
    /// Nothing, at this moment or for ever: before 6.15 the kernel knows the question, but not this answer.
    NotYet,
    Never,
}

/// Readable in `poll` once the process has ended, reaped or not.
#[derive(Debug)]
pub(crate) struct PidFd(OwnedFd);

impl PidFd {
    /// # Errors
    ///
    /// ESRCH where no process has this number; ENOSYS (and EPERM in old container profiles) where the kernel has no such
    /// call.
    pub(crate) fn open(pid: i32) -> io::Result<PidFd> {
        // SAFETY: pidfd_open takes two integers.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let raw = check(i32::try_from(raw).unwrap_or(-1))?;
        // SAFETY: the call above made the number.
        Ok(PidFd(unsafe { adopt(raw) }?))
    }

    /// Whether `open` failed because the number is a thread's that leads no process, or nobody's.
    pub(crate) fn is_no_process(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT | libc::ESRCH))
    }

    /// Whether `open` failed because no descriptor is free.
    pub(crate) fn is_shortage(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
    }

    /// Takes the descriptor that `clone` left with `CLONE_PIDFD`.
    pub(in crate::sys) fn from_clone(fd: OwnedFd) -> io::Result<PidFd> {
        Ok(PidFd(lift(fd)?))
    }

    /// Signals the process; 0 only asks.
    ///
    /// # Errors
    ///
    /// ESRCH once it has been reaped, EPERM for a process of another user.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        self.send(signal, 0)
    }

    /// Signals every member of the process group with this process's number, reaped leader or not.
    ///
    /// # Errors
    ///
    /// ESRCH when the group is empty, EPERM when no member may be signalled, EINVAL before Linux 6.9.
    pub(in crate::sys) fn signal_group(&self, signal: i32) -> io::Result<()> {
        self.send(signal, PIDFD_SIGNAL_PROCESS_GROUP)
    }

    fn send(&self, signal: i32, flags: libc::c_uint) -> io::Result<()> {
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open, and a null siginfo asks for what kill would send.
        let result =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal, none, flags) };
        check(i32::try_from(result).unwrap_or(-1)).map(drop)
    }

    /// The wait status of a process that somebody else, or the kernel for an ignored SIGCHLD, has reaped.
    pub(in crate::sys) fn status_after_reap(&self) -> Told {
        let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
        // The C libraries disagree about the request's type; its 32 bits are the same.
        let request = PIDFD_GET_INFO as _;
        // SAFETY: the request's size field is that of `info`, which is writable.
        let result = check(unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw mut info) });
        match result {
            Ok(_) if info.mask & PIDFD_INFO_EXIT != 0 => Told::Status(info.exit_code),
            Ok(_) => Told::NotYet,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Told::NotYet,
            // Before Linux 6.13 there is no such question, and a filter may forbid it.
            Err(_) => Told::Never,
        }
    }

    /// Kills through the number of a descriptor that is still being handed over by `clone`.
    ///
    /// The caller holds the lock under which the number is taken away from its place, so it is open and this process's.
    pub(crate) fn kill_raw(raw: i32) {
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: integers and a null pointer; on a number that is no process descriptor the call answers EBADF.
        let _ = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, raw, libc::SIGKILL, none, 0) };
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
