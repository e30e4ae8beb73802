//! Threads of the library: named, small, and deaf to every signal.

use super::signal::with_all_blocked;
use std::io;
use std::thread::{Builder, JoinHandle};

/// Enough for the deepest path of a supervisor in a debug build, and a power of two above what it was seen to use. What a
/// thread never touches costs address space only.
const STACK: usize = 128 * 1024;

/// Starts a thread with every signal blocked from its first instruction, so that no handler of the host runs on its small
/// stack and a write to a closed pipe gives EPIPE, whatever the host does with SIGPIPE.
pub(crate) fn spawn_thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    with_all_blocked(|| Builder::new().name(name.to_owned()).stack_size(STACK).spawn(body))
}
