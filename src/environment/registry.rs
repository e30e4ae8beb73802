//! The registry of managed variables: who may give which, and what they give for one execution.

use super::check_value;
use super::contribution::{Contribution, refused};
use super::contributor::{EnvCall, EnvContributor};
use crate::error::Error;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

const SHELL: &str = "DSH_SHELL";
const HOME: &str = "DSH_HOME";
const SESSION: &str = "DSH_SESSION_ID";

/// What the registry gives by itself, and nobody else may declare.
const BUILT_IN: [(&str, &str); 3] = [
    (HOME, "The directory where the host keeps its state"),
    (SESSION, "The session that the command belongs to; absent outside of one"),
    (SHELL, "1: the command was started by the host's shell executor"),
];

/// Who fills the managed environment (`DSH_*`) of a host's commands.
///
/// A host makes one and gives clones of it to its parts; all clones are the same registry. Parts register
/// what they contribute. Before an execution the host [collects](EnvRegistry::collect) a snapshot and puts it
/// into the request. Safe for many threads. No lock is held while a contributor is called, so one may use the
/// registry itself.
///
/// ```
/// use shell_executor::{EnvCall, EnvContributor, EnvRegistry, EnvVariable, ExecRequest};
/// use std::error::Error;
/// use std::ffi::OsString;
/// use std::sync::Arc;
///
/// struct Git;
///
/// impl EnvContributor for Git {
///     fn name(&self) -> &str {
///         "git"
///     }
///     fn variables(&self) -> Vec<EnvVariable> {
///         vec![EnvVariable::new("DSH_BRANCH", "The branch that is checked out")]
///     }
///     fn collect(&self, _call: &EnvCall) -> Result<Vec<(String, OsString)>, Box<dyn Error + Send + Sync>> {
///         Ok(vec![("DSH_BRANCH".into(), "main".into())])
///     }
/// }
///
/// let registry = EnvRegistry::new("/home/me/.host");
/// let registration = registry.register(Arc::new(Git))?;
///
/// let snapshot = registry.collect(&EnvCall::new().session("s1"))?;
/// let names: Vec<_> = snapshot.iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["DSH_BRANCH", "DSH_HOME", "DSH_SESSION_ID", "DSH_SHELL"]);
/// let request = ExecRequest::new("git push").managed_snapshot(&snapshot);
///
/// drop(registration);
/// assert!(registry.collect(&EnvCall::new())?.get("DSH_BRANCH").is_none());
/// # Ok::<(), shell_executor::Error>(())
/// ```
#[derive(Clone)]
pub struct EnvRegistry {
    shared: Arc<Shared>,
}

struct Shared {
    home: PathBuf,
    /// In the order of registration.
    contributions: Mutex<Vec<Arc<Contribution>>>,
}

