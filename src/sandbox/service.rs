//! Which policy a call gets: from what was approved for it, what its session is set to, and the defaults.

use super::{SandboxMode, SandboxPolicy};
use crate::error::Error;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Decides the policy of each call. Safe for many threads; it starts nothing and keeps nothing on disk.
///
/// ```
/// use shell_executor::{SandboxMode, SandboxPolicyService};
///
/// let policies = SandboxPolicyService::new(SandboxMode::ReadOnly, std::env::temp_dir());
/// policies.set_session_mode("s1", SandboxMode::WorkspaceWrite);
/// assert_eq!(policies.resolve(None, None)?.mode, SandboxMode::ReadOnly);
/// assert_eq!(policies.resolve(Some("s1"), None)?.mode, SandboxMode::WorkspaceWrite);
/// # Ok::<(), shell_executor::Error>(())
/// ```
#[derive(Debug)]
pub struct SandboxPolicyService {
    default_mode: SandboxMode,
    root: PathBuf,
    sessions: Mutex<HashMap<String, Session>>,
}

#[derive(Debug, Default)]
struct Session {
    mode: Option<SandboxMode>,
    root: Option<PathBuf>,
}

impl SandboxPolicyService {
    /// A service whose calls get `default_mode` over `root` unless something else is set.
    #[must_use]
    pub fn new(default_mode: SandboxMode, root: impl Into<PathBuf>) -> SandboxPolicyService {
        SandboxPolicyService { default_mode, root: root.into(), sessions: Mutex::default() }
    }

    /// Sets the mode of a session's calls, until it is set otherwise or the session is forgotten.
    pub fn set_session_mode(&self, session: &str, mode: SandboxMode) {
        self.lock().entry(session.to_owned()).or_default().mode = Some(mode);
    }

    /// Gives a session's calls the default mode again.
    pub fn clear_session_mode(&self, session: &str) {
        if let Some(found) = self.lock().get_mut(session) {
            found.mode = None;
        }
    }

    /// Sets the directory that a session's calls work in.
    pub fn set_session_root(&self, session: &str, root: impl Into<PathBuf>) {
        self.lock().entry(session.to_owned()).or_default().root = Some(root.into());
    }

    /// Forgets all that was set for a session. `false` when nothing was.
    pub fn forget_session(&self, session: &str) -> bool {
        self.lock().remove(session).is_some()
    }

    /// The policy of one call: the mode that was approved for it, else its session's, else the default; over the session's
    /// directory, else the configured root. A session that nothing was set for has the defaults.
    ///
    /// # Errors
    ///
    /// As [`SandboxPolicy::canonical`]: the directory is looked at in every confined mode.
    pub fn resolve(
        &self,
        session: Option<&str>,
        approved: Option<SandboxMode>,
    ) -> Result<SandboxPolicy, Error> {
        let (mode, root) = {
            let sessions = self.lock();
            let found = session.and_then(|session| sessions.get(session));
            (found.and_then(|found| found.mode), found.and_then(|found| found.root.clone()))
        };
        let mode = approved.or(mode).unwrap_or(self.default_mode);
        let mut policy = SandboxPolicy::new(mode, root.unwrap_or_else(|| self.root.clone()));
        policy.session = session.map(str::to_owned);
        policy.canonical()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};

    // S2
    #[test]
    fn the_approved_comes_before_the_session_and_that_before_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let own = root.join("own");
        std::fs::create_dir(&own).unwrap();
        let policies = SandboxPolicyService::new(ReadOnly, &root);
        let decide = |session, approved| {
            let policy = policies.resolve(session, approved).unwrap();
            (policy.mode, policy.workspace_root, policy.session)
        };
        assert_eq!(decide(None, None), (ReadOnly, root.clone(), None));
        assert_eq!(decide(Some("a"), None), (ReadOnly, root.clone(), Some("a".to_owned())));
        policies.set_session_mode("a", WorkspaceWrite);
        policies.set_session_root("a", &own);
        assert_eq!(decide(Some("a"), None), (WorkspaceWrite, own.clone(), Some("a".to_owned())));
        assert_eq!(decide(Some("a"), Some(DangerFullAccess)).0, DangerFullAccess);
        assert_eq!(decide(Some("b"), None).1, root);
        assert_eq!(decide(None, Some(WorkspaceWrite)), (WorkspaceWrite, root.clone(), None));
        policies.clear_session_mode("a");
        assert_eq!(decide(Some("a"), None), (ReadOnly, own, Some("a".to_owned())));
        assert!(policies.forget_session("a"));
        assert!(!policies.forget_session("a"));
        assert_eq!(decide(Some("a"), None).1, root);
    }

    // S2
    #[test]
    fn a_session_whose_directory_is_gone_gets_no_policy() {
        let dir = tempfile::tempdir().unwrap();
        let policies = SandboxPolicyService::new(WorkspaceWrite, dir.path());
        policies.set_session_root("a", dir.path().join("gone"));
        assert_eq!(policies.resolve(Some("a"), None).unwrap_err().code(), "INVALID_REQUEST");
        assert!(policies.resolve(Some("b"), None).is_ok());
    }
}
