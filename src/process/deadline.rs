//! The deadline thread: one for all executions of a service, asleep until something is due.

use crate::sys;
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Instant;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// The deadline of the execution.
    Deadline,
    /// The end of the time in which an offer can be answered.
    AnswerWindow,
    /// The end of the patience with a start that was cancelled and has not come back.
    HungStart,
}

/// Somebody who has something due. Called on the deadline thread with no lock held; must not block.
pub(crate) trait Timed: Send + Sync {
    fn due(&self, what: Due);
}

/// The place of one entry, for taking it back. The number tells entries of the same instant apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(Instant, u64);

/// All that is due later.
///
/// Arming and disarming take a lock and wake nobody, unless the new entry is the soonest: an order that tells the thread
/// of each would cost every execution two wake-ups of a thread that has nothing to do.
#[derive(Default)]
pub(crate) struct Deadlines {
    table: Arc<Mutex<Table>>,
    thread: Mutex<Thread>,
}

#[derive(Default)]
enum Thread {
    #[default]
    NotNeeded,
    Running {
        orders: Sender<Order>,
        handle: JoinHandle<()>,
    },
    Stopped,
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<Ticket, Entry>,
    next: u64,
}

struct Entry {
    target: Weak<dyn Timed>,
    what: Due,
}

#[derive(Debug, Clone, Copy)]
enum Order {
    /// Look again: something is due sooner than you thought.
    Sooner,
    Stop,
}

impl Deadlines {
    /// Has `target` told at `at`, and starts the thread if this is the first entry of all.
    ///
    /// # Errors
    ///
    /// When the thread cannot be started, or has been stopped; then nothing is armed.
    pub(crate) fn arm(&self, at: Instant, what: Due, target: Weak<dyn Timed>) -> io::Result<Ticket> {
        let orders = self.orders()?;
        let (ticket, soonest) = {
            let mut table = lock(&self.table);
            let ticket = Ticket(at, table.next);
            table.next += 1;
            table.entries.insert(ticket, Entry { target, what });
            (ticket, table.entries.first_key_value().is_some_and(|(first, _)| *first == ticket))
        };
        if soonest {
            // Full means that the thread has an order to look again already, or is on its way to one.
            let _ = orders.try_send(Order::Sooner);
        }
        Ok(ticket)
    }

    /// Takes an entry back. One that is due already may be told all the same.
    pub(crate) fn disarm(&self, ticket: Ticket) {
        // The entry is dropped after the lock.
        let _entry = lock(&self.table).entries.remove(&ticket);
    }

    /// Ends the thread, if it ever started, and waits for it. Nothing armed is told any more.
    pub(crate) fn stop(&self) {
        let before = std::mem::replace(
            &mut *self.thread.lock().unwrap_or_else(PoisonError::into_inner),
            Thread::Stopped,
        );
        if let Thread::Running { orders, handle } = before {
            // The thread always comes back to its channel, so a full one is emptied soon.
            let _ = orders.send(Order::Stop);
            // It catches what its targets throw, so there is no panic to pass on.
            let _ = handle.join();
        }
        lock(&self.table).entries.clear();
    }

    fn orders(&self) -> io::Result<Sender<Order>> {
        // Held while the thread is made, once in the life of a service, so that two first entries make one.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        match &*thread {
            Thread::Running { orders, .. } => return Ok(orders.clone()),
            Thread::Stopped => return Err(io::Error::other("the deadline thread has been stopped")),
            Thread::NotNeeded => {}
        }
        let (orders, received) = bounded(1);
        let table = Arc::clone(&self.table);
        let handle = sys::spawn_thread("shx-deadline", move || {
            loop {
                let (due, next) = split_due(&table, Instant::now());
                if !due.is_empty() {
                    for Entry { target, what } in due {
                        if let Some(target) = target.upgrade() {
                            // A panic here is a defect; it must not take everybody else's deadlines with it.
                            let told = std::panic::AssertUnwindSafe(|| target.due(what));
                            let _ = std::panic::catch_unwind(told);
                        }
                    }
                    continue;
                }
                let order = match next {
                    Some(at) => received.recv_deadline(at),
                    None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match order {
                    Ok(Order::Sooner) | Err(RecvTimeoutError::Timeout) => {}
                    Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        *thread = Thread::Running { orders: orders.clone(), handle };
        Ok(orders)
    }
}

/// Takes what is due at `now` out of the table, soonest first, and says when the next is.
fn split_due(table: &Mutex<Table>, now: Instant) -> (Vec<Entry>, Option<Instant>) {
    let mut table = lock(table);
    let mut due = Vec::new();
    while let Some(first) = table.entries.first_entry() {
        if first.key().0 > now {
            return (due, Some(first.key().0));
        }
        due.push(first.remove());
    }
    (due, None)
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Deadlines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deadlines").field("entries", &lock(&self.table).entries.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::mpsc;
    use std::time::Duration;

    struct Told(Mutex<mpsc::Sender<Due>>);

    impl Timed for Told {
        fn due(&self, what: Due) {
            let _ = self.0.lock().unwrap().send(what);
        }
    }

    fn target() -> (Arc<dyn Timed>, mpsc::Receiver<Due>) {
        let (sender, receiver) = mpsc::channel();
        (Arc::new(Told(Mutex::new(sender))), receiver)
    }

    // C7
    #[test]
    fn a_sooner_entry_overtakes_and_a_disarmed_one_is_not_told() {
        let deadlines = Deadlines::default();
        let (target, told) = target();
        let arm = |after, what| {
            deadlines
                .arm(Instant::now() + Duration::from_millis(after), what, Arc::downgrade(&target))
                .unwrap()
        };
        arm(3_600_000, Due::Deadline);
        let taken_back = arm(20, Due::HungStart);
        arm(40, Due::AnswerWindow);
        deadlines.disarm(taken_back);
        assert_eq!(told.recv().unwrap(), Due::AnswerWindow);
        deadlines.stop();
        assert!(told.try_recv().is_err());
        deadlines.stop();
    }

    // C7: a target that is gone is not told, and keeps nothing alive
    #[test]
    fn an_entry_does_not_keep_its_target() {
        let deadlines = Deadlines::default();
        let (target, told) = target();
        deadlines
            .arm(Instant::now() + Duration::from_secs(3600), Due::Deadline, Arc::downgrade(&target))
            .unwrap();
        drop(target);
        assert!(told.recv().is_err(), "the sender went with the target");
        deadlines.stop();
    }

    proptest! {
        // C7: against a sorted list
        #[test]
        fn what_is_due_is_what_a_sorted_list_says(times in proptest::collection::vec(0_u64..20, 0..40), at in 0_u64..20) {
            let base = Instant::now();
            let table = Mutex::new(Table::default());
            let (target, told) = target();
            for &time in &times {
                let mut table = lock(&table);
                let ticket = Ticket(base + Duration::from_secs(time), table.next);
                table.next += 1;
                table.entries.insert(ticket, Entry { target: Arc::downgrade(&target), what: Due::Deadline });
            }
            let (due, next) = split_due(&table, base + Duration::from_secs(at));
            prop_assert_eq!(due.len(), times.iter().filter(|&&time| time <= at).count());
            let later = times.iter().filter(|&&time| time > at).min();
            prop_assert_eq!(next, later.map(|&time| base + Duration::from_secs(time)));
            drop(told);
        }
    }
}
