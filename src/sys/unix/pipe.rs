//! Pipes: the only thing a command's standard streams ever are (`/dev/stdin` on a socket does not open).

use super::fd::{adopt, check, set_nonblocking};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One pipe between the host and a child: the end that stays, and the end that goes.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) ours: OwnedFd,
    pub(crate) theirs: OwnedFd,
}

/// A pipe the child writes; our end does not block when `nonblocking`.
pub(crate) fn output_pipe(nonblocking: bool) -> io::Result<Pipe> {
    let (read, write) = raw_pipe()?;
    if nonblocking {
        set_nonblocking(read.as_fd())?;
    }
    Ok(Pipe { ours: read, theirs: write })
}

/// A pipe the child reads; our end does not block when `nonblocking`.
pub(crate) fn input_pipe(nonblocking: bool) -> io::Result<Pipe> {
    let (read, write) = raw_pipe()?;
    if nonblocking {
        set_nonblocking(write.as_fd())?;
    }
    Ok(Pipe { ours: write, theirs: read })
}

/// Both ends of a new pipe, read end first, close-on-exec.
pub(super) fn raw_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    #[cfg(not(target_vendor = "apple"))]
    // SAFETY: `ends` is writable for two numbers.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    #[cfg(target_vendor = "apple")]
    {
        // Without pipe2 the two descriptors are inheritable until the next lines; a child that the host itself starts
        // in between keeps them. Ours do not: they close everything above 2.
        // SAFETY: `ends` is writable for two numbers.
        check(unsafe { libc::pipe(ends.as_mut_ptr()) })?;
        for end in ends {
            // SAFETY: the number is open, and F_SETFD takes an integer.
            check(unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) })?;
        }
    }
    // Both numbers are owned before either can fail to be lifted.
    // SAFETY: the call above made the number.
    let read = unsafe { adopt(ends[0]) };
    // SAFETY: the call above made the number.
    let write = unsafe { adopt(ends[1]) };
    Ok((read?, write?))
}

/// Asks for a pipe of `bytes`. Memory for pipes is rationed per user, so a refusal (EPERM, EBUSY) is normal and changes
/// nothing. `false` where the pipe kept its size.
pub(crate) fn grow(fd: BorrowedFd<'_>, bytes: usize) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let Ok(bytes) = libc::c_int::try_from(bytes) else { return false };
        // SAFETY: F_SETPIPE_SZ takes an integer, and `fd` is open.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) >= bytes }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (fd, bytes);
        false
    }
}
