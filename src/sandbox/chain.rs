//! The chain of backends: one after the other is tried, by really running something under it, until one works.

use super::policy::can_be_opened;
use super::probe::{self, Unfit};
use super::provider::{Confined, Rules, SandboxPlan, SandboxProvider, outermost};
use super::way::Way;
use super::{Enforcement, SandboxMode, SandboxPolicy};
use crate::error::{Error, reason};
use crate::process::Surroundings;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A way to confine commands that this library knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SandboxBackend {
    /// Namespaces and a Landlock domain, put round the command by the spawn itself (Linux 5.13 with Landlock, where this
    /// user may make namespaces). Full.
    Native,
    /// The installed bubblewrap (Linux). Full for ordinary users. Partial for root, who owns the devices that it leaves to the
    /// command, and can change their modes.
    Bwrap,
    /// A Landlock domain alone (Linux 5.13). Partial.
    Landlock,
    /// `sandbox-exec` with a generated profile (macOS). Reported as partial, because it has never been run on a Mac.
    Seatbelt,
}

impl SandboxBackend {
    /// All there are on this system, in the order in which they are tried.
    pub const ALL: &'static [SandboxBackend] = if cfg!(target_os = "linux") {
        &[SandboxBackend::Native, SandboxBackend::Bwrap, SandboxBackend::Landlock]
    } else if cfg!(target_os = "macos") {
        &[SandboxBackend::Seatbelt]
    } else {
        &[]
    };

    /// The name that JSON, the command line and messages use: `native`, `bwrap`, `landlock` or `seatbelt`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SandboxBackend::Native => "native",
            SandboxBackend::Bwrap => "bwrap",
            SandboxBackend::Landlock => "landlock",
            SandboxBackend::Seatbelt => "seatbelt",
        }
    }

    /// How completely it enforces a mode for this user where it works.
    #[must_use]
    pub fn enforcement(self) -> Enforcement {
        match self {
            SandboxBackend::Native => Enforcement::Full,
            SandboxBackend::Bwrap if Way::ungoverned(self).is_empty() => Enforcement::Full,
            SandboxBackend::Bwrap | SandboxBackend::Landlock | SandboxBackend::Seatbelt => {
                Enforcement::Partial
            }
        }
    }
}

impl std::str::FromStr for SandboxBackend {
    type Err = Error;

    fn from_str(text: &str) -> Result<SandboxBackend, Error> {
        let all = [
            SandboxBackend::Native,
            SandboxBackend::Bwrap,
            SandboxBackend::Landlock,
            SandboxBackend::Seatbelt,
        ];
        all.into_iter().find(|backend| backend.as_str() == text).ok_or_else(|| {
            Error::invalid("sandbox backend", format!("is {text:?}, not native, bwrap, landlock or seatbelt"))
        })
    }
}

/// What became of one backend of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxRung {
    /// The backend.
    pub backend: SandboxBackend,
    /// Whether it is the one that commands are confined by: the first that works.
    pub chosen: bool,
    /// Why it cannot be used; `None` where it works.
    pub unavailable: Option<String>,
    /// File effects it does not stop, in words; empty for one that stops all.
    pub ungoverned: Vec<&'static str>,
}

/// Confines commands by the first backend that works here.
///
/// What works is found out when the first command is to be confined, by running a shell under one backend after the other,
/// until one can write where it may and cannot where it may not; once, for all clones of a chain. So keep one chain for a
/// service. A backend whose trial told nothing, because it hung or was killed, is passed over and tried again a minute
/// later; a shortage of descriptors, processes or memory fails the command instead, and nothing is concluded from it.
///
/// ```
/// use shell_executor::{BashExecutor, Config, ExecRequest, SandboxChain, SandboxMode, SandboxPolicy, ShellExecutor,
///     SubprocessService};
/// use std::sync::Arc;
///
/// let service = SubprocessService::new();
/// let policy = SandboxPolicy::new(SandboxMode::ReadOnly, std::env::temp_dir());
/// let bash = BashExecutor::new(&service, Config::default())?.with_sandbox(Arc::new(SandboxChain::new()), policy)?;
/// let result = bash.run(bash.resolve(ExecRequest::new("echo x >/tmp/forbidden"))?);
/// // Refused by the sandbox, or, where nothing can confine, not run at all.
/// assert!(result.is_err() || result.is_ok_and(|result| result.exit_code != Some(0)));
/// # Ok::<(), shell_executor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SandboxChain {
    backends: Vec<SandboxBackend>,
    require_full: bool,
    scratch_max_bytes: u64,
    temp_dir: PathBuf,
    bwrap: Option<PathBuf>,
    found: Arc<Found>,
}

#[derive(Debug, Default)]
struct Found {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    NotTried,
    /// One thread tries; the others wait for it.
    BeingTried,
    Tried(Arc<Choice>),
}

