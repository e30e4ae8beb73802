//! A contributor: a part of the host that gives managed variables, as it presents itself.

use std::ffi::OsString;
use std::path::PathBuf;

/// A part of the host that knows facts which its commands may want to know.
///
/// A panic in any of these is caught, and becomes the error of the call that asked.
pub trait EnvContributor: Send + Sync {
    /// A name that no other contributor of the registry has.
    fn name(&self) -> &str;

    /// All variables it may ever give. They are its own from now on.
    fn variables(&self) -> Vec<EnvVariable>;

    /// The values for one execution, in any order. A variable that has none is left out, and the command then
    /// does not see it at all. May block; nothing is locked meanwhile.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from answering: the whole collection fails. What is merely unknown is better left
    /// out.
    fn collect(
        &self,
        call: &EnvCall,
    ) -> Result<Vec<(String, OsString)>, Box<dyn std::error::Error + Send + Sync>>;
}

/// A variable that a contributor declares.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvVariable {
    /// Its name: `DSH_` and then `[A-Z][A-Z0-9_]*`.
    pub name: String,
    /// What it tells, for whoever reads the list. Not blank.
    pub description: String,
}

impl EnvVariable {
    /// A variable. Registration checks it.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> EnvVariable {
        EnvVariable { name: name.into(), description: description.into() }
    }
}

/// The execution that values are collected for, as far as the host tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EnvCall {
    /// The session it belongs to.
    pub session: Option<String>,
    /// Where it will run.
    pub workdir: Option<PathBuf>,
    /// The command.
    pub command: Option<OsString>,
}

impl EnvCall {
    /// A call that nothing is told about.
    #[must_use]
    pub fn new() -> EnvCall {
        EnvCall::default()
    }

    /// Sets [`session`](EnvCall::session).
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> EnvCall {
        self.session = Some(session.into());
        self
    }

    /// Sets [`workdir`](EnvCall::workdir).
    #[must_use]
    pub fn workdir(mut self, workdir: impl Into<PathBuf>) -> EnvCall {
        self.workdir = Some(workdir.into());
        self
    }

    /// Sets [`command`](EnvCall::command).
    #[must_use]
    pub fn command(mut self, command: impl Into<OsString>) -> EnvCall {
        self.command = Some(command.into());
        self
    }
}
