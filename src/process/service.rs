//! The service: it owns every live range, the deadline thread and the spill directory, and takes all of them down.

use super::deadline::Deadlines;
use super::exit;
use super::launch::{Preparation, Surroundings, Trials, is_bare_name};
use super::live::Live;
use super::range::MARKER;
use super::spec::{Disposition, LEAST_RELAY, OnExpiry, SpawnSpec};
use super::subprocess::Subprocess;
use super::supervisor::{FORCED_WAIT, Job, LARGE, supervise};
use crate::environment;
use crate::error::{Error, SpawnError};
use crate::output::SpillDir;
use crate::result::RunResult;
use crate::sandbox::{SandboxChain, SandboxRung};
use crate::sys;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a service is set up with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// Under which directory the private directory for spill files is made, once a stream overflows. Default: the
    /// system's temp directory.
    pub spill_root: PathBuf,
    /// Whether spill files outlive the service. Default: no. Kept files lie in a directory `shell-executor.kept-…`, which
    /// nobody sweeps.
    pub keep_spill: bool,
}

impl Default for ServiceConfig {
    fn default() -> ServiceConfig {
        ServiceConfig { spill_root: std::env::temp_dir(), keep_spill: false }
    }
}

/// What a disposal has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Disposal {
    /// How many ranges were alive and had to be stopped.
    pub stopped: usize,
    /// How many processes could not be stopped: another user's, or stuck in the kernel.
    pub survivors: usize,
}

/// Runs processes and owns all that they start, until it is disposed of.
///
/// Clones are the same service; dropping the last one disposes of it. Making one costs nothing but a look for directories
/// that dead hosts have left under the spill root. At the host's `exit` every range still alive is killed at once.
///
/// ```
/// use shell_executor::{Disposition, SpawnSpec, SubprocessService};
/// use std::time::Duration;
///
/// let service = SubprocessService::new();
/// let collect = Disposition::Collect { max_bytes: 64_000, spill_max_bytes: None };
/// let argv = vec!["echo".into(), "no shell".into()];
/// let spec = SpawnSpec::new(argv, "/", std::env::vars_os().collect(), collect, Duration::from_secs(3));
/// let result = service.spawn(spec)?.result()?;
/// assert_eq!(result.stdout.text, "no shell\n");
/// # Ok::<(), shell_executor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SubprocessService {
    owner: Arc<Owner>,
}

/// The last reference to a service, whose drop disposes of it. The supervisors hold the core only.
#[derive(Debug)]
struct Owner {
    core: Arc<Core>,
}

/// For executors: they run their commands in a service, and have no part in its life.
#[derive(Debug, Clone)]
pub(crate) struct Entrance {
    core: Arc<Core>,
}

impl Entrance {
    pub(crate) fn launch(&self, spec: SpawnSpec, preparation: Option<Box<dyn Preparation>>) -> Subprocess {
        self.core.launch(spec, preparation)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.core.dispose();
    }
}

/// What the threads of a service share.
#[derive(Debug)]
pub(super) struct Core {
    dir: SpillDir,
    deadlines: Arc<Deadlines>,
    next: AtomicU64,
    /// The process that made the service. One that it forks has a copy without the threads, and no part in the ranges.
    process: i32,
    /// Unique to this service, in this process and among all others.
    identity: String,
    at_exit: Once,
    registry: Mutex<Registry>,
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Registry {
    live: HashMap<u64, Entry>,
    /// The thread that ended last, to be joined by the next that ends.
    ended: Option<JoinHandle<()>>,
    disposal: Stage,
}

#[derive(Debug)]
struct Entry {
    live: Arc<Live>,
    /// `None` between the registration and the start of the thread.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Stage {
    #[default]
    NotAsked,
    Going,
    Done(Disposal),
}

impl Default for SubprocessService {
    fn default() -> SubprocessService {
        SubprocessService::new()
    }
}

impl SubprocessService {
    /// A service with the default configuration.
    #[must_use]
    pub fn new() -> SubprocessService {
        SubprocessService::with_config(ServiceConfig::default())
    }

    /// A service with its own configuration.
    #[must_use]
    pub fn with_config(config: ServiceConfig) -> SubprocessService {
        let dir = SpillDir::new(config.spill_root, config.keep_spill);
        dir.sweep();
        let core = Core {
            dir,
            deadlines: Arc::default(),
            next: AtomicU64::new(0),
            process: sys::process_id(),
            identity: format!("{:x}-{:016x}", sys::process_id(), random()),
            at_exit: Once::new(),
            registry: Mutex::default(),
            emptied: Condvar::new(),
        };
        SubprocessService { owner: Arc::new(Owner { core: Arc::new(core) }) }
    }

