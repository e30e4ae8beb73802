//! A fully explicit order to start one process.

use crate::abort::AbortToken;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What happens when the deadline passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnExpiry {
    /// The command is stopped, and its result says `timed_out`.
    #[default]
    Kill,
    /// The command goes on while an offer to keep it is open; see [`PromotionOffer`](crate::PromotionOffer).
    Offer,
    /// There is no deadline.
    None,
}

/// What the process reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Input {
    /// `/dev/null`: end of file at once.
    #[default]
    Null,
    /// These bytes, of any number, and then end of file.
    Bytes(Vec<u8>),
    /// A pipe whose other end the caller takes from the handle.
    Pipe,
}

/// What becomes of one output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disposition {
    /// Collected: the last `max_bytes` in memory; on overflow the whole stream in a private file of at most
    /// `spill_max_bytes`, or in none for `None`. The command never waits for a reader.
    Collect {
        /// How many of the last bytes are kept in memory. Not zero.
        max_bytes: usize,
        /// How large the file may become; past it, it is removed. `None`: no file. Not zero.
        spill_max_bytes: Option<u64>,
    },
    /// Kept in memory until [`read_output`](crate::Execution::read_output) or a raw read has consumed it, `max_bytes` at
    /// most: then the command waits for the reader, as in a shell pipeline. No byte is dropped, except when the range is
    /// given up while a process outside it still writes. What the leader has left in the pipe is taken when it ends,
    /// whether or not the reader has made room.
    Relay {
        /// How many unread bytes are kept before the command has to wait. At least 16.
        max_bytes: usize,
    },
    /// A pipe whose other end the caller takes from the handle. Nothing is collected.
    Pipe,
    /// The host's own stream of the same number; `/dev/null` where the host has closed it. Nothing is collected.
    Inherit,
}

/// A fully explicit order to start one process: no field has a default that depends on where it runs.
///
/// `argv[0]` is a bare program name, looked up on the child's `PATH` (absolute entries only), or an absolute path. `env` is
/// the whole environment; the service adds nothing but its range marker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SpawnSpec {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Standard input.
    pub stdin: Input,
    /// Standard output.
    pub stdout: Disposition,
    /// Standard error.
    pub stderr: Disposition,
    /// From the polite signal to the forceful one; also the longest that a held pipe delays the settlement. Zero is
    /// allowed: the forceful signal at once.
    pub grace: Duration,
    /// How long a stream held open by a descendant must be quiet, after the leader's exit, to be given up.
    pub drain_idle: Duration,
    /// From now until the deadline; `None` for no deadline. Not zero.
    pub timeout: Option<Duration>,
    /// What the deadline does.
    pub on_expiry: OnExpiry,
    /// How long an offer stays open.
    pub answer_window: Duration,
    /// Cuts the run short when fired.
    pub abort: Option<AbortToken>,
    /// Names to report as kept from the environment; a fact that is passed through.
    pub scrubbed: Vec<OsString>,
}

impl SpawnSpec {
    /// An order without a deadline or token: `/dev/null` as input, both streams into `output`, a drain idle of 250 ms and
    /// an answer window of 1 s.
    #[must_use]
    pub fn new(
        argv: Vec<OsString>,
        cwd: impl Into<PathBuf>,
        env: Vec<(OsString, OsString)>,
        output: Disposition,
        grace: Duration,
    ) -> SpawnSpec {
        SpawnSpec {
            argv,
            cwd: cwd.into(),
            env,
            stdin: Input::Null,
            stdout: output,
            stderr: output,
            grace,
            drain_idle: DRAIN_IDLE,
            timeout: None,
            on_expiry: OnExpiry::Kill,
            answer_window: ANSWER_WINDOW,
            abort: None,
            scrubbed: Vec::new(),
        }
    }
}

/// The shortest buffer that a relayed stream can do with: a character fits into it, whatever is unfinished before it.
pub(crate) const LEAST_RELAY: usize = 16;
/// How long a held stream must be quiet to be given up, by default.
pub(crate) const DRAIN_IDLE: Duration = Duration::from_millis(250);
/// How long an offer stays open, by default.
pub(crate) const ANSWER_WINDOW: Duration = Duration::from_secs(1);
