//! Rendering: an outcome as the text that a model reads, and the exit status found in that text again.
//!
//! The text ends in the exit status, alone on the last line, unless the command exited with 0. So a reader
//! who knows only the last line knows how the command ended; and nothing before it has to be escaped, since
//! only the last line counts. One case is left: a command that exits with 0 and whose own last line looks
//! like a status. There, and only there, the text ends in `[exit code: 0]`, which is true, says to a human
//! and a model which of the two lines counts, and leaves the output as it was. The status in a text that was
//! rendered here is therefore always ours, never the command's.

use crate::error::Error;
use crate::process::Cause;
use crate::result::{CollectedOutput, ProcessRead, ProcessStatus, RunResult};
use crate::sandbox::{SandboxInfo, SandboxMode};
use std::path::Path;

/// How a command ended, as rendered text tells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitStatus {
    /// It exited with 0: the text has no status line, or `[exit code: 0]` where another line would be taken
    /// for one. A text that was not rendered here and has no status line says this too.
    Success,
    /// It exited with this code, which is not 0: `[exit code: 3]`.
    Code(i32),
    /// This signal ended it: `[killed by signal: SIGTERM]`.
    Signal(String),
    /// There is no code and no signal, since it never started, or nobody can tell: `[no exit status]`.
    Missing,
    /// It had not ended when it was read: `[still running]`.
    Running,
}

impl ExitStatus {
    /// The status that `text` is, if it is one, exactly as [`line`](ExitStatus::line) writes it.
    fn in_line(text: &str) -> Option<ExitStatus> {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        if let Some(digits) = inner.strip_prefix("exit code: ") {
            let code: i32 = digits.parse().ok()?;
            // Not "+3", not "03": nobody here writes that.
            let status = if code == 0 { ExitStatus::Success } else { ExitStatus::Code(code) };
            return (code.to_string() == digits).then_some(status);
        }
        if let Some(name) = inner.strip_prefix("killed by signal: ") {
            // `SIG-5` is what a number that is no signal's is called.
            let is_of_a_name = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'+' || b == b'-';
            let rest = name.strip_prefix("SIG")?;
            let is_name = !rest.is_empty() && rest.bytes().all(is_of_a_name);
            return is_name.then(|| ExitStatus::Signal(name.to_owned()));
        }
        match inner {
            "no exit status" => Some(ExitStatus::Missing),
            "still running" => Some(ExitStatus::Running),
            _ => None,
        }
    }

    /// The line that says it.
    fn line(&self) -> String {
        match self {
            ExitStatus::Success => "[exit code: 0]".to_owned(),
            ExitStatus::Code(code) => format!("[exit code: {code}]"),
            ExitStatus::Signal(name) => format!("[killed by signal: {name}]"),
            ExitStatus::Missing => "[no exit status]".to_owned(),
            ExitStatus::Running => "[still running]".to_owned(),
        }
    }
}

/// What the rendered text of the result will say.
impl From<&RunResult> for ExitStatus {
    fn from(result: &RunResult) -> ExitStatus {
        match (result.signal_name(), result.exit_code) {
            (Some(name), _) => ExitStatus::Signal(name),
            (None, Some(0)) => ExitStatus::Success,
            (None, Some(code)) => ExitStatus::Code(code),
            (None, None) => ExitStatus::Missing,
        }
    }
}

/// Rendered text, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParsedOutput<'a> {
    /// Everything before the status line, with the line end that separates the two; all of the text if there
    /// is none.
    pub body: &'a str,
    /// How the command ended.
    pub status: ExitStatus,
}