    /// Starts a process by argv, and waits until it exists.
    ///
    /// # Errors
    ///
    /// When `spec` is invalid, the process could not be started, its token had fired, or the service has been disposed of.
    /// A deadline that passes before there is a process is not an error: the handle's result says `timed_out`.
    pub fn spawn(&self, spec: SpawnSpec) -> Result<Subprocess, Error> {
        let process = self.execute(spec);
        process.wait_started()?;
        Ok(process)
    }

    /// The same, returning at once: what [`spawn`](SubprocessService::spawn) would have given as an error is the handle's
    /// result.
    #[must_use]
    pub fn execute(&self, spec: SpawnSpec) -> Subprocess {
        self.owner.core.launch(spec, None)
    }

    /// A way into the service that does not keep it alive.
    pub(crate) fn entrance(&self) -> Entrance {
        Entrance { core: Arc::clone(&self.owner.core) }
    }

    /// What became of each backend of `chain` here. Those that have not been tried are tried now, in this service.
    ///
    /// # Errors
    ///
    /// When nothing was found out: the service has been disposed of, or has no descriptors or processes to spare.
    pub fn sandbox_rungs(&self, chain: &SandboxChain) -> Result<Vec<SandboxRung>, Error> {
        let (core, chain) = (Arc::clone(&self.owner.core), chain.clone());
        // On a thread of ours: the caller's may have hardly a stack.
        let thread = sys::spawn_thread("shx-trials", move || {
            chain.rungs(&Surroundings { dir: &core.dir, trials: &core })
        });
        let thread =
            thread.map_err(|error| SpawnError::resources("no thread to try sandboxes on", &error))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Stops every range by the ladder, waits until each is gone or given up, joins every thread, and removes the spill
    /// files. What is executed afterwards fails with [`Error::Disposed`].
    ///
    /// Blocks for as long as ranges end, and gives up those left when none has for the longest grace plus some seconds. A
    /// second call waits for the first and gives the same. In a
    /// process that the host has forked it does nothing: the ranges are the host's.
    pub fn dispose(&self) -> Disposal {
        self.owner.core.dispose()
    }

    /// From now on SIGINT, SIGTERM and SIGHUP dispose of the service, and the host then dies of that signal as it would
    /// have; one that the host ignores now stays ignored. Dropping the guard gives the signals back: to whoever else listens through the same signal registry, or to
    /// being ignored where nobody does.
    ///
    /// # Errors
    ///
    /// When the handlers or the thread that waits for them cannot be installed.
    pub fn dispose_on_signals(&self) -> std::io::Result<SignalGuard> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        // One that is ignored, as SIGHUP is below nohup, would not have ended the host.
        let ours: Vec<i32> =
            [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !sys::is_ignored(signal)).collect();
        let install = || signal_hook::iterator::Signals::new(ours);
        let mut signals = sys::above_standard_streams(install)??;
        let handle = signals.handle();
        let core = Arc::downgrade(&self.owner.core);
        let thread = sys::spawn_thread("shx-signals", move || {
            for signal in signals.forever() {
                if let Some(core) = core.upgrade() {
                    core.dispose();
                }
                // On failure the host goes on, as one whose services are disposed of.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        })?;
        Ok(SignalGuard { handle, thread: Some(thread) })
    }
}

/// Keeps [`SubprocessService::dispose_on_signals`] in force.
#[derive(Debug)]
pub struct SignalGuard {
    handle: signal_hook::iterator::Handle,
    thread: Option<JoinHandle<()>>,
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It only waits and disposes; a panic in it has nothing more to say.
            let _ = thread.join();
        }
    }
}

impl Core {
    fn launch(self: &Arc<Self>, spec: SpawnSpec, preparation: Option<Box<dyn Preparation>>) -> Subprocess {
        let limits = (limit(spec.stdout), limit(spec.stderr));
        let sandbox = preparation.as_ref().and_then(|preparation| preparation.sandbox());
        let live = Live::new(&spec, limits, sandbox, &self.deadlines);
        if let Err(error) = self.enter(&live, spec, preparation) {
            live.fail(error);
            live.over();
        }
        Subprocess::new(live)
    }

    fn enter(
        self: &Arc<Self>,
        live: &Arc<Live>,
        spec: SpawnSpec,
        preparation: Option<Box<dyn Preparation>>,
    ) -> Result<(), Error> {
        check(&spec)?;
        let abort = spec.abort.clone();
        if abort.as_ref().is_some_and(crate::AbortToken::is_fired) {
            return Err(Error::Aborted);
        }
        let id = self.register(live)?;
        let entered = self.start(id, live, spec, preparation);
        if entered.is_err() {
            self.deregister(id);
        }
        if let (Ok(()), Some(abort)) = (&entered, abort) {
            let weak = Arc::downgrade(live);
            match abort.subscribe(weak) {
                Some(subscription) => live.subscribe(subscription),
                None => crate::abort::OnAbort::aborted(&**live),
            }
        }
        entered
    }

