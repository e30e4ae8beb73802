//! The local executor: a fresh `bash -c` for each command, over the subprocess service.

use super::request::{ExecRequest, ExecSpec, GRACE, OUTPUT_MAX_BYTES, Stdin};
use super::{Execution, ShellExecutor};
use crate::environment::{Block, EnvEntry, Scrub, check_managed_name, check_name, check_value};
use crate::error::{Error, SpawnError, SpawnStage};
use crate::output::PrivateFile;
use crate::process::{
    ANSWER_WINDOW, DRAIN_IDLE, Disposition, Entrance, Input, LEAST_RELAY, Launch, OnExpiry, Preparation,
    SpawnSpec, SubprocessService, Surroundings, candidates, is_bare_name,
};
use crate::sandbox::{self, Confined, SandboxInfo, SandboxMode, SandboxPlan, SandboxPolicy, SandboxProvider};
use crate::sys;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The defaults and caps of a [`BashExecutor`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The shell: a name to look up on this process's `PATH`, or an absolute path. Default: `bash`.
    pub shell: PathBuf,
    /// Where commands run that do not say. Default: the host's current directory at the time of `resolve`.
    pub workdir: Option<PathBuf>,
    /// How long a command may run that does not say. Default: 120 s.
    pub default_timeout: Duration,
    /// How long a command may run at most; a longer request is clamped. Default: 600 s.
    pub max_timeout: Duration,
    /// How many of each stream's last bytes are kept in memory. Default: 64,000.
    pub output_max_bytes: usize,
    /// How large the spill file of one stream may become; `None` for no files. Default: 64 MiB.
    pub spill_max_bytes: Option<u64>,
    /// From the polite signal to the forceful one. Zero is allowed. Default: 3 s.
    pub grace: Duration,
    /// How long a stream held open by a descendant must be quiet, after the shell's exit, to be given up. Default: 250 ms.
    pub drain_idle: Duration,
    /// How long an offer to keep a command stays open. Default: 1 s.
    pub answer_window: Duration,
    /// What is kept from the command's environment besides the usual.
    pub scrub: Scrub,
    /// The environment to start from; `None` for the host's own at the time of `resolve`.
    pub inherited_env: Option<Vec<(OsString, OsString)>>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            shell: PathBuf::from("bash"),
            workdir: None,
            default_timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            output_max_bytes: OUTPUT_MAX_BYTES,
            spill_max_bytes: Some(64 * 1024 * 1024),
            grace: GRACE,
            drain_idle: DRAIN_IDLE,
            answer_window: ANSWER_WINDOW,
            scrub: Scrub::default(),
            inherited_env: None,
        }
    }
}

/// Runs each command as a fresh `bash -c`: unconfined, or [in a sandbox](BashExecutor::with_sandbox).
///
/// The shell is neither a login shell nor interactive, and whatever would run code before the command (`BASH_ENV`, exported
/// functions) is kept from it. The commands belong to the service: dropping the executor leaves them running.
///
/// ```
/// use shell_executor::{BashExecutor, Config, ExecRequest, ShellExecutor, SubprocessService};
///
/// let service = SubprocessService::new();
/// let bash = BashExecutor::new(&service, Config::default())?;
/// let result = bash.run(bash.resolve(ExecRequest::new("echo out; echo err >&2; exit 3"))?)?;
/// assert_eq!(result.exit_code, Some(3));
/// assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("out\n", "err\n"));
/// # Ok::<(), shell_executor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BashExecutor {
    service: Entrance,
    config: Config,
    sandbox: Option<Sandbox>,
}

/// What confines, and the policy of those that do not bring their own.
#[derive(Debug, Clone)]
struct Sandbox {
    provider: Arc<dyn SandboxProvider>,
    policy: SandboxPolicy,
}

