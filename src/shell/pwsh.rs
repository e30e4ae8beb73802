//! PowerShell: a fresh `pwsh -Command` for each command.
//!
//! The command is told as text, not encoded. `-EncodedCommand` takes it for a message of another PowerShell and answers on
//! stderr in XML, which Windows PowerShell does even when asked for text; it also makes 2.7 times as many bytes of it. As the
//! one argument after `-Command` a text arrives as it is, whatever it begins with. The only one that means something else,
//! `-`, cannot come about, since our own lines stand around the command.
//!
//! They stand beside it in one script, not around it as a block: `$?`, by which PowerShell knows whether the last statement
//! has succeeded, does not come out of a block; and a script has its `$input` filled from stdin only when it names it itself.

use super::config::{Config, DEFAULT_SHELL};
use super::local::Local;
use super::request::{ExecRequest, ExecSpec};
use super::start::Dialect;
use super::{Execution, ShellExecutor};
use crate::error::{Error, SpawnError, SpawnStage};
use crate::process::SubprocessService;
use crate::sandbox::{SandboxMode, SandboxPolicy, SandboxProvider};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs each command in a fresh PowerShell, on Unix as on Windows: unconfined, or
/// [in a sandbox](PwshExecutor::with_sandbox).
///
/// All that is said of [`BashExecutor`](crate::BashExecutor) holds: the same requests, environment, sandbox and service. The
/// shell is `pwsh`, or where there is none `powershell`, started with `-NoLogo -NoProfile -NonInteractive`: no profile runs, and
/// a command that would ask a question fails.
///
/// # The exit code
///
/// What PowerShell itself makes of a command's last statement, except that a program's own code is not flattened to 1:
///
/// - `exit N` is N (its low eight bits on Unix), and an error that ends the command (`throw`, a syntax error) is 1.
/// - If the last statement has succeeded (`$?`), it is 0, whatever failed before: `make; Get-Date` is 0. A command that should
///   stop at the first failure says `make && Get-Date`, or sets `$ErrorActionPreference` and
///   `$PSNativeCommandUseErrorActionPreference`.
/// - If it has failed, it is that of the last program that was run (`$LASTEXITCODE`), and 1 if there was none or that one has
///   succeeded.
/// - After a `return` outside of functions PowerShell's own rule holds: 0 or 1.
///
/// # Input and output
///
/// Text is UTF-8 both ways. Errors are plain text, because of `NO_COLOR` in the environment (PowerShell 7.2 and later); progress
/// is not shown. Programs read the command's stdin as it is. Only a command that itself says `$input` has stdin read by
/// PowerShell, line by line.
///
/// # Limits
///
/// A command is text: one that is not UTF-8 is refused. A line of settings stands before it, so that messages count lines from
/// 2; not before one that begins with `using` or `param`, which must stand first: it has PowerShell's own encodings. One that
/// consists of named blocks (`begin { … }`) is run as it is, with PowerShell's own exit code.
///
/// ```no_run
/// use shell_executor::{Config, ExecRequest, PwshExecutor, ShellExecutor, SubprocessService};
///
/// let service = SubprocessService::new();
/// let pwsh = PwshExecutor::new(&service, Config::default())?;
/// let result = pwsh.run(pwsh.resolve(ExecRequest::new("Get-ChildItem | Measure-Object; /bin/sh -c 'exit 3'"))?)?;
/// assert_eq!(result.exit_code, Some(3));
/// # Ok::<(), shell_executor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PwshExecutor {
    local: Local,
}

impl PwshExecutor {
    /// An executor whose commands run in `service`. It does not keep the service alive: when that has been disposed of, or
    /// its last handle dropped, what is executed fails with [`Error::Disposed`].
    ///
    /// A [`Config::shell`] left at its default is `pwsh`, as [`config`](PwshExecutor::config) then says; where `PATH` has no
    /// `pwsh` in any place, `powershell` is looked for. Any other name, and a path, stands for itself alone.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] when a timeout or a byte budget is zero, or the default timeout exceeds the cap. Whether
    /// there is a shell is seen when a command is executed.
    pub fn new(service: &SubprocessService, mut config: Config) -> Result<PwshExecutor, Error> {
        if config.shell == Path::new(DEFAULT_SHELL) {
            config.shell = PathBuf::from(NAMES[0]);
        }
        Ok(PwshExecutor { local: Local::new(&Pwsh, service, config)? })
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
    ) -> Result<PwshExecutor, Error> {
        Ok(PwshExecutor { local: self.local.with_sandbox(provider, policy)? })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.local.config()
    }
}

impl ShellExecutor for PwshExecutor {
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

/// The shells to look for where none is named. The second is Windows' own, and on Unix what old packages call it.
const NAMES: [&str; 2] = ["pwsh", "powershell"];

const OPTIONS: [&str; 3] = ["-NoLogo", "-NoProfile", "-NonInteractive"];

/// Stands before a command. Where there is no console, or no right to change it, the encodings stay what they are. The last
/// statement is one that succeeds: an empty command has succeeded too. `$LASTEXITCODE` is set because in strict mode nobody may
/// ask for a variable that is not there, and what follows the command asks.
///
/// Colours are not here: `NO_COLOR` takes them away, and a caller who has taken that away wants them.
const BEFORE: &str = "try{[Console]::InputEncoding=[Console]::OutputEncoding=$OutputEncoding=\
    [Text.UTF8Encoding]::new($false)}catch{};$global:LASTEXITCODE=0;$ProgressPreference='SilentlyContinue'\n";

/// Stands after a command, and says what the exit code will be. `exit` would say it too, but drop what is still being laid
/// out as a table. An empty line comes first, because a command may end in a backtick, which takes the line end away.
const AFTER: &str = "\n\nif(-not $?){$Host.SetShouldExit($(if($LASTEXITCODE){$LASTEXITCODE}else{1}))}";

/// How PowerShell is told a command.
#[derive(Debug)]
struct Pwsh;

impl Dialect for Pwsh {
    fn names(&self, shell: &Path) -> Vec<PathBuf> {
        if shell == Path::new(NAMES[0]) { NAMES.map(PathBuf::from).into() } else { vec![shell.to_path_buf()] }
    }