    fn start(
        self: &Arc<Self>,
        id: u64,
        live: &Arc<Live>,
        spec: SpawnSpec,
        preparation: Option<Box<dyn Preparation>>,
    ) -> Result<(), Error> {
        let program = spec.argv.first().cloned().unwrap_or_default();
        let no =
            |what: &str, error| SpawnError::resources(&format!("cannot start {program:?}: {what}"), &error);
        live.arm_deadline().map_err(|error| no("no thread for its deadline", error))?;
        // Of one length, so that no range's mark is the beginning of another's.
        let marker_id = format!("{}-{id:016x}", self.identity);
        let outer = std::env::var(MARKER).map_or_else(|_| String::new(), |outer| outer + ":");
        let marker = (OsString::from(MARKER), format!("{outer}{marker_id}"));
        let job = Job { spec, preparation, marker, marker_id };
        self.at_exit.call_once(|| exit::register(self));
        // Asked after the registration: an exit that began before it has not seen this service.
        if exit::exiting() {
            return Err(Error::Disposed);
        }
        let (core, of_thread) = (Arc::clone(self), Arc::clone(live));
        let thread = sys::spawn_thread("shx-run", move || {
            let surroundings = Surroundings { dir: &core.dir, trials: &core };
            let supervised =
                std::panic::catch_unwind(AssertUnwindSafe(|| supervise(&of_thread, &surroundings, job)));
            if supervised.is_err() {
                // A defect of ours. Nothing may run on unseen, and nobody may wait for ever.
                of_thread.kill_now();
                of_thread.fail(Error::StatusLost);
                of_thread.over();
            }
            drop(of_thread);
            core.deregister(id);
        })
        .map_err(|error| no("no thread for its supervisor", error))?;
        let mut registry = self.lock();
        match registry.live.get_mut(&id) {
            Some(entry) => entry.thread = Some(thread),
            // It has ended already.
            None => {
                let before = registry.ended.replace(thread);
                drop(registry);
                join(before);
            }
        }
        Ok(())
    }