impl BashExecutor {
    /// An executor whose commands run in `service`. It does not keep the service alive: when that has been disposed of, or
    /// its last handle dropped, what is executed fails with [`Error::Disposed`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] when a timeout or a byte budget is zero, or the default timeout exceeds the cap. Whether
    /// there is a shell is seen when a command is executed.
    pub fn new(service: &SubprocessService, config: Config) -> Result<BashExecutor, Error> {
        let zero = [
            ("default_timeout", config.default_timeout.is_zero()),
            ("max_timeout", config.max_timeout.is_zero()),
            ("output_max_bytes", config.output_max_bytes == 0),
            ("spill_max_bytes", config.spill_max_bytes == Some(0)),
        ];
        if let Some((field, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return Err(Error::invalid(field, "is zero"));
        }
        if config.default_timeout > config.max_timeout {
            let reason =
                format!("of {:?} exceeds max_timeout of {:?}", config.default_timeout, config.max_timeout);
            return Err(Error::invalid("default_timeout", reason));
        }
        if config.shell.as_os_str().is_empty() {
            return Err(Error::invalid("shell", "is empty"));
        }
        if config.shell.is_relative() && !is_bare_name(config.shell.as_os_str()) {
            return Err(Error::invalid("shell", format!("is the relative path {:?}", config.shell)));
        }
        no_nul("shell", config.shell.as_os_str())?;
        Ok(BashExecutor { service: service.entrance(), config, sandbox: None })
    }

    /// The same, with each command confined by `provider`: under its request's policy, or else under `policy`. A policy of
    /// `danger-full-access` runs a command without asking the provider.
    ///
    /// # Errors
    ///
    /// As [`SandboxPolicy::canonical`]. Whether anything can confine here is seen when a command is executed.
    pub fn with_sandbox(
        mut self,
        provider: Arc<dyn SandboxProvider>,
        policy: SandboxPolicy,
    ) -> Result<BashExecutor, Error> {
        self.sandbox = Some(Sandbox { provider, policy: policy.canonical()? });
        Ok(self)
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn workdir(&self, requested: Option<PathBuf>) -> Result<PathBuf, Error> {
        let base = self.config.workdir.clone();
        let asked = match (base, requested) {
            (Some(base), Some(requested)) => base.join(requested),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => PathBuf::new(),
        };
        no_nul("workdir", asked.as_os_str())?;
        if asked.is_absolute() {
            return Ok(asked);
        }
        let current = std::env::current_dir().map_err(|error| {
            let what = "cannot use the host's current directory as the working directory";
            SpawnError::new(SpawnStage::Workdir, Some(Path::new(".")), what, &error)
        })?;
        // Joining an empty path would leave a slash at the end.
        Ok(if asked.as_os_str().is_empty() { current } else { current.join(asked) })
    }

    /// The policy that a command runs under; `None` from an executor that does not confine.
    fn policy(&self, requested: Option<SandboxPolicy>) -> Result<Option<SandboxPolicy>, Error> {
        match (&self.sandbox, requested) {
            (Some(sandbox), None) => Ok(Some(sandbox.policy.clone())),
            (Some(_), Some(policy)) => policy.canonical().map(Some),
            (None, Some(policy)) if policy.mode != SandboxMode::DangerFullAccess => {
                Err(unconfined(policy.mode))
            }
            (None, requested) => Ok(requested),
        }
    }

    fn environment(&self, request: &ExecRequest) -> Result<Block, Error> {
        let named = |name: &OsStr| format!("env {}", name.to_string_lossy());
        for entry in &request.env {
            let value = match entry {
                EnvEntry::Set(_, value) => value.as_os_str(),
                EnvEntry::Remove(_) => OsStr::new(""),
            };
            let checked = check_name(entry.name()).and_then(|()| check_value(value));
            checked.map_err(|reason| Error::invalid(named(entry.name()), reason))?;
        }
        for (name, value) in &request.managed_env {
            let checked = check_managed_name(name).and_then(|()| check_value(value));
            checked.map_err(|reason| Error::invalid(format!("managed_{}", named(name)), reason))?;
        }
        let compose =
            |inherited| Block::compose(inherited, &self.config.scrub, &request.env, &request.managed_env);
        Ok(match &self.config.inherited_env {
            Some(inherited) => compose(inherited.clone()),
            None => compose(std::env::vars_os().collect()),
        })
    }
}

impl ShellExecutor for BashExecutor {
    fn resolve(&self, mut request: ExecRequest) -> Result<ExecSpec, Error> {
        no_nul("command", &request.command)?;
        if request.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::invalid("timeout", "is zero"));
        }
        if request.stdout_max_bytes == Some(0) {
            return Err(Error::invalid("stdout_max_bytes", "is zero"));
        }
        let sandbox_policy = self.policy(request.sandbox_policy.take())?;
        let environment = self.environment(&request)?;
        let config = &self.config;
        let stdout_max_bytes = request.stdout_max_bytes.unwrap_or(config.output_max_bytes);
        if request.backpressure && stdout_max_bytes.min(config.output_max_bytes) < LEAST_RELAY {
            let field = if stdout_max_bytes < LEAST_RELAY { "stdout_max_bytes" } else { "output_max_bytes" };
            return Err(Error::invalid(field, format!("is below {LEAST_RELAY}, too small for backpressure")));
        }
        Ok(ExecSpec {
            workdir: self.workdir(request.workdir)?,
            timeout: request.timeout.unwrap_or(config.default_timeout).min(config.max_timeout),
            on_expiry: request.on_expiry,
            stdout_max_bytes,
            stderr_max_bytes: config.output_max_bytes,
            spill_max_bytes: config.spill_max_bytes,
            grace: config.grace,
            drain_idle: config.drain_idle,
            answer_window: config.answer_window,
            abort: request.abort,
            stdin: request.stdin,
            environment: environment.entries,
            scrubbed: environment.removed,
            sandbox_policy,
            backpressure: request.backpressure,
            command: request.command,
        })
    }

