//! The boundary: nulls, panics and errors become a status.

use super::error::{Failure, shx_error};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call went. The numbers are fixed; new ones may be added.
pub type shx_status = i32;

/// It did what it says.
pub const SHX_STATUS_OK: shx_status = 0;
/// A parameter is null that must not be, a number that names nothing, a length that no memory has, or text that is not
/// UTF-8 where it has to be. Nothing was done.
pub const SHX_STATUS_INVALID_ARGUMENT: shx_status = 1;
/// A field of the request or of the configuration has a value that nothing can be run with. Nothing was spawned.
pub const SHX_STATUS_INVALID_REQUEST: shx_status = 2;
/// The process could not be started. See `shx_error_stage`.
pub const SHX_STATUS_SPAWN: shx_status = 3;
/// A confined mode was asked for, and nothing here can confine. The command was not run.
pub const SHX_STATUS_SANDBOX_UNAVAILABLE: shx_status = 4;
/// An escalation was not granted. Nothing was run.
pub const SHX_STATUS_NOT_APPROVED: shx_status = 5;
/// The abort token had fired before a process existed. Nothing was spawned.
pub const SHX_STATUS_ABORTED: shx_status = 6;
/// The service was disposed of, or is that of a process that has forked this one, or the host is exiting.
pub const SHX_STATUS_DISPOSED: shx_status = 7;
/// A contributor to the managed environment failed, or gave what it must not.
pub const SHX_STATUS_MANAGED_ENV: shx_status = 8;
/// The command has ended, and nobody can tell how.
pub const SHX_STATUS_STATUS_LOST: shx_status = 9;
/// A defect of this library, which was caught. The objects of the call can still be used and freed.
pub const SHX_STATUS_PANIC: shx_status = 10;
/// The system refused; see `shx_error_errno`.
pub const SHX_STATUS_OS: shx_status = 11;

/// Where a call reports why it failed, if its caller wants to know.
pub(super) type ErrorOut<'a> = Option<&'a mut MaybeUninit<*mut shx_error>>;

/// Runs the body of a function. `error`, if it is given, is set to null or to what went wrong.
pub(super) fn boundary(error: ErrorOut<'_>, body: impl FnOnce() -> Result<(), Failure>) -> shx_status {
    let mut body = Some(body);
    run(error, &mut || body.take().map_or(Ok(()), |body| body()))
}

/// Once for all functions, since it is most of what each of them would be.
#[inline(never)]
fn run(error: ErrorOut<'_>, body: &mut dyn FnMut() -> Result<(), Failure>) -> shx_status {
    // Whatever a panic leaves half changed is behind a lock that everybody here goes on using; see `Failure::Panic`.
    let outcome = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(Failure::Panic(super::error::message(&*panic))));
    let (status, made) = match outcome {
        Ok(()) => (SHX_STATUS_OK, std::ptr::null_mut()),
        Err(failure) => {
            let status = failure.status();
            (status, if error.is_some() { into_raw(shx_error::from(failure)) } else { std::ptr::null_mut() })
        }
    };
    if let Some(error) = error {
        error.write(made);
    }
    status
}

/// Runs the body of a function that has no status to give. A panic gives `otherwise`.
pub(super) fn quietly<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    let (mut given, mut body) = (otherwise, Some(body));
    caught(&mut || {
        if let Some(body) = body.take() {
            given = body();
        }
    });
    given
}

#[inline(never)]
fn caught(body: &mut dyn FnMut()) {
    // What there is to say of it was said by whoever panicked.
    let _ = catch_unwind(AssertUnwindSafe(body));
}

/// A parameter that must not be null.
pub(super) fn given<T>(parameter: Option<T>, name: &'static str) -> Result<T, Failure> {
    parameter.ok_or(Failure::Argument(name, "is null".into()))
}

/// Gives an object to C.
pub(super) fn give<T>(out: &mut MaybeUninit<*mut T>, object: T) {
    out.write(into_raw(object));
}

pub(super) fn into_raw<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Sets an output that may be null, and says whether there was something to set it to.
pub(super) fn tell<T>(out: Option<&mut MaybeUninit<T>>, value: Option<T>) -> bool {
    let is_there = value.is_some();
    if let (Some(out), Some(value)) = (out, value) {
        out.write(value);
    }
    is_there
}

/// Frees an object of C's, if there is one. A panic of a destructor goes no further.
pub(super) fn free<T>(object: Option<Box<T>>) {
    quietly((), || drop(object));
}
