//! The supervisor: one thread that starts a process, reads it, brings it down when told to, and settles it.

use super::cause::Cause;
use super::confiner::Confiner;
use super::launch::{Launch, Preparation, Surroundings};
use super::live::{Ending, Live, Pipes};
use super::range::{Members, Range, Unseen};
use super::spec::{Disposition, Input, SpawnSpec};
use crate::error::Error;
use crate::output::{Collector, OutputStream, PrivateFile, SpillDir};
use crate::sys::{self, Exit, Interest, PidFd, Pipe, PollSet, ResourceUse, Stdio, Waited, Wake};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After the forceful signal: how long a process may take to go before it is given up. One that waits for a dead disk or
/// network mount can take for ever.
pub(super) const FORCED_WAIT: Duration = Duration::from_secs(2);

/// What one supervisor is to do.
pub(super) struct Job {
    pub(super) spec: SpawnSpec,
    pub(super) preparation: Option<Box<dyn Preparation>>,
    /// The range's marker variable.
    pub(super) marker: (std::ffi::OsString, String),
    /// What identifies the range within the marker.
    pub(super) marker_id: String,
}

/// Starts the process and sees it to its end. Returns when nothing of the range is left, or nothing more can be done.
pub(super) fn supervise(live: &Arc<Live>, surroundings: &Surroundings<'_>, job: Job) {
    let launch = Launch::of(&job.spec);
    match start(live, surroundings, job, launch) {
        Ok(Some(supervisor)) => supervisor.run(),
        Ok(None) => {}
        Err(error) => live.fail(error),
    }
    live.over();
}

/// Prepares and spawns. `None` when the execution was cut short before, and is settled.
fn start<'a>(
    live: &'a Arc<Live>,
    surroundings: &Surroundings<'a>,
    job: Job,
    mut launch: Launch,
) -> Result<Option<Supervisor<'a>>, Error> {
    let Job { mut spec, preparation, marker, marker_id } = job;
    if let Some(preparation) = preparation {
        preparation.prepare(&mut launch, surroundings)?;
    }
    if let Some(confiner) = &launch.confiner {
        live.confined(confiner.facts());
    }
    launch.env.retain(|(name, _)| *name != marker.0);
    launch.env.push((marker.0, marker.1.into()));
    let command = sys::Command::new(&launch.candidates, &launch.argv, &launch.env, &launch.cwd)
        .map_err(|error| launch.shortage("its arguments cannot be passed", &error))?;
    let command = command.confined_by(launch.confinement.take()).keeping(launch.kept.take());
    let wake = Wake::new().map_err(|error| launch.shortage("no wake-up for its supervisor", &error))?;
    let plumbing = Plumbing::lay(&mut spec, &launch)?;
    let Plumbing { stdio, sources, feed, pipes } = plumbing;
    let spawned = match sys::spawn(&command, &stdio, &live.gate) {
        Ok(spawned) => spawned,
        Err(failure) => return launch.failure(&failure, &command).map_or(Ok(None), Err),
    };
    // The host's copies of the child's ends: a stream ends when the last process that has it is gone.
    drop(stdio);
    drop(command);
    let wake = Arc::new(wake);
    let confiner = launch.confiner.take();
    let spare_leader = confiner.as_ref().is_some_and(|confiner| confiner.waits());
    let range = Arc::new(Range::new(spawned.leader, marker_id, live.began, spare_leader));
    let published = live.publish(&wake, &range, pipes);
    let mut supervisor = Supervisor {
        live,
        dir: surroundings.dir,
        range,
        confiner,
        wake,
        sources,
        feed,
        leader: Leader::Running,
        ladder: Ladder::Foot,
        watched: Vec::new(),
        left: 0,
        leaving: 0,
        unseen: false,
        under_stop: false,
        given_up: false,
        recheck: None,
        drain: None,
        settled: false,
        gone: false,
        stdin_refused: false,
        buffer: Vec::new(),
        poll: PollSet::default(),
        watcher: None,
        blind: false,
        _files: launch.files,
    };
    if !published {
        // Given up while it hung; it must not run on unseen.
        supervisor.settled = true;
        supervisor.force(Instant::now());
    }
    supervisor.watch_leader();
    Ok(Some(supervisor))
}

