//! The host's exit: every range still alive is killed at once.

use super::service::Core;
use crate::sys;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError, Weak};

/// The services whose ranges have to go with the host.
static SERVICES: Mutex<Vec<Weak<Core>>> = Mutex::new(Vec::new());
/// Set when the exit has begun: nothing is started any more.
static EXITING: AtomicBool = AtomicBool::new(false);
/// The process that registered the hook, and whether it could.
static HOOK: OnceLock<(i32, bool)> = OnceLock::new();

/// Has the ranges of `core` killed when this process exits. The hook itself is registered once, with the first range of
/// all.
pub(super) fn register(core: &Arc<Core>) {
    // A process without room for one more hook runs its commands all the same; it only leaves them behind.
    HOOK.get_or_init(|| (sys::process_id(), sys::at_exit(on_exit).is_ok()));
    let mut services = SERVICES.lock().unwrap_or_else(PoisonError::into_inner);
    services.retain(|service| service.strong_count() > 0);
    services.push(Arc::downgrade(core));
}

/// Whether the host is exiting.
pub(super) fn exiting() -> bool {
    EXITING.load(Ordering::SeqCst)
}

extern "C" fn on_exit() {
    // A child that the host forked runs its parent's hooks when it exits. The ranges are not its own.
    if HOOK.get().is_none_or(|(owner, _)| *owner != sys::process_id()) {
        return;
    }
    EXITING.store(true, Ordering::SeqCst);
    // A panic would abort the host in the middle of its exit; there is nobody left to tell.
    let _ = std::panic::catch_unwind(|| {
        // `exit` may have been called by a signal handler on top of whoever holds a lock: then that lock is never free.
        let services = match SERVICES.try_lock() {
            Ok(services) => services.clone(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().clone(),
            Err(TryLockError::WouldBlock) => return,
        };
        for core in services.iter().filter_map(Weak::upgrade) {
            core.kill_all_now();
        }
    });
}
