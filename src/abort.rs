//! The abort token: one switch, thrown once, that cuts short every execution it was given to.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Cuts executions short from outside.
///
/// Clones are the same token. It can be given to any number of requests, before or after it is fired; given after, it
/// spawns nothing. Firing starts the same ladder as a deadline: SIGTERM, the grace, SIGKILL. A run that has ended, and one
/// that was promoted, is no longer touched.
///
/// ```
/// let token = shell_executor::AbortToken::new();
/// assert!(token.fire());
/// assert!(!token.fire(), "only the first call fires");
/// assert!(token.is_fired());
/// ```
#[derive(Clone, Default)]
pub struct AbortToken(Arc<Switch>);

#[derive(Default)]
struct Switch {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fired: bool,
    next: u64,
    listeners: BTreeMap<u64, Weak<dyn OnAbort>>,
}

/// Somebody to tell. Called at most once, on the firing thread, with no lock of the token held.
pub(crate) trait OnAbort: Send + Sync {
    fn aborted(&self);
}

impl AbortToken {
    /// A token that has not been fired.
    #[must_use]
    pub fn new() -> AbortToken {
        AbortToken::default()
    }

    /// Fires it. `true` for the call that did; `false` when it was fired before, and then nothing happens.
    ///
    /// Returns as soon as every execution has been told; it does not wait for them to end.
    pub fn fire(&self) -> bool {
        let listeners = {
            let mut state = self.0.lock();
            if state.fired {
                return false;
            }
            state.fired = true;
            std::mem::take(&mut state.listeners)
        };
        for listener in listeners.into_values().filter_map(|listener| listener.upgrade()) {
            listener.aborted();
        }
        true
    }

    /// Whether it has been fired.
    #[must_use]
    pub fn is_fired(&self) -> bool {
        self.0.lock().fired
    }

    /// For providers of executions: has `call` made when the token fires, on the firing thread, for as long as the
    /// subscription lives; at once, on this thread, when it has fired already. It is made once at most, and should only
    /// pass the news on: [`fire`](AbortToken::fire) waits for it. A panic in it goes no further.
    ///
    /// A firing that has begun may still make the call while the subscription is dropped.
    ///
    /// ```
    /// use shell_executor::AbortToken;
    /// use std::sync::mpsc;
    ///
    /// let (token, (tell, told)) = (AbortToken::new(), mpsc::channel());
    /// let subscription = token.on_fire(move || drop(tell.send("fired")));
    /// token.fire();
    /// assert_eq!(told.recv(), Ok("fired"));
    /// # drop(subscription);
    /// ```
    pub fn on_fire(&self, call: impl FnOnce() + Send + 'static) -> AbortSubscription {
        let call = Arc::new(Call(Mutex::new(Some(Box::new(call)))));
        let listener: Arc<dyn OnAbort> = call.clone();
        let place = self.subscribe(Arc::downgrade(&listener));
        if place.is_none() {
            call.aborted();
        }
        AbortSubscription { _call: call, _place: place }
    }

    /// Has `listener` told when the token fires, for as long as the subscription lives. `None` when it has fired already:
    /// then nobody will tell.
    pub(crate) fn subscribe(&self, listener: Weak<dyn OnAbort>) -> Option<Subscription> {
        let mut state = self.0.lock();
        if state.fired {
            return None;
        }
        let id = state.next;
        state.next += 1;
        state.listeners.insert(id, listener);
        Some(Subscription { switch: Arc::clone(&self.0), id })
    }
}

impl Switch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AbortToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortToken").field("fired", &self.is_fired()).finish_non_exhaustive()
    }
}

/// A listener's place; dropping it gives the place up, so that a long-lived token does not collect dead ones.
pub(crate) struct Subscription {
    switch: Arc<Switch>,
    id: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.switch.lock().listeners.remove(&self.id);
    }
}

/// Keeps [`AbortToken::on_fire`] in force.
#[must_use = "dropped, nobody is told"]
pub struct AbortSubscription {
    /// The token knows it only for as long as somebody else does.
    _call: Arc<Call>,
    _place: Option<Subscription>,
}

impl fmt::Debug for AbortSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortSubscription").finish_non_exhaustive()
    }
}

type Once = Box<dyn FnOnce() + Send>;

/// A caller's own listener.
struct Call(Mutex<Option<Once>>);

impl OnAbort for Call {
    fn aborted(&self) {
        let call = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(call) = call {
            // The others have to be told all the same, and nothing of ours is half changed by it.
            let _ = catch_unwind(AssertUnwindSafe(call));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl OnAbort for Counter {
        fn aborted(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn every_listener_is_told_once_and_a_dropped_one_never() {
        let token = AbortToken::new();
        let (kept, dropped) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
        let as_listener = |counter: &Arc<Counter>| {
            let counter: Arc<dyn OnAbort> = counter.clone();
            Arc::downgrade(&counter)
        };
        let _place = token.subscribe(as_listener(&kept)).unwrap();
        drop(token.subscribe(as_listener(&dropped)).unwrap());
        assert!(token.clone().fire());
        assert!(!token.fire());
        assert_eq!(kept.0.load(Ordering::SeqCst), 1);
        assert_eq!(dropped.0.load(Ordering::SeqCst), 0);
        assert!(token.subscribe(as_listener(&kept)).is_none(), "too late to be told");
    }

    // X2
    #[test]
    fn a_call_is_made_once_and_its_panic_reaches_nobody() {
        let (token, calls) = (AbortToken::new(), Arc::new(AtomicUsize::new(0)));
        let count = |calls: &Arc<AtomicUsize>| {
            let calls = Arc::clone(calls);
            move || {
                calls.fetch_add(1, Ordering::SeqCst);
            }
        };
        let _panics = token.on_fire(|| panic!("on purpose"));
        let _kept = token.on_fire(count(&calls));
        drop(token.on_fire(count(&calls)));
        assert!(token.fire());
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        let _late = token.on_fire(count(&calls));
        assert_eq!(calls.load(Ordering::SeqCst), 2, "it had fired: told at once");
    }
}
