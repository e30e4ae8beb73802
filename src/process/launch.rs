//! A launch: what will be executed, and the last thing that may still change it.

use super::spec::SpawnSpec;
use crate::error::{Error, SpawnError, SpawnStage};
use crate::output::{PrivateFile, SpillDir};
use crate::sys::{self, SpawnFailure, Step};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What a supervisor is about to execute.
#[derive(Debug)]
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
}

/// A step before the spawn that may block or fail. It runs on the supervisor's thread, under the deadline: a start that was
/// cut short meanwhile is not made any more, however late this comes back.
pub(crate) trait Preparation: Send {
    fn prepare(self: Box<Self>, launch: &mut Launch, dir: &SpillDir) -> Result<(), Error>;
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
            Step::Exec if failure.is_shortage() => "no room to execute it",
            Step::Exec => return Some(self.not_executed(failure, command)),
        };
        Some(self.shortage(what, error))
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