    fn execute(&self, spec: ExecSpec) -> Execution {
        let output = |max_bytes| match spec.backpressure {
            true => Disposition::Relay { max_bytes },
            false => Disposition::Collect { max_bytes, spill_max_bytes: spec.spill_max_bytes },
        };
        let (stdout, stderr) = (output(spec.stdout_max_bytes), output(spec.stderr_max_bytes));
        // `--` ends the shell's options: a command may begin with a dash.
        // And a bash that takes its surroundings for those of a remote shell daemon reads no start-up file.
        let shell = self.config.shell.clone().into_os_string();
        let argv = vec![shell, "--norc".into(), "-c".into(), "--".into(), spec.command.clone()];
        let mut order = SpawnSpec::new(argv, spec.workdir, spec.environment, stdout, spec.grace);
        order.stderr = stderr;
        order.stdin = match spec.stdin {
            Stdin::Null => Input::Null,
            Stdin::Bytes(bytes) => Input::Bytes(bytes),
            Stdin::Pipe => Input::Pipe,
        };
        order.drain_idle = spec.drain_idle;
        order.timeout = (spec.on_expiry != OnExpiry::None).then_some(spec.timeout);
        order.on_expiry = spec.on_expiry;
        order.answer_window = spec.answer_window;
        order.abort = spec.abort;
        order.scrubbed = spec.scrubbed;
        let sandbox = match (&self.sandbox, spec.sandbox_policy) {
            // Whoever took the policy out of the spec has not taken it out of the executor.
            (Some(sandbox), None) => Some(sandbox.clone()),
            (Some(sandbox), Some(policy)) => Some(Sandbox { policy, ..sandbox.clone() }),
            (None, Some(policy)) if policy.mode != SandboxMode::DangerFullAccess => {
                Some(Sandbox { provider: Arc::new(NoProvider), policy })
            }
            (None, _) => None,
        };
        let preparation =
            BashPreparation { shell: self.config.shell.clone(), command: spec.command, sandbox };
        self.service.launch(order, Some(Box::new(preparation))).into()
    }

    fn sandbox_mode(&self) -> Option<SandboxMode> {
        self.sandbox.as_ref().map(|sandbox| sandbox.policy.mode)
    }
}

