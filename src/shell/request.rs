//! What a caller asks for, and what it is resolved to.

use crate::abort::AbortToken;
use crate::environment::{EnvEntry, EnvSnapshot};
use crate::error::Error;
use crate::process::{ANSWER_WINDOW, DRAIN_IDLE, OnExpiry};
use crate::sandbox::{Approver, Escalation, SandboxMode, SandboxPolicy};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the command reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Stdin {
    /// `/dev/null`: end of file at once.
    #[default]
    Null,
    /// These bytes, of any number, and then end of file.
    Bytes(Vec<u8>),
    /// A pipe whose other end the caller takes with [`Execution::take_stdin`](crate::Execution::take_stdin).
    Pipe,
}

/// A command, and whatever of its terms the caller wants to set. All but the command has a default.
///
/// ```
/// use shell_executor::{ExecRequest, OnExpiry};
/// use std::time::Duration;
///
/// let request = ExecRequest::new("make -j4").workdir("/src").timeout(Duration::from_secs(60)).on_expiry(OnExpiry::Offer);
/// assert_eq!(request.command, "make -j4");
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ExecRequest {
    /// The command, in the shell's language. It may be empty, begin with `-`, and be longer than the system's limit for
    /// one argument.
    pub command: OsString,
    /// Where it runs; a relative path is below the executor's own working directory.
    pub workdir: Option<PathBuf>,
    /// How long it may run. Clamped to the executor's cap.
    pub timeout: Option<Duration>,
    /// How many of stdout's last bytes are kept in memory, for this one execution. For callers who parse complete output.
    pub stdout_max_bytes: Option<usize>,
    /// Cuts the command short when fired.
    pub abort: Option<AbortToken>,
    /// Standard input.
    pub stdin: Stdin,
    /// Ordinary entries of the environment, and removals from it, in order.
    pub env: Vec<EnvEntry>,
    /// Facts owned by the host, with names in the managed namespace: `DSH_` and then `[A-Z][A-Z0-9_]*`. They come after
    /// `env`, so that an ordinary entry never displaces one.
    pub managed_env: Vec<(OsString, OsString)>,
    /// What the command may do to files; for executors that confine.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// What the deadline does. Default: the command is stopped.
    pub on_expiry: OnExpiry,
    /// Whether the command waits while its output is not read, instead of dropping the oldest of it. For callers who pass
    /// everything on, and read until the execution has settled: one that does not read stops the command.
    pub backpressure: bool,
}

impl ExecRequest {
    /// A request with defaults for all but the command.
    #[must_use]
    pub fn new(command: impl Into<OsString>) -> ExecRequest {
        ExecRequest { command: command.into(), ..ExecRequest::default() }
    }

    /// Sets [`workdir`](ExecRequest::workdir).
    #[must_use]
    pub fn workdir(mut self, workdir: impl Into<PathBuf>) -> ExecRequest {
        self.workdir = Some(workdir.into());
        self
    }

