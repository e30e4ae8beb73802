//! The start of a shell: it is looked for, told its command, and confined.

use crate::error::{Error, SpawnError, SpawnStage};
use crate::output::PrivateFile;
use crate::process::{Launch, NO_SUCH_FILE, Preparation, Surroundings, candidates};
use crate::sandbox::{self, SandboxInfo, SandboxMode, SandboxPolicy, SandboxProvider};
use crate::sys;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What shells differ in: by which names one is found, and how it is told a command.
pub(super) trait Dialect: fmt::Debug + Send + Sync {
    /// The names to look for in turn, where the configuration says `shell`.
    fn names(&self, shell: &Path) -> Vec<PathBuf> {
        vec![shell.to_path_buf()]
    }

    /// Whether it can be told this command at all.
    fn check(&self, _command: &OsStr) -> Result<(), Error> {
        Ok(())
    }

    /// The arguments of the shell, the last of which holds the command.
    fn arguments(&self, command: OsString) -> Vec<OsString>;

    /// What to write into a file, of a last argument that is too long for one.
    fn content<'a>(&self, argument: &'a OsStr) -> Cow<'a, [u8]> {
        Cow::Borrowed(argument.as_encoded_bytes())
    }

    /// The arguments of the shell that have it run that file, with the same outcome and its stdin as free.
    fn arguments_for_file(&self, file: &Path) -> Result<Vec<OsString>, Error>;
}

/// What confines, and the policy of those that do not bring their own.
#[derive(Debug, Clone)]
pub(super) struct Sandbox {
    pub(super) provider: Arc<dyn SandboxProvider>,
    pub(super) policy: SandboxPolicy,
}

/// Finds the shell, and a place for a command that is too long to be an argument; then has all of it confined.
pub(super) struct Start {
    pub(super) dialect: &'static dyn Dialect,
    pub(super) shell: PathBuf,
    /// Why it is not started at all.
    pub(super) refusal: Option<Error>,
    pub(super) sandbox: Option<Sandbox>,
}

impl Preparation for Start {
    fn sandbox(&self) -> Option<SandboxInfo> {
        self.sandbox.as_ref().map(|sandbox| SandboxInfo::new(sandbox.policy.mode))
    }

    fn prepare(self: Box<Self>, launch: &mut Launch, surroundings: &Surroundings<'_>) -> Result<(), Error> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        launch.stage = SpawnStage::Shell;
        let (name, found) = find_shell(self.dialect.names(&self.shell))?;
        launch.candidates = vec![found];
        if let Some(program) = launch.argv.first_mut() {
            *program = name.into_os_string();
        }
        let (one, _) = sys::argument_limits();
        let argument = launch.argv.last().map_or(OsStr::new(""), OsString::as_os_str);
        // The limit counts the NUL at the end.
        if one.is_some_and(|limit| argument.len() >= limit) {
            let script = PrivateFile::create(surroundings.dir, "command-", &self.dialect.content(argument));
            let script = script.map_err(|error| {
                let what = format!("no file for its command of {} bytes", argument.len());
                SpawnError::resources(&format!("cannot start {:?}: {what}", self.shell), &error)
            })?;
            let arguments = self.dialect.arguments_for_file(script.path())?;
            launch.argv.truncate(1);
            launch.argv.extend(arguments);
            launch.files.push(script);
        }
        match self.sandbox {
            Some(Sandbox { provider, policy }) if policy.mode != SandboxMode::DangerFullAccess => {
                sandbox::confine(&*provider, &policy, launch, surroundings)
            }
            _ => Ok(()),
        }
    }
}

/// The first of the names that there is, and where. Looked for on the host's own search path: a command's `PATH` decides
/// what the command finds, not what runs it.
fn find_shell(names: Vec<PathBuf>) -> Result<(PathBuf, PathBuf), Error> {
    let search = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    let mut refusal = io::Error::from_raw_os_error(NO_SUCH_FILE);
    for name in &names {
        for path in candidates(name.as_os_str(), search.clone()) {
            match sys::is_executable(&path) {
                Ok(()) => return Ok((name.clone(), path)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refusal = error,
                Err(error) if refusal.kind() != io::ErrorKind::PermissionDenied => refusal = error,
                Err(_) => {}
            }
        }
    }
    let first = names.first().map(PathBuf::as_path);
    let named = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ");
    let what = if first.is_some_and(Path::is_absolute) {
        format!("cannot use {named} as the shell")
    } else {
        format!("cannot find the shell {named} on PATH")
    };
    Err(SpawnError::new(SpawnStage::Shell, first, &what, &refusal).into())
}
