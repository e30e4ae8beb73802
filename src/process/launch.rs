//! A launch: what will be executed, and the last thing that may still change it.

use super::confiner::Confiner;
use super::spec::SpawnSpec;
use crate::error::{Error, SpawnError, SpawnStage, reason};
use crate::output::{PrivateFile, SpillDir};
use crate::result::RunResult;
use crate::sandbox::SandboxInfo;
use crate::sys::{self, Confinement, SpawnFailure, Step};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What a supervisor is about to execute.
pub(crate) struct Launch {
    /// Absolute paths to try in order.
    pub(crate) candidates: Vec<PathBuf>,
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    /// What a missing or forbidden program is called: the shell, or simply the program.
    pub(crate) stage: SpawnStage,
    /// Files that have to stand for as long as the execution lasts.
    pub(crate) files: Vec<PrivateFile>,
    /// What the child puts round itself, and the directories that stay writable in it.
    pub(crate) confinement: Option<Confinement>,
    pub(crate) writable: Vec<PathBuf>,
    /// A descriptor that the leader keeps besides its streams, under the number it has here.
    pub(crate) kept: Option<OwnedFd>,
    pub(crate) confiner: Option<Box<dyn Confiner>>,
}

/// What a preparation may use of the service it runs in.
pub(crate) struct Surroundings<'a> {
    pub(crate) dir: &'a SpillDir,
    pub(crate) trials: &'a dyn Trials,
}

/// Runs something to find out whether it works here.
pub(crate) trait Trials {
    /// Runs it to its end, as an execution like any other: it goes when the service goes.
    fn run(&self, spec: SpawnSpec, preparation: Box<dyn Preparation>) -> Result<RunResult, Error>;
}

/// A step before the spawn that may block or fail. It runs on the supervisor's thread, under the deadline: a start that was
/// cut short meanwhile is not made any more, however late this comes back.
pub(crate) trait Preparation: Send {
    /// What is known of the sandbox before anything is prepared; `None` of a run that nothing is meant to confine.
    fn sandbox(&self) -> Option<SandboxInfo> {
        None
    }

    fn prepare(self: Box<Self>, launch: &mut Launch, surroundings: &Surroundings<'_>) -> Result<(), Error>;
}

impl Launch {
    pub(super) fn of(spec: &SpawnSpec) -> Launch {
        let program = spec.argv.first().map_or(OsStr::new(""), OsString::as_os_str);
        Launch {
            candidates: candidates(program, search_path(&spec.env)),
            argv: spec.argv.clone(),
            env: spec.env.clone(),
            cwd: spec.cwd.clone(),
            stage: SpawnStage::Exec,
            files: Vec::new(),
            confinement: None,
            writable: Vec::new(),
            kept: None,
            confiner: None,
        }
    }

    fn program(&self) -> &Path {
        Path::new(self.argv.first().map_or(OsStr::new(""), OsString::as_os_str))
    }

    /// The failure of a facility, named by `what`.
    pub(super) fn shortage(&self, what: &str, error: &std::io::Error) -> Error {
        SpawnError::resources(&format!("cannot start {:?}: {what}", self.program()), error).into()
    }

    /// The failed spawn as the caller is told. `None` when it did not fail but was cancelled.
    pub(super) fn failure(&self, failure: &SpawnFailure, command: &sys::Command) -> Option<Error> {
        let error = &failure.error;
        if let Some(unavailable) = self.not_confined(failure, command) {
            return Some(unavailable);
        }
        let what = match failure.step {
            Step::Cancelled => return None,
            Step::Report => "no pipe for the report of its start",
            Step::Process => "no new process",
            Step::Session => "no new session",
            Step::Streams => "its streams cannot be put in place",
            Step::Descriptors => "the host's descriptors cannot be kept from it",
            Step::Workdir => {
                let what = format!("cannot use {:?} as the working directory", self.cwd);
                return Some(SpawnError::new(SpawnStage::Workdir, Some(&self.cwd), &what, error).into());
            }
            // Of a sandbox, and told above.
            Step::Identity
            | Step::ReadOnly
            | Step::Writable
            | Step::Scratch
            | Step::Privileges
            | Step::Ruleset => "it cannot be confined",
            Step::Exec if failure.is_shortage() => "no room to execute it",
            Step::Exec => return Some(self.not_executed(failure, command)),
        };
        Some(self.shortage(what, error))
    }