    /// Sets [`timeout`](ExecRequest::timeout).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> ExecRequest {
        self.timeout = Some(timeout);
        self
    }

    /// Sets [`stdout_max_bytes`](ExecRequest::stdout_max_bytes).
    #[must_use]
    pub fn stdout_max_bytes(mut self, bytes: usize) -> ExecRequest {
        self.stdout_max_bytes = Some(bytes);
        self
    }

    /// Sets [`abort`](ExecRequest::abort).
    #[must_use]
    pub fn abort(mut self, token: &AbortToken) -> ExecRequest {
        self.abort = Some(token.clone());
        self
    }

    /// Gives the command these bytes to read.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> ExecRequest {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Gives the command a pipe to read, whose other end the caller takes from the execution.
    #[must_use]
    pub fn stdin_piped(mut self) -> ExecRequest {
        self.stdin = Stdin::Pipe;
        self
    }

    /// Adds an ordinary entry to [`env`](ExecRequest::env).
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> ExecRequest {
        self.env.push(EnvEntry::set(name, value));
        self
    }

    /// Takes a name away from the environment.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<OsString>) -> ExecRequest {
        self.env.push(EnvEntry::remove(name));
        self
    }

    /// Adds a fact to [`managed_env`](ExecRequest::managed_env).
    #[must_use]
    pub fn managed_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> ExecRequest {
        self.managed_env.push((name.into(), value.into()));
        self
    }

    /// Adds all facts of a snapshot to [`managed_env`](ExecRequest::managed_env).
    #[must_use]
    pub fn managed_snapshot(mut self, snapshot: &EnvSnapshot) -> ExecRequest {
        self.managed_env.extend(snapshot.iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Sets [`sandbox_policy`](ExecRequest::sandbox_policy).
    #[must_use]
    pub fn sandbox_policy(mut self, policy: SandboxPolicy) -> ExecRequest {
        self.sandbox_policy = Some(policy);
        self
    }

    /// Sets [`on_expiry`](ExecRequest::on_expiry).
    #[must_use]
    pub fn on_expiry(mut self, on_expiry: OnExpiry) -> ExecRequest {
        self.on_expiry = on_expiry;
        self
    }

    /// Sets [`backpressure`](ExecRequest::backpressure).
    #[must_use]
    pub fn backpressure(mut self, backpressure: bool) -> ExecRequest {
        self.backpressure = backpressure;
        self
    }
}

/// A command with all its terms explicit: what an executor acts on, nothing left to default.
///
/// It comes from [`resolve`](crate::ShellExecutor::resolve). Every field can be read, shown and approved; one that is
/// changed by hand is taken as it is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExecSpec {
    /// The command.
    pub command: OsString,
    /// Where it runs, absolute.
    pub workdir: PathBuf,
    /// How long it may run, after default and cap. Without effect under [`OnExpiry::None`].
    pub timeout: Duration,
    /// What the deadline does.
    pub on_expiry: OnExpiry,
    /// How many of stdout's last bytes are kept in memory.
    pub stdout_max_bytes: usize,
    /// How many of stderr's last bytes are kept in memory.
    pub stderr_max_bytes: usize,
    /// How large the spill file of one stream may become; `None` for no file.
    pub spill_max_bytes: Option<u64>,
    /// From the polite signal to the forceful one; also the longest that a held pipe delays the settlement.
    pub grace: Duration,
    /// How long a stream held open by a descendant must be quiet, after the leader's exit, to be given up.
    pub drain_idle: Duration,
    /// How long an offer to keep the command stays open.
    pub answer_window: Duration,
    /// Cuts the command short when fired.
    pub abort: Option<AbortToken>,
    /// Standard input.
    pub stdin: Stdin,
    /// The whole environment: inherited and scrubbed, with overrides, ordinary entries and managed facts.
    pub environment: Vec<(OsString, OsString)>,
    /// The names (never the values) that the scrub kept from the environment, sorted.
    pub scrubbed: Vec<OsString>,
    /// What the command may do to files; `None` without confinement.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// Whether the command waits while its output is not read.
    pub backpressure: bool,
}

impl ExecSpec {
    /// The same call in a wider mode, if `approver` grants that very call now. Nothing but the mode changes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] when the call has no sandbox policy, the mode is not strictly wider, or the justification is
    /// blank; [`Error::NotApproved`] when it was not granted.
    pub fn escalate(
        self,
        mode: SandboxMode,
        justification: impl Into<String>,
        approver: &dyn Approver,
    ) -> Result<ExecSpec, Error> {
        let Some(current) = self.sandbox_policy.clone() else {
            return Err(Error::invalid("escalation", "of a command that is not confined"));
        };
        let asked =
            Escalation::new(self.command.clone(), self.workdir.clone(), current, mode, justification)?;
        Ok(ExecSpec { sandbox_policy: Some(asked.ask(approver)?), ..self })
    }

    /// A spec for providers of executors to fill: no input, no environment, no token, no spill file, 64,000 bytes of each
    /// stream, a grace of 3 s.
    #[must_use]
    pub fn new(command: impl Into<OsString>, workdir: impl Into<PathBuf>, timeout: Duration) -> ExecSpec {
        ExecSpec {
            command: command.into(),
            workdir: workdir.into(),
            timeout,
            on_expiry: OnExpiry::Kill,
            stdout_max_bytes: OUTPUT_MAX_BYTES,
            stderr_max_bytes: OUTPUT_MAX_BYTES,
            spill_max_bytes: None,
            grace: GRACE,
            drain_idle: DRAIN_IDLE,
            answer_window: ANSWER_WINDOW,
            abort: None,
            stdin: Stdin::Null,
            environment: Vec::new(),
            scrubbed: Vec::new(),
            sandbox_policy: None,
            backpressure: false,
        }
    }
}

/// The default budget of one stream.
pub(super) const OUTPUT_MAX_BYTES: usize = 64_000;
/// The default grace.
pub(super) const GRACE: Duration = Duration::from_secs(3);
