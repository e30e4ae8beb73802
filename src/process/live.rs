//! One execution as its threads share it: what decides, what is decided, and who is told.

use super::cause::{Cause, Latch};
use super::confiner::{Confiner, End};
use super::deadline::{Deadlines, Due, Ticket, Timed};
use super::exit;
use super::promotion::OfferBackend;
use super::range::Range;
use super::spec::{Disposition, OnExpiry, SpawnSpec};
use crate::abort::{OnAbort, Subscription};
use crate::error::Error;
use crate::output::{Output, OutputStream, collected, wait_on};
use crate::result::{ProcessStatus, ResourceUsage, RunResult};
use crate::sandbox::SandboxInfo;
use crate::sys::{Exit, Gate, ResourceUse, Wake};
use std::ffi::OsString;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The terms of one execution that outlive its start.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) timeout: Option<Duration>,
    pub(super) on_expiry: OnExpiry,
    pub(super) grace: Duration,
    pub(super) drain_idle: Duration,
    pub(super) answer_window: Duration,
    /// Whether a stream waits for its reader.
    relays: bool,
    scrubbed: Vec<OsString>,
}

/// One execution, from the call of `execute` for as long as anybody holds a handle.
///
/// Everything is decided by one of three compare-and-sets: the gate (does the command start?), the latch (what ended it?),
/// and the outcome, which is set once under `state`.
pub(crate) struct Live {
    pub(super) terms: Terms,
    pub(super) output: Output,
    pub(super) gate: Gate,
    pub(super) latch: Latch,
    pub(super) began: Instant,
    /// What remains of the range after the leader's exit is to be stopped.
    stop: AtomicBool,
    /// How many processes a stopped range kept all the same.
    pub(super) unstopped: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
    /// While a supervisor has a process: how to wake it, and what to kill when the host exits.
    control: Mutex<Option<Control>>,
    deadlines: Weak<Deadlines>,
    /// For handing this execution to the deadline thread.
    this: Weak<Live>,
}

#[derive(Debug, Clone)]
struct Control {
    wake: Arc<Wake>,
    range: Arc<Range>,
}

#[derive(Default)]
struct State {
    pid: Option<i32>,
    leader_ended: bool,
    /// Somebody is settling it: nobody else will, and nothing else can change it.
    settling: bool,
    outcome: Option<Settled>,
    /// It settled with nobody left and nothing held.
    empty: bool,
    /// The supervisor has let go of the range.
    over: bool,
    promotion: Promotion,
    /// The facts of a run that something is meant to confine.
    sandbox: Option<SandboxInfo>,
    subscription: Option<Subscription>,
    ticket: Option<Ticket>,
    pipes: Pipes,
}

struct Settled {
    status: ProcessStatus,
    outcome: Result<Arc<RunResult>, Error>,
}

/// The caller's ends of the streams that were asked for as pipes.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    pub(super) stdin: Option<File>,
    pub(super) stdout: Option<File>,
    pub(super) stderr: Option<File>,
}

/// Where the offer to keep a command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Promotion {
    /// There never will be one, or it is over.
    #[default]
    None,
    /// The deadline has not passed.
    Ahead,
    Open {
        taken: bool,
    },
    Accepted,
}

/// What the supervisor has seen when it settles.
#[derive(Default)]
pub(super) struct Ending {
    /// `None`: the leader cannot be ended, or its status was lost.
    pub(super) exit: Option<Exit>,
    pub(super) status_lost: bool,
    pub(super) usage: Option<ResourceUse>,
    /// Nobody is left, and no stream is held.
    pub(super) empty: bool,
    pub(super) pipes_held: bool,
    pub(super) survivors: usize,
    pub(super) stdin_truncated: bool,
    pub(super) confiner: Option<Box<dyn Confiner>>,
}