/// The backends that were tried, in their order, and the way that is used.
#[derive(Debug, Clone, Default)]
struct Choice {
    way: Option<Way>,
    rungs: Vec<SandboxRung>,
    /// When it has to be made anew, because a backend has failed for a reason that may have passed by then.
    until: Option<Instant>,
}

/// How long a backend is passed over whose trial has told nothing.
const AGAIN: Duration = Duration::from_secs(60);

impl Default for SandboxChain {
    fn default() -> SandboxChain {
        SandboxChain::new()
    }
}

impl SandboxChain {
    /// All backends of this system, a scratch directory of 64 MiB, and the host's temp directory as it is now.
    #[must_use]
    pub fn new() -> SandboxChain {
        SandboxChain {
            backends: SandboxBackend::ALL.to_vec(),
            require_full: false,
            scratch_max_bytes: 64 * 1024 * 1024,
            temp_dir: std::env::temp_dir(),
            bwrap: None,
            found: Arc::default(),
        }
    }

    /// Tries only these backends, in this order.
    #[must_use]
    pub fn backends(mut self, backends: impl IntoIterator<Item = SandboxBackend>) -> SandboxChain {
        self.backends = backends.into_iter().collect();
        self.anew()
    }

    /// Whether a backend that stops only part of what a mode forbids is refused. Default: no; the facts say `partial`.
    #[must_use]
    pub fn require_full(mut self, require: bool) -> SandboxChain {
        self.require_full = require;
        self.anew()
    }

    /// How much the scratch directory of `read-only` holds, in bytes of memory, rounded up to whole pages; at least one. With
    /// `landlock` alone there is none, and no way to write a temporary file: a here-document larger than a pipe then arrives
    /// empty.
    #[must_use]
    pub fn scratch_max_bytes(mut self, bytes: u64) -> SandboxChain {
        // None at all is no limit to the kernel.
        self.scratch_max_bytes = bytes.max(4096);
        self.anew()
    }

    /// The directory that `workspace-write` opens besides the workspace, absolute. One that is missing is left out, and so is
    /// one that no workspace could be.
    ///
    /// By default it is also where a service keeps its private files: spilled output, and commands too long for an argument.
    /// `native` and `bwrap` keep them from the commands of that service. With `landlock` alone, and from other services of
    /// the same user, only a [`ServiceConfig::spill_root`](crate::ServiceConfig::spill_root) outside of the temp directory
    /// does.
    #[must_use]
    pub fn temp_dir(mut self, directory: impl Into<PathBuf>) -> SandboxChain {
        self.temp_dir = directory.into();
        self.anew()
    }

    /// Where bubblewrap stands, for a host that has its own. Default: where systems install it, never `PATH`. It should be
    /// where no confined command can write.
    #[must_use]
    pub fn bwrap(mut self, program: impl Into<PathBuf>) -> SandboxChain {
        self.bwrap = Some(program.into());
        self.anew()
    }

    /// Clones of what it was keep what they have found.
    fn anew(mut self) -> SandboxChain {
        self.found = Arc::default();
        self
    }

    /// What became of each backend, tried now if they have not been. The first that works is chosen; those after it are
    /// tried all the same.
    pub(crate) fn rungs(&self, surroundings: &Surroundings<'_>) -> Result<Vec<SandboxRung>, Error> {
        Ok(self.choice(surroundings, true)?.rungs.clone())
    }

