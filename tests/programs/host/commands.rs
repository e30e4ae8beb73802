//! The commands that scenarios run, with terms that a loaded machine does not break.

use crate::expect::Outcome;
use shell_executor::{
    BashExecutor, Config, Disposition, Error, ExecRequest, Execution, RunResult, ShellExecutor, SpawnSpec,
    SubprocessService,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So long that nothing polite is ever overtaken by force.
pub(crate) const GRACE: Duration = Duration::from_secs(20);

pub(crate) fn bash(service: &SubprocessService) -> Outcome<BashExecutor> {
    bash_with(service, |_| {})
}

pub(crate) fn bash_with(
    service: &SubprocessService,
    change: impl FnOnce(&mut Config),
) -> Outcome<BashExecutor> {
    let mut config = Config::default();
    config.workdir = Some(PathBuf::from("/"));
    config.grace = GRACE;
    change(&mut config);
    Ok(BashExecutor::new(service, config)?)
}

pub(crate) fn run(bash: &BashExecutor, request: ExecRequest) -> Result<RunResult, Error> {
    bash.run(bash.resolve(request)?)
}

/// Runs a command until its deadline, which on a machine so busy that it comes before the start is a later one.
pub(crate) fn run_past_its_deadline(bash: &BashExecutor, command: &str) -> Result<RunResult, Error> {
    let mut deadline = Duration::from_millis(300);
    loop {
        let outcome = run(bash, ExecRequest::new(command).timeout(deadline));
        let unstarted = |result: &RunResult| result.exit_code.is_none() && result.signal.is_none();
        if !outcome.as_ref().is_ok_and(unstarted) || deadline > Duration::from_secs(30) {
            return outcome;
        }
        deadline *= 2;
    }
}

pub(crate) fn execute(bash: &BashExecutor, request: ExecRequest) -> Result<Execution, Error> {
    Ok(bash.execute(bash.resolve(request)?))
}

/// An order without a shell: the host's `PATH`, both streams collected.
pub(crate) fn argv<const N: usize>(argv: [&str; N]) -> SpawnSpec {
    let environment: Vec<(OsString, OsString)> =
        std::env::var_os("PATH").map(|path| ("PATH".into(), path)).into_iter().collect();
    let collect = Disposition::Collect { max_bytes: 64_000, spill_max_bytes: None };
    SpawnSpec::new(argv.iter().map(OsString::from).collect(), "/", environment, collect, GRACE)
}

/// Where a program stands on the host's `PATH`.
pub(crate) fn find(program: &str) -> Outcome<PathBuf> {
    let path = std::env::var_os("PATH").ok_or("no PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file());
    Ok(found.ok_or_else(|| format!("no {program} on PATH"))?)
}

/// This program as a word of the shell.
pub(crate) fn this_program() -> Outcome<String> {
    let path = std::env::current_exe()?;
    let text = path.to_str().ok_or("the path of this program is not UTF-8")?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// A directory of the scenario's own, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Outcome<Scratch> {
        let path =
            std::env::temp_dir().join(format!("test-host-{}-{}", std::process::id(), crate::look::unique()));
        std::fs::create_dir(&path)?;
        Ok(Scratch(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
