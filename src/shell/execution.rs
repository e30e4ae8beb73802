//! One live execution, and the views of it.

use crate::error::Error;
use crate::output::OutputStream;
use crate::process::{Observed, OutputBytes, PromotionOffer, Subprocess};
use crate::result::{Containment, ProcessRead, ProcessStatus, RunResult};
use crate::sandbox::SandboxInfo;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// Whoever runs the command of an [`Execution`]: the local service, or a provider of its own. Each method is documented
/// where callers see it, on [`Execution`]; the ones with a body have an answer for providers without the notion.
pub trait ExecutionBackend: Send + Sync + fmt::Debug {
    /// See [`Execution::result`].
    fn result(&self) -> Result<RunResult, Error>;
    /// Blocks until a process exists, or the execution has settled without one; an error only in the second case.
    fn wait_started(&self) -> Result<(), Error>;
    /// Blocks until the execution has settled or the time is over (`None`: for ever).
    fn wait(&self, timeout: Option<Duration>) -> Option<ProcessStatus>;
    /// See [`Execution::exit_code`].
    fn exit_code(&self) -> Option<i32>;
    /// See [`Execution::signal`].
    fn signal(&self) -> Option<i32>;
    /// See [`Execution::pid`].
    fn pid(&self) -> Option<i32> {
        None
    }
    /// See [`Execution::read_output`].
    fn read_output(&self) -> ProcessRead;
    /// See [`Execution::read_output_bytes`].
    fn read_output_bytes(&self) -> OutputBytes;
    /// See [`Execution::read_stream`].
    fn read_stream(&self, stream: OutputStream) -> (Vec<u8>, bool);
    /// See [`Execution::wait_stream`].
    fn wait_stream(&self, stream: OutputStream, timeout: Option<Duration>) -> bool;
    /// See [`Execution::wait_output`].
    fn wait_output(&self, timeout: Option<Duration>) -> bool;
    /// See [`Execution::observed`].
    fn observed(&self) -> Option<Observed> {
        None
    }
    /// See [`Execution::kill`].
    fn kill(&self) -> bool;
    /// See [`Execution::kill_survivors`].
    fn kill_survivors(&self) -> bool {
        false
    }
    /// See [`Execution::wait_range`].
    fn wait_range(&self, timeout: Option<Duration>) -> bool {
        self.wait(timeout).is_some()
    }
    /// See [`Execution::promotion`].
    fn promotion(&self) -> Option<PromotionOffer> {
        None
    }
    /// See [`Execution::take_stdin`].
    fn take_stdin(&self) -> Option<File> {
        None
    }
    /// See [`Execution::sandbox`].
    fn sandbox(&self) -> Option<SandboxInfo> {
        None
    }
    /// See [`Execution::containment`].
    fn containment(&self) -> Containment {
        Containment::default()
    }
    /// See [`Execution::scrubbed`].
    fn scrubbed(&self) -> Vec<OsString> {
        Vec::new()
    }
}

/// One command, live or settled, and every view of it.
///
/// The foreground result, the incremental reads of a background job and the offer to keep a command past its deadline are
/// views of this one handle, to be mixed freely. All methods take `&self`, can be called from any thread, and stay valid
/// for ever after settlement. Clones are the same execution. Dropping the last one stops nothing and leaves no zombie: the
/// command belongs to the [`SubprocessService`](crate::SubprocessService).
#[derive(Debug, Clone)]
pub struct Execution {
    backend: Arc<dyn ExecutionBackend>,
}

impl Execution {
    /// An execution that `backend` runs. For providers.
    #[must_use]
    pub fn new(backend: Arc<dyn ExecutionBackend>) -> Execution {
        Execution { backend }
    }

    /// Blocks until the command has settled, and gives its outcome. Asked again, it gives the same again.
    ///
    /// # Errors
    ///
    /// Only when the command could not be started, or its status was lost. A non-zero exit, a death by signal, a timeout
    /// and an abort are results.
    pub fn result(&self) -> Result<RunResult, Error> {
        self.backend.result()
    }

    /// Blocks until the process exists, or the execution has settled without one.
    ///
    /// # Errors
    ///
    /// The failure, when there never was a process because of one.
    pub fn wait_started(&self) -> Result<(), Error> {
        self.backend.wait_started()
    }

    /// Blocks until the command has settled.
    pub fn wait(&self) -> ProcessStatus {
        self.backend.wait(None).unwrap_or(ProcessStatus::Killed)
    }

