//! The one error: we could not start the command, or lost sight of it.

use crate::sandbox::SandboxMode;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no result.
///
/// A command that fails has a [`RunResult`](crate::RunResult): a non-zero exit, a signal, a timeout, an abort and a denied
/// file are never errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of the request or of the configuration has a value that nothing can be run with. Nothing was spawned.
    #[error("invalid request: {field} {reason}")]
    InvalidRequest {
        /// The field, by its name in the API; an entry of the environment as `env NAME`.
        field: Cow<'static, str>,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
    /// The process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A confined mode was asked for, and nothing here can confine. The command was not run.
    #[error("sandbox unavailable for {mode}: {reason}")]
    SandboxUnavailable {
        /// The mode that was asked for.
        mode: SandboxMode,
        /// Why it cannot be enforced.
        reason: String,
    },
    /// An escalation was not granted. Nothing was run.
    #[error("{mode} was not approved")]
    NotApproved {
        /// The mode that was asked for.
        mode: SandboxMode,
    },
    /// The abort token had fired before a process existed. Nothing was spawned.
    #[error("aborted before the command was started")]
    Aborted,
    /// The service was disposed of before the command was started, or is that of a process that has forked this one, or
    /// the host is exiting. Nothing was spawned.
    #[error("the service has been disposed of")]
    Disposed,
    /// A contributor to the managed environment failed, or gave what it must not. Nothing was spawned.
    #[error("environment contributor {contributor:?} {reason}")]
    ManagedEnv {
        /// The contributor, by the name it is registered under.
        contributor: String,
        /// The variable that it must not give, or not so; `None` when it failed as a whole.
        variable: Option<String>,
        /// What it did.
        reason: String,
    },
    /// The command has ended, and nobody can tell how: SIGCHLD is ignored in this process, or another thread reaps every
    /// child, and the kernel does not keep the status (Linux does since 6.15).
    #[error(
        "the exit status was taken by somebody else: SIGCHLD is ignored, or another thread waits for every child"
    )]
    StatusLost,
}

impl Error {
    /// A stable name for the variant: `INVALID_REQUEST`, `SPAWN`, `SANDBOX_UNAVAILABLE`, `NOT_APPROVED`, `ABORTED`, `DISPOSED`,
    /// `MANAGED_ENV` or `STATUS_LOST`. Messages may change, codes do not.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::InvalidRequest { .. } => "INVALID_REQUEST",
            Error::Spawn(_) => "SPAWN",
            Error::SandboxUnavailable { .. } => "SANDBOX_UNAVAILABLE",
            Error::NotApproved { .. } => "NOT_APPROVED",
            Error::Aborted => "ABORTED",
            Error::Disposed => "DISPOSED",
            Error::ManagedEnv { .. } => "MANAGED_ENV",
            Error::StatusLost => "STATUS_LOST",
        }
    }

    pub(crate) fn invalid(
        field: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Error {
        Error::InvalidRequest { field: field.into(), reason: reason.into() }
    }
}

/// At which stage of starting a process it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpawnStage {
    /// The working directory is missing, is no directory, or may not be entered.
    Workdir,
    /// The shell was not found, or is not executable.
    Shell,
    /// The program was not found, is not executable, or its arguments are too long.
    Exec,
    /// Descriptors, processes, threads or memory ran out. The same call may work later.
    Resources,
}

/// A process that could not be started: at which stage, over which path, with which errno.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnError {
    stage: SpawnStage,
    path: Option<PathBuf>,
    os: Option<i32>,
    message: String,
}

impl SpawnError {
    /// For providers of executions: `what` happened over `path`; the reason is `error`'s, and stands after `what` in the
    /// message.
    #[must_use]
    pub fn new(stage: SpawnStage, path: Option<&Path>, what: &str, error: &io::Error) -> SpawnError {
        let message = format!("{what}: {}", reason(error));
        SpawnError { stage, path: path.map(Path::to_path_buf), os: error.raw_os_error(), message }
    }

    /// A facility that ran out, named by `what`.
    pub(crate) fn resources(what: &str, error: &io::Error) -> SpawnError {
        SpawnError::new(SpawnStage::Resources, None, what, error)
    }

    /// The stage that failed.
    #[must_use]
    pub fn stage(&self) -> SpawnStage {
        self.stage
    }

    /// The path it failed over: the working directory, the shell or the program. `None` for [`SpawnStage::Resources`].
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The system's error number (`errno`), where the system said one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.os
    }

    /// The error as `std` classifies it.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.os.map_or(io::ErrorKind::Other, |number| io::Error::from_raw_os_error(number).kind())
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SpawnError {}

/// The system's text in this library's spelling: lower case, without the number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    // An abbreviation keeps its capitals.
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // X1
    #[test]
    fn a_message_says_what_to_what_and_why() {
        let error = io::Error::from_raw_os_error(13);
        let what = r#"cannot start "/bin/sh" in "/w""#;
        let error = SpawnError::new(SpawnStage::Exec, Some(Path::new("/bin/sh")), what, &error);
        assert_eq!(error.to_string(), r#"cannot start "/bin/sh" in "/w": permission denied"#);
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(Error::from(error).code(), "SPAWN");
        let invalid = Error::invalid("timeout", "is zero");
        assert_eq!(invalid.to_string(), "invalid request: timeout is zero");
    }
}
