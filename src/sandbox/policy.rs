//! The policy of one call: a mode, and the root it speaks of.

use super::SandboxMode;
use crate::error::{Error, reason};
use std::path::{Path, PathBuf};

/// What one command may do to files, as a request carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxPolicy {
    /// The mode.
    pub mode: SandboxMode,
    /// The directory that `workspace-write` opens for writing.
    pub workspace_root: PathBuf,
    /// Whose session the call belongs to, for hosts that have any. It changes nothing by itself.
    pub session: Option<String>,
}

impl SandboxPolicy {
    /// A policy of `mode` over `workspace_root`, of no session.
    #[must_use]
    pub fn new(mode: SandboxMode, workspace_root: impl Into<PathBuf>) -> SandboxPolicy {
        SandboxPolicy { mode, workspace_root: workspace_root.into(), session: None }
    }

    /// Sets [`session`](SandboxPolicy::session).
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> SandboxPolicy {
        self.session = Some(session.into());
        self
    }

    /// The same with the root as an absolute path without symbolic links; a relative one is below the host's current
    /// directory. A policy without confinement is returned as it is.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] when the root is missing or is not a directory; in `workspace-write` also when it is one that
    /// would open the whole system: `/`, `/dev`, or a place in the kernel's own `/proc` and `/sys`.
    pub fn canonical(mut self) -> Result<SandboxPolicy, Error> {
        if self.mode == SandboxMode::DangerFullAccess {
            return Ok(self);
        }
        let no =
            |reason: String| Error::invalid("workspace_root", format!("{:?} {reason}", self.workspace_root));
        let root = std::fs::canonicalize(&self.workspace_root)
            .map_err(|error| no(format!("cannot be used: {}", reason(&error))))?;
        if !root.is_dir() {
            return Err(no("is not a directory".to_owned()));
        }
        if self.mode == SandboxMode::WorkspaceWrite {
            can_be_opened(&root).map_err(|reason| no(reason.to_owned()))?;
        }
        self.workspace_root = root;
        Ok(self)
    }
}

/// Whether everything below a canonical directory can be made writable without undoing the confinement; if not, why.
pub(super) fn can_be_opened(root: &Path) -> Result<(), &'static str> {
    if root.parent().is_none() || root == Path::new("/dev") {
        return Err("would leave nothing to confine");
    }
    if root.starts_with("/proc") || root.starts_with("/sys") {
        return Err("is the kernel's");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(root: &Path) -> Result<PathBuf, Error> {
        SandboxPolicy::new(SandboxMode::WorkspaceWrite, root).canonical().map(|policy| policy.workspace_root)
    }

    // S2
    #[test]
    fn a_root_is_the_directory_behind_its_links() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(workspace(&link), Ok(real));
    }

    // S2
    #[test]
    fn a_root_that_cannot_be_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let told = |root: &Path| workspace(root).unwrap_err().to_string();
        let missing = told(&dir.path().join("missing"));
        assert!(missing.contains("workspace_root") && missing.contains("/missing"), "{missing}");
        assert!(missing.contains("no such file"), "{missing}");
        assert!(told(&file).contains("not a directory"), "{}", told(&file));
        for root in ["/", "/dev", "/tmp/.."] {
            assert!(told(Path::new(root)).contains("nothing to confine"), "{root}");
        }
        assert!(told(Path::new("/proc/self")).contains("the kernel's"));
        let read_only = SandboxPolicy::new(SandboxMode::ReadOnly, "/").canonical();
        assert!(read_only.is_ok(), "what is not opened may be anywhere");
        let open = SandboxPolicy::new(SandboxMode::DangerFullAccess, "/nowhere");
        assert_eq!(open.clone().canonical(), Ok(open));
    }
}
