//! Threads of the library: named, small, and deaf to every signal.

use super::signal::with_all_blocked;
use std::io;
use std::thread::{Builder, JoinHandle};

/// Enough for the deepest path of a supervisor in a debug build, and a power of two above what it was seen to use. What a
/// thread never touches costs address space only.
const STACK: usize = 128 * 1024;

/// Starts a thread with every signal blocked from its first instruction, so that no handler of the host runs on its small
/// stack and a write to a closed pipe gives EPIPE, whatever the host does with SIGPIPE.
pub(crate) fn spawn_thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    with_all_blocked(|| {
        Builder::new().name(name.to_owned()).stack_size(STACK + thread_local_storage()).spawn(body)
    })
}

/// How much of a thread's stack the host's thread-local variables take. glibc puts them there, and counts what they need
/// as part of its least stack.
fn thread_local_storage() -> usize {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        static SIZE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        *SIZE.get_or_init(|| {
            // SAFETY: the name ends in NUL.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__pthread_get_minstack".as_ptr()) };
            if found.is_null() {
                return 0;
            }
            // SAFETY: the symbol, private to glibc and used by language runtimes for this, has had this type since 2.15.
            let least: unsafe extern "C" fn(*const libc::pthread_attr_t) -> libc::size_t =
                unsafe { std::mem::transmute(found) };
            // SAFETY: the argument is not looked at.
            let least = unsafe { least(std::ptr::null()) };
            least.saturating_sub(libc::PTHREAD_STACK_MIN)
        })
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    0
}