    /// Blocks until the command has settled or the time is over; `None` when it still runs.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> Option<ProcessStatus> {
        self.backend.wait(Some(timeout))
    }

    /// The status if the command has settled; `None` when it still runs. Does not block.
    #[must_use]
    pub fn try_wait(&self) -> Option<ProcessStatus> {
        self.backend.wait(Some(Duration::ZERO))
    }

    /// Where it stands: [`ProcessStatus::Running`] until it has settled.
    #[must_use]
    pub fn status(&self) -> ProcessStatus {
        self.try_wait().unwrap_or(ProcessStatus::Running)
    }

    /// The exit code; `None` while it runs, and when it ended without one.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.backend.exit_code()
    }

    /// The number of the signal that ended it; `None` while it runs, and when none did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.backend.signal()
    }

    /// The process id of the shell; `None` before it was started, and where there is none. After settlement the number may
    /// be another process's: it is for showing, never for signalling.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.backend.pid()
    }

    /// What is new since the last consuming read: stdout, then, if there is any, a line `[stderr]` and stderr. Consecutive
    /// reads never repeat and never skip silently. See [`Subprocess::read_output`] for the edges.
    #[must_use]
    pub fn read_output(&self) -> ProcessRead {
        self.backend.read_output()
    }

    /// The same as bytes, exactly as they were written. It shares its place with [`read_output`](Execution::read_output).
    #[must_use]
    pub fn read_output_bytes(&self) -> OutputBytes {
        self.backend.read_output_bytes()
    }

    /// What is new on one stream, as bytes, and whether bytes before them are gone for good. It shares the stream's place
    /// with the reads of both. For callers who pass the streams on separately, so that nobody waits for the other's reader.
    #[must_use]
    pub fn read_stream(&self, stream: OutputStream) -> (Vec<u8>, bool) {
        self.backend.read_stream(stream)
    }

    /// [`wait_output`](Execution::wait_output) for one stream.
    pub fn wait_stream(&self, stream: OutputStream, timeout: Option<Duration>) -> bool {
        self.backend.wait_stream(stream, timeout)
    }

    /// Blocks until a consuming read has something new to give, the command has settled, or the time is over (`None`: for
    /// ever). `true` for something new.
    pub fn wait_output(&self, timeout: Option<Duration>) -> bool {
        self.backend.wait_output(timeout)
    }

    /// Readers that start at any offset and consume nothing; `None` from a provider that has none. The local one has.
    #[must_use]
    pub fn observed(&self) -> Option<Observed> {
        self.backend.observed()
    }

    /// Stops the command and all it started: SIGTERM, the grace, SIGKILL. `true` for the one call that starts this on a
    /// command that nothing has ended yet; otherwise `false`, and nothing is sent. Returns at once.
    pub fn kill(&self) -> bool {
        self.backend.kill()
    }

    /// Stops what a command that has ended left running. `false` when it still runs, or nothing is left. Returns at once.
    pub fn kill_survivors(&self) -> bool {
        self.backend.kill_survivors()
    }

    /// Blocks until nothing that the command started is left, or the time is over (`None`: for ever). `true` when nothing
    /// is left.
    pub fn wait_range(&self, timeout: Option<Duration>) -> bool {
        self.backend.wait_range(timeout)
    }

    /// Blocks until the command has outrun its deadline under [`OnExpiry::Offer`](crate::OnExpiry::Offer), and gives the
    /// offer to keep it. `None` when it settles first, at once under every other policy, and to every caller but the
    /// first: the offer is one.
    #[must_use]
    pub fn promotion(&self) -> Option<PromotionOffer> {
        self.backend.promotion()
    }

    /// The other end of a piped stdin, once; dropping it is the command's end of file. Blocks until the command has
    /// started. See [`Subprocess::take_stdin`] for SIGPIPE.
    #[must_use]
    pub fn take_stdin(&self) -> Option<File> {
        self.backend.take_stdin()
    }

    /// The sandbox facts, present before a confined run settles; `None` from an executor that does not confine.
    #[must_use]
    pub fn sandbox(&self) -> Option<SandboxInfo> {
        self.backend.sandbox()
    }

    /// By which means what the command starts is held together.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.backend.containment()
    }

    /// The names (never the values) that were kept from the command's environment, sorted.
    #[must_use]
    pub fn scrubbed(&self) -> Vec<OsString> {
        self.backend.scrubbed()
    }
}

impl From<Subprocess> for Execution {
    fn from(process: Subprocess) -> Execution {
        Execution::new(Arc::new(process))
    }
}

impl ExecutionBackend for Subprocess {
    fn result(&self) -> Result<RunResult, Error> {
        self.result()
    }

    fn wait_started(&self) -> Result<(), Error> {
        self.wait_started()
    }

    fn wait(&self, timeout: Option<Duration>) -> Option<ProcessStatus> {
        match timeout {
            None => Some(self.wait()),
            Some(timeout) => self.wait_timeout(timeout),
        }
    }

    fn exit_code(&self) -> Option<i32> {
        self.exit_code()
    }

    fn signal(&self) -> Option<i32> {
        self.signal()
    }

    fn pid(&self) -> Option<i32> {
        self.pid()
    }

    fn read_output(&self) -> ProcessRead {
        self.read_output()
    }

    fn read_output_bytes(&self) -> OutputBytes {
        self.read_output_bytes()
    }

    fn read_stream(&self, stream: OutputStream) -> (Vec<u8>, bool) {
        self.read_stream(stream)
    }

    fn wait_stream(&self, stream: OutputStream, timeout: Option<Duration>) -> bool {
        self.wait_stream(stream, timeout)
    }

    fn wait_output(&self, timeout: Option<Duration>) -> bool {
        self.wait_output(timeout)
    }

    fn observed(&self) -> Option<Observed> {
        Some(self.observed())
    }

    fn kill(&self) -> bool {
        self.kill()
    }

    fn kill_survivors(&self) -> bool {
        self.kill_survivors()
    }

    fn wait_range(&self, timeout: Option<Duration>) -> bool {
        self.wait_range(timeout)
    }

    fn promotion(&self) -> Option<PromotionOffer> {
        self.promotion()
    }

    fn take_stdin(&self) -> Option<File> {
        self.take_stdin()
    }

    fn sandbox(&self) -> Option<SandboxInfo> {
        self.sandbox()
    }

    fn containment(&self) -> Containment {
        self.containment()
    }

    fn scrubbed(&self) -> Vec<OsString> {
        self.scrubbed().to_vec()
    }
}
