//! Errors: what went wrong, as an object that can be asked.

use super::boundary::*;
use super::view::shx_view;
use crate::{Error, SpawnStage};
use std::any::Any;
use std::borrow::Cow;
use std::io;

/// At which stage of starting a process it failed.
pub type shx_stage = i32;

/// Not a failure to start a process.
pub const SHX_STAGE_NONE: shx_stage = 0;
/// The working directory is missing, is no directory, or may not be entered.
pub const SHX_STAGE_WORKDIR: shx_stage = 1;
/// The shell was not found, or is not executable.
pub const SHX_STAGE_SHELL: shx_stage = 2;
/// The program was not found, is not executable, or its arguments are too long.
pub const SHX_STAGE_EXEC: shx_stage = 3;
/// Descriptors, processes, threads or memory ran out. The same call may work later.
pub const SHX_STAGE_RESOURCES: shx_stage = 4;

/// Why a call failed. It never changes.
pub struct shx_error {
    failure: Failure,
    message: String,
    path: Vec<u8>,
}

/// Whatever can go wrong in a call.
#[derive(Debug)]
pub(super) enum Failure {
    /// A parameter, by its name in the header, and what is wrong with it.
    Argument(&'static str, Cow<'static, str>),
    Library(Error),
    Os(io::Error),
    /// A defect, in the words of the panic.
    Panic(String),
}

impl Failure {
    pub(super) fn status(&self) -> shx_status {
        match self {
            Failure::Argument(..) => SHX_STATUS_INVALID_ARGUMENT,
            Failure::Os(_) => SHX_STATUS_OS,
            Failure::Panic(_) => SHX_STATUS_PANIC,
            Failure::Library(error) => match error {
                Error::InvalidRequest { .. } => SHX_STATUS_INVALID_REQUEST,
                Error::Spawn(_) => SHX_STATUS_SPAWN,
                Error::SandboxUnavailable { .. } => SHX_STATUS_SANDBOX_UNAVAILABLE,
                Error::NotApproved { .. } => SHX_STATUS_NOT_APPROVED,
                Error::Aborted => SHX_STATUS_ABORTED,
                Error::Disposed => SHX_STATUS_DISPOSED,
                Error::ManagedEnv { .. } => SHX_STATUS_MANAGED_ENV,
                Error::StatusLost => SHX_STATUS_STATUS_LOST,
            },
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Failure::Argument(..) => "INVALID_ARGUMENT",
            Failure::Library(error) => error.code(),
            Failure::Os(_) => "OS",
            Failure::Panic(_) => "PANIC",
        }
    }

    fn message(&self) -> String {
        match self {
            Failure::Argument(name, reason) => format!("{name} {reason}"),
            Failure::Library(error) => error.to_string(),
            Failure::Os(error) => error.to_string(),
            Failure::Panic(message) => format!("internal error: {message}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Library(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Os(error)
    }
}

impl From<Failure> for shx_error {
    fn from(failure: Failure) -> shx_error {
        let path = match &failure {
            Failure::Library(Error::Spawn(error)) => error.path(),
            _ => None,
        };
        let path = path.map(|path| path.as_os_str().as_encoded_bytes().to_vec()).unwrap_or_default();
        shx_error { message: failure.message(), path, failure }
    }
}

impl shx_error {
    /// The library's own error, if it is one of those.
    pub(super) fn library(&self) -> Option<&Error> {
        match &self.failure {
            Failure::Library(error) => Some(error),
            _ => None,
        }
    }
}

/// A panic's own words.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic").to_owned()
}

/// The status of the call that made the error; `SHX_STATUS_OK` for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_error_status(error: Option<&shx_error>) -> shx_status {
    error.map_or(SHX_STATUS_OK, |error| error.failure.status())
}

/// A stable name of the status, such as `SPAWN`; empty for null. Lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn shx_error_code(error: Option<&shx_error>) -> shx_view {
    shx_view::of(error.map_or("", |error| error.failure.code()))
}

/// What went wrong, to what, and why, for a person: lower case, UTF-8, without a full stop. Empty for null. Lives as long
/// as the error.
#[unsafe(no_mangle)]
pub extern "C" fn shx_error_message(error: Option<&shx_error>) -> shx_view {
    shx_view::of(error.map_or("", |error| &error.message))
}

/// The stage at which starting a process failed; `SHX_STAGE_NONE` for every other error and for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_error_stage(error: Option<&shx_error>) -> shx_stage {
    match error.and_then(shx_error::library) {
        Some(Error::Spawn(error)) => match error.stage() {
            SpawnStage::Workdir => SHX_STAGE_WORKDIR,
            SpawnStage::Shell => SHX_STAGE_SHELL,
            SpawnStage::Exec => SHX_STAGE_EXEC,
            SpawnStage::Resources => SHX_STAGE_RESOURCES,
        },
        _ => SHX_STAGE_NONE,
    }
}

/// The path that it failed over: the working directory, the shell or the program. Empty when there is none. Lives as long
/// as the error.
#[unsafe(no_mangle)]
pub extern "C" fn shx_error_path(error: Option<&shx_error>) -> shx_view {
    shx_view::of(error.map_or(&[][..], |error| &error.path))
}

/// The system's error number (`errno`), where the system said one; otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn shx_error_errno(error: Option<&shx_error>) -> i32 {
    let number = error.and_then(|error| match &error.failure {
        Failure::Library(Error::Spawn(error)) => error.raw_os_error(),
        Failure::Os(error) => error.raw_os_error(),
        _ => None,
    });
    number.unwrap_or(0)
}

/// What of the call is to blame: the parameter (`SHX_STATUS_INVALID_ARGUMENT`), the field of the request
/// (`SHX_STATUS_INVALID_REQUEST`; an entry of the environment as `env NAME`), or the contributor
/// (`SHX_STATUS_MANAGED_ENV`). Empty for every other error. Lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn shx_error_field(error: Option<&shx_error>) -> shx_view {
    shx_view::of(match error.map(|error| &error.failure) {
        Some(Failure::Argument(name, _)) => *name,
        Some(Failure::Library(Error::InvalidRequest { field, .. })) => field,
        Some(Failure::Library(Error::ManagedEnv { contributor, .. })) => contributor,
        _ => "",
    })
}

/// Frees an error. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_error_free(error: Option<Box<shx_error>>) {
    free(error);
}
