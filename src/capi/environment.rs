//! The registry of managed variables, whose contributors are callbacks of C.

use super::boundary::*;
use super::error::shx_error;
use super::view::shx_view;
use crate::{
    EnvCall, EnvContributor, EnvDeclaration, EnvRegistration, EnvRegistry, EnvSnapshot, EnvVariable,
};
use std::error::Error;
use std::ffi::{OsString, c_void};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

/// Who fills the managed environment (`DSH_*`) of a host's commands. It can be used from any thread; no lock is held while
/// a contributor is called, so one may use the registry itself.
pub struct shx_env_registry(EnvRegistry);

/// A registry without contributors, of a host that keeps its state in `home` (`DSH_HOME`). Free it with
/// `shx_env_registry_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_registry_new(
    home: shx_view,
    registry: Option<&mut MaybeUninit<*mut shx_env_registry>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let out = given(registry, "registry")?;
        give(out, shx_env_registry(EnvRegistry::new(home.path("home")?)));
        Ok(())
    })
}

/// Frees a registry. Its contributors go as soon as their registrations are freed as well. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_registry_free(registry: Option<Box<shx_env_registry>>) {
    free(registry);
}

/// The execution that values are collected for. It exists while the callback runs; its views live as long.
pub struct shx_env_call(EnvCall);

/// The session (UTF-8) that it belongs to; empty outside of one.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_call_session(call: Option<&shx_env_call>) -> shx_view {
    shx_view::of(call.and_then(|call| call.0.session.as_deref()).unwrap_or_default())
}

/// Where it will run; empty if the host has not told.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_call_workdir(call: Option<&shx_env_call>) -> shx_view {
    super::read::path_view(call.and_then(|call| call.0.workdir.as_deref()))
}

/// The command; empty if the host has not told.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_call_command(call: Option<&shx_env_call>) -> shx_view {
    shx_view::of(call.and_then(|call| call.0.command.as_deref()).unwrap_or_default().as_encoded_bytes())
}

/// Where a contributor puts its values. It exists while the callback runs.
pub struct shx_env_values(Mutex<Values>);

#[derive(Default)]
struct Values {
    given: Vec<(String, OsString)>,
    failure: Option<String>,
}

/// Gives a variable that was declared (its name is UTF-8) its value for this execution. The names are checked when the
/// callback has returned.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_values_set(
    values: Option<&shx_env_values>,
    name: shx_view,
    value: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let entry = (name.text("name")?.to_owned(), value.os_string("value")?);
        let values = given(values, "values")?;
        values.0.lock().unwrap_or_else(PoisonError::into_inner).given.push(entry);
        Ok(())
    })
}

/// Makes the collection fail, with a reason (UTF-8) for a person.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_values_fail(
    values: Option<&shx_env_values>,
    reason: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let reason = reason.text("reason")?.to_owned();
        let values = given(values, "values")?;
        values.0.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(reason);
        Ok(())
    })
}

/// Gives the values for one execution by `shx_env_values_set`, or fails by `shx_env_values_fail`. Called on the thread that
/// collects, on several at once if several collect; it may block, and may call anything. Must return: neither `longjmp` nor
/// an exception may leave it.
pub type shx_env_collect_fn =
    Option<extern "C" fn(user: *mut c_void, call: Option<&shx_env_call>, values: Option<&shx_env_values>)>;

/// Frees what a callback was given as `user`. Called once, on whichever thread lets go of it last, when it will not be used
/// any more.
pub type shx_free_fn = Option<extern "C" fn(user: *mut c_void)>;

/// A part of the host that gives managed variables, built by setters and then registered. It can be registered again, in
/// another registry.
pub struct shx_env_contributor(Mutex<Declared>);

#[derive(Clone)]
struct Declared {
    name: String,
    variables: Vec<EnvVariable>,
    callback: Arc<Callback>,
}

struct Callback {
    collect: extern "C" fn(user: *mut c_void, call: Option<&shx_env_call>, values: Option<&shx_env_values>),
    user: *mut c_void,
    free_user: shx_free_fn,
}