    fn check(&self, command: &OsStr) -> Result<(), Error> {
        match command.to_str() {
            Some(_) => Ok(()),
            None => Err(Error::invalid("command", "is not UTF-8, and PowerShell takes nothing else")),
        }
    }

    fn arguments(&self, command: OsString) -> Vec<OsString> {
        let (before, after) = frame(command.to_str().unwrap_or_default());
        let mut script = OsString::from(before);
        script.push(command);
        script.push(after);
        OPTIONS.iter().map(OsString::from).chain([OsString::from("-Command"), script]).collect()
    }

    fn content<'a>(&self, argument: &'a OsStr) -> Cow<'a, [u8]> {
        // The mark is for Windows PowerShell, which takes a file without one for text of the system's code page.
        Cow::Owned([b"\xef\xbb\xbf", argument.as_encoded_bytes()].concat())
    }

    fn arguments_for_file(&self, file: &Path) -> Result<Vec<OsString>, Error> {
        if file.to_str().is_none() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8");
            let what = format!("PowerShell cannot read its command from {file:?}");
            return Err(SpawnError::new(SpawnStage::Shell, Some(file), &what, &error).into());
        }
        // On Unix a file that is not called `.ps1` is run as the same text after `-Command` would be.
        Ok(OPTIONS.iter().map(OsString::from).chain(["-File".into(), file.into()]).collect())
    }
}

/// What may stand before and after the command.
fn frame(command: &str) -> (&'static str, &'static str) {
    let command = beginning(command);
    let end = command.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '[');
    let (word, rest) = command.split_at(end.unwrap_or(command.len()));
    match word.to_ascii_lowercase().as_str() {
        "using" | "param" | "[cmdletbinding" => ("", AFTER),
        "begin" | "process" | "end" | "clean" | "dynamicparam" if beginning(rest).starts_with('{') => {
            ("", "")
        }
        _ => (BEFORE, AFTER),
    }
}

/// The command from its first word on, without blanks and comments before it.
fn beginning(mut command: &str) -> &str {
    loop {
        command = command.trim_start();
        let (comment, end) = match command.strip_prefix("<#") {
            Some(comment) => (comment, "#>"),
            None => match command.strip_prefix('#') {
                Some(comment) => (comment, "\n"),
                None => return command,
            },
        };
        command = comment.split_once(end).map_or("", |(_, rest)| rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn script(command: &str) -> String {
        let arguments = Pwsh.arguments(OsString::from(command));
        arguments.last().unwrap().to_str().unwrap().to_owned()
    }

    // W4
    #[test]
    fn a_command_stands_between_two_lines_of_ours() {
        for command in
            ["", "Get-Date", "-x", "-", "exit 7", "'quoted' \"`$x\"", "a\nb # c", "parameter", "[int]$x = 1"]
        {
            assert_eq!(script(command), format!("{BEFORE}{command}{AFTER}"));
        }
        assert_eq!(BEFORE.matches('\n').count(), 1, "messages count lines from 2");
    }

    // W4
    #[test]
    fn what_must_stand_first_does() {
        for command in [
            "using namespace System.IO\n[File]::Exists('x')",
            "  # a comment\n<# and\nanother #>\r\nUsing module x",
            "param($x = 1) $x",
            "PARAM ( )",
            "[CmdletBinding()]param()",
        ] {
            assert_eq!(script(command), format!("{command}{AFTER}"));
        }
        for command in ["end { 1 }", "begin\n{ 1 } process { 2 }", "DynamicParam{}"] {
            assert_eq!(script(command), command);
        }
        for command in
            ["clean -x", "end", "process;{ 1 }", "# using x", "<# using x", "usingx", "#\n; using x"]
        {
            assert_eq!(script(command), format!("{BEFORE}{command}{AFTER}"));
        }
    }

    // W4, R1
    #[cfg(unix)]
    #[test]
    fn only_text_is_a_command() {
        use std::os::unix::ffi::OsStrExt;
        let error = Pwsh.check(OsStr::from_bytes(b"echo \xff")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid request: command is not UTF-8, and PowerShell takes nothing else"
        );
        assert!(Pwsh.check(OsStr::new("'žluť €'")).is_ok());
        let error = Pwsh.arguments_for_file(Path::new(OsStr::from_bytes(b"/\xff"))).unwrap_err();
        assert!(error.to_string().ends_with("its path is not UTF-8"), "{error}");
    }

    // W4
    #[test]
    fn the_default_name_stands_for_both() {
        assert_eq!(Pwsh.names(Path::new("pwsh")), NAMES.map(PathBuf::from));
        for one in ["powershell", "pwsh-preview", "/opt/pwsh"] {
            assert_eq!(Pwsh.names(Path::new(one)), [PathBuf::from(one)]);
        }
    }

    proptest! {
        // W4, I3, I4
        #[test]
        fn the_command_arrives_whole(command in "([-#<>{} \n\ta-z'\"`$€]|using|param|end){0,12}") {
            let (before, after) = frame(&command);
            prop_assert_eq!(script(&command), format!("{before}{command}{after}"));
            let content = Pwsh.content(OsStr::new(&command)).into_owned();
            prop_assert_eq!(String::from_utf8(content).unwrap(), format!("\u{feff}{command}"));
        }
    }
}