    /// The failure as the sandbox's, if it is that: a wall that could not be put up, or a runner that could not be started.
    fn not_confined(&self, failure: &SpawnFailure, command: &sys::Command) -> Option<Error> {
        let confiner = self.confiner.as_ref()?;
        if failure.is_shortage() {
            // Of the moment, and no word on whether this backend can confine.
            return None;
        }
        let what = match failure.step {
            Step::Process if failure.is_refusal() && command.is_confined() => {
                "no process that puts its own walls up".to_owned()
            }
            Step::Identity => "the user cannot be himself in a user namespace of his own".to_owned(),
            Step::ReadOnly => "the file system cannot be made read-only".to_owned(),
            Step::Writable => match self.writable.get(failure.candidate) {
                Some(path) => format!("{path:?} cannot be kept writable"),
                None => "the service's own files cannot be kept from it".to_owned(),
            },
            Step::Scratch => "no scratch directory".to_owned(),
            Step::Privileges => "privileges cannot be given up".to_owned(),
            Step::Ruleset => "no Landlock domain".to_owned(),
            Step::Exec if confiner.is_runner() => {
                format!("cannot start {:?}", command.candidate(failure.candidate).unwrap_or_default())
            }
            _ => return None,
        };
        let facts = confiner.facts();
        let backend = facts.backend.map_or_else(String::new, |backend| backend + ": ");
        let reason = format!("{backend}{what}: {}", reason(&failure.error));
        Some(Error::SandboxUnavailable { mode: facts.mode, reason })
    }

    fn not_executed(&self, failure: &SpawnFailure, command: &sys::Command) -> Error {
        let tried = command.candidate(failure.candidate);
        let searched = self.candidates.len() != 1 || self.program().is_relative();
        let path = if searched && failure.is_missing() {
            self.program().to_path_buf()
        } else {
            tried.unwrap_or_default()
        };
        let mut what = if failure.is_missing() && searched {
            format!("cannot find {path:?} on PATH")
        } else {
            format!("cannot start {path:?} in {:?}", self.cwd)
        };
        if failure.is_too_long() {
            let (longest, all) = command.sizes();
            let limits = sys::argument_limits();
            what = format!("{what} with {all} bytes of arguments and environment, the longest of {longest}");
            if let (Some(one), Some(total)) = limits {
                what = format!("{what} (at most {total} and {one})");
            }
        }
        SpawnError::new(self.stage, Some(&path), &what, &failure.error).into()
    }
}

/// The value of `PATH` in an environment; where it has none, the directories that every system has.
pub(crate) fn search_path(env: &[(OsString, OsString)]) -> OsString {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    path.unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"))
}

/// `ENOENT`, and on Windows `ERROR_FILE_NOT_FOUND`: the same number everywhere, with words of the system's own.
pub(crate) const NO_SUCH_FILE: i32 = 2;

/// Whether `program` is a name to look up on a search path: it has no separator, and names no directory.
pub(crate) fn is_bare_name(program: &OsStr) -> bool {
    let is_separator = |&byte: &u8| std::path::is_separator(char::from(byte));
    !program.is_empty()
        && program != "."
        && program != ".."
        && !program.as_encoded_bytes().iter().any(is_separator)
}

/// Where `program` may stand: itself, or in each absolute directory of the search path. A relative directory in it would
/// let the working directory decide what is run, and is passed over.
pub(crate) fn candidates(program: &OsStr, search: OsString) -> Vec<PathBuf> {
    let program = Path::new(program);
    if program.is_absolute() {
        return vec![program.to_path_buf()];
    }
    std::env::split_paths(&search).filter(|dir| dir.is_absolute()).map(|dir| dir.join(program)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // E9
    #[test]
    fn only_absolute_directories_are_searched() {
        let found = candidates(OsStr::new("ls"), OsString::from("/a:.::b:/c"));
        assert_eq!(found, [PathBuf::from("/a/ls"), PathBuf::from("/c/ls")]);
        assert_eq!(candidates(OsStr::new("/x/ls"), OsString::from("/a")), [PathBuf::from("/x/ls")]);
    }
}