    fn register(&self, live: &Arc<Live>) -> Result<u64, Error> {
        let mut registry = self.lock();
        let ours = self.process == sys::process_id();
        if !matches!(registry.disposal, Stage::NotAsked) || exit::exiting() || !ours {
            return Err(Error::Disposed);
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        registry.live.insert(id, Entry { live: Arc::clone(live), thread: None });
        Ok(id)
    }

    /// The last thing a supervisor does. It leaves its own thread to the next, and joins the one that ended before it,
    /// which is on its last instructions: so at most one ended thread is ever unjoined.
    fn deregister(&self, id: u64) {
        let (entry, before) = {
            let mut registry = self.lock();
            let mut entry = registry.live.remove(&id);
            let thread = entry.as_mut().and_then(|entry| entry.thread.take());
            let before = thread.and_then(|thread| registry.ended.replace(thread));
            if registry.live.is_empty() {
                self.emptied.notify_all();
            }
            (entry, before)
        };
        drop(entry);
        join(before);
    }

    fn dispose(&self) -> Disposal {
        if self.process != sys::process_id() {
            return Disposal::default();
        }
        let ranges: Vec<Arc<Live>> = {
            let mut registry = self.lock();
            loop {
                match registry.disposal {
                    Stage::Done(disposal) => return disposal,
                    Stage::Going => {
                        registry = self.emptied.wait(registry).unwrap_or_else(PoisonError::into_inner);
                    }
                    Stage::NotAsked => break,
                }
            }
            registry.disposal = Stage::Going;
            registry.live.values().map(|entry| Arc::clone(&entry.live)).collect()
        };
        let stopped = ranges.iter().filter(|live| live.dispose()).count();
        let longest = ranges.iter().map(|live| live.terms.grace).max().unwrap_or_default();
        let (hung, ended) = self.wait_until_empty(longest.saturating_add(2 * FORCED_WAIT));
        join(ended);
        self.deadlines.stop();
        self.dir.dispose();
        let unstopped: usize = ranges.iter().map(|live| live.unstopped.load(Ordering::SeqCst)).sum();
        let disposal = Disposal { stopped, survivors: unstopped + hung };
        self.lock().disposal = Stage::Done(disposal);
        self.emptied.notify_all();
        disposal
    }

    /// Waits for the supervisors. Gives the number of those that did not come back, stuck in the kernel with their child,
    /// and the thread that ended last.
    ///
    /// The patience is for the next of them, not for all: a thousand on a busy machine take their time one by one, and
    /// stuck is who does not come while nobody else does either.
    fn wait_until_empty(&self, patience: Duration) -> (usize, Option<JoinHandle<()>>) {
        let mut registry = self.lock();
        let mut left = registry.live.len();
        let mut bound = Instant::now().checked_add(patience);
        while !registry.live.is_empty() {
            let timed_out;
            (registry, timed_out) = crate::output::wait_on(&self.emptied, registry, bound);
            if registry.live.len() < left {
                left = registry.live.len();
                bound = Instant::now().checked_add(patience);
            } else if timed_out {
                break;
            }
        }
        (registry.live.len(), registry.ended.take())
    }

    /// The host is exiting.
    pub(super) fn kill_all_now(&self) {
        if self.process != sys::process_id() {
            // A child that the host forked exits; the ranges are its parent's.
            return;
        }
        let Some(registry) = exit::lock(&self.registry) else { return };
        let ranges: Vec<Arc<Live>> = registry.live.values().map(|entry| Arc::clone(&entry.live)).collect();
        drop(registry);
        for live in ranges {
            live.kill_now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trials for Arc<Core> {
    fn run(&self, spec: SpawnSpec, preparation: Box<dyn Preparation>) -> Result<RunResult, Error> {
        self.launch(spec, Some(preparation)).result()
    }
}

fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread {
        // A supervisor's panic is caught and told where it happened.
        let _ = thread.join();
    }
}

/// Bits that no other service has, from the keys the standard library draws from the system for its hash tables.
fn random() -> u64 {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = KEYS.get_or_init(RandomState::new).build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    hasher.write_i32(sys::process_id());
    hasher.finish()
}

/// How many bytes of a stream are kept; 0 where it is not collected.
fn limit(disposition: Disposition) -> usize {
    match disposition {
        Disposition::Collect { max_bytes, .. } => max_bytes,
        // When a run is cut short while its reader is behind, what the pipe holds is taken all the same.
        Disposition::Relay { max_bytes } => max_bytes.saturating_add(LARGE),
        Disposition::Pipe | Disposition::Inherit => 0,
    }
}

/// R3, R4 and E9: what nothing can be run with.
fn check(spec: &SpawnSpec) -> Result<(), Error> {
    let program = spec.argv.first().ok_or_else(|| Error::invalid("argv", "is empty"))?;
    let path = std::path::Path::new(program);
    if program.is_empty() {
        return Err(Error::invalid("argv", "has an empty program name"));
    }
    if path.is_relative() && !is_bare_name(program) {
        return Err(Error::invalid("argv", format!("names the program by the relative path {program:?}")));
    }
    let has_nul = |text: &OsString| text.as_encoded_bytes().contains(&0);
    if spec.argv.iter().any(has_nul) {
        return Err(Error::invalid("argv", "contains a NUL byte"));
    }
    if has_nul(&spec.cwd.clone().into_os_string()) {
        return Err(Error::invalid("cwd", "contains a NUL byte"));
    }
    if spec.cwd.is_relative() {
        return Err(Error::invalid("cwd", format!("is the relative path {:?}", spec.cwd)));
    }
    for (name, value) in &spec.env {
        let checked = environment::check_name(name).and_then(|()| environment::check_value(value));
        checked.map_err(|reason| Error::invalid(format!("env {}", name.to_string_lossy()), reason))?;
    }
    if spec.timeout.is_some_and(|timeout| timeout.is_zero()) && spec.on_expiry != OnExpiry::None {
        return Err(Error::invalid("timeout", "is zero"));
    }
    for (field, disposition) in [("stdout", spec.stdout), ("stderr", spec.stderr)] {
        match disposition {
            Disposition::Collect { max_bytes: 0, .. } | Disposition::Relay { max_bytes: 0 } => {
                return Err(Error::invalid(format!("{field} max_bytes"), "is zero"));
            }
            Disposition::Relay { max_bytes } if max_bytes < LEAST_RELAY => {
                return Err(Error::invalid(format!("{field} max_bytes"), "is too small to relay a stream"));
            }
            Disposition::Collect { spill_max_bytes: Some(0), .. } => {
                return Err(Error::invalid(format!("{field} spill_max_bytes"), "is zero"));
            }
            Disposition::Collect { .. }
            | Disposition::Relay { .. }
            | Disposition::Pipe
            | Disposition::Inherit => {}
        }
    }
    Ok(())
}