impl EnvRegistry {
    /// A registry without contributors, of a host that keeps its state in `home` (`DSH_HOME`). The directory
    /// is not looked at.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>) -> EnvRegistry {
        let shared = Shared { home: home.into(), contributions: Mutex::default() };
        EnvRegistry { shared: Arc::new(shared) }
    }

    /// Takes a contributor in, until the registration is dropped. Its name and its variables are asked for
    /// once, here. One that declares nothing is taken in too; it can then give nothing.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`], which names the contributor and the variable, when
    ///
    /// - the contributor's name is blank or taken, or asking for what it declares panics;
    /// - a variable's name is not `DSH_` and then `[A-Z][A-Z0-9_]*`, or its description is blank;
    /// - a variable is built in (`DSH_SHELL`, `DSH_HOME`, `DSH_SESSION_ID`), declared twice, or another
    ///   contributor's.
    ///
    /// Nothing is registered then.
    pub fn register(&self, contributor: Arc<dyn EnvContributor>) -> Result<EnvRegistration, Error> {
        let contribution = Arc::new(Contribution::of(contributor)?);
        self.admit(&contribution)?;
        Ok(EnvRegistration { registry: Arc::downgrade(&self.shared), contribution })
    }

    /// The managed environment of one execution: the built-in variables and what each contributor has a value
    /// for.
    ///
    /// Contributors are called one after the other on this thread. One that is unregistered meanwhile may
    /// still be called; one that is registered meanwhile is not. A contributor that collects must see to it
    /// that it does not collect itself for ever.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidRequest`] when the session or the home contains a NUL byte.
    /// - [`Error::ManagedEnv`] when a contributor fails or panics, gives a variable that it has not declared,
    ///   the same one twice, or a value with a NUL byte.
    ///
    /// Then there is no snapshot. Later and concurrent collections are not affected.
    pub fn collect(&self, call: &EnvCall) -> Result<EnvSnapshot, Error> {
        let mut values = BTreeMap::new();
        let mut give = |name: &str, field: &'static str, value: OsString| {
            check_value(&value).map_err(|reason| Error::invalid(field, reason))?;
            values.insert(name.to_owned(), value);
            Ok::<(), Error>(())
        };
        give(SHELL, "shell", "1".into())?;
        give(HOME, "home", self.shared.home.clone().into())?;
        if let Some(session) = &call.session {
            give(SESSION, "session", session.into())?;
        }
        // A copy, so that nothing is locked while they are called.
        let contributions = self.shared.lock().clone();
        for contribution in contributions {
            contribution.collect(call, &mut values)?;
        }
        Ok(EnvSnapshot { values })
    }

    /// All variables that are declared now, the built-in ones among them, by name. No contributor is called.
    #[must_use]
    pub fn list(&self) -> Vec<EnvDeclaration> {
        let built_in = BUILT_IN.iter().map(|(name, description)| EnvDeclaration {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            contributor: None,
        });
        let mut all: Vec<EnvDeclaration> = built_in.collect();
        for contribution in self.shared.lock().iter() {
            all.extend(contribution.variables.iter().map(|variable| EnvDeclaration {
                name: variable.name.clone(),
                description: variable.description.clone(),
                contributor: Some(contribution.name.clone()),
            }));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Adds a contribution if nothing in it belongs to another. Under one lock, so that of two that want the
    /// same variable one gets it.
    fn admit(&self, new: &Arc<Contribution>) -> Result<(), Error> {
        let mut contributions = self.shared.lock();
        if contributions.iter().any(|known| known.name == new.name) {
            return Err(refused(&new.name, "is already registered"));
        }
        for variable in &new.variables {
            if BUILT_IN.iter().any(|(name, _)| *name == variable.name) {
                return Err(refused(&new.name, format!("declares {}, which is built in", variable.name)));
            }
            if let Some(owner) = contributions.iter().find(|known| known.declares(&variable.name)) {
                let reason = format!("declares {}, which belongs to {:?}", variable.name, owner.name);
                return Err(refused(&new.name, reason));
            }
        }
        contributions.push(Arc::clone(new));
        Ok(())
    }
}

impl fmt::Debug for EnvRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.shared.lock().iter().map(|known| known.name.clone()).collect();
        f.debug_struct("EnvRegistry").field("home", &self.shared.home).field("contributors", &names).finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Contribution>>> {
        self.contributions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a contributor registered; dropping it ends the registration.
///
/// From then on the name and the variables are free for another. It may outlive the registry, and be dropped
/// on any thread, also by a contributor that is being called. Forgotten ([`std::mem::forget`]), it keeps the
/// contributor registered for as long as the registry exists.
#[must_use = "dropping it ends the registration"]
pub struct EnvRegistration {
    registry: Weak<Shared>,
    contribution: Arc<Contribution>,
}

impl Drop for EnvRegistration {
    fn drop(&mut self) {
        let Some(shared) = self.registry.upgrade() else { return };
        // What is taken out goes after the lock: a contributor may do anything when it is dropped. The last
        // reference is our own field's in any case, unless a collection has one.
        shared.lock().retain(|known| !Arc::ptr_eq(known, &self.contribution));
    }
}

impl fmt::Debug for EnvRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvRegistration")
            .field("contributor", &self.contribution.name)
            .finish_non_exhaustive()
    }
}

/// A variable as [`EnvRegistry::list`] shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvDeclaration {
    /// Its name.
    pub name: String,
    /// What it tells.
    pub description: String,
    /// The contributor it belongs to; `None` for one that is built in.
    pub contributor: Option<String>,
}

/// The managed environment of one execution: each variable once, by name. It never changes.
///
/// [`ExecRequest::managed_snapshot`](crate::ExecRequest::managed_snapshot) puts it into a request; it also
/// turns into the pairs that [`ExecRequest::managed_env`](crate::ExecRequest::managed_env) holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvSnapshot {
    values: BTreeMap<String, OsString>,
}

impl EnvSnapshot {
    /// The value of a variable; `None` when the snapshot does not have it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.values.get(name).map(OsString::as_os_str)
    }

    /// The variables with their values, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &OsStr)> + '_ {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_os_str()))
    }
}

impl From<EnvSnapshot> for Vec<(OsString, OsString)> {
    fn from(snapshot: EnvSnapshot) -> Vec<(OsString, OsString)> {
        snapshot.values.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }
}
