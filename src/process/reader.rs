//! Offset readers: any number of independent views of one stream.

use crate::result::OutputRead;
use std::fmt;
use std::sync::Arc;

/// A stream that can be read at an offset. For providers of executions; callers use the [`OutputReader`].
pub trait ReadAt: Send + Sync + fmt::Debug {
    /// See [`OutputReader::read_from`].
    fn read_from(&self, offset: u64) -> OutputRead;

    /// See [`OutputReader::bytes_from`].
    fn bytes_from(&self, offset: u64) -> (Vec<u8>, u64, bool);

    /// See [`OutputReader::total_bytes`].
    fn total_bytes(&self) -> u64;
}

/// Offset readers over the two streams of one execution.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Observed {
    /// Standard output.
    pub stdout: OutputReader,
    /// Standard error.
    pub stderr: OutputReader,
}

impl Observed {
    /// For providers of executions.
    #[must_use]
    pub fn new(stdout: OutputReader, stderr: OutputReader) -> Observed {
        Observed { stdout, stderr }
    }
}

/// Reads one stream from any offset. It consumes nothing and never waits for the process.
#[derive(Debug, Clone)]
pub struct OutputReader {
    stream: Arc<dyn ReadAt>,
}

impl OutputReader {
    /// For providers of executions.
    #[must_use]
    pub fn new(stream: Arc<dyn ReadAt>) -> OutputReader {
        OutputReader { stream }
    }

    /// The text from `offset` (in bytes of the stream) on, up to the last whole character; an offset past the end reads
    /// from the end. What has left memory comes from the spill file while it stands; only otherwise is the read lossy, and
    /// its text is the whole retained tail.
    #[must_use]
    pub fn read_from(&self, offset: u64) -> OutputRead {
        self.stream.read_from(offset)
    }

    /// The bytes from `offset` on, the offset after them, and whether bytes between `offset` and them are gone for good.
    #[must_use]
    pub fn bytes_from(&self, offset: u64) -> (Vec<u8>, u64, bool) {
        self.stream.bytes_from(offset)
    }

    /// How many bytes the stream has carried so far.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.stream.total_bytes()
    }
}