/// The descriptors of one start.
struct Plumbing {
    stdio: Stdio,
    sources: Vec<Source>,
    feed: Option<Feed>,
    pipes: Pipes,
}

impl Plumbing {
    fn lay(spec: &mut SpawnSpec, launch: &Launch) -> Result<Plumbing, Error> {
        let mut pipes = Pipes::default();
        let mut feed = None;
        let no = |what: &'static str| move |error: io::Error| launch.shortage(what, &error);
        let stdin = match std::mem::take(&mut spec.stdin) {
            Input::Null => sys::open_null(false).map_err(no("no descriptor for its stdin"))?,
            Input::Bytes(bytes) => {
                let Pipe { ours, theirs } = sys::input_pipe(true).map_err(no("no pipe for its stdin"))?;
                feed = Some(Feed { fd: ours, bytes, written: 0 });
                theirs
            }
            Input::Pipe => {
                let Pipe { ours, theirs } = sys::input_pipe(false).map_err(no("no pipe for its stdin"))?;
                pipes.stdin = Some(File::from(ours));
                theirs
            }
        };
        let mut sources = Vec::with_capacity(2);
        let mut lay =
            |channel, disposition, number, mine: &mut Option<File>, what| -> Result<OwnedFd, Error> {
                let (limit, cap, relay) = match disposition {
                    Disposition::Collect { max_bytes, spill_max_bytes } => {
                        (max_bytes, spill_max_bytes, false)
                    }
                    Disposition::Relay { max_bytes } => (max_bytes, None, true),
                    Disposition::Pipe => {
                        let Pipe { ours, theirs } = sys::output_pipe(false).map_err(no(what))?;
                        *mine = Some(File::from(ours));
                        return Ok(theirs);
                    }
                    Disposition::Inherit => return sys::duplicate_std(number).map_err(no(what)),
                };
                let Pipe { ours, theirs } = sys::output_pipe(true).map_err(no(what))?;
                sources.push(Source::new(
                    ours,
                    Collector::new(channel, limit, cap),
                    relay.then_some(limit as u64),
                ));
                Ok(theirs)
            };
        let stdout = lay(OutputStream::Stdout, spec.stdout, 1, &mut pipes.stdout, "no pipe for its stdout")?;
        let stderr = lay(OutputStream::Stderr, spec.stderr, 2, &mut pipes.stderr, "no pipe for its stderr")?;
        Ok(Plumbing { stdio: Stdio { stdin, stdout, stderr }, sources, feed, pipes })
    }
}

/// How full a first buffer and pipe are, and how large both become once a stream has proved busy: a large pipe with a
/// small buffer is worse than either alone.
const BUFFER: usize = 64 * 1024;
pub(super) const LARGE: usize = 256 * 1024;
/// Full reads in a row that prove a stream busy.
const BUSY_READS: u32 = 4;
/// A read below this, this soon after the last one, this often in a row, is a trickle: between two reads of it the
/// thread naps, and the pipe collects.
const SMALL_READ: usize = 4096;
const TRICKLE_GAP: Duration = Duration::from_micros(200);
const TRICKLE_READS: u32 = 16;
const NAP: Duration = Duration::from_micros(100);

/// One stream that is read.
struct Source {
    fd: OwnedFd,
    collector: Collector,
    /// How many unread bytes may wait for a reader; `None` for a stream that never waits.
    relay: Option<u64>,
    full_reads: u32,
    /// How much is read at a time: as much as the pipe holds.
    buffer: usize,
    /// A larger pipe was asked for and not given.
    refused: bool,
    small_reads: u32,
    last_read: Option<Instant>,
    nap_until: Option<Instant>,
}