impl Live {
    pub(super) fn new(
        spec: &SpawnSpec,
        limits: (usize, usize),
        sandbox: Option<SandboxInfo>,
        deadlines: &Arc<Deadlines>,
    ) -> Arc<Live> {
        let state = State {
            sandbox,
            promotion: if spec.on_expiry == OnExpiry::Offer && spec.timeout.is_some() {
                Promotion::Ahead
            } else {
                Promotion::None
            },
            ..State::default()
        };
        Arc::new_cyclic(|this| Live {
            terms: Terms {
                timeout: spec.timeout,
                on_expiry: spec.on_expiry,
                grace: spec.grace,
                drain_idle: spec.drain_idle,
                answer_window: spec.answer_window,
                relays: [spec.stdout, spec.stderr]
                    .iter()
                    .any(|stream| matches!(stream, Disposition::Relay { .. })),
                scrubbed: spec.scrubbed.clone(),
            },
            output: Output::new(limits.0, limits.1),
            gate: Gate::default(),
            latch: Latch::new(),
            began: Instant::now(),
            stop: AtomicBool::new(false),
            unstopped: AtomicUsize::new(0),
            state: Mutex::new(state),
            changed: Condvar::new(),
            control: Mutex::new(None),
            deadlines: Arc::downgrade(deadlines),
            this: Weak::clone(this),
        })
    }

    // --- cutting short -------------------------------------------------------------------------------------------

    /// Cuts the execution short for `cause`, if nothing has ended it yet. `true` for the call that did.
    pub(super) fn cut(&self, cause: Cause) -> bool {
        let won = {
            let state = self.lock();
            !state.settling && self.latch.try_set(cause)
        };
        if won {
            self.carry_out(cause);
        }
        won
    }

    /// The winner's part. Either the command never starts, and this settles it; or it has started, and its supervisor is
    /// told to bring it down.
    fn carry_out(&self, cause: Cause) {
        if self.gate.cancel() {
            self.settle_unstarted(cause);
        }
        if self.pid().is_none() {
            // A start that hangs in the kernel is looked after once more: its child may not have existed just now.
            self.arm_after(self.terms.grace, Due::HungStart);
        }
        self.wake();
    }

    /// Disposal: cuts short what runs, and stops what a settled run has left. `false` when there is neither.
    pub(super) fn dispose(&self) -> bool {
        let nothing_left = {
            let state = self.lock();
            state.empty || state.over
        };
        self.cut(Cause::Disposal);
        self.stop.store(true, Ordering::SeqCst);
        if self.pid().is_none() {
            self.gate.kill();
        }
        self.wake();
        !nothing_left
    }

    /// Stops what the leader left behind. `false` when it runs still, or when nothing is left.
    pub(super) fn kill_survivors(&self) -> bool {
        {
            let state = self.lock();
            if !state.leader_ended || state.empty || state.over {
                return false;
            }
        }
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
        true
    }

