//! What is known of one process of the table.

/// One process, as of one reading of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// When it started, in clock ticks since boot. With the pid it names a process for good: a reused number has another.
    pub(crate) start: u64,
    /// Ended, and waiting to be reaped: it can do nothing any more.
    pub(crate) zombie: bool,
    /// On its way out: it runs no code of its own any more, and is a zombie soon.
    pub(crate) leaving: bool,
    /// Its first thread has ended, and others go on: what is asked of the process is to be asked of them.
    pub(crate) headless: bool,
    /// A thread of the kernel's, which nobody started.
    pub(crate) kernel: bool,
}
