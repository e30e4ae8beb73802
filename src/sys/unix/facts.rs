//! What the kernel offers here, found out by trying: each probe leaves no process, no descriptor and no file behind.

use std::io;
use std::mem::MaybeUninit;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::*;

/// How much of something this process may use, and how far it may raise that; `None` without a limit.
pub(crate) type Limit = (Option<u64>, Option<u64>);

/// Open descriptors of this process.
pub(crate) fn open_files_limit() -> io::Result<Limit> {
    // SAFETY: `place` is writable.
    limit(|place| unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, place) })
}

/// Processes and threads of this user.
pub(crate) fn processes_limit() -> io::Result<Limit> {
    // SAFETY: `place` is writable.
    limit(|place| unsafe { libc::getrlimit(libc::RLIMIT_NPROC, place) })
}

fn limit(ask: impl FnOnce(*mut libc::rlimit) -> libc::c_int) -> io::Result<Limit> {
    let mut limit = MaybeUninit::uninit();
    super::fd::check(ask(limit.as_mut_ptr()))?;
    // SAFETY: the call has succeeded, so it has initialised the structure.
    let limit = unsafe { limit.assume_init() };
    #[allow(clippy::useless_conversion, reason = "FreeBSD counts with a sign")]
    let finite = |value: libc::rlim_t| u64::try_from(value).ok().filter(|_| value != libc::RLIM_INFINITY);
    Ok((finite(limit.rlim_cur), finite(limit.rlim_max)))
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::sys::PidFd;
    use crate::sys::linux::Told;
    use crate::sys::unix::fd::check;
    use crate::sys::unix::signal::with_all_blocked;
    use crate::sys::unix::wait;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::{FromRawFd, OwnedFd};

    /// A descriptor for a process by its number.
    pub(crate) fn pidfd_open() -> io::Result<()> {
        ourselves().map(drop)
    }

    /// Signalling the group that a process leads, through its descriptor.
    pub(crate) fn pidfd_group_signal() -> io::Result<()> {
        // Signal 0 reaches nobody. In a process that leads no group the group is empty, which only a kernel that knows
        // the flag finds out.
        match ourselves()?.signal_group(0) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            done => done,
        }
    }

    fn ourselves() -> io::Result<PidFd> {
        PidFd::open(crate::sys::process_id())
    }

    /// How a process ended, from its descriptor, after it has been reaped.
    pub(crate) fn pidfd_exit_info() -> io::Result<()> {
        let pidfd = brief_child(libc::CLONE_PIDFD)?.ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        match PidFd::from_clone(pidfd)?.status_after_reap() {
            Told::Status(_) => Ok(()),
            Told::NotYet | Told::Never => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    /// A user namespace of this user's own.
    pub(crate) fn user_namespace() -> io::Result<()> {
        brief_child(libc::CLONE_NEWUSER).map(drop)
    }

    pub(crate) fn clone3() -> io::Result<()> {
        let none = std::ptr::null::<libc::c_void>();
        // SAFETY: a structure of no bytes is not read. It is too short to make a process from, so the call always fails.
        let result = unsafe { libc::syscall(libc::SYS_clone3, none, 0_usize) };
        match check(i32::try_from(result).unwrap_or(-1)) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            done => done.map(drop),
        }
    }

    pub(crate) fn close_range() -> io::Result<()> {
        let last = libc::c_uint::MAX;
        // SAFETY: integers only; no descriptor can have this number, so none is closed.
        let result = unsafe { libc::syscall(libc::SYS_close_range, last, last, 0) };
        check(i32::try_from(result).unwrap_or(-1)).map(drop)
    }

    pub(crate) use crate::sys::linux::landlock_abi;

    /// The page limit of one user's pipes, above which new ones are small.
    pub(crate) fn user_pipe_pages_soft() -> Option<u64> {
        std::fs::read_to_string("/proc/sys/fs/pipe-user-pages-soft").ok()?.trim().parse().ok()
    }

    /// The child makes two calls at most.
    const STACK: usize = 16 * 1024;

    /// Of its own, so that the child cannot touch a frame of the thread that stands still for it.
    #[repr(C, align(16))]
    struct Stack(MaybeUninit<[u8; STACK]>);

    extern "C" fn leave(_: *mut libc::c_void) -> libc::c_int {
        // SAFETY: ends the child at once; nothing of the host's (buffers, exit hooks) is run.
        unsafe { libc::_exit(0) }
    }

    /// Makes a child with `flags` that ends at once, and sees it to its end. Its descriptor, if the flags ask for one and
    /// the kernel knows them.
    fn brief_child(flags: libc::c_int) -> io::Result<Option<OwnedFd>> {
        let mut stack = Stack(MaybeUninit::uninit());
        // SAFETY: one past the end of the array, which stays alive to the end of this function.
        let top = unsafe { stack.0.as_mut_ptr().cast::<u8>().add(STACK) };
        let flags = flags | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let mut raw: libc::c_int = -1;
        let slot = &raw mut raw;
        let nothing = std::ptr::null_mut();
        let cloned = with_all_blocked(|| {
            // SAFETY: the child runs `leave` on a stack nobody else uses; CLONE_VFORK holds this thread until it has
            // ended. Every signal is blocked, so no handler runs in the shared memory. The slot is an int for the kernel
            // to write.
            check(unsafe { libc::clone(leave, top.cast(), flags, nothing, slot) })
        });
        let pid = cloned?;
        // SAFETY: a slot that was written holds a descriptor that nobody else knows of.
        let pidfd = (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw) });
        // A status that somebody else has taken is as good as one taken here. The wait is for the child's last steps: a
        // thread held by CLONE_VFORK goes on a little before there is a status to take.
        let _ = wait::wait_noreap(pid);
        let _ = wait::look(pid, true);
        Ok(pidfd)
    }
}

/// What a Unix without Linux's facilities answers: that it has none.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;

    fn none<T>() -> io::Result<T> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(crate) fn pidfd_open() -> io::Result<()> {
        none()
    }

    pub(crate) fn pidfd_group_signal() -> io::Result<()> {
        none()
    }

    pub(crate) fn pidfd_exit_info() -> io::Result<()> {
        none()
    }

    pub(crate) fn user_namespace() -> io::Result<()> {
        none()
    }

    pub(crate) fn clone3() -> io::Result<()> {
        none()
    }

    pub(crate) fn close_range() -> io::Result<()> {
        none()
    }

    pub(crate) fn landlock_abi() -> io::Result<u32> {
        none()
    }

    pub(crate) fn user_pipe_pages_soft() -> Option<u64> {
        None
    }
}
