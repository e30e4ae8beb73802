//! The two streams as all threads see them: one lock, held for copying and never for a system call.

use super::ring::Ring;
use super::spill::SpillView;
use super::text;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// One of the two streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One stream as of now.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) ring: Ring,
    /// No more bytes will come: an unfinished character at the end is final.
    pub(super) ended: bool,
    /// The file that holds all that has been pushed. Set in the same step as the first push that drops bytes.
    pub(super) spill: Option<SpillView>,
    pub(super) spill_error: Option<String>,
    /// The consuming reads: all before it has been handed out.
    pub(super) cursor: u64,
    /// What was there at the last consuming read; unfinished characters are seen, but not handed out.
    seen: u64,
}

/// A piece of a stream, claimed under the lock, to be completed without it.
#[derive(Debug)]
pub(super) struct Claim {
    /// The offset asked for.
    pub(super) from: u64,
    /// The offset of the first byte of `tail`. Above `from` when bytes in between have left the ring.
    pub(super) start: u64,
    /// The offset after the last byte of `tail`.
    pub(super) end: u64,
    pub(super) tail: Vec<u8>,
    pub(super) spill: Option<SpillView>,
}

impl Stream {
    fn new(limit: usize) -> Stream {
        // A stream that is not collected has nothing to wait for; the limit of its ring is never used.
        Stream {
            ring: Ring::new(limit.max(1)),
            ended: limit == 0,
            spill: None,
            spill_error: None,
            cursor: 0,
            seen: 0,
        }
    }

    /// All from `from` on; as text, without an unfinished character that may still be completed.
    pub(super) fn claim(&self, from: u64, as_text: bool) -> Claim {
        let from = from.min(self.ring.total());
        let start = from.max(self.ring.start());
        let mut tail = self.ring.copy_from(start);
        if as_text && !self.ended {
            tail.truncate(text::complete_len(&tail));
        }
        let end = start + tail.len() as u64;
        Claim { from, start, end, tail, spill: self.spill.clone() }
    }

    /// The same, taken from the consuming cursor, which moves behind it.
    pub(super) fn take(&mut self, as_text: bool) -> Claim {
        let claim = self.claim(self.cursor, as_text);
        self.cursor = claim.end;
        self.seen = self.ring.total();
        claim
    }

    /// Whether a consuming read would give something that the last one did not see.
    fn has_news(&self) -> bool {
        self.ring.total() > self.seen || (self.ended && self.cursor < self.ring.total())
    }
}

/// Both streams, their consuming cursors, and whoever waits for them.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    /// A text for the stderr section of one consuming read.
    pub(super) note: Option<String>,
    /// Whether the note has not been passed over by a read that gives the command's own bytes only.
    pub(super) note_is_news: bool,
    settled: bool,
    waiters: usize,
}

impl Streams {
    pub(super) fn of(&self, channel: OutputStream) -> &Stream {
        match channel {
            OutputStream::Stdout => &self.stdout,
            OutputStream::Stderr => &self.stderr,
        }
    }

    pub(super) fn of_mut(&mut self, channel: OutputStream) -> &mut Stream {
        match channel {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    fn has_news(&self, one: Option<OutputStream>) -> bool {
        match one {
            Some(OutputStream::Stdout) => self.stdout.has_news(),
            Some(OutputStream::Stderr) => self.stderr.has_news(),
            None => self.note_is_news || self.stdout.has_news() || self.stderr.has_news(),
        }
    }
}

/// The collected output of one execution.
#[derive(Debug)]
pub(crate) struct Output {
    streams: Mutex<Streams>,
    news: Condvar,
}

impl Output {
    /// Keeps the last bytes of each stream; a limit of 0 is for a stream that is not collected.
    pub(crate) fn new(stdout_limit: usize, stderr_limit: usize) -> Output {
        let streams = Streams {
            stdout: Stream::new(stdout_limit),
            stderr: Stream::new(stderr_limit),
            note: None,
            note_is_news: false,
            settled: false,
            waiters: 0,
        };
        Output { streams: Mutex::new(streams), news: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the streams, and tells whoever waits for news.
    pub(super) fn update(&self, change: impl FnOnce(&mut Streams)) {
        let mut streams = self.lock();
        change(&mut streams);
        if streams.waiters > 0 {
            self.news.notify_all();
        }
    }

    /// No more bytes will come on `channel`.
    pub(crate) fn end(&self, channel: OutputStream) {
        self.update(|streams| streams.of_mut(channel).ended = true);
    }

    /// The execution has settled: nobody has to wait any longer. A note goes into the stderr section of the next
    /// consuming read.
    pub(crate) fn settle(&self, note: Option<String>) {
        self.update(|streams| {
            streams.note_is_news = note.is_some();
            streams.note = note;
            streams.settled = true;
        });
    }

    /// How many bytes of the stream no consuming read has taken yet.
    pub(crate) fn unread(&self, channel: OutputStream) -> u64 {
        let streams = self.lock();
        let stream = streams.of(channel);
        stream.ring.total() - stream.cursor
    }

    /// How many bytes the stream has carried so far.
    pub(crate) fn total(&self, channel: OutputStream) -> u64 {
        self.lock().of(channel).ring.total()
    }

    /// Blocks until a consuming read of both streams, or of one, has something new to give, the execution has settled, or
    /// the time is over. `true` for something new.
    pub(crate) fn wait(&self, one: Option<OutputStream>, until: Option<Instant>) -> bool {
        let mut streams = self.lock();
        loop {
            if streams.has_news(one) {
                return true;
            }
            if streams.settled {
                return false;
            }
            streams.waiters += 1;
            let timed_out;
            (streams, timed_out) = wait_on(&self.news, streams, until);
            streams.waiters -= 1;
            if timed_out {
                return streams.has_news(one);
            }
        }
    }
}

/// One wait on `condition`, until a point in time if there is one. Gives the guard back, and whether the time is over.
pub(crate) fn wait_on<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    until: Option<Instant>,
) -> (MutexGuard<'a, T>, bool) {
    let Some(until) = until else {
        return (condition.wait(guard).unwrap_or_else(PoisonError::into_inner), false);
    };
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return (guard, true);
    }
    (condition.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0, false)
}
