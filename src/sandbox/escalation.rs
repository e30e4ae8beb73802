//! Escalation: one call gets a wider mode, if whoever may say so grants that very call.

use super::{SandboxMode, SandboxPolicy};
use crate::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// What an approver is asked to grant: this command, in this place, once, in a wider mode.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Escalation {
    /// The command.
    pub command: OsString,
    /// Where it runs.
    pub workdir: PathBuf,
    /// The policy it would run under.
    pub current: SandboxPolicy,
    /// The mode that is asked for, strictly wider.
    pub requested: SandboxMode,
    /// Why, in the words of whoever asks. Not empty.
    pub justification: String,
}

/// Grants escalations, or does not: a person at a terminal, a rule, a host's dialogue.
///
/// Any closure from `&Escalation` to `bool` is one.
pub trait Approver: Send + Sync {
    /// Whether this very call may run in the mode it asks for. May block for as long as a person takes; nothing runs
    /// meanwhile. A panic grants nothing.
    fn approve(&self, escalation: &Escalation) -> bool;
}

impl<F: Fn(&Escalation) -> bool + Send + Sync> Approver for F {
    fn approve(&self, escalation: &Escalation) -> bool {
        self(escalation)
    }
}

impl Escalation {
    /// An escalation of a command under `current` to `requested`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] when the mode is not strictly wider, or the justification is blank.
    pub fn new(
        command: impl Into<OsString>,
        workdir: impl Into<PathBuf>,
        current: SandboxPolicy,
        requested: SandboxMode,
        justification: impl Into<String>,
    ) -> Result<Escalation, Error> {
        if !requested.is_wider_than(current.mode) {
            let reason = format!("of {requested} is not wider than {}", current.mode);
            return Err(Error::invalid("escalation mode", reason));
        }
        let justification = justification.into();
        if justification.trim().is_empty() {
            return Err(Error::invalid("escalation justification", "is blank"));
        }
        let (command, workdir) = (command.into(), workdir.into());
        Ok(Escalation { command, workdir, current, requested, justification })
    }

    /// Asks, and gives the policy that was granted: the current one in the wider mode, all else unchanged.
    ///
    /// # Errors
    ///
    /// As [`SandboxPolicy::canonical`] when the current root is none for the wider mode, and nobody is asked;
    /// [`Error::NotApproved`] when it was not granted.
    pub fn ask(&self, approver: &dyn Approver) -> Result<SandboxPolicy, Error> {
        // A root that may be read in a narrower mode need not be one that can be opened.
        let wider = SandboxPolicy { mode: self.requested, ..self.current.clone() }.canonical()?;
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| approver.approve(self)));
        if !asked.unwrap_or(false) {
            return Err(Error::NotApproved { mode: self.requested });
        }
        Ok(wider)
    }
}

impl fmt::Display for Escalation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Escalation { command, workdir, current, requested, justification } = self;
        write!(
            f,
            "run {command:?} in {workdir:?} with {requested} instead of {}: {justification}",
            current.mode
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

    fn escalation(from: SandboxMode, to: SandboxMode, why: &str) -> Result<Escalation, Error> {
        let policy = SandboxPolicy::new(from, "/usr").session("s");
        Escalation::new("make", "/usr", policy, to, why)
    }

    // S10
    #[test]
    fn only_a_strictly_wider_mode_with_a_reason_can_be_asked_for() {
        let modes = [ReadOnly, WorkspaceWrite, DangerFullAccess];
        for (from, mode) in modes.into_iter().enumerate() {
            for (to, wider) in modes.into_iter().enumerate() {
                assert_eq!(escalation(mode, wider, "because").is_ok(), to > from, "{mode} to {wider}");
            }
        }
        let blank = escalation(ReadOnly, WorkspaceWrite, " \n").unwrap_err().to_string();
        assert!(blank.contains("justification"), "{blank}");
    }

    // S10
    #[test]
    fn a_grant_changes_only_the_mode() {
        let asked = escalation(ReadOnly, WorkspaceWrite, "because").unwrap();
        let granted = asked.ask(&|escalation: &Escalation| escalation.command == "make").unwrap();
        assert_eq!(granted, SandboxPolicy::new(WorkspaceWrite, "/usr").session("s"));
        let refused = asked.ask(&|_: &Escalation| false).unwrap_err();
        assert_eq!(refused.code(), "NOT_APPROVED");
    }

    // S2, S10
    #[test]
    fn a_root_that_cannot_be_opened_is_not_opened_by_a_grant() {
        let policy = SandboxPolicy::new(ReadOnly, "/").canonical().unwrap();
        let asked = Escalation::new("make", "/", policy.clone(), WorkspaceWrite, "because").unwrap();
        let refused = asked.ask(&|_: &Escalation| panic!("nobody is asked")).unwrap_err();
        assert!(refused.to_string().contains("nothing to confine"), "{refused}");
        let open = Escalation::new("make", "/", policy, DangerFullAccess, "because").unwrap();
        assert!(open.ask(&|_: &Escalation| true).is_ok(), "which confines nothing, and says so");
    }

    // S10, X2
    #[test]
    fn an_approver_that_panics_grants_nothing() {
        let asked = escalation(ReadOnly, DangerFullAccess, "because").unwrap();
        assert!(asked.ask(&|_: &Escalation| panic!("on purpose")).is_err());
    }
}
