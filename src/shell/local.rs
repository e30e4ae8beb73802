//! An executor on this machine: requests resolved by a configuration, specs handed to the subprocess service.
//!
//! All that shells have in common. What they differ in is a [`Dialect`].

use super::config::{Config, no_nul};
use super::execution::Execution;
use super::request::{ExecRequest, ExecSpec, Stdin};
use super::start::{Dialect, Sandbox, Start};
use crate::environment::{Block, EnvEntry, check_managed_name, check_name, check_value};
use crate::error::{Error, SpawnError, SpawnStage};
use crate::process::{Disposition, Entrance, Input, LEAST_RELAY, OnExpiry, SpawnSpec, SubprocessService};
use crate::sandbox::{Confined, SandboxMode, SandboxPlan, SandboxPolicy, SandboxProvider};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An executor of one dialect.
#[derive(Debug, Clone)]
pub(super) struct Local {
    dialect: &'static dyn Dialect,
    service: Entrance,
    config: Config,
    sandbox: Option<Sandbox>,
}

impl Local {
    pub(super) fn new(
        dialect: &'static dyn Dialect,
        service: &SubprocessService,
        config: Config,
    ) -> Result<Local, Error> {
        config.check()?;
        Ok(Local { dialect, service: service.entrance(), config, sandbox: None })
    }

    pub(super) fn with_sandbox(
        mut self,
        provider: Arc<dyn SandboxProvider>,
        policy: SandboxPolicy,
    ) -> Result<Local, Error> {
        self.sandbox = Some(Sandbox { provider, policy: policy.canonical()? });
        Ok(self)
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn sandbox_mode(&self) -> Option<SandboxMode> {
        self.sandbox.as_ref().map(|sandbox| sandbox.policy.mode)
    }

    pub(super) fn resolve(&self, mut request: ExecRequest) -> Result<ExecSpec, Error> {
        no_nul("command", &request.command)?;
        self.dialect.check(&request.command)?;
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

    pub(super) fn execute(&self, spec: ExecSpec) -> Execution {
        let output = |max_bytes| match spec.backpressure {
            true => Disposition::Relay { max_bytes },
            false => Disposition::Collect { max_bytes, spill_max_bytes: spec.spill_max_bytes },
        };
        let (stdout, stderr) = (output(spec.stdout_max_bytes), output(spec.stderr_max_bytes));
        // Whoever has changed the command of a spec by hand may have made one that this shell cannot be told.
        let refusal = self.dialect.check(&spec.command).err();
        let mut argv = vec![self.config.shell.clone().into_os_string()];
        argv.extend(self.dialect.arguments(spec.command));
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
        let start = Start { dialect: self.dialect, shell: self.config.shell.clone(), refusal, sandbox };
        self.service.launch(order, Some(Box::new(start))).into()
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
