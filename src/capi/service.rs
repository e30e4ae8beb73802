//! The service, which owns all that runs.

use super::boundary::*;
use super::error::shx_error;
use super::view::shx_view;
use crate::{ServiceConfig, SignalGuard, SubprocessService};
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

/// What a service is set up with. It can be changed and used from any thread; a service takes a copy.
pub struct shx_service_config(Mutex<ServiceConfig>);

/// A configuration with the defaults: spill files below the system's temp directory, which go with the service. Free it
/// with `shx_service_config_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_config_new() -> *mut shx_service_config {
    quietly(std::ptr::null_mut(), || into_raw(shx_service_config(Mutex::new(ServiceConfig::default()))))
}

/// Under which directory the private directory for spill files is made.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_config_set_spill_root(
    config: Option<&shx_service_config>,
    directory: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let directory = directory.path("directory")?;
        given(config, "config")?.0.lock().unwrap_or_else(PoisonError::into_inner).spill_root = directory;
        Ok(())
    })
}

/// Whether spill files outlive the service. Default: no.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_config_set_keep_spill(
    config: Option<&shx_service_config>,
    keep: bool,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        given(config, "config")?.0.lock().unwrap_or_else(PoisonError::into_inner).keep_spill = keep;
        Ok(())
    })
}

/// Frees a configuration. The services made with it keep their copies. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_config_free(config: Option<Box<shx_service_config>>) {
    free(config);
}

/// Runs processes and owns all that they start, until it is disposed of. Handles made by `shx_service_clone` are the same
/// service; executors and executions do not keep it alive.
pub struct shx_service(pub(super) SubprocessService);

/// A service. `config` may be null for the defaults. At this process's `exit`, every process that a service still runs is
/// killed. Free it with `shx_service_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_new(
    config: Option<&shx_service_config>,
    service: Option<&mut MaybeUninit<*mut shx_service>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let out = given(service, "service")?;
        let config = config.map(|config| config.0.lock().unwrap_or_else(PoisonError::into_inner).clone());
        give(out, shx_service(SubprocessService::with_config(config.unwrap_or_default())));
        Ok(())
    })
}

/// Another handle of the same service, to be freed by itself; null for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_clone(service: Option<&shx_service>) -> *mut shx_service {
    quietly(std::ptr::null_mut(), || {
        service.map_or(std::ptr::null_mut(), |service| into_raw(shx_service(service.0.clone())))
    })
}

/// Stops everything that the service runs, waits until it is gone or given up, joins every thread and removes the spill
/// files. What is executed afterwards fails with `SHX_STATUS_DISPOSED`. A second call waits for the first and gives the
/// same. In a process that has been forked off it does nothing.
///
/// `stopped` is set to how many commands were alive and had to be stopped, `survivors` to how many processes could not be.
/// Both may be null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_dispose(
    service: Option<&shx_service>,
    stopped: Option<&mut MaybeUninit<usize>>,
    survivors: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let disposal = given(service, "service")?.0.dispose();
        tell(stopped, Some(disposal.stopped));
        tell(survivors, Some(disposal.survivors));
        Ok(())
    })
}

/// Frees the handle. The last one of a service disposes of it, which blocks like `shx_service_dispose`. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_free(service: Option<Box<shx_service>>) {
    free(service);
}

/// Keeps `shx_service_dispose_on_signals` in force.
pub struct shx_signal_guard {
    _guard: SignalGuard,
}

/// From now on SIGINT, SIGTERM and SIGHUP dispose of the service, and this process then dies of that signal as it would
/// have; one that is ignored now stays ignored. The one function of this library that changes the dispositions of signals.
/// It lasts until `guard` is freed with `shx_signal_guard_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_dispose_on_signals(
    service: Option<&shx_service>,
    guard: Option<&mut MaybeUninit<*mut shx_signal_guard>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (service, out) = (given(service, "service")?, given(guard, "guard")?);
        give(out, shx_signal_guard { _guard: service.0.dispose_on_signals()? });
        Ok(())
    })
}

/// Gives the signals back. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_signal_guard_free(guard: Option<Box<shx_signal_guard>>) {
    free(guard);
}
