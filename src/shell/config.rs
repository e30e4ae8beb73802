//! The configuration of an executor on this machine.

use super::request::{GRACE, OUTPUT_MAX_BYTES};
use crate::environment::Scrub;
use crate::error::Error;
use crate::process::{ANSWER_WINDOW, DRAIN_IDLE, is_bare_name};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// The shell of a configuration in which nobody has named one.
pub(super) const DEFAULT_SHELL: &str = "bash";

/// The defaults and caps of a [`BashExecutor`](crate::BashExecutor) or a [`PwshExecutor`](crate::PwshExecutor).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The shell: a name to look up on this process's `PATH`, or an absolute path. Default: `bash`, which a
    /// [`PwshExecutor`](crate::PwshExecutor) takes as left to it.
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
            shell: PathBuf::from(DEFAULT_SHELL),
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

impl Config {
    /// Whether commands can be run with it. Whether there is a shell is seen when one is.
    pub(super) fn check(&self) -> Result<(), Error> {
        let zero = [
            ("default_timeout", self.default_timeout.is_zero()),
            ("max_timeout", self.max_timeout.is_zero()),
            ("output_max_bytes", self.output_max_bytes == 0),
            ("spill_max_bytes", self.spill_max_bytes == Some(0)),
        ];
        if let Some((field, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return Err(Error::invalid(field, "is zero"));
        }
        if self.default_timeout > self.max_timeout {
            let reason =
                format!("of {:?} exceeds max_timeout of {:?}", self.default_timeout, self.max_timeout);
            return Err(Error::invalid("default_timeout", reason));
        }
        if self.shell.as_os_str().is_empty() {
            return Err(Error::invalid("shell", "is empty"));
        }
        if self.shell.is_relative() && !is_bare_name(self.shell.as_os_str()) {
            return Err(Error::invalid("shell", format!("is the relative path {:?}", self.shell)));
        }
        no_nul("shell", self.shell.as_os_str())
    }
}

pub(super) fn no_nul(field: &'static str, text: &OsStr) -> Result<(), Error> {
    if text.as_encoded_bytes().contains(&0) {
        Err(Error::invalid(field, "contains a NUL byte"))
    } else {
        Ok(())
    }
}
