//! One command on the other machine, and every view of it: an [`ExecutionBackend`] of standard threads and pipes.

use shell_executor::{
    AbortSubscription, Cause, CollectedOutput, Error, ExecSpec, ExecutionBackend, Observed, OfferBackend,
    OnExpiry, OutputBytes, OutputRead, OutputReader, OutputStream, ProcessRead, ProcessStatus,
    PromotionOffer, ReadAt, RunResult, SpawnError, SpawnStage, Stdin,
};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// One command, live or settled.
#[derive(Debug)]
pub(crate) struct Session(Arc<Shared>);

/// What its threads change and its views read.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    stdout: Stream,
    stderr: Stream,
    /// What the other side printed before the command ran: banners, or why it did not run.
    preamble: String,
    started: bool,
    /// The first cause to cut it short.
    cut: Option<Cause>,
    /// Whether the deadline makes an offer.
    offers: bool,
    offer: Offer,
    /// Keeps the token's call; given up with an acceptance, and at the end.
    abort: Option<AbortSubscription>,
    outcome: Option<Result<RunResult, Error>>,
}

#[derive(Debug, Default)]
struct Stream {
    tail: Vec<u8>,
    limit: usize,
    total: u64,
    /// How far it has been consumed.
    taken: u64,
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Offer {
    /// The deadline has not passed, or nothing is offered.
    Closed,
    /// Open, and nobody has it yet.
    Open,
    Taken,
    Accepted,
}

impl Session {
    /// Starts `argv`, which prints a line `mark` on stderr when the command itself begins.
    pub(crate) fn start(argv: &[OsString], spec: ExecSpec, mark: String) -> Session {
        let stream = |limit| Stream { limit, ..Stream::default() };
        let state = State {
            stdout: stream(spec.stdout_max_bytes),
            stderr: stream(spec.stderr_max_bytes),
            preamble: String::new(),
            started: false,
            cut: None,
            offers: spec.on_expiry == OnExpiry::Offer,
            offer: Offer::Closed,
            abort: None,
            outcome: None,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        if spec.abort.as_ref().is_some_and(|token| token.is_fired()) {
            shared.settle(Err(Error::Aborted));
            return Session(shared);
        }
        let stdin = if matches!(spec.stdin, Stdin::Bytes(_)) { Stdio::piped() } else { Stdio::null() };
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        match command.spawn() {
            Ok(child) => shared.watch(child, spec, mark),
            Err(error) => {
                shared.settle(Err(failed(Path::new(&argv[0]), "cannot start the connection", &error)))
            }
        }
        Session(shared)
    }
}

impl Shared {
    fn watch(self: &Arc<Shared>, mut child: Child, spec: ExecSpec, mark: String) {
        let begun = Instant::now();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let shared = Arc::clone(self);
        thread::spawn(move || shared.read(OutputStream::Stdout, stdout.expect("it is a pipe")));
        let shared = Arc::clone(self);
        thread::spawn(move || {
            let mut stderr = BufReader::new(stderr.expect("it is a pipe"));
            shared.read_preamble(&mut stderr, &mark);
            shared.read(OutputStream::Stderr, stderr);
        });
        if let (Stdin::Bytes(bytes), Some(mut pipe)) = (spec.stdin.clone(), child.stdin.take()) {
            // Not read to its end by a command that does not want it, which is no failure.
            thread::spawn(move || pipe.write_all(&bytes));
        }
        if let Some(token) = &spec.abort {
            let shared = Arc::downgrade(self);
            let told = token.on_fire(move || {
                if let Some(shared) = shared.upgrade() {
                    shared.cut(Cause::Abort);
                }
            });
            self.lock().abort = Some(told);
        }
        let shared = Arc::clone(self);
        thread::spawn(move || shared.see_to_its_end(child, &spec, begun));
    }

    /// Until the mark, stderr is the connection's, not the command's.
    fn read_preamble(&self, stderr: &mut impl BufRead, mark: &str) {
        let mut line = Vec::new();
        while stderr.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).into_owned();
            let mut state = self.lock();
            if text.trim_end() == mark {
                state.started = true;
                self.changed.notify_all();
                return;
            }
            state.preamble.push_str(&text);
            line.clear();
        }
    }

