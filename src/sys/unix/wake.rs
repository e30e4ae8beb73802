//! A descriptor that another thread can make readable, to end a `poll`.

use super::fd;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// An eventfd on Linux, a pipe elsewhere. Any number of [`notify`](Wake::notify) before one [`clear`](Wake::clear) count
/// as one.
#[derive(Debug)]
pub(crate) struct Wake {
    read: OwnedFd,
    /// The pipe's other end; `None` for an eventfd, which is written where it is read.
    write: Option<OwnedFd>,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Wake> {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: eventfd takes no pointer.
            let raw = fd::check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
            // SAFETY: the call above made the number.
            let read = unsafe { fd::adopt(raw) }?;
            Ok(Wake { read, write: None })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let (read, write) = super::pipe::raw_pipe()?;
            fd::set_nonblocking(read.as_fd())?;
            fd::set_nonblocking(write.as_fd())?;
            Ok(Wake { read, write: Some(write) })
        }
    }

    /// Makes the descriptor readable. Never blocks; a full pipe or counter is readable already.
    pub(crate) fn notify(&self) {
        let one = 1_u64.to_ne_bytes();
        let target = self.write.as_ref().unwrap_or(&self.read);
        // SAFETY: eight readable bytes, which is what an eventfd takes and a pipe accepts. Only EAGAIN is possible on an
        // open descriptor, and it means that a wake-up is pending.
        let _ = unsafe { libc::write(target.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes all pending wake-ups. To be called before looking at what the wake-up announced, never after.
    pub(crate) fn clear(&self) {
        let mut counter = [0_u8; 64];
        loop {
            // SAFETY: the array is writable for its length, and the descriptor does not block.
            let got =
                unsafe { libc::read(self.read.as_raw_fd(), counter.as_mut_ptr().cast(), counter.len()) };
            // An eventfd gives eight bytes once and then EAGAIN; a pipe is empty when it gives less than was asked.
            if !usize::try_from(got).is_ok_and(|got| got == counter.len()) {
                return;
            }
        }
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