    pub(super) fn stop_asked(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// The host is exiting: at once, on this thread, without waiting for anything.
    pub(super) fn kill_now(&self) {
        let never_starts = self.gate.cancel();
        self.gate.kill();
        if never_starts {
            return;
        }
        // A start that has passed the gate is published as soon as its `execve` has come back.
        let control = exit::patiently(|| {
            let control = exit::lock(&self.control)?.clone();
            let over = exit::lock(&self.state)?.over;
            (control.is_some() || over).then_some(control)
        });
        if let Some(control) = control.flatten() {
            control.range.kill_at_once();
        }
    }

    pub(super) fn wake(&self) {
        if let Some(control) = &*self.control() {
            control.wake.notify();
        }
    }

    /// A reader has made room in a stream that waits for it.
    pub(super) fn wake_relay(&self) {
        if self.terms.relays {
            self.wake();
        }
    }

    // --- the deadline and the offer ------------------------------------------------------------------------------

    /// Arms the deadline. Called once, before anything can settle.
    pub(super) fn arm_deadline(&self) -> std::io::Result<()> {
        let deadline = self.terms.timeout.filter(|_| self.terms.on_expiry != OnExpiry::None);
        // A deadline beyond what the clock can express never comes.
        let Some(at) = deadline.and_then(|timeout| self.began.checked_add(timeout)) else { return Ok(()) };
        let Some(deadlines) = self.deadlines.upgrade() else { return Ok(()) };
        let ticket = deadlines.arm(at, Due::Deadline, self.as_timed())?;
        self.lock().ticket = Some(ticket);
        Ok(())
    }

    fn arm_after(&self, time: Duration, what: Due) {
        let Some(at) = Instant::now().checked_add(time) else { return };
        if let Some(deadlines) = self.deadlines.upgrade() {
            // The thread runs already, since something was due; without it nothing could have been cut short by time.
            let _ = deadlines.arm(at, what, self.as_timed());
        }
    }

    fn as_timed(&self) -> Weak<dyn Timed> {
        let timed: Weak<Live> = Weak::clone(&self.this);
        timed
    }

    fn open_offer(&self) {
        let cut = {
            let mut state = self.lock();
            if state.promotion != Promotion::Ahead || state.settling || self.latch.get().is_some() {
                return;
            }
            if state.pid.is_some() {
                state.promotion = Promotion::Open { taken: false };
                false
            } else {
                // There is no process to keep.
                state.promotion = Promotion::None;
                self.latch.try_set(Cause::Timeout)
            }
        };
        self.changed.notify_all();
        if cut {
            self.carry_out(Cause::Timeout);
        } else {
            self.arm_after(self.terms.answer_window, Due::AnswerWindow);
        }
    }

    /// Blocks until the offer opens, for the first caller, or there will be none.
    pub(super) fn take_offer(&self) -> bool {
        let mut state = self.lock();
        loop {
            match state.promotion {
                Promotion::Open { taken: false } => {
                    state.promotion = Promotion::Open { taken: true };
                    return true;
                }
                Promotion::Ahead if state.outcome.is_none() => {}
                _ => return false,
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Listens to the caller's token, for as long as the execution has not settled.
    pub(super) fn subscribe(&self, subscription: Subscription) {
        let late = {
            let mut state = self.lock();
            if state.outcome.is_none() {
                state.subscription = Some(subscription);
                None
            } else {
                Some(subscription)
            }
        };
        drop(late);
    }

    // --- the supervisor's part -----------------------------------------------------------------------------------

    /// What confines it is known.
    pub(super) fn confined(&self, facts: SandboxInfo) {
        let mut state = self.lock();
        if !state.settling {
            state.sandbox = Some(facts);
        }
    }

    /// The process runs. `false` when the execution has settled without it: then it has to go.
    pub(super) fn publish(&self, wake: &Arc<Wake>, range: &Arc<Range>, pipes: Pipes) -> bool {
        *self.control() = Some(Control { wake: Arc::clone(wake), range: Arc::clone(range) });
        let mut state = self.lock();
        if state.settling {
            return false;
        }
        state.pid = Some(range.leader().pid());
        state.pipes = pipes;
        drop(state);
        self.changed.notify_all();
        true
    }

    /// The leader has ended, and from now on nothing else can be the cause.
    pub(super) fn leader_ended(&self) {
        self.latch.try_set(Cause::Exit);
        self.lock().leader_ended = true;
    }

    /// The supervisor lets go: no more output, no more process, nothing to signal.
    pub(super) fn over(&self) {
        *self.control() = None;
        for channel in [OutputStream::Stdout, OutputStream::Stderr] {
            self.output.end(channel);
        }
        let pipes = {
            let mut state = self.lock();
            state.over = true;
            state.leader_ended = true;
            // Nobody reads what would be written to it. What was written to the others can still be taken and read.
            state.pipes.stdin.take()
        };
        drop(pipes);
        self.changed.notify_all();
    }

    /// Nothing was started, and never will be, because of `error`. Without effect on an execution that has settled
    /// otherwise meanwhile.
    pub(super) fn fail(&self, error: Error) {
        self.fail_with(false, error);
    }

    fn fail_with(&self, started: bool, error: Error) {
        let facts = self.sandbox().map(|facts| SandboxInfo {
            runner_failed: matches!(error, Error::SandboxUnavailable { .. }),
            denied: false,
            ..facts
        });
        let note = format!("spawn failed: {error}\n");
        let settlement = Settled { status: ProcessStatus::Killed, outcome: Err(error) };
        self.settle(started, settlement, facts, Some(note));
    }

    fn settle_unstarted(&self, cause: Cause) {
        match cause {
            Cause::Abort => self.fail(Error::Aborted),
            Cause::Disposal => self.fail(Error::Disposed),
            Cause::Exit | Cause::Timeout | Cause::Kill => {
                let result = Arc::new(self.result(cause, Ending::default(), self.sandbox()));
                let settlement = Settled { status: ProcessStatus::Killed, outcome: Ok(result) };
                self.settle(false, settlement, None, None);
            }
        }
    }

    /// The process has ended as far as it ever will.
    pub(super) fn settle_ended(&self, mut ending: Ending) {
        let cause = self.latch.get().unwrap_or(Cause::Exit);
        self.lock().empty = ending.empty;
        let mut facts = self.sandbox();
        if let Some(mut confiner) = ending.confiner.take() {
            let kept = collected(&self.output, OutputStream::Stderr);
            let conclusion = confiner.conclude(&End { exit: ending.exit, cause, stderr: kept.bytes() });
            if let Some(failure) = conclusion.failure {
                return self.fail_with(true, failure);
            }
            ending.exit = conclusion.exit;
            ending.usage = ending.usage.filter(|_| conclusion.usage_is_the_commands);
            facts = Some(conclusion.facts);
        }
        let killed = cause.is_cut() || matches!(ending.exit, Some(Exit::Signal(_)));
        let status = if killed { ProcessStatus::Killed } else { ProcessStatus::Completed };
        let outcome = if ending.status_lost {
            Err(Error::StatusLost)
        } else {
            Ok(Arc::new(self.result(cause, ending, facts.clone())))
        };
        self.settle(true, Settled { status, outcome }, facts, None);
    }

    fn result(&self, cause: Cause, ending: Ending, sandbox: Option<SandboxInfo>) -> RunResult {
        let killed = cause.is_cut() || matches!(ending.exit, Some(Exit::Signal(_)));
        RunResult {
            exit_code: ending.exit.and_then(Exit::code),
            signal: ending.exit.and_then(Exit::signal),
            timed_out: cause == Cause::Timeout,
            aborted: cause == Cause::Abort,
            timeout: self.terms.timeout.filter(|_| self.terms.on_expiry != OnExpiry::None),
            stdout: collected(&self.output, OutputStream::Stdout),
            stderr: collected(&self.output, OutputStream::Stderr),
            sandbox,
            status: if killed { ProcessStatus::Killed } else { ProcessStatus::Completed },
            cause: Some(cause),
            duration: self.began.elapsed(),
            usage: ending.usage.map(|used| ResourceUsage {
                user: used.user,
                system: used.system,
                max_rss_upper_bound: used.max_rss_bytes,
            }),
            pipes_held: ending.pipes_held,
            survivors: ending.survivors,
            stdin_truncated: ending.stdin_truncated,
            containment: Range::containment(),
            scrubbed: self.terms.scrubbed.clone(),
        }
    }

    /// Fixes the outcome, for the first who tries.
    ///
    /// The readers of output are told first: whoever has seen the result finds the note, and the end, in what he reads.
    fn settle(&self, started: bool, settlement: Settled, facts: Option<SandboxInfo>, note: Option<String>) {
        {
            let mut state = self.lock();
            // A process that exists is its supervisor's to settle.
            if state.settling || (!started && state.pid.is_some()) {
                return;
            }
            state.settling = true;
            // Before the outcome: whoever has seen that finds these.
            if facts.is_some() {
                state.sandbox = facts;
            }
        }
        if !started {
            // A child that hangs on its way to the command goes before anybody is told, so that it cannot start any more;
            // and after the claim, so that its end is not taken for that of a process which had started.
            self.gate.kill();
        }
        self.output.settle(note);
        let (subscription, ticket) = {
            let mut state = self.lock();
            state.outcome = Some(settlement);
            if state.promotion != Promotion::Accepted {
                state.promotion = Promotion::None;
            }
            (state.subscription.take(), state.ticket.take())
        };
        self.changed.notify_all();
        drop(subscription);
        if let (Some(ticket), Some(deadlines)) = (ticket, self.deadlines.upgrade()) {
            deadlines.disarm(ticket);
        }
    }

    // --- reading -------------------------------------------------------------------------------------------------

    /// Blocks until the process exists or the execution has settled without one; then the error, if that is why.
    pub(super) fn wait_started(&self) -> Result<(), Error> {
        let mut state = self.lock();
        while state.pid.is_none() && state.outcome.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match (&state.pid, &state.outcome) {
            (None, Some(Settled { outcome: Err(error), .. })) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Blocks until the execution has settled, or the time is over.
    pub(super) fn wait(&self, until: Option<Instant>) -> Option<ProcessStatus> {
        self.wait_for(until, |state| state.outcome.as_ref().map(|settled| settled.status))
    }

    /// Blocks until the supervisor has let go of the range, or the time is over.
    pub(super) fn wait_over(&self, until: Option<Instant>) -> bool {
        self.wait_for(until, |state| state.over.then_some(())).is_some()
    }

    fn wait_for<T>(&self, until: Option<Instant>, look: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        loop {
            let found = look(&state);
            if found.is_some() {
                return found;
            }
            let timed_out;
            (state, timed_out) = wait_on(&self.changed, state, until);
            if timed_out {
                return look(&state);
            }
        }
    }

    pub(super) fn result_now(&self) -> Option<Result<Arc<RunResult>, Error>> {
        self.lock().outcome.as_ref().map(|settled| settled.outcome.clone())
    }

    pub(super) fn pid(&self) -> Option<i32> {
        self.lock().pid
    }

    pub(super) fn sandbox(&self) -> Option<SandboxInfo> {
        self.lock().sandbox.clone()
    }

    pub(super) fn scrubbed(&self) -> &[OsString] {
        &self.terms.scrubbed
    }

    pub(super) fn take_pipe(&self, which: impl FnOnce(&mut Pipes) -> &mut Option<File>) -> Option<File> {
        which(&mut self.lock().pipes).take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self) -> MutexGuard<'_, Option<Control>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timed for Live {
    fn due(&self, what: Due) {
        match what {
            Due::Deadline if self.terms.on_expiry == OnExpiry::Offer => self.open_offer(),
            Due::Deadline => {
                self.cut(Cause::Timeout);
            }
            Due::AnswerWindow => {
                self.decline();
            }
            Due::HungStart => {
                if self.pid().is_none() {
                    if let Some(cause) = self.latch.get().filter(|cause| cause.is_cut()) {
                        self.settle_unstarted(cause);
                    }
                    // Settled before, it may have had no child yet.
                    self.gate.kill();
                }
            }
        }
    }
}

impl OfferBackend for Live {
    /// Keeps the command, if it still runs and the offer is still open.
    fn accept(&self) -> bool {
        let subscription = {
            let mut state = self.lock();
            // An abort looks at the promotion under the same lock before it tries the latch: one of the two comes first.
            if !matches!(state.promotion, Promotion::Open { .. })
                || state.settling
                || self.latch.get().is_some()
            {
                return false;
            }
            state.promotion = Promotion::Accepted;
            state.subscription.take()
        };
        // Its drop takes the token's lock.
        drop(subscription);
        true
    }

    /// Ends an offer that is open: the deadline stands. `false` when it was not open, or the run had ended.
    fn decline(&self) -> bool {
        let cut = {
            let mut state = self.lock();
            if !matches!(state.promotion, Promotion::Open { .. }) {
                return false;
            }
            state.promotion = Promotion::None;
            !state.settling && self.latch.try_set(Cause::Timeout)
        };
        if cut {
            self.carry_out(Cause::Timeout);
        }
        cut
    }
}

impl OnAbort for Live {
    fn aborted(&self) {
        let cut = {
            let state = self.lock();
            // A promoted command has left the token behind.
            state.promotion != Promotion::Accepted && !state.settling && self.latch.try_set(Cause::Abort)
        };
        if cut {
            self.carry_out(Cause::Abort);
        }
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        let status = state.outcome.as_ref().map_or(ProcessStatus::Running, |settled| settled.status);
        f.debug_struct("Live").field("pid", &state.pid).field("status", &status).finish_non_exhaustive()
    }
}