// SAFETY: the pointer is only ever handed to the callbacks, which the header asks to bear any thread.
unsafe impl Send for Callback {}
// SAFETY: as above, and several threads at once.
unsafe impl Sync for Callback {}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some(free_user) = self.free_user {
            free_user(self.user);
        }
    }
}

impl EnvContributor for Declared {
    fn name(&self) -> &str {
        &self.name
    }

    fn variables(&self) -> Vec<EnvVariable> {
        self.variables.clone()
    }

    fn collect(&self, call: &EnvCall) -> Result<Vec<(String, OsString)>, Box<dyn Error + Send + Sync>> {
        let values = shx_env_values(Mutex::default());
        (self.callback.collect)(self.callback.user, Some(&shx_env_call(call.clone())), Some(&values));
        let values = values.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        match values.failure {
            None => Ok(values.given),
            Some(reason) => Err(reason.into()),
        }
    }
}

/// A contributor by its unique `name` (UTF-8), and its callback. `user` is passed to the callback, and then to `free_user`
/// (which may be null) when neither this object nor any registration of it is left; also when this call fails, unless its
/// status is `SHX_STATUS_PANIC`. Free it with `shx_env_contributor_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_contributor_new(
    name: shx_view,
    collect: shx_env_collect_fn,
    user: *mut c_void,
    free_user: shx_free_fn,
    contributor: Option<&mut MaybeUninit<*mut shx_env_contributor>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    extern "C" fn nothing(_: *mut c_void, _: Option<&shx_env_call>, _: Option<&shx_env_values>) {}
    boundary(error, || {
        // From here on the pointer is freed whatever comes.
        let callback = Arc::new(Callback { collect: collect.unwrap_or(nothing), user, free_user });
        given(collect, "collect")?;
        let out = given(contributor, "contributor")?;
        let declared = Declared { name: name.text("name")?.to_owned(), variables: Vec::new(), callback };
        give(out, shx_env_contributor(Mutex::new(declared)));
        Ok(())
    })
}

/// Declares a variable that it may give: `DSH_` and then `[A-Z][A-Z0-9_]*`, and what it tells (UTF-8, not blank). Both are
/// checked when it is registered.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_contributor_declare(
    contributor: Option<&shx_env_contributor>,
    name: shx_view,
    description: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let variable = EnvVariable::new(name.text("name")?, description.text("description")?);
        let contributor = given(contributor, "contributor")?;
        contributor.0.lock().unwrap_or_else(PoisonError::into_inner).variables.push(variable);
        Ok(())
    })
}

/// Frees a contributor. Its registrations stay. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_contributor_free(contributor: Option<Box<shx_env_contributor>>) {
    free(contributor);
}

/// Keeps a contributor registered.
pub struct shx_env_registration {
    _registration: EnvRegistration,
}

/// Takes a contributor in, as it is now, until `registration` is freed with `shx_env_registration_free`.
/// `SHX_STATUS_INVALID_REQUEST`, with a message that names the contributor and the variable, when its name or one of its
/// variables is not valid, or belongs to another.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_registry_register(
    registry: Option<&shx_env_registry>,
    contributor: Option<&shx_env_contributor>,
    registration: Option<&mut MaybeUninit<*mut shx_env_registration>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (registry, contributor) = (given(registry, "registry")?, given(contributor, "contributor")?);
        let out = given(registration, "registration")?;
        let declared = contributor.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        give(out, shx_env_registration { _registration: registry.0.register(Arc::new(declared))? });
        Ok(())
    })
}

/// Ends a registration: its name and its variables are free for another. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_registration_free(registration: Option<Box<shx_env_registration>>) {
    free(registration);
}

/// The managed environment of one execution: each variable once, by name. It never changes; its views live as long as it.
pub struct shx_env_snapshot {
    snapshot: EnvSnapshot,
    /// The same, to be found by number.
    entries: Vec<(String, OsString)>,
}