/// Of an executor that does not confine: a spec that asks for it comes from another, and is not run.
#[derive(Debug)]
struct NoProvider;

impl SandboxProvider for NoProvider {
    fn confine(&self, policy: &SandboxPolicy, _plan: &mut SandboxPlan<'_>) -> Result<Confined, Error> {
        Err(unconfined(policy.mode))
    }
}

/// Ignoring what a policy asks for would run the command with rights that nobody has given it.
fn unconfined(mode: SandboxMode) -> Error {
    Error::SandboxUnavailable { mode, reason: "this executor does not confine commands".to_owned() }
}

/// Finds the shell, and a place for a command that is too long to be an argument; then has all of it confined.
struct BashPreparation {
    shell: PathBuf,
    command: OsString,
    sandbox: Option<Sandbox>,
}

impl Preparation for BashPreparation {
    fn sandbox(&self) -> Option<SandboxInfo> {
        self.sandbox.as_ref().map(|sandbox| SandboxInfo::new(sandbox.policy.mode))
    }

    fn prepare(self: Box<Self>, launch: &mut Launch, surroundings: &Surroundings<'_>) -> Result<(), Error> {
        launch.stage = SpawnStage::Shell;
        launch.candidates = vec![find_shell(&self.shell)?];
        let (one, _) = sys::argument_limits();
        // The limit counts the NUL at the end.
        if one.is_some_and(|limit| self.command.len() >= limit) {
            let script = PrivateFile::create(surroundings.dir, "command-", self.command.as_encoded_bytes());
            let script = script.map_err(|error| {
                let what = format!("no file for its command of {} bytes", self.command.len());
                SpawnError::resources(&format!("cannot start {:?}: {what}", self.shell), &error)
            })?;
            // The shell reads the file into memory before it runs a word of it: stdin stays free, `$0` stays the same, and
            // messages name the same lines as for a short command.
            let mut read = OsString::from("eval -- \"$(<");
            read.push(quoted(script.path().as_os_str()));
            read.push(")\"");
            if let Some(command) = launch.argv.last_mut() {
                *command = read;
            }
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

/// Looked for on the host's own search path: a command's `PATH` decides what the command finds, not what runs it.
fn find_shell(shell: &Path) -> Result<PathBuf, Error> {
    let search = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    let mut refusal = io::Error::from(io::ErrorKind::NotFound);
    for path in candidates(shell.as_os_str(), search) {
        match sys::is_executable(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refusal = error,
            Err(error) if refusal.kind() != io::ErrorKind::PermissionDenied => refusal = error,
            Err(_) => {}
        }
    }
    let what = if shell.is_absolute() {
        format!("cannot use {shell:?} as the shell")
    } else {
        format!("cannot find the shell {shell:?} on PATH")
    };
    Err(SpawnError::new(SpawnStage::Shell, Some(shell), &what, &refusal).into())
}

/// The text as one word of the shell.
fn quoted(text: &OsStr) -> OsString {
    let mut word = OsString::from("'");
    // A quote ends the word's quoting, stands escaped, and begins it again. The text is a path, in one piece with what is
    // not UTF-8 in it.
    let mut rest = text;
    while let Some(at) = rest.as_encoded_bytes().iter().position(|&byte| byte == b'\'') {
        let (before, after) = sys::split_os_str(rest, at);
        word.push(before);
        word.push("'\\''");
        (_, rest) = sys::split_os_str(after, 1);
    }
    word.push(rest);
    word.push("'");
    word
}

fn no_nul(field: &'static str, text: &OsStr) -> Result<(), Error> {
    if text.as_encoded_bytes().contains(&0) {
        Err(Error::invalid(field, "contains a NUL byte"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // I3
    #[test]
    fn a_path_with_quotes_is_one_word() {
        assert_eq!(quoted(OsStr::new("/a b/c")), "'/a b/c'");
        assert_eq!(quoted(OsStr::new("/it's 'x'")), r"'/it'\''s '\''x'\'''");
    }
}
