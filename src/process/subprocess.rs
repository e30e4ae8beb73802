//! The handle of one process that the service runs, and the readers of its output.

use super::live::Live;
use super::promotion::PromotionOffer;
use super::reader::{Observed, OutputReader, ReadAt};
use super::{Cause, range::Range};
use crate::error::Error;
use crate::output::{self, Bytes, OutputStream};
use crate::result::{Containment, OutputRead, ProcessRead, ProcessStatus, RunResult};
use crate::sandbox::SandboxInfo;
use std::ffi::OsString;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// One process and its range, live or settled.
///
/// All methods take `&self`, can be called from any thread, and stay valid for ever after settlement. Clones are the same
/// process. Dropping the last one stops nothing and leaves no zombie: the range belongs to the
/// [`SubprocessService`](crate::SubprocessService).
#[derive(Debug, Clone)]
pub struct Subprocess {
    live: Arc<Live>,
}

/// One consuming read of both streams, as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OutputBytes {
    /// What is new on stdout.
    pub stdout: Vec<u8>,
    /// What is new on stderr.
    pub stderr: Vec<u8>,
    /// Whether unread bytes are gone for good.
    pub lossy: bool,
}

impl Subprocess {
    pub(super) fn new(live: Arc<Live>) -> Subprocess {
        Subprocess { live }
    }

    /// Blocks until the process has settled, and gives its outcome. Asked again, it gives the same again.
    ///
    /// # Errors
    ///
    /// Only when the process could not be started, or its status was lost; see [`Error`].
    pub fn result(&self) -> Result<RunResult, Error> {
        self.live.wait(None);
        match self.live.result_now() {
            Some(Ok(result)) => Ok(Arc::unwrap_or_clone(result)),
            Some(Err(error)) => Err(error),
            // Not reached: the wait above ends with an outcome.
            None => Err(Error::StatusLost),
        }
    }

    /// Blocks until the process has settled.
    pub fn wait(&self) -> ProcessStatus {
        self.live.wait(None).unwrap_or(ProcessStatus::Killed)
    }

