//! The executor: which requests can be run on the other machine, with which defaults, and by which words of `ssh`.

use super::session::Session;
use shell_executor::{EnvEntry, Error, ExecRequest, ExecSpec, Execution, SandboxMode, ShellExecutor, Stdin};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Runs commands on another machine.
///
/// The other machine's environment is its own: only the request's entries are added. A command that is cut short loses its
/// connection, which ends it when it next reads or writes; `ssh` has no way to send it a signal.
#[derive(Debug)]
pub(crate) struct SshExecutor {
    ssh: OsString,
    host: String,
    workdir: PathBuf,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

impl SshExecutor {
    /// Commands run on `host`, by `ssh`, in `workdir` unless they say otherwise.
    pub(crate) fn new(ssh: impl Into<OsString>, host: &str, workdir: impl Into<PathBuf>) -> SshExecutor {
        SshExecutor { ssh: ssh.into(), host: host.to_owned(), workdir: workdir.into() }
    }
}

impl ShellExecutor for SshExecutor {
    fn resolve(&self, request: ExecRequest) -> Result<ExecSpec, Error> {
        let invalid = |field: &'static str, reason: &'static str| {
            Err(Error::InvalidRequest { field: field.into(), reason: reason.into() })
        };
        if request.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return invalid("timeout", "is zero");
        }
        if request.stdin == Stdin::Pipe || request.backpressure {
            return invalid("stdin", "cannot be a pipe here, nor can output wait for its reader");
        }
        if let Some(policy) = request.sandbox_policy.filter(|one| one.mode != SandboxMode::DangerFullAccess) {
            let reason = "commands on another machine are not confined".to_owned();
            return Err(Error::SandboxUnavailable { mode: policy.mode, reason });
        }

        let timeout = request.timeout.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
        let workdir = request.workdir.map_or_else(|| self.workdir.clone(), |asked| self.workdir.join(asked));
        let mut spec = ExecSpec::new(request.command, workdir, timeout);
        for entry in request.env {
            match entry {
                EnvEntry::Set(name, value) => spec.environment.push((name, value)),
                // What is taken away from an environment that is not ours is set to nothing.
                EnvEntry::Remove(name) => spec.environment.push((name, OsString::new())),
            }
        }
        spec.environment.extend(request.managed_env);
        spec.stdout_max_bytes = request.stdout_max_bytes.unwrap_or(spec.stdout_max_bytes);
        spec.on_expiry = request.on_expiry;
        spec.abort = request.abort;
        spec.stdin = request.stdin;
        for (name, value) in &spec.environment {
            if has_nul(name) || has_nul(value) {
                return invalid("env", "contains a NUL byte");
            }
        }
        if has_nul(&spec.command) || has_nul(spec.workdir.as_os_str()) {
            return invalid("command", "or its workdir contains a NUL byte");
        }
        Ok(spec)
    }

    fn execute(&self, spec: ExecSpec) -> Execution {
        // A line that only the other machine's shell prints, just before the command: that it was reached is never guessed.
        let mark = format!("started {:x}", std::process::id());
        let words = [&self.ssh, OsStr::new("-T"), OsStr::new("-oBatchMode=yes"), OsStr::new(&self.host)];
        let mut argv: Vec<OsString> = words.into_iter().map(OsStr::to_owned).collect();
        argv.push(script(&spec, &mark));
        Execution::new(Arc::new(Session::start(&argv, spec, mark)))
    }
}

/// What the other machine's login shell is to run: it goes to the directory, says so, and becomes the command.
fn script(spec: &ExecSpec, mark: &str) -> OsString {
    let mut script = OsString::from("cd -- ");
    script.push(quoted(spec.workdir.as_os_str()));
    script.push(format!(" && echo '{mark}' >&2 && exec env"));
    for (name, value) in &spec.environment {
        let mut entry = name.clone();
        entry.push("=");
        entry.push(value);
        script.push(" ");
        script.push(quoted(&entry));
    }
    script.push(" bash --norc -c -- ");
    script.push(quoted(&spec.command));
    script
}

fn has_nul(text: &OsStr) -> bool {
    text.as_encoded_bytes().contains(&0)
}

/// The text as one word of the shell.
fn quoted(text: &OsStr) -> OsString {
    OsString::from(format!("'{}'", text.to_string_lossy().replace('\'', r"'\''")))
}
