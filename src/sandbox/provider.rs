//! What a sandbox provider is: it changes what is about to be started so that it is confined, or fails.

use super::verdict::Evidence;
use super::{Enforcement, SandboxMode, SandboxPolicy};
use crate::environment::steers;
use crate::error::Error;
use crate::process::{Launch, NO_SUCH_FILE, Surroundings};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Confines commands. [`SandboxChain`](crate::SandboxChain) is the usual one, [`SandboxRunner`](crate::SandboxRunner) runs a
/// program of the host's choice; a host may implement its own.
///
/// There is no third way between confining and failing: a command whose provider has failed is not run.
pub trait SandboxProvider: fmt::Debug + Send + Sync {
    /// Changes `plan` so that what it starts is confined by `policy`, whose root is canonical, and says how. Never asked
    /// for `danger-full-access`.
    ///
    /// It runs on the thread of the execution, under its deadline, and may block: a command whose deadline passes here is
    /// not started any more.
    ///
    /// # Errors
    ///
    /// [`Error::SandboxUnavailable`] when it cannot be confined.
    fn confine(&self, policy: &SandboxPolicy, plan: &mut SandboxPlan<'_>) -> Result<Confined, Error>;
}

/// What is about to be started, as a provider sees and changes it.
pub struct SandboxPlan<'a> {
    pub(super) launch: &'a mut Launch,
    pub(super) surroundings: &'a Surroundings<'a>,
    is_runner: bool,
}

impl<'a> SandboxPlan<'a> {
    pub(crate) fn new(launch: &'a mut Launch, surroundings: &'a Surroundings<'a>) -> SandboxPlan<'a> {
        SandboxPlan { launch, surroundings, is_runner: false }
    }

    /// The program and its arguments, the program as an absolute path.
    #[must_use]
    pub fn argv(&self) -> Vec<OsString> {
        let program = self.launch.candidates.first().map(|path| path.clone().into_os_string());
        program.into_iter().chain(self.launch.argv.iter().skip(1).cloned()).collect()
    }

    /// The whole environment.
    #[must_use]
    pub fn env(&self) -> &[(OsString, OsString)] {
        &self.launch.env
    }

    /// The working directory, absolute.
    #[must_use]
    pub fn workdir(&self) -> &Path {
        &self.launch.cwd
    }

    /// Sets a variable of the environment.
    pub fn set_env(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        let name = name.into();
        self.launch.env.retain(|(other, _)| *other != name);
        self.launch.env.push((name, value.into()));
    }

    /// Starts `runner` instead, a program by its absolute path and arguments, followed by all of
    /// [`argv`](SandboxPlan::argv). A runner that cannot be started is a sandbox that has failed.
    ///
    /// The runner gets the command's environment, except what would let the command choose code for the runner to run before
    /// it confines anything (`PATH`, `LD_PRELOAD` and its kin, `BASH_ENV`, `PYTHONPATH` and the like): those it gets as this
    /// process has them. Where they differ, env(1) stands between the two and gives the command its own; their values can
    /// then be read in the process table.
    pub fn run_under(&mut self, runner: Vec<OsString>) {
        let Some(program) = runner.first().map(PathBuf::from) else { return };
        let (given_back, env) =
            environment_of_a_runner(std::mem::take(&mut self.launch.env), std::env::vars_os());
        let argv = runner.into_iter().chain(given_back).chain(self.argv()).collect();
        self.launch.env = env;
        self.launch.argv = argv;
        self.launch.candidates = vec![program];
        self.is_runner = true;
    }

    /// The first program called `name` on this process's `PATH` that can be executed.
    pub(super) fn find(name: &OsStr) -> std::io::Result<PathBuf> {
        let search =
            std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
        SandboxPlan::find_in(name, search)
    }

    pub(super) fn find_in(name: &OsStr, search: OsString) -> std::io::Result<PathBuf> {
        let mut refusal = std::io::Error::from_raw_os_error(NO_SUCH_FILE);
        for path in crate::process::candidates(name, search) {
            match crate::sys::is_executable(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    pub(super) fn is_runner(&self) -> bool {
        self.is_runner
    }
}

/// Splits what a command is to have in its environment: into the words that give it what its runner must not have, and the
/// environment of the runner.
fn environment_of_a_runner(
    commands: Vec<(OsString, OsString)>,
    hosts: impl Iterator<Item = (OsString, OsString)>,
) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
    let (asked, mut env): (Vec<_>, Vec<_>) = commands.into_iter().partition(|(name, _)| steers(name));
    let hosts: Vec<_> = hosts.filter(|(name, _)| steers(name)).collect();
    let mut words = Vec::new();
    for (name, _) in hosts.iter().filter(|(name, _)| !asked.iter().any(|(other, _)| other == name)) {
        words.extend([OsString::from("-u"), name.clone()]);
    }
    for (name, value) in asked.iter().filter(|entry| !hosts.contains(entry)) {
        let mut word = name.clone();
        word.push("=");
        word.push(value);
        words.push(word);
    }
    if !words.is_empty() {
        words.insert(0, OsString::from("/usr/bin/env"));
    }
    env.extend(hosts);
    (words, env)
}

impl fmt::Debug for SandboxPlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxPlan").field("argv", &self.argv()).field("workdir", &self.workdir()).finish()
    }
}

/// How a plan was confined, and what will tell in the end how that went.
#[derive(Debug)]
pub struct Confined {
    pub(super) backend: String,
    pub(super) enforcement: Enforcement,
    /// Texts of a denial, in lower case.
    pub(super) denials: Vec<String>,
    pub(super) evidence: Evidence,
}

impl Confined {
    /// Confined by the backend with this name, so completely.
    #[must_use]
    pub fn by(backend: impl Into<String>, enforcement: Enforcement) -> Confined {
        Confined { backend: backend.into(), enforcement, denials: Vec::new(), evidence: Evidence::OfTheStart }
    }

