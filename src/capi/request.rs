//! The request, built by setters.

use super::abort::shx_abort_token;
use super::boundary::*;
use super::environment::shx_env_snapshot;
use super::error::{Failure, shx_error};
use super::policy::shx_sandbox_policy;
use super::view::shx_view;
use crate::{EnvEntry, ExecRequest, OnExpiry, Stdin};
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the deadline does.
pub type shx_on_expiry = i32;

/// The command is stopped, and its result says `timed_out`.
pub const SHX_ON_EXPIRY_KILL: shx_on_expiry = 0;
/// The command goes on while an offer to keep it is open; see `shx_execution_promotion`.
pub const SHX_ON_EXPIRY_OFFER: shx_on_expiry = 1;
/// There is no deadline.
pub const SHX_ON_EXPIRY_NONE: shx_on_expiry = 2;

pub(super) fn on_expiry_of(number: shx_on_expiry) -> Result<OnExpiry, Failure> {
    match number {
        SHX_ON_EXPIRY_KILL => Ok(OnExpiry::Kill),
        SHX_ON_EXPIRY_OFFER => Ok(OnExpiry::Offer),
        SHX_ON_EXPIRY_NONE => Ok(OnExpiry::None),
        _ => Err(Failure::Argument("on_expiry", format!("is {number}, which is none").into())),
    }
}

pub(super) fn on_expiry_number(on_expiry: OnExpiry) -> shx_on_expiry {
    match on_expiry {
        OnExpiry::Kill => SHX_ON_EXPIRY_KILL,
        OnExpiry::Offer => SHX_ON_EXPIRY_OFFER,
        OnExpiry::None => SHX_ON_EXPIRY_NONE,
    }
}

/// A command, and whatever of its terms the caller wants to set. All but the command has a default. It can be changed and
/// used from any thread; resolving it takes a copy, so it can be resolved again.
pub struct shx_request(Mutex<ExecRequest>);

impl shx_request {
    pub(super) fn lock(&self) -> MutexGuard<'_, ExecRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn change(
    request: Option<&shx_request>,
    error: ErrorOut<'_>,
    change: impl FnOnce(&mut ExecRequest) -> Result<(), Failure>,
) -> shx_status {
    boundary(error, || change(&mut given(request, "request")?.lock()))
}

/// A request for `command`, in the shell's language. It may be empty, begin with `-`, and be longer than the system's limit
/// for one argument. Free it with `shx_request_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_new(
    command: shx_view,
    request: Option<&mut MaybeUninit<*mut shx_request>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let out = given(request, "request")?;
        give(out, shx_request(Mutex::new(ExecRequest::new(command.os_string("command")?))));
        Ok(())
    })
}

/// Frees a request. What was resolved from it stays. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_free(request: Option<Box<shx_request>>) {
    free(request);
}

/// Where it runs; a relative path is below the executor's own working directory.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_workdir(
    request: Option<&shx_request>,
    workdir: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.workdir = Some(workdir.path("workdir")?);
        Ok(())
    })
}

/// How long it may run, in milliseconds. Clamped to the executor's cap. 0 is refused when the request is resolved.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_timeout_ms(
    request: Option<&shx_request>,
    ms: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.timeout = Some(Duration::from_millis(ms));
        Ok(())
    })
}

/// How many of stdout's last bytes are kept in memory, for this one execution. 0 is refused when the request is resolved.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_stdout_max_bytes(
    request: Option<&shx_request>,
    bytes: usize,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.stdout_max_bytes = Some(bytes);
        Ok(())
    })
}

/// Cuts the command short when `token` is fired. Null: nothing does.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_abort(
    request: Option<&shx_request>,
    token: Option<&shx_abort_token>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.abort = token.map(|token| token.0.clone());
        Ok(())
    })
}

/// Gives the command these bytes to read, of any number, and then end of file. Without, it reads `/dev/null`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_stdin(
    request: Option<&shx_request>,
    bytes: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.stdin = Stdin::Bytes(bytes.bytes("bytes")?.to_vec());
        Ok(())
    })
}

/// Gives the command a pipe to read, whose other end the caller takes with `shx_execution_take_stdin`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_stdin_piped(
    request: Option<&shx_request>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.stdin = Stdin::Pipe;
        Ok(())
    })
}

/// Sets a variable of the command's environment. A later entry of a name comes after an earlier one.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_env(
    request: Option<&shx_request>,
    name: shx_view,
    value: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.env.push(EnvEntry::Set(name.os_string("name")?, value.os_string("value")?));
        Ok(())
    })
}

/// Takes a name away from the command's environment.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_remove_env(
    request: Option<&shx_request>,
    name: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.env.push(EnvEntry::Remove(name.os_string("name")?));
        Ok(())
    })
}

/// Adds a fact of the host's: `DSH_` and then `[A-Z][A-Z0-9_]*`. Another name is refused when the request is resolved.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_managed_env(
    request: Option<&shx_request>,
    name: shx_view,
    value: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.managed_env.push((name.os_string("name")?, value.os_string("value")?));
        Ok(())
    })
}

/// Adds all facts of a snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_add_managed_snapshot(
    request: Option<&shx_request>,
    snapshot: Option<&shx_env_snapshot>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        let pairs: Vec<_> = given(snapshot, "snapshot")?.snapshot().clone().into();
        request.managed_env.extend(pairs);
        Ok(())
    })
}

/// What the command may do to files; for executors that confine. Null: the executor's own policy.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_sandbox_policy(
    request: Option<&shx_request>,
    policy: Option<&shx_sandbox_policy>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.sandbox_policy = policy.map(|policy| policy.0.clone());
        Ok(())
    })
}

/// What the deadline does.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_on_expiry(
    request: Option<&shx_request>,
    on_expiry: shx_on_expiry,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.on_expiry = on_expiry_of(on_expiry)?;
        Ok(())
    })
}

/// Whether the command waits while its output is not read, instead of dropping the oldest of it. A caller that does not
/// read then stops the command.
#[unsafe(no_mangle)]
pub extern "C" fn shx_request_set_backpressure(
    request: Option<&shx_request>,
    backpressure: bool,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(request, error, |request| {
        request.backpressure = backpressure;
        Ok(())
    })
}