impl Source {
    fn new(fd: OwnedFd, collector: Collector, relay: Option<u64>) -> Source {
        Source {
            fd,
            collector,
            relay,
            full_reads: 0,
            buffer: BUFFER,
            refused: false,
            small_reads: 0,
            last_read: None,
            nap_until: None,
        }
    }

    /// How much may be read now, with so much to spare; 0 while the reader is behind.
    fn room(&self, live: &Live, spare: u64) -> usize {
        let Some(limit) = self.relay else { return usize::MAX };
        let room = limit.saturating_add(spare).saturating_sub(live.output.unread(self.collector.channel()));
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Learns from the size and time of a read what kind of stream this is.
    fn note_read(&mut self, got: usize, asked: usize, now: Instant) {
        let full = got == asked && asked >= BUFFER;
        self.full_reads = if full { self.full_reads.saturating_add(1) } else { 0 };
        if self.full_reads >= BUSY_READS && self.buffer == BUFFER && !self.refused {
            // Refused, it is not asked again: memory for pipes is rationed.
            self.refused = !sys::grow_pipe(self.fd.as_fd(), LARGE);
            self.buffer = if self.refused { BUFFER } else { LARGE };
        }
        let soon = self.last_read.is_some_and(|last| now.duration_since(last) < TRICKLE_GAP + NAP);
        self.small_reads = if soon && got < SMALL_READ { self.small_reads.saturating_add(1) } else { 0 };
        self.nap_until = (self.small_reads >= TRICKLE_READS).then(|| now + NAP);
        self.last_read = Some(now);
    }
}

/// What is still to be written to the command's stdin.
struct Feed {
    fd: OwnedFd,
    bytes: Vec<u8>,
    written: usize,
}

impl Feed {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }
}

#[derive(Debug, Clone, Copy)]
enum Leader {
    Running,
    Ended(Exit, Option<ResourceUse>),
    /// It has ended, and nobody can tell how.
    Lost,
}

/// The way down. It watches the range, not the leader.
#[derive(Debug, Clone, Copy)]
enum Ladder {
    /// Nobody has asked for it.
    Foot,
    /// The polite signal was sent; until then the range may end by itself.
    Polite(Instant),
    /// The forceful signal was sent; until then the range is waited for.
    Forced(Instant),
    /// The range is gone, or given up.
    Top,
}

/// When the draining of streams that descendants hold began, and when the last byte came.
#[derive(Debug, Clone, Copy)]
struct Drain {
    since: Instant,
    quiet_since: Instant,
}

struct Supervisor<'a> {
    live: &'a Arc<Live>,
    dir: &'a SpillDir,
    range: Arc<Range>,
    /// Until it has been asked at the end.
    confiner: Option<Box<dyn Confiner>>,
    wake: Arc<Wake>,
    sources: Vec<Source>,
    feed: Option<Feed>,
    leader: Leader,
    ladder: Ladder,
    /// Members of the range whose end is waited for. Another look at the range is taken when all of them are gone.
    watched: Vec<PidFd>,
    /// How many the last look has found.
    left: usize,
    /// How many of these were on their way out.
    leaving: usize,
    /// The last look failed: who is left is not known.
    unseen: bool,
    /// The last stroke was made when all was to be stopped.
    under_stop: bool,
    /// The top of the ladder was reached before, with somebody left.
    given_up: bool,
    /// For members that cannot be watched, on kernels without process descriptors: when to look again, and the pause
    /// after that.
    recheck: Option<(Instant, Duration)>,
    drain: Option<Drain>,
    settled: bool,
    /// It settled with nobody left: there is nothing more to look for.
    gone: bool,
    /// The command closed its input before it had taken it all.
    stdin_refused: bool,
    buffer: Vec<u8>,
    poll: PollSet,
    /// Waits for the leader where it has no descriptor.
    watcher: Option<JoinHandle<()>>,
    /// Neither a descriptor nor a thread tells of the leader's end.
    blind: bool,
    /// Files of the command's that stand for as long as this does.
    _files: Vec<PrivateFile>,
}

