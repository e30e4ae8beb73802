//! Bash: a fresh `bash -c` for each command.

use super::config::Config;
use super::local::Local;
use super::request::{ExecRequest, ExecSpec};
use super::start::Dialect;
use super::{Execution, ShellExecutor};
use crate::error::Error;
use crate::process::SubprocessService;
use crate::sandbox::{SandboxMode, SandboxPolicy, SandboxProvider};
use crate::sys;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

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
    local: Local,
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
        Ok(BashExecutor { local: Local::new(&Bash, service, config)? })
    }

    /// The same, with each command confined by `provider`: under its request's policy, or else under `policy`. A policy of
    /// `danger-full-access` runs a command without asking the provider.
    ///
    /// # Errors
    ///
    /// As [`SandboxPolicy::canonical`]. Whether anything can confine here is seen when a command is executed.
    pub fn with_sandbox(
        self,
        provider: Arc<dyn SandboxProvider>,
        policy: SandboxPolicy,
    ) -> Result<BashExecutor, Error> {
        Ok(BashExecutor { local: self.local.with_sandbox(provider, policy)? })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.local.config()
    }
}

impl ShellExecutor for BashExecutor {
    fn resolve(&self, request: ExecRequest) -> Result<ExecSpec, Error> {
        self.local.resolve(request)
    }

    fn execute(&self, spec: ExecSpec) -> Execution {
        self.local.execute(spec)
    }

    fn sandbox_mode(&self) -> Option<SandboxMode> {
        self.local.sandbox_mode()
    }
}

/// How bash is told a command.
#[derive(Debug)]
struct Bash;

impl Dialect for Bash {
    fn arguments(&self, command: OsString) -> Vec<OsString> {
        // `--` ends the shell's options: a command may begin with a dash.
        // And a bash that takes its surroundings for those of a remote shell daemon reads no start-up file.
        vec!["--norc".into(), "-c".into(), "--".into(), command]
    }

    fn arguments_for_file(&self, file: &Path) -> Result<Vec<OsString>, Error> {
        // The shell reads the file into memory before it runs a word of it: stdin stays free, `$0` stays the same, and
        // messages name the same lines as for a short command.
        let mut read = OsString::from("eval -- \"$(<");
        read.push(quoted(file.as_os_str()));
        read.push(")\"");
        Ok(self.arguments(read))
    }
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
