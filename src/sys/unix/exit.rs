//! The host's orderly exit.

use std::io;

/// Has `hook` called when the process calls `exit` or returns from `main`. Not by `_exit`, an abort or a fatal signal.
/// A process that the host forked without exec calls it as well: `hook` compares [`process_id`].
pub(crate) fn at_exit(hook: extern "C" fn()) -> io::Result<()> {
    // SAFETY: `hook` is a function, so it lives as long as the code it belongs to.
    let refused = unsafe { libc::atexit(hook) } != 0;
    if refused { Err(io::Error::from(io::ErrorKind::OutOfMemory)) } else { Ok(()) }
}

/// This process's id, asked of the kernel each time: a fork changes it.
pub(crate) fn process_id() -> i32 {
    // SAFETY: getpid takes nothing and cannot fail.
    unsafe { libc::getpid() }
}
