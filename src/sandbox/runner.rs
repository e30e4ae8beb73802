//! The custom runner: a program of the host's choice that confines what it is given to run.

use super::provider::{Confined, SandboxPlan, SandboxProvider};
use super::{Enforcement, SandboxPolicy};
use crate::error::{Error, reason};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Runs each command under a program: its words, then the shell and its arguments.
///
/// In the words, `{mode}` stands for the policy's mode, `{workspace_root}` for its canonical root, and `{temp_dir}` for the
/// host's temp directory; each once or more, anywhere in a word that is UTF-8. How complete the confinement is, the host
/// says; nothing is tried out.
///
/// ```
/// use shell_executor::{Enforcement, SandboxRunner};
///
/// let runner = SandboxRunner::new(["my-sandbox", "--mode={mode}", "--root={workspace_root}", "--"], Enforcement::Full)?
///     .failure_exit_codes([71])
///     .failure_signatures(["my-sandbox: "])
///     .denial_signatures(["Operation not permitted"]);
/// # let _ = runner;
/// # Ok::<(), shell_executor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SandboxRunner {
    argv: Vec<OsString>,
    enforcement: Enforcement,
    failure_exit_codes: Vec<i32>,
    failure_signatures: Vec<String>,
    denial_signatures: Vec<String>,
}

impl SandboxRunner {
    /// A runner by its words. The first is a name to look up on this process's `PATH`, or an absolute path.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] when there is no word, the program is a relative path, or a word has a NUL byte.
    pub fn new<I, W>(argv: I, enforcement: Enforcement) -> Result<SandboxRunner, Error>
    where
        I: IntoIterator<Item = W>,
        W: Into<OsString>,
    {
        let argv: Vec<OsString> = argv.into_iter().map(Into::into).collect();
        let no = |reason: String| Err(Error::invalid("sandbox runner", reason));
        let Some(program) = argv.first().filter(|program| !program.is_empty()) else {
            return no("has no program".to_owned());
        };
        if Path::new(program).is_relative() && !crate::process::is_bare_name(program) {
            return no(format!("is the relative path {program:?}"));
        }
        if argv.iter().any(|word| word.as_encoded_bytes().contains(&0)) {
            return no("contains a NUL byte".to_owned());
        }
        Ok(SandboxRunner {
            argv,
            enforcement,
            failure_exit_codes: Vec::new(),
            failure_signatures: Vec::new(),
            denial_signatures: Vec::new(),
        })
    }

    /// The exit codes by which the runner says that it has failed and the command has not run. Together with signatures,
    /// both have to be there.
    #[must_use]
    pub fn failure_exit_codes(mut self, codes: impl IntoIterator<Item = i32>) -> SandboxRunner {
        self.failure_exit_codes = codes.into_iter().collect();
        self
    }

    /// Texts that the runner prints on stderr when it has failed. Case is ignored. A command can print them as well: give
    /// exit codes with them.
    #[must_use]
    pub fn failure_signatures<S: Into<String>>(
        mut self,
        texts: impl IntoIterator<Item = S>,
    ) -> SandboxRunner {
        self.failure_signatures = texts.into_iter().map(Into::into).collect();
        self
    }

    /// Texts that a failing command's stderr has when the runner has denied it something. Case is ignored.
    #[must_use]
    pub fn denial_signatures<S: Into<String>>(mut self, texts: impl IntoIterator<Item = S>) -> SandboxRunner {
        self.denial_signatures = texts.into_iter().map(Into::into).collect();
        self
    }
}

impl SandboxProvider for SandboxRunner {
    fn confine(&self, policy: &SandboxPolicy, plan: &mut SandboxPlan<'_>) -> Result<Confined, Error> {
        let temp = std::env::temp_dir();
        let mut argv = Vec::with_capacity(self.argv.len());
        for word in &self.argv {
            argv.push(filled(word, policy, &temp));
        }
        let program = SandboxPlan::find(&argv[0]).map_err(|error| {
            let reason = format!("cannot use the runner {:?}: {}", argv[0], reason(&error));
            Error::SandboxUnavailable { mode: policy.mode, reason }
        })?;
        argv[0] = program.into_os_string();
        plan.run_under(argv);
        let mut confined = Confined::by("runner", self.enforcement);
        for text in &self.denial_signatures {
            confined = confined.denial(text);
        }
        let signatures: Vec<&str> = self.failure_signatures.iter().map(String::as_str).collect();
        Ok(confined.runner_failure(&self.failure_exit_codes, &signatures))
    }
}

/// The word with its places filled, in one pass: what is filled in is not looked at again.
fn filled(word: &OsStr, policy: &SandboxPolicy, temp: &Path) -> OsString {
    let Some(mut rest) = word.to_str() else { return word.to_owned() };
    let places: [(&str, &OsStr); 3] = [
        ("{mode}", OsStr::new(policy.mode.as_str())),
        ("{workspace_root}", policy.workspace_root.as_os_str()),
        ("{temp_dir}", temp.as_os_str()),
    ];
    let mut filled = OsString::new();
    loop {
        let found = places.iter().filter_map(|&(name, value)| Some((rest.find(name)?, name, value)));
        let Some((at, name, value)) = found.min_by_key(|&(at, ..)| at) else { break };
        filled.push(&rest[..at]);
        filled.push(value);
        rest = &rest[at + name.len()..];
    }
    filled.push(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::SandboxMode;

    // S4
    #[test]
    fn places_are_filled_once() {
        let policy = SandboxPolicy::new(SandboxMode::WorkspaceWrite, "/w/{mode}");
        let fill = |word: &str| filled(OsStr::new(word), &policy, Path::new("/t"));
        assert_eq!(fill("--root={workspace_root}:{temp_dir}"), "--root=/w/{mode}:/t");
        assert_eq!(fill("{mode}{mode}{other}"), "workspace-writeworkspace-write{other}");
        assert_eq!(fill(""), "");
    }

    #[test]
    fn a_runner_has_a_program() {
        let refused = |argv: &[&str]| {
            SandboxRunner::new(argv.iter().copied(), Enforcement::Full).unwrap_err().to_string()
        };
        assert!(refused(&[]).contains("no program"));
        assert!(refused(&["", "x"]).contains("no program"));
        assert!(refused(&["bin/runner"]).contains("relative path"));
        assert!(refused(&["/bin/runner", "a\0b"]).contains("NUL"));
    }
}
