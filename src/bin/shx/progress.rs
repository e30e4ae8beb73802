//! The line that a terminal shows while a command says nothing. A pipe never sees it.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// So long a silence is worth a line.
const SILENCE: Duration = Duration::from_secs(3);
const PACE: Duration = Duration::from_secs(1);
/// Back to the start of the line, and all of it gone.
const CLEAR: &str = "\r\x1b[K";

/// Whether our stderr is a terminal that is to get colours.
pub(crate) fn has_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal()
        && !set("NO_COLOR")
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// What the terminal shows, as the threads that write to it share it.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// How many threads are writing the command's output.
    writing: usize,
    /// Whether the last of it ended a line; a line of ours would spoil an unfinished one.
    at_line_start: bool,
    last: Instant,
    shown: bool,
    over: bool,
}

impl Screen {
    pub(crate) fn new() -> Screen {
        let state =
            State { writing: 0, at_line_start: true, last: Instant::now(), shown: false, over: false };
        Screen { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// Writes some of the command's output, with no line of ours in the way. Nothing is locked meanwhile: one stream may
    /// have to wait for its reader, and the other goes on.
    pub(crate) fn around<T>(&self, bytes: &[u8], write: impl FnOnce() -> T) -> T {
        if bytes.is_empty() {
            return write();
        }
        let mut state = self.lock();
        state.clear();
        state.writing += 1;
        drop(state);
        let written = write();
        let mut state = self.lock();
        state.writing -= 1;
        state.last = Instant::now();
        state.at_line_start = bytes.ends_with(b"\n");
        drop(state);
        written
    }

    /// Shows the line while there is silence, if stderr is a terminal.
    pub(crate) fn watch(&self) -> Option<Progress> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let (screen, began) = (self.clone(), Instant::now());
        let watch = move || {
            let mut state = screen.lock();
            while !state.over {
                if state.writing == 0 && state.at_line_start && state.last.elapsed() >= SILENCE {
                    state.show(began.elapsed());
                }
                (state, _) =
                    screen.shared.changed.wait_timeout(state, PACE).unwrap_or_else(PoisonError::into_inner);
            }
            state.clear();
        };
        // Without a thread to spare there is no such line; nobody needs it.
        let thread = Builder::new().name("shx-progress".to_owned()).spawn(watch).ok()?;
        Some(Progress { screen: self.clone(), thread: Some(thread) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = io::stderr().write_all(CLEAR.as_bytes());
        }
    }

    fn show(&mut self, running: Duration) {
        let text = format!("shx: running for {} s", running.as_secs());
        let line =
            if has_colour() { format!("{CLEAR}\x1b[2m{text}\x1b[0m") } else { format!("{CLEAR}{text}") };
        let _ = io::stderr().write_all(line.as_bytes());
        self.shown = true;
    }
}

/// Takes the line away, and ends its thread, when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    screen: Screen,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.screen.lock().over = true;
        self.screen.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
