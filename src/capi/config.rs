//! The configuration of an executor, built by setters.

use super::boundary::*;
use super::error::shx_error;
use super::view::shx_view;
use crate::Config;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The defaults and caps of an executor. It can be changed and used from any thread; an executor takes a copy.
pub struct shx_config(Mutex<Config>);

impl shx_config {
    pub(super) fn lock(&self) -> MutexGuard<'_, Config> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A configuration with the defaults: `bash`, 120 s of time unless a request says otherwise and 600 s at most, 64,000 bytes
/// of each stream in memory, 64 MiB of it in a file, 3 s from the polite signal to the forceful one. Free it with
/// `shx_config_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_new() -> *mut shx_config {
    quietly(std::ptr::null_mut(), || into_raw(shx_config(Mutex::new(Config::default()))))
}

/// Frees a configuration. The executors made with it keep their copies. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_free(config: Option<Box<shx_config>>) {
    free(config);
}

fn change(config: Option<&shx_config>, error: ErrorOut<'_>, change: impl FnOnce(&mut Config)) -> shx_status {
    boundary(error, || {
        change(&mut given(config, "config")?.lock());
        Ok(())
    })
}

/// The shell: a name to look up on this process's `PATH`, or an absolute path. Default: `bash`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_shell(
    config: Option<&shx_config>,
    shell: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let shell = shell.path("shell")?;
        given(config, "config")?.lock().shell = shell;
        Ok(())
    })
}

/// Where commands run that do not say. Default: the host's current directory at the time of `shx_executor_resolve`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_workdir(
    config: Option<&shx_config>,
    workdir: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let workdir = workdir.path("workdir")?;
        given(config, "config")?.lock().workdir = Some(workdir);
        Ok(())
    })
}

/// How long a command may run that does not say, in milliseconds. Not 0. Default: 120,000.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_default_timeout_ms(
    config: Option<&shx_config>,
    ms: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(config, error, |config| config.default_timeout = Duration::from_millis(ms))
}

/// How long a command may run at most, in milliseconds; a longer request is clamped. Not 0. Default: 600,000.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_max_timeout_ms(
    config: Option<&shx_config>,
    ms: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(config, error, |config| config.max_timeout = Duration::from_millis(ms))
}

/// How many of each stream's last bytes are kept in memory. Not 0. Default: 64,000.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_output_max_bytes(
    config: Option<&shx_config>,
    bytes: usize,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(config, error, |config| config.output_max_bytes = bytes)
}

/// How large the spill file of one stream may become, in bytes. Not 0. Default: 64 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_spill_max_bytes(
    config: Option<&shx_config>,
    bytes: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(config, error, |config| config.spill_max_bytes = Some(bytes))
}

/// No spill files.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_no_spill(
    config: Option<&shx_config>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(config, error, |config| config.spill_max_bytes = None)
}

/// From the polite signal to the forceful one, in milliseconds. 0 is allowed. Default: 3,000.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_grace_ms(
    config: Option<&shx_config>,
    ms: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(config, error, |config| config.grace = Duration::from_millis(ms))
}

/// How long a stream held open by a descendant must be quiet, after the shell's exit, to be given up, in milliseconds.
/// Default: 250.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_drain_idle_ms(
    config: Option<&shx_config>,
    ms: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(config, error, |config| config.drain_idle = Duration::from_millis(ms))
}

/// How long an offer to keep a command stays open, in milliseconds. Default: 1,000.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_answer_window_ms(
    config: Option<&shx_config>,
    ms: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(config, error, |config| config.answer_window = Duration::from_millis(ms))
}

/// Adds a name to those that are kept from commands. Case does not matter. UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_add_scrub(
    config: Option<&shx_config>,
    name: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let name = name.text("name")?.to_owned();
        given(config, "config")?.lock().scrub.also.push(name);
        Ok(())
    })
}

/// Exempts a name from the scrub of what looks like a credential. Case does not matter. UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_add_scrub_exempt(
    config: Option<&shx_config>,
    name: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let name = name.text("name")?.to_owned();
        given(config, "config")?.lock().scrub.exempt.push(name);
        Ok(())
    })
}

/// Commands inherit nothing of this process's environment, only what `shx_config_add_inherited_env` adds.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_set_inherit_nothing(
    config: Option<&shx_config>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(config, error, |config| config.inherited_env = Some(Vec::new()))
}

/// Adds an entry to the environment that commands inherit, instead of this process's own.
#[unsafe(no_mangle)]
pub extern "C" fn shx_config_add_inherited_env(
    config: Option<&shx_config>,
    name: shx_view,
    value: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let entry = (name.os_string("name")?, value.os_string("value")?);
        given(config, "config")?.lock().inherited_env.get_or_insert_default().push(entry);
        Ok(())
    })
}