impl Supervisor<'_> {
    fn run(mut self) {
        loop {
            let now = Instant::now();
            self.take_orders(now);
            self.climb(now);
            self.try_settle(now);
            if self.is_over(now) {
                break;
            }
            self.wait_and_serve(now);
        }
        self.let_go();
    }

    // --- orders ----------------------------------------------------------------------------------------------------

    fn take_orders(&mut self, now: Instant) {
        if !matches!(self.ladder, Ladder::Foot) {
            return;
        }
        let cut = self.live.latch.get().is_some_and(Cause::is_cut) && !self.settled;
        let stop = self.live.stop_asked() && (self.leader_has_ended() || self.given_up);
        if stop && self.given_up {
            // It has been asked politely before.
            self.force(now);
        } else if cut || stop {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Instant) {
        let grace = self.live.terms.grace;
        if grace.is_zero() {
            return self.force(now);
        }
        // A stopped process takes no signal but the second and the forceful one.
        self.strike(&[sys::SIGTERM, sys::SIGCONT], now);
        self.ladder = Ladder::Polite(now.checked_add(grace).unwrap_or(now + FAR));
    }

    fn force(&mut self, now: Instant) {
        self.strike(&[sys::SIGKILL], now);
        self.ladder = Ladder::Forced(now + FORCED_WAIT);
    }

    /// Signals the range, and waits from now on for the end of whom it reached.
    fn strike(&mut self, signals: &[i32], now: Instant) {
        self.recheck = None;
        self.under_stop = self.live.stop_asked();
        // Their descriptors may be what the stroke needs.
        self.watched.clear();
        let struck = self.range.strike(signals);
        self.watch(struck, now);
    }

    fn climb(&mut self, now: Instant) {
        match self.ladder {
            Ladder::Foot | Ladder::Top => {}
            Ladder::Polite(until) => {
                if self.is_empty(now) {
                    self.ladder = Ladder::Top;
                } else if now >= until {
                    self.force(now);
                    self.climb(now);
                }
            }
            Ladder::Forced(until) => {
                if self.is_empty(now) {
                    self.ladder = Ladder::Top;
                } else if now >= until {
                    let members = self.range.members();
                    self.watch(members, now);
                    self.ladder = Ladder::Top;
                }
            }
        }
    }

    // --- the range -------------------------------------------------------------------------------------------------

    fn leader_has_ended(&self) -> bool {
        !matches!(self.leader, Leader::Running)
    }

    /// Whether the leader and all others are gone. Looks at the process table only when everybody watched has ended, or it
    /// is time to look for those that cannot be watched.
    fn is_empty(&mut self, now: Instant) -> bool {
        let wait = match self.recheck {
            Some((at, _)) => now < at,
            None => !self.watched.is_empty(),
        };
        if wait || !self.leader_has_ended() {
            return false;
        }
        // Whoever is found on the last stretch was started by one that was dying, or takes its time to die; a second signal
        // does not hurt.
        let found = match self.ladder {
            Ladder::Forced(_) => self.range.strike(&[sys::SIGKILL]),
            Ladder::Foot | Ladder::Polite(_) | Ladder::Top => self.range.members(),
        };
        if let Err(Unseen::NoTable) = found {
            // The group is all there is. Whoever is left of it goes without a grace, once the streams say that nobody works
            // any more.
            let quiet = self.sources.is_empty() || !matches!(self.ladder, Ladder::Polite(_));
            if quiet && !matches!(self.ladder, Ladder::Foot) {
                self.range.kill_at_once();
            }
            return quiet;
        }
        self.watch(found, now);
        self.left == 0 && !self.unseen
    }

    /// Waits for the end of those found.
    fn watch(&mut self, found: Result<Members, Unseen>, now: Instant) {
        self.unseen = matches!(found, Err(Unseen::NotNow));
        let again = match found {
            Ok(members) => {
                self.left = members.count;
                self.leaving = members.leaving;
                self.watched = members.watched;
                members.unnamed || (self.watched.is_empty() && self.left > 0)
            }
            Err(_) => {
                self.watched.clear();
                self.unseen
            }
        };
        if again {
            self.look_again_later(now);
        } else {
            self.recheck = None;
        }
    }

    /// How many are left, as far as it is known: one at least where nobody could look.
    fn still_left(&self) -> usize {
        self.left.max(usize::from(self.unseen)) + usize::from(!self.leader_has_ended())
    }

    fn look_again_later(&mut self, now: Instant) {
        let pause = self.recheck.map_or(Duration::from_millis(5), |(_, pause)| (pause * 2).min(MAX_PAUSE));
        self.recheck = Some((now + pause, pause));
    }

    fn watch_leader(&mut self) {
        if self.range.leader().pidfd().is_none() {
            // Without a thread to spare either, the leader is looked at from time to time.
            self.watcher = self.range.leader().watch_from_a_thread(Arc::clone(&self.wake)).ok();
            self.blind = self.watcher.is_none();
        }
    }

    fn look_at_leader(&mut self) {
        if self.leader_has_ended() {
            return;
        }
        self.leader = match self.range.leader().look() {
            Ok(Waited::Running) => return,
            Ok(Waited::Ended(exit, usage)) => Leader::Ended(exit, usage),
            Ok(Waited::NotOurs) | Err(_) => Leader::Lost,
        };
        self.live.leader_ended();
        let waits = self.confiner.as_ref().is_some_and(|confiner| confiner.waits());
        if waits && matches!(self.leader, Leader::Ended(Exit::Signal(_), _)) {
            // Somebody has killed the runner, not the command; that is no survivor of a command that has ended.
            self.live.kill_survivors();
        }
    }

    // --- the end ---------------------------------------------------------------------------------------------------

    fn try_settle(&mut self, now: Instant) {
        if self.settled || matches!(self.ladder, Ladder::Polite(_) | Ladder::Forced(_)) {
            return;
        }
        // The top of the ladder without a leader's end: it cannot be ended.
        if !self.leader_has_ended() && !matches!(self.ladder, Ladder::Top) {
            return;
        }
        let drain = *self.drain.get_or_insert(Drain { since: now, quiet_since: now });
        if !self.sources.is_empty() {
            if self.drain_bound(drain).is_none_or(|bound| now < bound) {
                return;
            }
            self.read_what_is_there();
        }
        // Everybody found is watched from now on, so the next look is taken when they are gone.
        let empty =
            if matches!(self.ladder, Ladder::Foot) { self.is_empty(now) } else { self.still_left() == 0 };
        if self.is_undecided() && self.whole_bound(drain).is_none_or(|bound| now < bound) {
            // Who is left is a fact of the result: it is asked again, for as long as a held stream would be waited for.
            return;
        }
        let survivors = self.still_left();
        let stdin_truncated = self.feed.take().is_some() || self.stdin_refused;
        let (exit, usage) = match self.leader {
            Leader::Ended(exit, usage) => (Some(exit), usage),
            Leader::Running | Leader::Lost => (None, None),
        };
        if empty && self.sources.is_empty() {
            // Before the outcome is told: who has it finds no zombie.
            self.range.reap();
            self.gone = true;
        }
        self.settled = true;
        self.live.settle_ended(Ending {
            exit,
            status_lost: matches!(self.leader, Leader::Lost),
            usage,
            empty: self.gone,
            pipes_held: !self.sources.is_empty(),
            survivors,
            stdin_truncated,
            confiner: self.confiner.take(),
        });
    }

    /// Whether it is not known yet who is left: nobody could look, or only such were seen as are as good as gone.
    fn is_undecided(&self) -> bool {
        let all_leaving = self.left > 0 && self.leaving == self.left;
        self.unseen || (all_leaving && matches!(self.ladder, Ladder::Foot))
    }

    /// When held streams are given up: quiet for long enough, or the whole time is over. At once when all is to be stopped;
    /// `None` for never, where the terms are longer than the clock can express.
    fn drain_bound(&self, drain: Drain) -> Option<Instant> {
        if self.live.stop_asked() {
            return Some(drain.since);
        }
        let quiet = drain.quiet_since.checked_add(self.live.terms.drain_idle);
        [self.whole_bound(drain), quiet].into_iter().flatten().min()
    }

    fn whole_bound(&self, drain: Drain) -> Option<Instant> {
        drain.since.checked_add(self.live.terms.grace)
    }

    /// Whether there is nothing left to do.
    fn is_over(&mut self, now: Instant) -> bool {
        if self.gone || !self.settled {
            return self.gone;
        }
        match self.ladder {
            Ladder::Polite(_) | Ladder::Forced(_) => false,
            Ladder::Top if self.live.stop_asked() && self.under_stop => {
                self.live.unstopped.store(self.still_left(), std::sync::atomic::Ordering::SeqCst);
                true
            }
            Ladder::Top if self.still_left() == 0 => {
                self.sources.is_empty() || self.live.latch.get().is_some_and(Cause::is_cut)
            }
            Ladder::Top => {
                // Some could not be stopped. They are watched as survivors are, and tried again when all is to be stopped.
                self.given_up = true;
                self.ladder = Ladder::Foot;
                // An order that has come meanwhile is not waited for, it is there.
                self.take_orders(now);
                false
            }
            Ladder::Foot => self.sources.is_empty() && self.is_empty(now),
        }
    }

    fn let_go(mut self) {
        for source in self.sources.drain(..) {
            source.collector.finish(&self.live.output);
        }
        if self.leader_has_ended() {
            self.range.reap();
            if let Some(watcher) = self.watcher.take() {
                // The leader has ended, so its watcher is done.
                let _ = watcher.join();
            }
        }
    }

    // --- waiting and reading ---------------------------------------------------------------------------------------

    /// One wait for whatever comes first, and one step for each descriptor that is ready.
    fn wait_and_serve(&mut self, now: Instant) {
        self.poll.clear();
        let wake = self.poll.add(self.wake.as_fd(), Interest::Readable);
        let leader = match self.range.leader().pidfd() {
            Some(pidfd) if !self.leader_has_ended() => Some(self.poll.add(pidfd, Interest::Readable)),
            _ => None,
        };
        let feed = self.feed.as_ref().map(|feed| self.poll.add(feed.fd.as_fd(), Interest::Writable));
        let blind = (self.blind && !self.leader_has_ended()).then(|| now + BLIND_PAUSE);
        let mut due = [self.next_due(), blind].into_iter().flatten().min();
        let mut slots = [None; 2];
        let spare = self.spare();
        for (slot, source) in slots.iter_mut().zip(&mut self.sources) {
            match source.nap_until.take().filter(|&until| until > now) {
                Some(until) => due = Some(due.map_or(until, |due| due.min(until))),
                None if source.room(self.live, spare) == 0 => {}
                None => *slot = Some(self.poll.add(source.fd.as_fd(), Interest::Readable)),
            }
        }
        let first_watched = self.poll.len();
        for pidfd in &self.watched {
            self.poll.add(pidfd.as_fd(), Interest::Readable);
        }
        if self.poll.wait(due.map(|due| due.saturating_duration_since(now))).is_err() {
            // No memory, or more descriptors than the host's limit has become since: every descriptor is tried, which
            // none of them minds, and that not too often.
            std::thread::sleep(Duration::from_millis(1));
            self.poll.assume_ready();
        }
        if self.poll.ready(wake) {
            // Before the orders are looked at, so that one given from now on wakes again.
            self.wake.clear();
        }
        for index in (0..self.sources.len()).rev() {
            if slots[index].is_some_and(|slot| self.poll.ready(slot)) {
                self.read(index);
            }
        }
        if feed.is_some_and(|slot| self.poll.ready(slot)) {
            self.write();
        }
        if leader.is_none_or(|slot| self.poll.ready(slot)) {
            self.look_at_leader();
        }
        let mut slot = first_watched;
        let poll = &self.poll;
        self.watched.retain(|_| {
            slot += 1;
            !poll.ready(slot - 1)
        });
    }

    /// The next point in time at which something is to be done without a descriptor's help.
    fn next_due(&self) -> Option<Instant> {
        let ladder = match self.ladder {
            Ladder::Polite(until) | Ladder::Forced(until) => Some(until),
            Ladder::Foot | Ladder::Top => None,
        };
        let unsettled = self.drain.filter(|_| !self.settled && ladder.is_none());
        let drain = unsettled.and_then(|drain| {
            if self.is_undecided() { self.whole_bound(drain) } else { self.drain_bound(drain) }
        });
        // Only where the answer would change something: otherwise it is asked when it does.
        let matters =
            self.leader_has_ended() && (self.sources.is_empty() || ladder.is_some() || self.is_undecided());
        let recheck = self.recheck.map(|(at, _)| at).filter(|_| matters);
        [ladder, drain, recheck].into_iter().flatten().min()
    }

    /// What a relayed stream may exceed its limit by: once the leader has ended, what it left in the pipe, which is as much
    /// as a pipe holds. So an absent reader keeps nobody from settling, and loses nothing.
    fn spare(&self) -> u64 {
        if self.drain.is_some() && !self.settled { LARGE as u64 } else { 0 }
    }

    /// One read of one source. A source that has ended is taken away.
    fn read(&mut self, index: usize) {
        let spare = self.spare();
        let source = &mut self.sources[index];
        let size = source.buffer;
        if self.buffer.capacity() < size {
            // What was in it has been taken; a new one is cheaper than a grown copy.
            self.buffer = Vec::with_capacity(size);
        }
        let asked = source.room(self.live, spare).min(size);
        match sys::read_spare(source.fd.as_fd(), &mut self.buffer, asked) {
            Ok(0) if asked > 0 => self.end_source(index),
            Ok(got) => {
                source.collector.take(&self.live.output, self.dir, &self.buffer);
                let now = Instant::now();
                source.note_read(got, asked, now);
                if let Some(drain) = self.drain.as_mut().filter(|_| got > 0) {
                    drain.quiet_since = now;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A pipe gives no other error; if it did, the stream would be over.
            Err(_) => self.end_source(index),
        }
    }

    fn end_source(&mut self, index: usize) {
        let source = self.sources.remove(index);
        source.collector.finish(&self.live.output);
    }

    /// Takes what the pipes hold at this moment, as much as fits into one, so that giving up loses nothing written before.
    fn read_what_is_there(&mut self) {
        for index in (0..self.sources.len()).rev() {
            for _ in 0..LARGE / BUFFER {
                let before = self.sources.len();
                let total = self.live.output.total(self.sources[index].collector.channel());
                self.read(index);
                let ended = self.sources.len() < before;
                if ended || self.live.output.total(self.sources[index].collector.channel()) == total {
                    break;
                }
            }
        }
    }

    fn write(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        match sys::write_nonblocking(feed.fd.as_fd(), feed.rest()) {
            Ok(count) => feed.written += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // Nobody reads: the command does not want it, which is no failure.
            Err(_) => self.stdin_refused = true,
        }
        if feed.rest().is_empty() || self.stdin_refused {
            self.feed = None;
        }
    }
}

/// Further than anybody waits, where the clock cannot say the true point.
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// The longest pause between two looks at a range that cannot be watched.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// The pause between two looks at a leader whose end nothing tells of.
const BLIND_PAUSE: Duration = Duration::from_millis(20);
