//! The gate: the one point between preparing a command and running it, which either the child passes or a canceller shuts.

use crate::sys::PidFd;
#[cfg(target_os = "linux")]
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
#[cfg(target_os = "linux")]
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

const AHEAD: u8 = 0;
const PASSED: u8 = 1;
const CANCELLED: u8 = 2;

/// Decides, once, whether the command starts.
///
/// The child passes it right before `execve` (it shares the host's memory until then); a deadline, an abort or a disposal
/// that comes first cancels it, and then the command never starts, however late preparation comes back.
#[derive(Debug)]
pub(crate) struct Gate {
    state: AtomicU8,
    /// The number of the child's process descriptor while `clone` has not returned, else -1. The child writes it before it
    /// does anything else, so whoever sees the gate passed sees the number too.
    in_flight: AtomicI32,
    /// Held to use the number, and to take it away: in between it names what it named.
    handover: Mutex<()>,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { state: AtomicU8::new(AHEAD), in_flight: AtomicI32::new(-1), handover: Mutex::new(()) }
    }
}

impl Gate {
    /// Goes through. `false` when it was cancelled: do not exec.
    pub(crate) fn pass(&self) -> bool {
        match self.state.compare_exchange(AHEAD, PASSED, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(found) => found == PASSED,
        }
    }

    /// Shuts it. `false` when the command has passed already, or somebody else has shut it.
    pub(crate) fn cancel(&self) -> bool {
        self.state.compare_exchange(AHEAD, CANCELLED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Whether it was shut: what has not been started yet need not be.
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::SeqCst) == CANCELLED
    }

    /// Ends a child that hangs between `clone` and `execve`, if one does.
    pub(crate) fn kill(&self) {
        // Held by somebody else, it is being used for the same, or the start has just come back.
        let Ok(_held) = self.handover.try_lock() else { return };
        let raw = self.in_flight.load(Ordering::SeqCst);
        if raw >= 0 {
            PidFd::kill_raw(raw);
        }
    }

    /// The child says by which descriptor it can be ended; -1 for none.
    #[cfg(target_os = "linux")]
    pub(super) fn announce(&self, pidfd: RawFd) {
        self.in_flight.store(pidfd, Ordering::SeqCst);
    }

    /// Takes the descriptor that the child has announced, once `clone` has succeeded.
    #[cfg(target_os = "linux")]
    pub(super) fn take_in_flight(&self) -> Option<OwnedFd> {
        let _held = self.handover.lock().unwrap_or_else(PoisonError::into_inner);
        let raw = self.in_flight.swap(-1, Ordering::SeqCst);
        // SAFETY: a child has announced the number, so `clone` succeeded and made it; the swap has made it ours alone.
        (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw) })
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;

    // E6
    #[test]
    fn whoever_comes_first_decides() {
        let passed = Gate::default();
        assert!(passed.pass());
        assert!(!passed.cancel());
        assert!(passed.pass(), "a second candidate path goes through the same gate");
        let shut = Gate::default();
        assert!(shut.cancel());
        assert!(!shut.cancel());
        assert!(!shut.pass());
    }
}
