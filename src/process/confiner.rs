//! The seam between a run and what confines it: what is known at the start, and what is to be said at the end.

use super::Cause;
use crate::error::Error;
use crate::sandbox::SandboxInfo;
use crate::sys::Exit;

/// What confines one run. The supervisor owns it, and asks it once when the run has ended.
pub(crate) trait Confiner: Send {
    /// The facts before the end: nothing denied, nothing failed.
    fn facts(&self) -> SandboxInfo;

    /// Whether the leader is a program that confines the command, and not yet the command itself: that it cannot be started
    /// is then the sandbox's failure.
    fn is_runner(&self) -> bool;

    /// Whether the leader stays beside the command and waits for it. A polite signal is then meant for the command: a
    /// waiting leader that died of it would take the command along without a grace.
    fn waits(&self) -> bool;

    /// The facts after the end.
    fn conclude(&mut self, end: &End<'_>) -> Conclusion;
}

/// How a confined run has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    /// The leader's end; `None` where it is not known.
    pub(crate) exit: Option<Exit>,
    pub(crate) cause: Cause,
    /// What was kept of the command's stderr.
    pub(crate) stderr: &'a [u8],
}

/// What the run is to tell.
#[derive(Debug)]
pub(crate) struct Conclusion {
    pub(crate) facts: SandboxInfo,
    /// The command's own end, where the leader's is not that.
    pub(crate) exit: Option<Exit>,
    /// Whether what the leader used is what the command used.
    pub(crate) usage_is_the_commands: bool,
    /// The sandbox failed, and the command never ran.
    pub(crate) failure: Option<Error>,
}
