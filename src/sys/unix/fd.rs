//! Descriptors that are ours: never 0, 1 or 2, never inherited, never interrupted.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The call's result, or the errno it left.
pub(in crate::sys) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Repeats a call that a signal interrupted.
pub(in crate::sys) fn retry(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        let result = call();
        if result >= 0 {
            return Ok(result.unsigned_abs());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Moves a descriptor out of the places of the standard streams.
///
/// In a host that closed 0, 1 or 2 the kernel hands those numbers out again: what the host then prints would land in our
/// pipe, and the child's `dup2` onto 0, 1, 2 would overwrite its own source.
pub(in crate::sys) fn lift(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    // SAFETY: `fd` is open for the whole call; F_DUPFD_CLOEXEC takes no pointer.
    let raised = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the call just made `raised`, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(raised) })
}

/// Takes a descriptor that a system call just made, as ours from this line on.
///
/// # Safety
///
/// `raw` is open, and nothing else owns it.
pub(in crate::sys) unsafe fn adopt(raw: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    lift(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Makes reads and writes through `fd` return at once. The other end of a pipe is not affected: each end has an open
/// file description of its own.
pub(in crate::sys) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: F_GETFL takes no pointer, and `fd` is open.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: F_SETFL takes an integer, and `fd` is open.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
    Ok(())
}

/// Runs `work` while the places of the standard streams are taken, so that descriptors which others make in it do not
/// end up there.
pub(crate) fn above_standard_streams<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let mut taken = Vec::new();
    loop {
        let file = File::open("/dev/null")?;
        if file.as_raw_fd() > 2 {
            break;
        }
        taken.push(file);
    }
    Ok(work())
}

/// One read into the spare capacity of `buffer`, whose old contents are dropped. `Ok(0)` is the end of the stream.
///
/// # Errors
///
/// `WouldBlock` when a non-blocking descriptor has nothing to give.
pub(crate) fn read_spare(fd: BorrowedFd<'_>, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    buffer.clear();
    let room = buffer.capacity().min(most);
    let start = buffer.as_mut_ptr();
    let got = retry(|| {
        // SAFETY: `start` has `room` bytes of capacity behind it, which nobody else reads or writes during the call.
        unsafe { libc::read(fd.as_raw_fd(), start.cast(), room) }
    })?;
    // SAFETY: the kernel has initialised the first `got` bytes, and `got` is at most the capacity.
    unsafe { buffer.set_len(got) };
    Ok(got)
}

/// One write. The thread must have SIGPIPE blocked; ours all have.
///
/// # Errors
///
/// `WouldBlock` when the pipe is full, `BrokenPipe` when nobody reads it.
pub(crate) fn write_nonblocking(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the slice is readable for its length during the call.
    retry(|| unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })
}

/// `/dev/null`, for reading or for writing.
pub(crate) fn open_null(write: bool) -> io::Result<OwnedFd> {
    let file: File = OpenOptions::new().read(!write).write(write).open("/dev/null")?;
    lift(file.into())
}

/// A copy of the host's standard stream `number`, or `/dev/null` where the host has closed it.
pub(crate) fn duplicate_std(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes no pointer; a number that is not open gives EBADF.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    match check(copy) {
        // SAFETY: the call above made the number.
        Ok(raw) => unsafe { adopt(raw) },
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => open_null(number != 0),
        Err(error) => Err(error),
    }
}