    fn read(&self, which: OutputStream, mut pipe: impl Read) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = pipe.read(&mut buffer).unwrap_or(0);
            let mut state = self.lock();
            let stream = state.stream(which);
            stream.take_in(&buffer[..read]);
            stream.ended = read == 0;
            self.changed.notify_all();
            if read == 0 {
                return;
            }
        }
    }

    /// Waits for the first of end, deadline, abort and kill; then for the end.
    fn see_to_its_end(&self, mut child: Child, spec: &ExecSpec, begun: Instant) {
        let mut due = begun.checked_add(spec.timeout).filter(|_| spec.on_expiry != OnExpiry::None);
        let mut state = self.lock();
        while !state.ended() && state.cut.is_none() {
            if state.offer == Offer::Accepted {
                due = None;
            }
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            state = match left {
                None => self.changed.wait(state).expect("nobody panics with the state"),
                Some(left) if !left.is_zero() => {
                    self.changed.wait_timeout(state, left).expect("nobody panics with the state").0
                }
                Some(_) if state.offers && state.offer == Offer::Closed => {
                    state.offer = Offer::Open;
                    due = Some(Instant::now() + spec.answer_window);
                    self.changed.notify_all();
                    state
                }
                Some(_) => {
                    state.cut.get_or_insert(Cause::Timeout);
                    state
                }
            };
        }
        if state.cut.is_some() {
            // It has ended already where this fails, and has not been waited for, so the number is still its own.
            let _ = child.kill();
        }
        state = self.changed.wait_while(state, |state| !state.ended()).expect("nobody panics with the state");
        drop(state);
        let status = child.wait();
        let state = self.lock();
        let outcome = match status {
            Err(_) => Err(Error::StatusLost),
            Ok(_) if !state.started && state.cut.is_none() => {
                let said = io::Error::other(state.preamble.trim_end().to_owned());
                Err(failed(&spec.workdir, "the command was not started", &said))
            }
            Ok(status) => Ok(state.result(status, spec, begun.elapsed())),
        };
        drop(state);
        self.settle(outcome);
    }

    fn settle(&self, outcome: Result<RunResult, Error>) {
        let mut state = self.lock();
        (state.stdout.ended, state.stderr.ended) = (true, true);
        state.outcome = Some(outcome);
        let abort = state.abort.take();
        drop(state);
        drop(abort);
        self.changed.notify_all();
    }

    /// `true` for the one call that cuts it short.
    fn cut(&self, cause: Cause) -> bool {
        let mut state = self.lock();
        let first = state.outcome.is_none() && !state.ended() && state.cut.is_none();
        if first {
            state.cut = Some(cause);
            self.changed.notify_all();
        }
        first
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the state")
    }

    /// Blocks until `done`, or the time is over.
    fn until(&self, timeout: Option<Duration>, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let due = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.lock();
        while !done(&state) {
            state = match due.map(|due| due.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(state).expect("nobody panics with the state"),
                Some(left) if left.is_zero() => return state,
                Some(left) => self.changed.wait_timeout(state, left).expect("nobody panics with the state").0,
            };
        }
        state
    }
}

impl State {
    fn stream(&mut self, which: OutputStream) -> &mut Stream {
        if which == OutputStream::Stdout { &mut self.stdout } else { &mut self.stderr }
    }

    fn ended(&self) -> bool {
        self.stdout.ended && self.stderr.ended
    }

    fn result(&self, status: std::process::ExitStatus, spec: &ExecSpec, duration: Duration) -> RunResult {
        let mut result = RunResult::default();
        // A signal that ended the connection was sent by us. The command's own has come as 128 and more.
        result.exit_code = status.code().filter(|_| self.started);
        result.signal = status.signal().filter(|_| self.started);
        result.timed_out = self.cut == Some(Cause::Timeout);
        result.aborted = self.cut == Some(Cause::Abort);
        let ended_by_itself = self.cut.is_none() && result.exit_code.is_some();
        result.status = if ended_by_itself { ProcessStatus::Completed } else { ProcessStatus::Killed };
        result.cause = Some(self.cut.unwrap_or(Cause::Exit));
        result.timeout = (spec.on_expiry != OnExpiry::None).then_some(spec.timeout);
        result.stdout = CollectedOutput::new(self.stdout.tail.clone(), self.stdout.total);
        result.stderr = CollectedOutput::new(self.stderr.tail.clone(), self.stderr.total);
        result.duration = duration;
        result
    }
}

impl Stream {
    fn take_in(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.tail.extend_from_slice(bytes);
        let excess = self.tail.len().saturating_sub(self.limit);
        self.tail.drain(..excess);
    }

    /// The bytes from `offset` on, as far as they are kept, and whether some before them are not.
    fn since(&self, offset: u64) -> (&[u8], bool) {
        let start = self.total - self.tail.len() as u64;
        let from = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX).min(self.tail.len());
        (&self.tail[from..], offset < start)
    }

    /// The same without a character that is not complete yet.
    fn text_since(&self, offset: u64) -> (&[u8], bool) {
        let (bytes, lossy) = self.since(offset);
        let whole = match std::str::from_utf8(bytes) {
            Err(error) if error.error_len().is_none() && !self.ended => error.valid_up_to(),
            _ => bytes.len(),
        };
        (&bytes[..whole], lossy)
    }

    fn consume(&mut self, as_text: bool) -> (Vec<u8>, bool) {
        let (bytes, lossy) = if as_text { self.text_since(self.taken) } else { self.since(self.taken) };
        let (bytes, kept) = (bytes.to_vec(), self.since(self.taken).0.len());
        self.taken = self.total - (kept - bytes.len()) as u64;
        (bytes, lossy)
    }

    fn has_news(&self) -> bool {
        !self.text_since(self.taken).0.is_empty()
    }
}

impl ExecutionBackend for Session {
    fn result(&self) -> Result<RunResult, Error> {
        let state = self.0.until(None, |state| state.outcome.is_some());
        state.outcome.clone().unwrap_or(Err(Error::StatusLost))
    }

