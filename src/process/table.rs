//! One look at the process table for all who ask at the same time.
//!
//! A look that began after the question answers it, whoever took it. When a thousand ranges are stopped together, each
//! wants to know who is left; one look serves all that wait, and the next serves those who came meanwhile.

use crate::sys::ProcessTable;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The looks taken so far.
struct Looks {
    state: Mutex<State>,
    finished: Condvar,
}

struct State {
    /// How many have begun.
    begun: u64,
    /// Whether the last of them is going on.
    going_on: bool,
    /// What the last one that succeeded has seen, and which it was.
    latest: Option<(u64, Arc<ProcessTable>)>,
}

static LOOKS: Looks =
    Looks { state: Mutex::new(State { begun: 0, going_on: false, latest: None }), finished: Condvar::new() };

/// The whole table, as of a moment after this call began.
///
/// # Errors
///
/// As [`ProcessTable::read`], when this thread had to take the look itself.
pub(super) fn look() -> io::Result<Arc<ProcessTable>> {
    LOOKS.look(ProcessTable::read)
}

impl Looks {
    fn look(&self, read: impl Fn() -> io::Result<ProcessTable>) -> io::Result<Arc<ProcessTable>> {
        let mut state = self.lock();
        // One that is going on may have passed by already what has changed before this call.
        let wanted = state.begun + 1;
        loop {
            match &state.latest {
                Some((number, table)) if *number >= wanted => return Ok(Arc::clone(table)),
                _ => {}
            }
            if !state.going_on {
                break;
            }
            state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.begun += 1;
        state.going_on = true;
        let number = state.begun;
        drop(state);
        let table = read().map(Arc::new);
        let mut state = self.lock();
        state.going_on = false;
        // Kept only for those who wait now; they take it, or one of them looks again.
        state.latest = table.as_ref().ok().map(|table| (number, Arc::clone(table)));
        drop(state);
        self.finished.notify_all();
        table
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;

    // T5
    #[test]
    fn who_asks_during_a_look_gets_the_next_one_and_shares_it() {
        let looks = Looks {
            state: Mutex::new(State { begun: 0, going_on: false, latest: None }),
            finished: Condvar::new(),
        };
        let taken = AtomicUsize::new(0);
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let (looks, taken) = (&looks, &taken);
        thread::scope(|scope| {
            scope.spawn(move || {
                looks.look(|| {
                    taken.fetch_add(1, Ordering::SeqCst);
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    ProcessTable::read()
                })
            });
            has_begun.recv().unwrap();
            let late: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        looks.look(|| {
                            taken.fetch_add(1, Ordering::SeqCst);
                            ProcessTable::read()
                        })
                    })
                })
                .collect();
            go_on.send(()).unwrap();
            for asked in late {
                let us = i32::try_from(std::process::id()).unwrap();
                let table = asked.join().unwrap().unwrap();
                assert!(table.entries().iter().any(|entry| entry.pid == us));
            }
        });
        let taken = taken.load(Ordering::SeqCst);
        assert!((2..=9).contains(&taken), "the first look serves nobody who came after it began: {taken}");
    }

    // T11: an error is its own taker's, and the next look is not spoilt by it
    #[test]
    fn a_failed_look_serves_nobody() {
        let looks = Looks {
            state: Mutex::new(State { begun: 0, going_on: false, latest: None }),
            finished: Condvar::new(),
        };
        assert!(looks.look(|| Err(io::Error::from(io::ErrorKind::OutOfMemory))).is_err());
        assert!(looks.look(ProcessTable::read).is_ok());
    }
}
