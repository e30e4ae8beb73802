//! The command's stdin: a file or our own stdin, copied by a thread that nobody waits for.

use crate::print::{reason, say};
use shell_executor::Execution;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

/// Where the bytes come from, open.
#[derive(Debug)]
pub(crate) struct Source {
    file: File,
    name: String,
    /// Its end is known, and reading it never waits for anybody.
    regular: bool,
}

impl Source {
    /// Opens what `--stdin` names; `None` for no input.
    pub(crate) fn open(named: Option<&OsStr>) -> io::Result<Option<Source>> {
        let (file, name) = match named {
            None => return Ok(None),
            Some(none) if none == "none" => return Ok(None),
            Some(dash) if dash == "-" => {
                (File::from(io::stdin().as_fd().try_clone_to_owned()?), "stdin".to_owned())
            }
            Some(path) => (File::open(path)?, format!("{path:?}")),
        };
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(io::Error::from(ErrorKind::IsADirectory));
        }
        Ok(Some(Source { file, name, regular: kind.is_file() }))
    }
}

/// A copy under way.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Whether the command has taken everything, once that is known.
    taken: Receiver<bool>,
    /// There are bytes that the pipe has not taken.
    pending: Arc<AtomicBool>,
    regular: bool,
}

impl Feed {
    /// Begins to copy `source` into the execution's stdin.
    pub(crate) fn start(source: Source, execution: &Execution) -> io::Result<Feed> {
        let (sender, taken) = channel();
        let pending = Arc::new(AtomicBool::new(false));
        let feed = Feed { taken, pending: Arc::clone(&pending), regular: source.regular };
        let execution = execution.clone();
        Builder::new().name("shx-stdin".to_owned()).spawn(move || {
            // `None` when the command has ended before this thread got here: whatever there is was not taken.
            let sink = execution.take_stdin();
            let (end, name) = (copy(&source.file, sink.as_ref(), &pending), source.name);
            if let Err(error) = &end {
                say(format_args!("cannot read {name} to its end: {}", reason(error)));
            }
            // Before the pipe is closed: a command that has seen the end finds us saying that it has taken all. Nobody
            // may be left to hear it.
            let _ = sender.send(end.unwrap_or(true));
            drop(sink);
        })?;
        Ok(feed)
    }

    /// Whether the settled command has left some of its input. Of a terminal or pipe nobody knows what would have come,
    /// so there only what was read and not taken counts.
    pub(crate) fn is_truncated(&self) -> bool {
        /// The next write to a pipe that nobody reads fails at once; only a process left behind can hold it open, full.
        const PATIENCE: Duration = Duration::from_millis(200);
        let patience = if self.regular { PATIENCE } else { Duration::ZERO };
        match self.taken.recv_timeout(patience) {
            Ok(all) => !all,
            Err(RecvTimeoutError::Timeout) if self.regular => true,
            Err(_) => self.pending.load(Ordering::SeqCst),
        }
    }
}

/// Copies to the end. `false` when the reader has gone before, which is his right.
fn copy(mut from: &File, to: Option<&File>, pending: &AtomicBool) -> io::Result<bool> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(true),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // Somebody else has made the stream that we share with him non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            Err(error) => return Err(error),
        };
        pending.store(true, Ordering::SeqCst);
        let Some(mut to) = to else { return Ok(false) };
        if to.write_all(&buffer[..count]).is_err() {
            // A pipe gives no other error than that nobody reads it.
            return Ok(false);
        }
        pending.store(false, Ordering::SeqCst);
    }
}
