//! Waiting for any of several descriptors, with a timeout in nanoseconds where the kernel has one.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// What to wait for on one descriptor. The far end's hang-up always counts as well.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Interest {
    Readable,
    Writable,
}

/// The descriptors of one wait. Its storage is kept from wait to wait, so that a loop allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct PollSet {
    entries: Vec<libc::pollfd>,
}

impl PollSet {
    /// Forgets all descriptors.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// How many descriptors there are: the slot of the next.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds one descriptor, and gives the slot to ask [`ready`](PollSet::ready) about.
    pub(crate) fn add(&mut self, fd: BorrowedFd<'_>, interest: Interest) -> usize {
        let events = match interest {
            Interest::Readable => libc::POLLIN,
            Interest::Writable => libc::POLLOUT,
        };
        self.entries.push(libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 });
        self.entries.len() - 1
    }

    /// Blocks until a descriptor is ready or the time is over; `None` is for ever. A signal ends the wait early, with
    /// nothing ready. The descriptors added must still be open: the caller holds them.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        // The count fits: nobody has 2^32 descriptors.
        let count = self.entries.len() as libc::nfds_t;
        #[cfg(any(target_os = "linux", target_os = "freebsd"))]
        let result = {
            let limit = timeout.map(|left| libc::timespec {
                // A time beyond what the kernel can count to: a wait of 68 years will do.
                tv_sec: i32::try_from(left.as_secs()).unwrap_or(i32::MAX).into(),
                tv_nsec: left.subsec_nanos().into(),
            });
            let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            // SAFETY: `entries` is a writable array of `count` entries; `limit` is null or points to a live timespec; a
            // null mask leaves the thread's mask alone.
            unsafe { libc::ppoll(self.entries.as_mut_ptr(), count, limit, std::ptr::null()) }
        };
        #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
        let result = {
            // Rounded up: a wait that ends a fraction early would spin.
            let limit = timeout.map_or(-1, |left| {
                libc::c_int::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX)
            });
            // SAFETY: `entries` is a writable array of `count` entries.
            unsafe { libc::poll(self.entries.as_mut_ptr(), count, limit) }
        };
        match super::fd::check(result) {
            Ok(_) => Ok(()),
            Err(error) => {
                for entry in &mut self.entries {
                    entry.revents = 0;
                }
                if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Has every slot count as ready, after a wait that could not be made.
    pub(crate) fn assume_ready(&mut self) {
        for entry in &mut self.entries {
            entry.revents = libc::POLLERR;
        }
    }

    /// Whether the last wait found this slot ready, hung up or in error.
    pub(crate) fn ready(&self, slot: usize) -> bool {
        self.entries.get(slot).is_some_and(|entry| entry.revents != 0)
    }
}
