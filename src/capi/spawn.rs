//! Starting a process by its argv, without a shell.

use super::abort::shx_abort_token;
use super::boundary::*;
use super::error::{Failure, shx_error};
use super::execution::shx_execution;
use super::request::{on_expiry_of, shx_on_expiry};
use super::result::{shx_stream, stream_of};
use super::service::shx_service;
use super::view::shx_view;
use crate::{Disposition, Input, OutputStream, SpawnSpec};
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// An order to start one process, built by setters. It can be changed and used from any thread, and spawned again.
pub struct shx_spawn_spec(Mutex<SpawnSpec>);

fn change(
    spec: Option<&shx_spawn_spec>,
    error: ErrorOut<'_>,
    change: impl FnOnce(&mut SpawnSpec) -> Result<(), Failure>,
) -> shx_status {
    boundary(error, || change(&mut given(spec, "spec")?.0.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// An order to start a program in the absolute directory `cwd`: without arguments, with an empty environment, reading
/// `/dev/null`, with 64,000 bytes of each stream kept in memory and no file, a grace of 3 s, and without a deadline. The
/// first `shx_spawn_spec_add_arg` is the program. Free it with `shx_spawn_spec_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_new(
    cwd: shx_view,
    spec: Option<&mut MaybeUninit<*mut shx_spawn_spec>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let out = given(spec, "spec")?;
        let collect = Disposition::Collect { max_bytes: 64_000, spill_max_bytes: None };
        let grace = Duration::from_secs(3);
        let spec = SpawnSpec::new(Vec::new(), cwd.path("cwd")?, Vec::new(), collect, grace);
        give(out, shx_spawn_spec(Mutex::new(spec)));
        Ok(())
    })
}

/// Frees an order. What was started by it goes on. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_free(spec: Option<Box<shx_spawn_spec>>) {
    free(spec);
}

/// Adds a word to the argv. The first is a bare program name, looked up on the child's `PATH`, or an absolute path.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_add_arg(
    spec: Option<&shx_spawn_spec>,
    arg: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(spec, error, |spec| {
        spec.argv.push(arg.os_string("arg")?);
        Ok(())
    })
}

/// Adds a variable to the environment.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_add_env(
    spec: Option<&shx_spawn_spec>,
    name: shx_view,
    value: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(spec, error, |spec| {
        spec.env.push((name.os_string("name")?, value.os_string("value")?));
        Ok(())
    })
}

/// Adds all variables of this process's own environment, as it is now.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_inherit_env(
    spec: Option<&shx_spawn_spec>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(spec, error, |spec| {
        spec.env.extend(std::env::vars_os());
        Ok(())
    })
}

/// Gives the process these bytes to read, of any number, and then end of file.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_set_stdin(
    spec: Option<&shx_spawn_spec>,
    bytes: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(spec, error, |spec| {
        spec.stdin = Input::Bytes(bytes.bytes("bytes")?.to_vec());
        Ok(())
    })
}

/// Gives the process a pipe to read, whose other end the caller takes with `shx_execution_take_stdin`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_set_stdin_piped(
    spec: Option<&shx_spawn_spec>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(spec, error, |spec| {
        spec.stdin = Input::Pipe;
        Ok(())
    })
}

fn dispose(
    spec: Option<&shx_spawn_spec>,
    stream: shx_stream,
    error: ErrorOut<'_>,
    disposition: Disposition,
) -> shx_status {
    change(spec, error, |spec| {
        match stream_of(stream)? {
            OutputStream::Stdout => spec.stdout = disposition,
            OutputStream::Stderr => spec.stderr = disposition,
        }
        Ok(())
    })
}

/// Collects a stream: the last `max_bytes` in memory, and on overflow all of it in a private file of at most
/// `spill_max_bytes`, or in none for 0.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_collect(
    spec: Option<&shx_spawn_spec>,
    stream: shx_stream,
    max_bytes: usize,
    spill_max_bytes: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    let spill_max_bytes = (spill_max_bytes != 0).then_some(spill_max_bytes);
    dispose(spec, stream, error, Disposition::Collect { max_bytes, spill_max_bytes })
}

/// Keeps a stream in memory until a consuming read has taken it, `max_bytes` at most (and at least 16): then the process
/// waits for the reader.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_relay(
    spec: Option<&shx_spawn_spec>,
    stream: shx_stream,
    max_bytes: usize,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    dispose(spec, stream, error, Disposition::Relay { max_bytes })
}

/// Makes a stream a pipe, whose other end the caller takes with `shx_execution_take_stream`. Nothing is collected.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_pipe(
    spec: Option<&shx_spawn_spec>,
    stream: shx_stream,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    dispose(spec, stream, error, Disposition::Pipe)
}

/// Gives the process this process's own stream. Nothing is collected.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_inherit(
    spec: Option<&shx_spawn_spec>,
    stream: shx_stream,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    dispose(spec, stream, error, Disposition::Inherit)
}

/// From the polite signal to the forceful one, in milliseconds. 0 is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_set_grace_ms(
    spec: Option<&shx_spawn_spec>,
    ms: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(spec, error, |spec| {
        spec.grace = Duration::from_millis(ms);
        Ok(())
    })
}

/// How long a stream held open by a descendant must be quiet, after the leader's exit, to be given up, in milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_set_drain_idle_ms(
    spec: Option<&shx_spawn_spec>,
    ms: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(spec, error, |spec| {
        spec.drain_idle = Duration::from_millis(ms);
        Ok(())
    })
}

/// Sets a deadline, in milliseconds (not 0) from the spawn, what it does, and how long an offer stays open, in
/// milliseconds (without effect except under `SHX_ON_EXPIRY_OFFER`).
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_set_deadline(
    spec: Option<&shx_spawn_spec>,
    timeout_ms: u64,
    on_expiry: shx_on_expiry,
    answer_window_ms: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(spec, error, |spec| {
        spec.on_expiry = on_expiry_of(on_expiry)?;
        spec.timeout = Some(Duration::from_millis(timeout_ms));
        spec.answer_window = Duration::from_millis(answer_window_ms);
        Ok(())
    })
}

/// Cuts the process short when `token` is fired. Null: nothing does.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spawn_spec_set_abort(
    spec: Option<&shx_spawn_spec>,
    token: Option<&shx_abort_token>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    change(spec, error, |spec| {
        spec.abort = token.map(|token| token.0.clone());
        Ok(())
    })
}

/// Starts the process, and waits until it exists: a failure to start is an error, and there is no handle. Free the handle
/// with `shx_execution_free`; that stops nothing.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_spawn(
    service: Option<&shx_service>,
    spec: Option<&shx_spawn_spec>,
    execution: Option<&mut MaybeUninit<*mut shx_execution>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (service, spec) = (given(service, "service")?, given(spec, "spec")?);
        let out = given(execution, "execution")?;
        let spec = spec.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        give(out, shx_execution::of_process(service.0.spawn(spec)?));
        Ok(())
    })
}