    /// Adds a text that a command denied something by this backend prints on stderr, such as `Read-only file system`. Case
    /// is ignored.
    #[must_use]
    pub fn denial(mut self, text: &str) -> Confined {
        self.denials.push(text.to_ascii_lowercase());
        self
    }

    /// Says by what a failed runner is known, for one that has no better way to tell: it exited with one of `exit_codes`
    /// (any failure, if there are none), and printed one of `signatures` on stderr (whatever it printed, if there are none;
    /// case is ignored). With neither, no run is ever taken for a failed runner.
    #[must_use]
    pub fn runner_failure(mut self, exit_codes: &[i32], signatures: &[&str]) -> Confined {
        let signatures = signatures.iter().map(|text| text.to_ascii_lowercase()).collect();
        self.evidence = Evidence::Signatures { exit_codes: exit_codes.to_vec(), signatures };
        self
    }
}

/// What a backend is to enforce, of a policy and where it applies.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) mode: SandboxMode,
    /// Canonical directories, none within another.
    pub(super) writable: Vec<PathBuf>,
    /// A canonical directory within one of them in which nothing may be changed, where the backend can: the service's own.
    pub(super) private: Option<PathBuf>,
    /// An empty directory in which a file system in memory of so many bytes is to be mounted, canonical.
    pub(super) scratch: Option<(PathBuf, u64)>,
}

impl Rules {
    pub(super) fn unavailable(&self, reason: impl Into<String>) -> Error {
        Error::SandboxUnavailable { mode: self.mode, reason: reason.into() }
    }
}

/// Those of the directories that lie within no other, each once.
pub(super) fn outermost(mut directories: Vec<PathBuf>) -> Vec<PathBuf> {
    directories.sort();
    directories.dedup();
    let mut kept: Vec<PathBuf> = Vec::with_capacity(directories.len());
    for directory in directories {
        if !kept.iter().any(|outer| directory.starts_with(outer)) {
            kept.push(directory);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    // S3
    #[test]
    fn a_runner_is_not_steered_by_what_it_runs() {
        let entries = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            pairs.iter().map(|&(name, value)| (name.into(), value.into())).collect()
        };
        let split = |commands: &[(&str, &str)], hosts: &[(&str, &str)]| {
            let (words, env) = environment_of_a_runner(entries(commands), entries(hosts).into_iter());
            let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            (words.join(" "), env)
        };
        let (words, env) = split(&[("PATH", "/bin"), ("A", "1")], &[("PATH", "/bin"), ("SECRET", "x")]);
        assert_eq!((words.as_str(), env), ("", entries(&[("A", "1"), ("PATH", "/bin")])));
        let (words, env) = split(
            &[("PATH", "/w"), ("LD_PRELOAD", "/w/x.so"), ("A", "1")],
            &[("PATH", "/bin"), ("BASH_ENV", "/etc/b"), ("LD_LIBRARY_PATH", "/opt")],
        );
        assert_eq!(words, "/usr/bin/env -u BASH_ENV -u LD_LIBRARY_PATH PATH=/w LD_PRELOAD=/w/x.so");
        let hosts = [("A", "1"), ("PATH", "/bin"), ("BASH_ENV", "/etc/b"), ("LD_LIBRARY_PATH", "/opt")];
        assert_eq!(env, entries(&hosts));
    }

    // S9
    #[test]
    fn a_directory_within_another_is_one_with_it() {
        let kept = |paths: &[&str]| outermost(paths.iter().map(PathBuf::from).collect());
        assert_eq!(kept(&["/tmp/w", "/tmp"]), [PathBuf::from("/tmp")]);
        assert_eq!(kept(&["/w", "/tmp", "/w"]), [PathBuf::from("/tmp"), PathBuf::from("/w")]);
        assert_eq!(kept(&["/tmp", "/tmp2"]), [PathBuf::from("/tmp"), PathBuf::from("/tmp2")]);
        assert_eq!(kept(&["/a", "/a-b", "/a/b"]), [PathBuf::from("/a"), PathBuf::from("/a-b")]);
    }
}
