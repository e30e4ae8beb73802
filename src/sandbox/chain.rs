//! The chain of backends: each is tried once by really running something under it, and the first that works is used.

use super::probe;
use super::provider::{Confined, Rules, SandboxPlan, SandboxProvider, outermost};
use super::way::Way;
use super::{Enforcement, SandboxMode, SandboxPolicy};
use crate::error::{Error, reason};
use crate::process::Surroundings;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A way to confine commands that this library knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SandboxBackend {
    /// Namespaces and a Landlock domain, put round the command by the spawn itself (Linux 5.13 with Landlock, where this
    /// user may make namespaces). Full.
    Native,
    /// The installed bubblewrap (Linux). Full.
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

    /// How completely it enforces a mode where it works.
    #[must_use]
    pub fn enforcement(self) -> Enforcement {
        match self {
            SandboxBackend::Native | SandboxBackend::Bwrap => Enforcement::Full,
            SandboxBackend::Landlock | SandboxBackend::Seatbelt => Enforcement::Partial,
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
/// What works is found out when the first command is to be confined, by running a shell under each backend that may and may
/// not write; once, for all clones of a chain. So keep one chain for a service.
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

/// The backends that were tried, and the way that is used.
#[derive(Debug)]
struct Choice {
    way: Option<Way>,
    rungs: Vec<SandboxRung>,
}

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

    /// The directory that `workspace-write` opens besides the workspace. One that is missing is left out.
    ///
    /// By default it is also where a service keeps its private files, which a confined command of the same user can then
    /// change: spilled output, and commands of other runs that are too long for an argument. A host that cares sets
    /// [`ServiceConfig::spill_root`](crate::ServiceConfig::spill_root) to a directory outside of it.
    #[must_use]
    pub fn temp_dir(mut self, directory: impl Into<PathBuf>) -> SandboxChain {
        self.temp_dir = directory.into();
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
        Ok(self.choice(surroundings)?.rungs.clone())
    }

    /// Blocks while another thread tries.
    fn choice(&self, surroundings: &Surroundings<'_>) -> Result<Arc<Choice>, Error> {
        let mut state = self.lock();
        loop {
            match &*state {
                State::Tried(choice) => return Ok(Arc::clone(choice)),
                State::NotTried => break,
                State::BeingTried => {
                    state = self.found.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        *state = State::BeingTried;
        drop(state);
        // If this thread fails or panics, the next one that asks tries again.
        let trial = Trial(self);
        let choice = Arc::new(self.try_all(surroundings)?);
        *self.lock() = State::Tried(Arc::clone(&choice));
        drop(trial);
        Ok(choice)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.found.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error is of the moment: nothing is kept of it.
    fn try_all(&self, surroundings: &Surroundings<'_>) -> Result<Choice, Error> {
        let mut choice = Choice { way: None, rungs: Vec::with_capacity(self.backends.len()) };
        for &backend in &self.backends {
            let tried = self.try_one(backend, surroundings)?;
            let chosen = choice.way.is_none() && tried.is_ok();
            let (way, unavailable) = match tried {
                Ok(way) => (Some(way), None),
                // Where a backend is named beside it, it need not name itself.
                Err(reason) => {
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
    ) -> Result<Result<Way, String>, Error> {
        if self.require_full && backend.enforcement() == Enforcement::Partial {
            return Ok(Err("it enforces a mode only in part, and full enforcement is required".to_owned()));
        }
        let ways = match Way::of(backend) {
            Ok(ways) => ways,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut reasons = Vec::new();
        for way in ways {
            match probe::run(&way, self.scratch_max_bytes, surroundings)? {
                Ok(()) => return Ok(Ok(way)),
                Err(reason) => reasons.push(reason),
            }
        }
        reasons.dedup();
        Ok(Err(reasons.join("; ")))
    }

    fn rules(
        &self,
        policy: &SandboxPolicy,
        surroundings: &Surroundings<'_>,
        way: &Way,
    ) -> Result<Rules, Error> {
        let mut rules = Rules { mode: policy.mode, writable: Vec::new(), scratch: None };
        match policy.mode {
            SandboxMode::WorkspaceWrite => {
                let mut writable = vec![policy.workspace_root.clone()];
                match self.temp_dir.canonicalize() {
                    // A temp directory that is the whole system would open it.
                    Ok(temp) if temp.parent().is_some() => writable.push(temp),
                    Ok(_) | Err(_) => {}
                }
                rules.writable = outermost(writable);
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
        let choice = self.choice(plan.surroundings)?;
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
