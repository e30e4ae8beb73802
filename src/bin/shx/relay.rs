//! Passing through: each stream is written by a thread of its own, so that who leaves one unread still gets the other.

use crate::print::{Stream, WriteError};
use crate::progress::{Progress, Screen};
use shell_executor::{Execution, OutputStream};
use std::io;
use std::thread::{Builder, JoinHandle};

/// Our own two streams, being written.
#[derive(Debug)]
pub(crate) struct Relay {
    stdout: JoinHandle<Result<(), WriteError>>,
    stderr: JoinHandle<Result<(), WriteError>>,
    /// Until all is passed on.
    progress: Option<Progress>,
}

impl Relay {
    /// # Errors
    ///
    /// When there is no descriptor or no thread to spare.
    pub(crate) fn start(execution: &Execution) -> io::Result<Relay> {
        let screen = Screen::new();
        Ok(Relay {
            stdout: pass_on(execution, OutputStream::Stdout, Stream::stdout()?, screen.clone())?,
            stderr: pass_on(execution, OutputStream::Stderr, Stream::stderr()?, screen.clone())?,
            progress: screen.watch(),
        })
    }

    /// Waits until the command has settled and all it wrote is passed on.
    pub(crate) fn finish(self) -> Result<(), WriteError> {
        let join =
            |thread: JoinHandle<_>| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (stdout, stderr) = (join(self.stdout), join(self.stderr));
        drop(self.progress);
        stdout.and(stderr)
    }
}

fn pass_on(
    execution: &Execution,
    from: OutputStream,
    mut to: Stream,
    screen: Screen,
) -> io::Result<JoinHandle<Result<(), WriteError>>> {
    let execution = execution.clone();
    Builder::new().name("shx-write".to_owned()).spawn(move || {
        loop {
            let news = execution.wait_stream(from, None);
            // Asked before the read: all that came until the settlement is in a read after it. What processes left behind
            // write from then on is nobody's.
            let settled = execution.try_wait().is_some();
            let (bytes, _) = execution.read_stream(from);
            if let Err(error) = screen.around(&bytes, || to.write(&bytes)) {
                // Nobody wants its output: it goes as it would at the next write of its own.
                let _ = execution.kill() || execution.kill_survivors();
                return Err(error);
            }
            if settled || !news {
                return Ok(());
            }
        }
    })
}
