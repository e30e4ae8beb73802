//! The host's exit: every range still alive is killed at once.

use super::service::Core;
use crate::sys;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::time::Duration;

/// The services whose ranges have to go with the host.
static SERVICES: Mutex<Vec<Weak<Core>>> = Mutex::new(Vec::new());
/// Set when the exit has begun: nothing is started any more.
static EXITING: AtomicBool = AtomicBool::new(false);
/// Whether the hook could be registered. A process that this one forks has it as well.
static HOOK: OnceLock<bool> = OnceLock::new();

/// Has the ranges of `core` killed when this process exits. The hook itself is registered once, with the first range of
/// all.
pub(super) fn register(core: &Arc<Core>) {
    // A process without room for one more hook runs its commands all the same; it only leaves them behind.
    HOOK.get_or_init(|| sys::at_exit(on_exit).is_ok());
    let mut services = SERVICES.lock().unwrap_or_else(PoisonError::into_inner);
    services.retain(|service| service.strong_count() > 0);
    services.push(Arc::downgrade(core));
}

/// Whether the host is exiting.
pub(super) fn exiting() -> bool {
    EXITING.load(Ordering::SeqCst)
}

/// Takes a lock in the hook. Other threads go on and give theirs back in a moment; but `exit` may have been called by a
/// signal handler on top of whoever holds it, and then it is never free: `None`.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    patiently(|| match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    })
}

/// Asks until there is an answer, for a second at most. Nothing else can be waited for while the host exits.
pub(super) fn patiently<T>(ask: impl Fn() -> Option<T>) -> Option<T> {
    const PAUSE: Duration = Duration::from_micros(200);
    const PAUSES: usize = 5000;
    for _ in 0..PAUSES {
        let answer = ask();
        if answer.is_some() {
            return answer;
        }
        std::thread::sleep(PAUSE);
    }
    None
}

extern "C" fn on_exit() {
    EXITING.store(true, Ordering::SeqCst);
    // A panic would abort the host in the middle of its exit; there is nobody left to tell.
    let _ = std::panic::catch_unwind(|| {
        let Some(services) = lock(&SERVICES).map(|services| services.clone()) else { return };
        for core in services.iter().filter_map(Weak::upgrade) {
            core.kill_all_now();
        }
    });
}
