//! What `shx` writes: bytes to its own streams, unbuffered, and lines of its own to stderr.

use crate::progress::has_colour;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

/// The status of a pipeline member whose reader has gone: 128 + SIGPIPE.
pub(crate) const READER_GONE: u8 = 141;
/// The status of `shx` when it could not do its work.
pub(crate) const FAILED: u8 = 125;

/// One of our own streams, past every buffer: what is written has left.
#[derive(Debug)]
pub(crate) struct Stream {
    file: File,
    name: &'static str,
}

/// A write that failed, and to which stream.
#[derive(Debug)]
pub(crate) struct WriteError {
    stream: &'static str,
    error: io::Error,
}

impl Stream {
    pub(crate) fn stdout() -> io::Result<Stream> {
        Stream::of(io::stdout(), "stdout")
    }

    pub(crate) fn stderr() -> io::Result<Stream> {
        Stream::of(io::stderr(), "stderr")
    }

    fn of(stream: impl AsFd, name: &'static str) -> io::Result<Stream> {
        Ok(Stream { file: File::from(stream.as_fd().try_clone_to_owned()?), name })
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    // Somebody else has made the stream that we share with him non-blocking.
                    ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(2)),
                    _ => return Err(WriteError { stream: self.name, error }),
                },
            }
        }
        Ok(())
    }
}

impl WriteError {
    /// Whether the reader has closed the stream: then there is nobody to tell, and nothing has gone wrong.
    pub(crate) fn is_reader_gone(&self) -> bool {
        self.error.kind() == ErrorKind::BrokenPipe
    }

    /// The exit status for it, after saying what there is to say.
    pub(crate) fn report(&self) -> u8 {
        if self.is_reader_gone() {
            return READER_GONE;
        }
        say(format_args!("cannot write to {}: {}", self.stream, reason(&self.error)));
        FAILED
    }
}

/// Prints `text` on stdout, and gives the exit status: 0 unless it could not be printed.
pub(crate) fn print(text: &str) -> ExitCode {
    let written = Stream::stdout()
        .map_err(|error| WriteError { stream: "stdout", error })
        .and_then(|mut stdout| stdout.write(text.as_bytes()));
    written.map_or_else(|error| error.report().into(), |()| ExitCode::SUCCESS)
}

/// One line of our own on stderr. If it cannot be written, there is no place left to say so.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let name = if has_colour() { "\x1b[1;31mshx:\x1b[0m" } else { "shx:" };
    let _ = writeln!(io::stderr(), "{name} {line}");
}

/// The system's text in the library's spelling: lower case, without the number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