    /// Blocks until the process has settled or the time is over; `None` when it still runs.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> Option<ProcessStatus> {
        self.live.wait(until(Some(timeout)))
    }

    /// The status if the process has settled; `None` when it still runs. Does not block.
    #[must_use]
    pub fn try_wait(&self) -> Option<ProcessStatus> {
        self.live.wait(Some(Instant::now()))
    }

    /// Where it stands: [`ProcessStatus::Running`] until it has settled.
    #[must_use]
    pub fn status(&self) -> ProcessStatus {
        self.try_wait().unwrap_or(ProcessStatus::Running)
    }

    /// The exit code; `None` while it runs, and when it ended without one.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.settled().and_then(|result| result.exit_code)
    }

    /// The number of the signal that ended it; `None` while it runs, and when none did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.settled().and_then(|result| result.signal)
    }

    fn settled(&self) -> Option<Arc<RunResult>> {
        self.live.result_now()?.ok()
    }

    /// The process id of the leader, which is also that of its group and session; `None` before it was started. After
    /// settlement the number may be another process's: it is for showing, never for signalling.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.live.pid()
    }

    /// The first cause, as soon as there is one: a deadline that has passed shows here while the ladder still runs.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.live.latch.get()
    }

    /// What is new on both streams since the last consuming read: stdout, then, if there is any, a line `[stderr]` and
    /// stderr. Consecutive reads never repeat and never skip silently; the parts of a character that is not complete wait
    /// for the next read. What has left memory is read back from the spill file, so one read after a long pause can be as
    /// large as the spill cap. Never waits for the process; it may wait for the disk.
    #[must_use]
    pub fn read_output(&self) -> ProcessRead {
        let read = output::consume(&self.live.output);
        self.live.wake_relay();
        read
    }

    /// The same as bytes, exactly as they were written. It shares its place with [`read_output`](Subprocess::read_output).
    #[must_use]
    pub fn read_output_bytes(&self) -> OutputBytes {
        let stdout = output::consume_bytes(&self.live.output, OutputStream::Stdout);
        let stderr = output::consume_bytes(&self.live.output, OutputStream::Stderr);
        self.live.wake_relay();
        OutputBytes { lossy: stdout.lossy || stderr.lossy, stdout: stdout.bytes, stderr: stderr.bytes }
    }

    /// What is new on one stream, as bytes, and whether bytes before them are gone for good. It shares the stream's place
    /// with the reads of both. For callers who pass the streams on separately, so that nobody waits for the other's reader.
    #[must_use]
    pub fn read_stream(&self, stream: OutputStream) -> (Vec<u8>, bool) {
        let read = output::consume_bytes(&self.live.output, stream);
        self.live.wake_relay();
        (read.bytes, read.lossy)
    }

    /// [`wait_output`](Subprocess::wait_output) for one stream.
    pub fn wait_stream(&self, stream: OutputStream, timeout: Option<Duration>) -> bool {
        self.live.output.wait(Some(stream), until(timeout))
    }

    /// Blocks until a consuming read has something new to give, the process has settled, or the time is over (`None`: for
    /// ever). `true` for something new.
    pub fn wait_output(&self, timeout: Option<Duration>) -> bool {
        self.live.output.wait(None, until(timeout))
    }

    /// Readers that start at any offset and consume nothing.
    #[must_use]
    pub fn observed(&self) -> Observed {
        let reader =
            |channel| OutputReader::new(Arc::new(StreamOf { live: Arc::clone(&self.live), channel }));
        Observed::new(reader(OutputStream::Stdout), reader(OutputStream::Stderr))
    }

    /// Stops the whole range: SIGTERM, the grace, SIGKILL. `true` for the one call that starts this on a process that
    /// nothing has ended yet; otherwise `false`, and nothing is sent. Returns at once: wait with [`wait`](Self::wait).
    pub fn kill(&self) -> bool {
        self.live.cut(Cause::Kill)
    }

    /// Stops, by the same ladder, what the leader has left running behind it. `false` when the leader still runs (see
    /// [`kill`](Self::kill)) or nothing of the range is left. Returns at once: wait with [`wait_range`](Self::wait_range).
    pub fn kill_survivors(&self) -> bool {
        self.live.kill_survivors()
    }

    /// Blocks until nothing of the range is left and its streams are closed, what is left was given up after it had been
    /// asked to be stopped, or the time is over (`None`: for ever). `true` when nothing is left.
    pub fn wait_range(&self, timeout: Option<Duration>) -> bool {
        self.live.wait_over(until(timeout)) && self.live.unstopped.load(Ordering::SeqCst) == 0
    }

    /// Blocks until the process has outrun its deadline under [`OnExpiry::Offer`](crate::OnExpiry::Offer), and gives the
    /// offer to keep it. `None` when it settles first, at once under every other policy, and to every caller but the
    /// first: the offer is one.
    #[must_use]
    pub fn promotion(&self) -> Option<PromotionOffer> {
        self.live.take_offer().then(|| PromotionOffer::new(self.live.clone()))
    }

    /// The other end of [`Input::Pipe`](crate::Input::Pipe), once; dropping it is the command's end of file. Blocks until
    /// the process has started. `None` without such a pipe, when it was taken, and when the process has ended.
    ///
    /// Writing to a process that reads no more fails with `BrokenPipe`; in a host that has not ignored SIGPIPE, as a C
    /// program has not, it raises that signal first.
    #[must_use]
    pub fn take_stdin(&self) -> Option<File> {
        self.take(|pipes| &mut pipes.stdin)
    }

    /// The other end of stdout's [`Disposition::Pipe`](crate::Disposition::Pipe), once; also after the process has ended,
    /// with what it left in the pipe. Blocks until the process has started. `None` without such a pipe, and when it was
    /// taken. Not taken, its descriptor lives as long as a handle of the process.
    #[must_use]
    pub fn take_stdout(&self) -> Option<File> {
        self.take(|pipes| &mut pipes.stdout)
    }

    /// The same for stderr.
    #[must_use]
    pub fn take_stderr(&self) -> Option<File> {
        self.take(|pipes| &mut pipes.stderr)
    }

    fn take(&self, which: fn(&mut super::live::Pipes) -> &mut Option<File>) -> Option<File> {
        // Only an existing process has pipes; why there is none is the result's to say.
        self.live.wait_started().ok()?;
        self.live.take_pipe(which)
    }

    pub(crate) fn sandbox(&self) -> Option<SandboxInfo> {
        self.live.sandbox()
    }

    /// By which means the range is held together here.
    #[must_use]
    pub fn containment(&self) -> Containment {
        Range::containment()
    }

    /// The names (never the values) that were kept from the environment, sorted.
    #[must_use]
    pub fn scrubbed(&self) -> &[OsString] {
        self.live.scrubbed()
    }

    pub(crate) fn wait_started(&self) -> Result<(), Error> {
        self.live.wait_started()
    }
}

/// The end of a wait. One that the clock cannot express is as good as none.
fn until(timeout: Option<Duration>) -> Option<Instant> {
    Instant::now().checked_add(timeout?)
}

/// One stream of a live execution.
#[derive(Debug)]
struct StreamOf {
    live: Arc<Live>,
    channel: OutputStream,
}

impl ReadAt for StreamOf {
    fn read_from(&self, offset: u64) -> OutputRead {
        output::read_text(&self.live.output, self.channel, offset)
    }

    fn bytes_from(&self, offset: u64) -> (Vec<u8>, u64, bool) {
        let Bytes { bytes, next_offset, lossy } = output::read_bytes(&self.live.output, self.channel, offset);
        (bytes, next_offset, lossy)
    }

    fn total_bytes(&self) -> u64 {
        self.live.output.total(self.channel)
    }
}
