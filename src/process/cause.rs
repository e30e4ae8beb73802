//! Why an execution ended: the first cause wins, and stays.

use crate::sync::{AtomicU8, Ordering};

/// What ended an execution, or cut it short.
///
/// Exactly one cause is recorded for each execution, the first. It is independent of how the leader ended: a command that
/// traps SIGTERM and exits 0 after its deadline has the cause [`Timeout`](Cause::Timeout) and the exit code 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The leader ended by itself, by exiting or by a signal that this library did not send.
    Exit,
    /// The deadline passed, or an offer to keep the command was declined or not answered.
    Timeout,
    /// The caller's [`AbortToken`](crate::AbortToken) was fired.
    Abort,
    /// `kill()` was called.
    Kill,
    /// The service was disposed of.
    Disposal,
}

impl Cause {
    /// The cause in one lower-case word, as `shx run --json` prints it: `exit`, `timeout`, `abort`, `kill`, `disposal`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Exit => "exit",
            Cause::Timeout => "timeout",
            Cause::Abort => "abort",
            Cause::Kill => "kill",
            Cause::Disposal => "disposal",
        }
    }

    /// Whether the command was cut short by somebody, rather than ending by itself.
    pub(crate) fn is_cut(self) -> bool {
        self != Cause::Exit
    }

    const ALL: [Cause; 5] = [Cause::Exit, Cause::Timeout, Cause::Abort, Cause::Kill, Cause::Disposal];
}

const OPEN: u8 = u8::MAX;

/// The first-cause latch: any number of threads try, one wins, all others read.
#[derive(Debug)]
pub(crate) struct Latch(AtomicU8);

impl Latch {
    pub(crate) fn new() -> Latch {
        Latch(AtomicU8::new(OPEN))
    }

    /// Records `cause` if none is recorded yet. `true` for the one call that did.
    pub(crate) fn try_set(&self, cause: Cause) -> bool {
        // Acquire on failure, release on success: who reads a cause sees all that its winner did before winning.
        self.0.compare_exchange(OPEN, cause as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The recorded cause, if there is one.
    pub(crate) fn get(&self) -> Option<Cause> {
        Cause::ALL.get(usize::from(self.0.load(Ordering::Acquire))).copied()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // C1
    #[test]
    fn the_first_cause_stays() {
        for first in Cause::ALL {
            let latch = Latch::new();
            assert_eq!(latch.get(), None);
            assert!(latch.try_set(first));
            for later in Cause::ALL {
                assert!(!latch.try_set(later));
                assert_eq!(latch.get(), Some(first));
            }
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    // C1: in every interleaving of exit, timeout and abort exactly one wins, and all threads read that one.
    #[test]
    fn one_of_three_wins_and_all_agree() {
        loom::model(|| {
            let latch = Arc::new(Latch::new());
            let tries = [Cause::Timeout, Cause::Abort].map(|cause| {
                let latch = Arc::clone(&latch);
                thread::spawn(move || (latch.try_set(cause), latch.get()))
            });
            let exit = (latch.try_set(Cause::Exit), latch.get());
            let mut seen = vec![exit];
            seen.extend(tries.map(|thread| thread.join().unwrap()));
            assert_eq!(seen.iter().filter(|(won, _)| *won).count(), 1);
            let cause = latch.get();
            assert!(cause.is_some() && seen.iter().all(|(_, read)| *read == cause));
        });
    }

    // C1: what the winner wrote before winning is visible to whoever reads the cause.
    #[test]
    fn a_cause_carries_what_came_before_it() {
        use loom::sync::atomic::AtomicU8 as Fact;
        loom::model(|| {
            let latch = Arc::new(Latch::new());
            let fact = Arc::new(Fact::new(0));
            let writer = {
                let (latch, fact) = (Arc::clone(&latch), Arc::clone(&fact));
                thread::spawn(move || {
                    fact.store(7, Ordering::Relaxed);
                    latch.try_set(Cause::Timeout);
                })
            };
            if latch.get().is_some() {
                assert_eq!(fact.load(Ordering::Relaxed), 7);
            }
            writer.join().unwrap();
        });
    }
}
