//! What an execution gives: outcome, facts and collected output.

use crate::output::text;
use crate::process::Cause;
use crate::sandbox::SandboxInfo;
use crate::sys;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Where an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ProcessStatus {
    /// Not settled yet.
    #[default]
    Running,
    /// The leader exited by itself.
    Completed,
    /// Cut short by `kill()`, the token, the deadline or disposal, or the leader died of a signal, or it never started.
    Killed,
}

impl ProcessStatus {
    /// `running`, `completed` or `killed`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ProcessStatus::Running => "running",
            ProcessStatus::Completed => "completed",
            ProcessStatus::Killed => "killed",
        }
    }
}

/// By which means the range of an execution was held together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Containment {
    /// The leader's session, its descendants, and whoever carries the range's marker in the environment (Linux). A
    /// process that left the session, lost its parent and cleared its environment is not found.
    Session,
    /// The leader's process group only (other Unix systems, or Linux without `/proc`).
    #[default]
    ProcessGroup,
}

impl Containment {
    /// `session` or `process-group`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Containment::Session => "session",
            Containment::ProcessGroup => "process-group",
        }
    }
}

/// What the leader and the children it waited for used, as wait4(2) counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResourceUsage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// The largest resident size, in bytes. An upper bound: Linux starts a child's count at the host's own size.
    pub max_rss_upper_bound: u64,
}

/// One stream, as it was when the execution settled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CollectedOutput {
    /// The last bytes of the stream as text. Bytes that are not UTF-8 are U+FFFD, and a tail that begins inside a
    /// character begins at the next one; [`bytes`](CollectedOutput::bytes) has them exactly.
    pub text: String,
    /// Whether bytes were dropped from the beginning of the text.
    pub truncated: bool,
    /// The file that holds the complete stream, if it overflowed the budget, a file could be written, and it stood there
    /// when the execution settled. It lives until the service is disposed of, unless the service keeps spill files.
    pub spill_path: Option<PathBuf>,
    /// All bytes the stream ever carried.
    pub total_bytes: u64,
    /// Why the stream overflowed and yet there is no file.
    pub spill_error: Option<String>,
    /// The kept bytes where the text is not exactly they.
    exact: Option<Vec<u8>>,
}

impl CollectedOutput {
    /// For providers of executions: a stream of `total_bytes`, of which `tail` is the end that was kept. Without a file;
    /// [`spill_path`](CollectedOutput::spill_path) can be set.
    ///
    /// ```
    /// use shell_executor::CollectedOutput;
    ///
    /// let output = CollectedOutput::new(b"\xac5\n".to_vec(), 1000); // begins inside a character
    /// assert_eq!((output.text.as_str(), output.truncated), ("5\n", true));
    /// assert_eq!(output.bytes(), b"\xac5\n");
    /// ```
    #[must_use]
    pub fn new(tail: Vec<u8>, total_bytes: u64) -> CollectedOutput {
        let truncated = total_bytes > tail.len() as u64;
        let text = text::whole(&tail, truncated);
        // The usual text is its bytes; only where it is not are both kept.
        let exact = (text.as_bytes() != tail).then_some(tail);
        CollectedOutput { text, truncated, spill_path: None, total_bytes, spill_error: None, exact }
    }

    /// The bytes kept, exactly: the last ones of the stream, as many as the budget allows.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.exact.as_deref().unwrap_or(self.text.as_bytes())
    }
}

/// The outcome of one execution. Each fact stands by itself: a command can time out and exit 0.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct RunResult {
    /// The exit code. `None` when a signal ended the leader, or it never started.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended the leader. `None` when it exited, or never started.
    pub signal: Option<i32>,
    /// Whether the deadline was the first cause to cut the command short.
    pub timed_out: bool,
    /// Whether the abort token was the first cause to cut the command short. Never true together with `timed_out`.
    pub aborted: bool,
    /// The effective timeout, after defaults and caps. `None` for a run without a deadline.
    pub timeout: Option<Duration>,
    /// Standard output.
    pub stdout: CollectedOutput,
    /// Standard error.
    pub stderr: CollectedOutput,
    /// Sandbox facts; `None` from an executor that does not confine.
    pub sandbox: Option<SandboxInfo>,
    /// `Completed` or `Killed`.
    pub status: ProcessStatus,
    /// The first cause. `None` only from a provider that does not tell.
    pub cause: Option<Cause>,
    /// From the call of `execute` until the run settled.
    pub duration: Duration,
    /// What the leader used. `None` when it never started, or its status was read by somebody else.
    pub usage: Option<ResourceUsage>,
    /// Whether a descendant still held stdout or stderr when the run settled.
    pub pipes_held: bool,
    /// How many processes of the range were alive when the run settled: left running by a command that ended by itself,
    /// or not to be stopped by one that was cut short.
    pub survivors: usize,
    /// Whether the command ended, or closed its input, before all of `stdin` was written to its pipe. What it left unread
    /// in the pipe (64 KiB at most) is not seen. `false` for an input that the caller writes himself.
    pub stdin_truncated: bool,
    /// How the range was held together.
    pub containment: Containment,
    /// The names (never the values) that were kept from the command's environment, sorted.
    pub scrubbed: Vec<OsString>,
}

impl RunResult {
    /// The signal's name, such as `SIGTERM`; `None` without a signal, `SIG<number>` for one without a name.
    #[must_use]
    pub fn signal_name(&self) -> Option<String> {
        let number = self.signal?;
        Some(sys::signal_name(number).map_or_else(|| format!("SIG{number}"), str::to_owned))
    }

    /// Whether the command ended by itself with exit code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.exit_code == Some(0) && self.status == ProcessStatus::Completed
    }
}

/// One read of a stream from an offset. It consumes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OutputRead {
    /// The stream's text from the offset on, up to the last whole character.
    pub text: String,
    /// The offset, in bytes of the stream, to read from next.
    pub next_offset: u64,
    /// Whether bytes between the offset and the text are gone for good; the text is then the whole retained tail.
    pub lossy: bool,
    /// The file with the complete stream, if it stands there.
    pub spill_path: Option<PathBuf>,
}

/// One consuming read of both streams.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProcessRead {
    /// What is new since the last read: stdout, then, if there is any, a line `[stderr]` and stderr.
    pub delta: String,
    /// Whether unread bytes are gone for good.
    pub lossy: bool,
    /// The file with all of stdout, if stdout overflowed and the file stands there.
    pub stdout_spill_path: Option<PathBuf>,
    /// The file with all of stderr, if stderr overflowed and the file stands there.
    pub stderr_spill_path: Option<PathBuf>,
}