    fn wait_started(&self) -> Result<(), Error> {
        match &self.0.until(None, |state| state.started || state.outcome.is_some()).outcome {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn wait(&self, timeout: Option<Duration>) -> Option<ProcessStatus> {
        let outcome = &self.0.until(timeout, |state| state.outcome.is_some()).outcome;
        outcome.as_ref().map(|outcome| outcome.as_ref().map_or(ProcessStatus::Killed, |result| result.status))
    }

    fn exit_code(&self) -> Option<i32> {
        self.0.lock().outcome.as_ref()?.as_ref().ok()?.exit_code
    }

    fn signal(&self) -> Option<i32> {
        self.0.lock().outcome.as_ref()?.as_ref().ok()?.signal
    }

    fn read_output(&self) -> ProcessRead {
        let mut state = self.0.lock();
        let ((stdout, lost), (stderr, also)) = (state.stdout.consume(true), state.stderr.consume(true));
        let mut read = ProcessRead::default();
        read.delta = String::from_utf8_lossy(&stdout).into_owned();
        if !stderr.is_empty() {
            let separator = if read.delta.is_empty() || read.delta.ends_with('\n') { "" } else { "\n" };
            read.delta += &format!("{separator}[stderr]\n{}", String::from_utf8_lossy(&stderr));
        }
        read.lossy = lost || also;
        read
    }

    fn read_output_bytes(&self) -> OutputBytes {
        let mut state = self.0.lock();
        let ((stdout, lost), (stderr, also)) = (state.stdout.consume(false), state.stderr.consume(false));
        let mut read = OutputBytes::default();
        (read.stdout, read.stderr, read.lossy) = (stdout, stderr, lost || also);
        read
    }

    fn read_stream(&self, stream: OutputStream) -> (Vec<u8>, bool) {
        self.0.lock().stream(stream).consume(false)
    }

    fn wait_stream(&self, which: OutputStream, timeout: Option<Duration>) -> bool {
        let has_news = |state: &State| match which {
            OutputStream::Stdout => state.stdout.has_news(),
            OutputStream::Stderr => state.stderr.has_news(),
        };
        has_news(&self.0.until(timeout, |state| has_news(state) || state.outcome.is_some()))
    }

    fn wait_output(&self, timeout: Option<Duration>) -> bool {
        let has_news = |state: &State| state.stdout.has_news() || state.stderr.has_news();
        has_news(&self.0.until(timeout, |state| has_news(state) || state.outcome.is_some()))
    }

    fn kill(&self) -> bool {
        self.0.cut(Cause::Kill)
    }
    fn observed(&self) -> Option<Observed> {
        let reader = |which| OutputReader::new(Arc::new(View { shared: Arc::clone(&self.0), which }));
        Some(Observed::new(reader(OutputStream::Stdout), reader(OutputStream::Stderr)))
    }

    fn promotion(&self) -> Option<PromotionOffer> {
        let closed = |state: &State| state.outcome.is_some() || state.ended() || state.cut.is_some();
        let mut state =
            self.0.until(None, |state| !state.offers || state.offer != Offer::Closed || closed(state));
        let open = state.offers && state.offer == Offer::Open && !closed(&state);
        if open {
            state.offer = Offer::Taken;
        }
        open.then(|| PromotionOffer::new(Arc::clone(&self.0) as Arc<dyn OfferBackend>))
    }
}

impl OfferBackend for Shared {
    fn accept(&self) -> bool {
        let mut state = self.lock();
        let in_time = state.offer == Offer::Taken && state.cut.is_none() && !state.ended();
        if in_time {
            state.offer = Offer::Accepted;
        }
        let abort = if in_time { state.abort.take() } else { None };
        drop(state);
        drop(abort);
        self.changed.notify_all();
        in_time
    }

    fn decline(&self) -> bool {
        self.cut(Cause::Timeout)
    }
}

/// A view of one stream.
#[derive(Debug)]
struct View {
    shared: Arc<Shared>,
    which: OutputStream,
}

impl ReadAt for View {
    fn read_from(&self, offset: u64) -> OutputRead {
        let mut state = self.shared.lock();
        let stream = state.stream(self.which);
        let (bytes, lossy) = stream.text_since(offset);
        let mut read = OutputRead::default();
        read.text = String::from_utf8_lossy(bytes).into_owned();
        read.next_offset = stream.total - (stream.since(offset).0.len() - bytes.len()) as u64;
        read.lossy = lossy;
        read
    }

    fn bytes_from(&self, offset: u64) -> (Vec<u8>, u64, bool) {
        let mut state = self.shared.lock();
        let stream = state.stream(self.which);
        let (bytes, lossy) = stream.since(offset);
        (bytes.to_vec(), stream.total, lossy)
    }

    fn total_bytes(&self) -> u64 {
        self.shared.lock().stream(self.which).total
    }
}

fn failed(path: &Path, what: &str, error: &io::Error) -> Error {
    SpawnError::new(SpawnStage::Exec, Some(path), what, error).into()
}
