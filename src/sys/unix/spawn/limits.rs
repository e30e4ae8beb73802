//! How long arguments may be, for the error that says they are too long.

/// The bytes allowed for one argument or variable, and for all of them together, each with its NUL.
pub(crate) fn argument_limits() -> (Option<usize>, Option<usize>) {
    // SAFETY: sysconf takes an integer.
    let all = unsafe { libc::sysconf(libc::_SC_ARG_MAX) };
    // MAX_ARG_STRLEN of Linux's uapi/linux/binfmts.h: 32 pages.
    let one = cfg!(target_os = "linux").then(|| {
        // SAFETY: sysconf takes an integer.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(page).unwrap_or(4096) * 32
    });
    (one, usize::try_from(all).ok())
}