impl shx_env_snapshot {
    pub(super) fn snapshot(&self) -> &EnvSnapshot {
        &self.snapshot
    }
}

/// Collects the managed environment of one execution of `command` in `workdir`, for `session` (UTF-8): each may be empty,
/// and is then not told to the contributors. They are called one after the other on this thread. Free it with
/// `shx_env_snapshot_free`. `SHX_STATUS_MANAGED_ENV`, with a message that names the contributor, when one fails or gives
/// what it must not.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_registry_collect(
    registry: Option<&shx_env_registry>,
    session: shx_view,
    workdir: shx_view,
    command: shx_view,
    snapshot: Option<&mut MaybeUninit<*mut shx_env_snapshot>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (registry, out) = (given(registry, "registry")?, given(snapshot, "snapshot")?);
        let mut call = EnvCall::new();
        call.session = Some(session.text("session")?.to_owned()).filter(|session| !session.is_empty());
        call.workdir = Some(workdir.path("workdir")?).filter(|path| !path.as_os_str().is_empty());
        call.command = Some(command.os_string("command")?).filter(|command| !command.is_empty());
        let snapshot = registry.0.collect(&call)?;
        let entries = snapshot.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        give(out, shx_env_snapshot { snapshot, entries });
        Ok(())
    })
}

/// How many variables there are; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_snapshot_count(snapshot: Option<&shx_env_snapshot>) -> usize {
    snapshot.map_or(0, |snapshot| snapshot.entries.len())
}

/// Sets `name` and `value` (either may be null) to those of a variable, in the order of the names. `false`, and nothing set,
/// past the last.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_snapshot_at(
    snapshot: Option<&shx_env_snapshot>,
    index: usize,
    name: Option<&mut MaybeUninit<shx_view>>,
    value: Option<&mut MaybeUninit<shx_view>>,
) -> bool {
    let entry = snapshot.and_then(|snapshot| snapshot.entries.get(index));
    tell(name, entry.map(|(name, _)| shx_view::of(name)));
    tell(value, entry.map(|(_, value)| shx_view::of(value.as_encoded_bytes())))
}

/// Frees a snapshot. The requests it was added to keep its variables. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_snapshot_free(snapshot: Option<Box<shx_env_snapshot>>) {
    free(snapshot);
}

/// The variables that are declared in a registry. They never change; their views live as long as they.
pub struct shx_env_declarations(Vec<EnvDeclaration>);

/// All variables that are declared now, the built-in ones among them, by name. No contributor is called. Free it with
/// `shx_env_declarations_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_registry_list(
    registry: Option<&shx_env_registry>,
    declarations: Option<&mut MaybeUninit<*mut shx_env_declarations>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (registry, out) = (given(registry, "registry")?, given(declarations, "declarations")?);
        give(out, shx_env_declarations(registry.0.list()));
        Ok(())
    })
}

/// How many there are; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_declarations_count(declarations: Option<&shx_env_declarations>) -> usize {
    declarations.map_or(0, |declarations| declarations.0.len())
}

/// Sets what is known of a variable, each of which may be null: its name, what it tells, and the contributor it belongs to
/// (empty for one that is built in). `false`, and nothing set, past the last.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_declarations_at(
    declarations: Option<&shx_env_declarations>,
    index: usize,
    name: Option<&mut MaybeUninit<shx_view>>,
    description: Option<&mut MaybeUninit<shx_view>>,
    contributor: Option<&mut MaybeUninit<shx_view>>,
) -> bool {
    let entry = declarations.and_then(|declarations| declarations.0.get(index));
    tell(name, entry.map(|entry| shx_view::of(&entry.name)));
    tell(description, entry.map(|entry| shx_view::of(&entry.description)));
    tell(contributor, entry.map(|entry| shx_view::of(entry.contributor.as_deref().unwrap_or_default())))
}

/// Frees them. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_env_declarations_free(declarations: Option<Box<shx_env_declarations>>) {
    free(declarations);
}