    /// The backends up to the first that works, or all of them. Blocks while another thread tries.
    fn choice(&self, surroundings: &Surroundings<'_>, all: bool) -> Result<Arc<Choice>, Error> {
        let mut state = self.lock();
        let known = loop {
            match &*state {
                State::Tried(choice) if choice.until.is_some_and(|until| until <= Instant::now()) => {
                    break Choice::default();
                }
                State::Tried(choice) if all && choice.rungs.len() < self.backends.len() => {
                    break Choice::clone(choice);
                }
                State::Tried(choice) => return Ok(Arc::clone(choice)),
                State::NotTried => break Choice::default(),
                State::BeingTried => {
                    state = self.found.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        *state = State::BeingTried;
        drop(state);
        // If this thread fails or panics, the next one that asks tries again.
        let trial = Trial(self);
        let choice = Arc::new(self.go_on(known, surroundings, all)?);
        *self.lock() = State::Tried(Arc::clone(&choice));
        drop(trial);
        Ok(choice)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.found.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error is of the moment: nothing is kept of it.
    fn go_on(&self, mut choice: Choice, surroundings: &Surroundings<'_>, all: bool) -> Result<Choice, Error> {
        for &backend in &self.backends[choice.rungs.len()..] {
            if choice.way.is_some() && !all {
                break;
            }
            let tried = self.try_one(backend, surroundings)?;
            let chosen = choice.way.is_none() && tried.is_ok();
            let (way, unavailable) = match tried {
                Ok(way) => (Some(way), None),
                // Where a backend is named beside it, it need not name itself.
                Err(Unfit { reason, may_pass }) => {
                    // Passing over what comes after the choice changes nothing.
                    if may_pass && choice.way.is_none() {
                        choice.until = Instant::now().checked_add(AGAIN);
                    }
                    let named = format!("{}: ", backend.as_str());
                    (None, Some(reason.strip_prefix(&named).unwrap_or(&reason).to_owned()))
                }
            };
            if chosen {
                choice.way = way;
            }
            let ungoverned = Way::ungoverned(backend);
            choice.rungs.push(SandboxRung { backend, chosen, unavailable, ungoverned });
        }
        Ok(choice)
    }

    fn try_one(
        &self,
        backend: SandboxBackend,
        surroundings: &Surroundings<'_>,
    ) -> Result<Result<Way, Unfit>, Error> {
        if self.require_full && backend.enforcement() == Enforcement::Partial {
            let reason = "it enforces a mode only in part, and full enforcement is required";
            return Ok(Err(Unfit::lasting(reason)));
        }
        let ways = match Way::of(backend, self.bwrap.as_deref()) {
            Ok(ways) => ways,
            Err(reason) => return Ok(Err(Unfit::lasting(reason))),
        };
        let (mut reasons, mut may_pass) = (Vec::new(), false);
        for way in ways {
            match probe::run(&way, self.scratch_max_bytes, surroundings)? {
                Ok(()) => return Ok(Ok(way)),
                Err(unfit) => {
                    reasons.push(unfit.reason);
                    may_pass |= unfit.may_pass;
                }
            }
        }
        reasons.dedup();
        Ok(Err(Unfit { reason: reasons.join("; "), may_pass }))
    }

    fn rules(
        &self,
        policy: &SandboxPolicy,
        surroundings: &Surroundings<'_>,
        way: &Way,
    ) -> Result<Rules, Error> {
        let mut rules = Rules { mode: policy.mode, writable: Vec::new(), private: None, scratch: None };
        match policy.mode {
            SandboxMode::WorkspaceWrite => {
                let mut writable = vec![policy.workspace_root.clone()];
                if let Ok(temp) = self.temp_dir.canonicalize() {
                    // One that is relative, or the whole system, would open what nobody has asked for.
                    if self.temp_dir.is_absolute() && can_be_opened(&temp).is_ok() {
                        writable.push(temp);
                    }
                }
                rules.writable = outermost(writable);
                let private = surroundings.dir.path().map_err(|error| {
                    let what = "the service's own files cannot be kept from it";
                    rules.unavailable(format!("{what}: {}", reason(&error)))
                })?;
                let is_open = rules.writable.iter().any(|open| private.starts_with(open));
                rules.private = Some(private).filter(|_| is_open);
            }
            SandboxMode::ReadOnly if way.has_scratch() => {
                let place = surroundings.dir.mount_point().map_err(|error| {
                    rules.unavailable(format!("no place for a scratch directory: {}", reason(&error)))
                })?;
                rules.scratch = Some((place, self.scratch_max_bytes));
            }
            SandboxMode::ReadOnly | SandboxMode::DangerFullAccess => {}
        }
        Ok(rules)
    }
}

impl SandboxProvider for SandboxChain {
    fn confine(&self, policy: &SandboxPolicy, plan: &mut SandboxPlan<'_>) -> Result<Confined, Error> {
        let choice = self.choice(plan.surroundings, false)?;
        let Some(way) = &choice.way else {
            let reasons = choice.rungs.iter().map(|rung| {
                format!("{}: {}", rung.backend.as_str(), rung.unavailable.as_deref().unwrap_or("not tried"))
            });
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            let reason =
                if reasons.is_empty() { "there is no backend for this system".to_owned() } else { reasons };
            return Err(Error::SandboxUnavailable { mode: policy.mode, reason });
        };
        let rules = self.rules(policy, plan.surroundings, way)?;
        way.confine(&rules, plan)
    }
}

/// A trial that is going on. Dropped without an outcome, it leaves the chain as if nobody had tried.
struct Trial<'a>(&'a SandboxChain);

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(*state, State::BeingTried) {
            *state = State::NotTried;
        }
        drop(state);
        self.0.found.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_has_one_name() {
        for &backend in SandboxBackend::ALL {
            assert_eq!(backend.as_str().parse(), Ok(backend));
        }
        let refused = "chroot".parse::<SandboxBackend>().unwrap_err().to_string();
        assert!(refused.contains("chroot") && refused.contains("bwrap"), "{refused}");
    }
}
