//! Sandbox modes: which file effects a command may have.

use std::fmt;
use std::str::FromStr;

/// Which file effects a command may have: creating, writing, truncating, renaming, linking, removing, and changing
/// metadata. The network and other processes are not governed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SandboxMode {
    /// Writes only to sinks such as `/dev/null`.
    ReadOnly,
    /// The workspace root and the temp directory as well.
    WorkspaceWrite,
    /// No confinement.
    DangerFullAccess,
}

impl SandboxMode {
    /// The name that requests, JSON and the command line use: `read-only`, `workspace-write`, `danger-full-access`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SandboxMode::ReadOnly => "read-only",
            SandboxMode::WorkspaceWrite => "workspace-write",
            SandboxMode::DangerFullAccess => "danger-full-access",
        }
    }

    /// Whether it allows strictly more than `other`.
    #[must_use]
    pub fn is_wider_than(self, other: SandboxMode) -> bool {
        let width = |mode| match mode {
            SandboxMode::ReadOnly => 0,
            SandboxMode::WorkspaceWrite => 1,
            SandboxMode::DangerFullAccess => 2,
        };
        width(self) > width(other)
    }
}

impl fmt::Display for SandboxMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SandboxMode {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<SandboxMode, crate::Error> {
        let modes = [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite, SandboxMode::DangerFullAccess];
        modes.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| {
            let reason = format!("is {text:?}, not read-only, workspace-write or danger-full-access");
            crate::Error::invalid("sandbox mode", reason)
        })
    }
}

/// How completely a backend enforces a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Enforcement {
    /// Every file effect the mode forbids is stopped.
    Full,
    /// Some are not; the backend says which.
    Partial,
}

impl Enforcement {
    /// `full` or `partial`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Enforcement::Full => "full",
            Enforcement::Partial => "partial",
        }
    }
}

/// The sandbox facts of one run. Absent from a run of an executor that does not confine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxInfo {
    /// The mode the command ran under.
    pub mode: SandboxMode,
    /// Whether the sandbox is known to have denied a file operation: the command has failed, and what is kept of its stderr
    /// holds the backend's own error text. One that hid its error is not known.
    pub denied: bool,
    /// How completely the mode is enforced. `None` without confinement, and as long as no backend has been chosen.
    pub enforcement: Option<Enforcement>,
    /// Whether the sandbox failed before the command could run.
    pub runner_failed: bool,
    /// The backend that confines the command. `None` without confinement, and as long as none has been chosen.
    pub backend: Option<String>,
}

impl SandboxInfo {
    /// The facts before anything is known but the mode.
    #[must_use]
    pub fn new(mode: SandboxMode) -> SandboxInfo {
        SandboxInfo { mode, denied: false, enforcement: None, runner_failed: false, backend: None }
    }
}