/// The result as text for a model.
///
/// In this order: stdout; below a line `[stderr]`, stderr, if there is any; `(no output)` when there is
/// neither; then, each on its own line and only where it applies, that the sandbox denied something, that the
/// command timed out, was aborted or was stopped; and last the [`ExitStatus`], unless it is 0. Output that
/// was truncated follows a line that says how much there was and which file has all of it, or why none has.
/// The last line has no line end unless it is the command's.
///
/// ```
/// use shell_executor::{RunResult, render_result};
///
/// let mut result = RunResult::default();
/// result.exit_code = Some(2);
/// result.stdout.text = "compiling\n".into();
/// result.stderr.text = "no such file\n".into();
/// assert_eq!(render_result(&result), "compiling\n[stderr]\nno such file\n[exit code: 2]");
/// ```
///
/// A command that exits with 0 and whose last line looks like a status is followed by `[exit code: 0]`, so
/// that [`parse_exit_status`] gives what was, for every result. So it does for the text with its final blank
/// space taken away, or with a line end added.
#[must_use]
pub fn render_result(result: &RunResult) -> String {
    let mut text = String::with_capacity(result.stdout.text.len() + result.stderr.text.len() + 256);
    push_output(&mut text, &result.stdout, "stdout");
    if !result.stderr.text.is_empty() || result.stderr.truncated {
        push_line(&mut text, "[stderr]\n");
        push_output(&mut text, &result.stderr, "stderr");
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    push_facts(&mut text, result);
    closed(text, &result.into())
}

/// One consuming read of an execution as text for a model that polls it.
///
/// `outcome` is `None` as long as the execution has not settled, and then its
/// [`result`](crate::Execution::result). The text is what is new, after a line that says so if some of it is
/// lost, with the files that still have all; or `(no new output)`; then the same lines as from
/// [`render_result`], of which the last is `[still running]` without an outcome. An execution that has no
/// result says why, and `[no exit status]`.
///
/// Ask whether it has settled before reading, so that a text with an exit status has the last of the output
/// too:
///
/// ```
/// use shell_executor::{BashExecutor, Config, ExecRequest, ShellExecutor, SubprocessService, render_read};
///
/// let service = SubprocessService::new();
/// let bash = BashExecutor::new(&service, Config::default())?;
/// let request = ExecRequest::new("echo so far; read; echo done; exit 3").stdin_piped();
/// let execution = bash.execute(bash.resolve(request)?);
/// let poll = || {
///     let outcome = execution.try_wait().map(|_| execution.result());
///     render_read(&execution.read_output(), outcome.as_ref())
/// };
///
/// execution.wait_output(None);
/// assert_eq!(poll(), "so far\n[still running]");
/// assert_eq!(poll(), "(no new output)\n[still running]");
/// drop(execution.take_stdin());
/// execution.wait();
/// assert_eq!(poll(), "done\n[exit code: 3]");
/// # Ok::<(), shell_executor::Error>(())
/// ```
#[must_use]
pub fn render_read(read: &ProcessRead, outcome: Option<&Result<RunResult, Error>>) -> String {
    let mut text = String::with_capacity(read.delta.len() + 256);
    if read.lossy {
        text.push_str(&loss(read));
        text.push('\n');
    }
    text.push_str(&read.delta);
    if text.is_empty() {
        text.push_str("(no new output)");
    }
    let status = match outcome {
        None => ExitStatus::Running,
        Some(Ok(result)) => {
            push_facts(&mut text, result);
            result.into()
        }
        Some(Err(error)) => {
            let error = error.to_string();
            // The first read after a failure to start has it as a note already.
            if !read.delta.contains(&error) {
                push_line(&mut text, &format!("[error: {}]", on_one_line(&error)));
            }
            ExitStatus::Missing
        }
    };
    closed(text, &status)
}

/// Takes rendered text apart: into the exit status, if it is all of the last line, and what stands before it.
///
/// Any text can be given. A line end after the status is no part of either. A status anywhere else, or
/// written in any other way, is body. A text that was cut off at its end has lost its status, and seems to be
/// that of a success: who shortens rendered text keeps its end.
///
/// ```
/// use shell_executor::{ExitStatus, parse_exit_status};
///
/// let parsed = parse_exit_status("no such file\n[exit code: 2]");
/// assert_eq!((parsed.body, parsed.status), ("no such file\n", ExitStatus::Code(2)));
///
/// // A command that printed what looks like a status, and exited with 0.
/// let parsed = parse_exit_status("[exit code: 2]\n[exit code: 0]");
/// assert_eq!((parsed.body, parsed.status), ("[exit code: 2]\n", ExitStatus::Success));
/// ```
#[must_use]
pub fn parse_exit_status(text: &str) -> ParsedOutput<'_> {
    let lines = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text);
    let last = lines.rfind('\n').map_or(0, |end| end + 1);
    match ExitStatus::in_line(&lines[last..]) {
        Some(status) => ParsedOutput { body: &text[..last], status },
        None => ParsedOutput { body: text, status: ExitStatus::Success },
    }
}

