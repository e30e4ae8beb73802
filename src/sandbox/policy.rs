//! The policy of one call: a mode, and the root it speaks of.

use super::SandboxMode;
use std::path::PathBuf;

/// What one command may do to files, as a request carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxPolicy {
    /// The mode.
    pub mode: SandboxMode,
    /// The directory that `workspace-write` opens for writing.
    pub workspace_root: PathBuf,
}

impl SandboxPolicy {
    /// A policy of `mode` over `workspace_root`.
    #[must_use]
    pub fn new(mode: SandboxMode, workspace_root: impl Into<PathBuf>) -> SandboxPolicy {
        SandboxPolicy { mode, workspace_root: workspace_root.into() }
    }
}