/// The text with its status: the one place that decides whether there is a line for it.
fn closed(mut text: String, status: &ExitStatus) -> String {
    if *status != ExitStatus::Success || seems_to_end_in_a_status(&text) {
        push_line(&mut text, &status.line());
    }
    text
}

/// Whether somebody may take the end of `text` for a status. More than the parser does: a host may trim the
/// text before it parses it, and to a terminal a carriage return begins a line.
fn seems_to_end_in_a_status(text: &str) -> bool {
    let text = text.trim_end();
    let last = text.rfind(['\n', '\r']).map_or(text, |end| &text[end + 1..]);
    ExitStatus::in_line(last.trim_start()).is_some()
}

/// `line` at the beginning of a line.
fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

fn push_output(text: &mut String, output: &CollectedOutput, stream: &str) {
    if output.truncated {
        let (kept, total) = (output.bytes().len(), output.total_bytes);
        let rest = match (&output.spill_path, &output.spill_error) {
            (Some(path), _) => format!("all of it is in {}", named(path)),
            (None, Some(error)) => format!("the rest is lost: {}", on_one_line(error)),
            (None, None) => "the rest was not kept".to_owned(),
        };
        // Before the text, since what is missing is its beginning.
        text.push_str(&format!("[truncated: the last {kept} of {total} bytes of {stream}; {rest}]\n"));
    }
    text.push_str(&output.text);
}

fn loss(read: &ProcessRead) -> String {
    let mut notice = "[output was lost before it was read".to_owned();
    for (path, stream) in [(&read.stdout_spill_path, "stdout"), (&read.stderr_spill_path, "stderr")] {
        if let Some(path) = path {
            notice.push_str(&format!("; all of {stream} is in {}", named(path)));
        }
    }
    notice + "]"
}

/// What else is to be known of a command that has ended.
fn push_facts(text: &mut String, result: &RunResult) {
    if let Some(sandbox) = &result.sandbox {
        push_sandbox(text, sandbox);
    }
    let stopped = matches!(result.cause, Some(Cause::Kill | Cause::Disposal))
        || (result.cause.is_none() && result.status == ProcessStatus::Killed);
    if result.timed_out {
        match result.timeout {
            Some(timeout) => push_line(text, &format!("[timed out after {timeout:?}]")),
            None => push_line(text, "[timed out]"),
        }
    } else if result.aborted {
        push_line(text, "[aborted]");
    } else if stopped && result.signal.is_none() {
        // Without it, one that was stopped and exited with 0 would look like one that was let run.
        push_line(text, "[stopped by the host]");
    }
}

fn push_sandbox(text: &mut String, sandbox: &SandboxInfo) {
    let mode = sandbox.mode;
    if sandbox.runner_failed {
        push_line(text, &format!("[sandbox: {mode} could not be enforced; the command was not run]"));
    } else if sandbox.denied {
        let wider = if SandboxMode::DangerFullAccess.is_wider_than(mode) {
            "; a wider mode can be asked for"
        } else {
            ""
        };
        push_line(text, &format!("[sandbox: a file operation was denied in {mode} mode{wider}]"));
    }
}

/// A path as it is where it can be read and copied so, and quoted where it cannot.
fn named(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => format!("{path:?}"),
    }
}

fn on_one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
