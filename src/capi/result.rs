//! The outcome of an execution: every fact by itself.

use super::boundary::*;
use super::error::Failure;
use super::policy::{number_of, shx_sandbox_mode};
use super::provider::{enforcement_number, shx_enforcement};
use super::read::path_view;
use super::spec::ms;
use super::view::shx_view;
use crate::{
    Cause, CollectedOutput, Containment, OutputStream, ProcessStatus, ResourceUsage, RunResult, SandboxInfo,
};
use std::mem::MaybeUninit;
use std::time::Duration;

/// One of the two streams of a command.
pub type shx_stream = i32;

/// Standard output.
pub const SHX_STREAM_STDOUT: shx_stream = 1;
/// Standard error.
pub const SHX_STREAM_STDERR: shx_stream = 2;

pub(super) fn stream_of(number: shx_stream) -> Result<OutputStream, Failure> {
    match number {
        SHX_STREAM_STDOUT => Ok(OutputStream::Stdout),
        SHX_STREAM_STDERR => Ok(OutputStream::Stderr),
        _ => Err(Failure::Argument("stream", format!("is {number}, which is none").into())),
    }
}

/// Where an execution stands.
pub type shx_process_status = i32;

/// Not settled yet.
pub const SHX_PROCESS_STATUS_RUNNING: shx_process_status = 0;
/// The leader exited by itself.
pub const SHX_PROCESS_STATUS_COMPLETED: shx_process_status = 1;
/// Cut short, or the leader died of a signal, or it never started.
pub const SHX_PROCESS_STATUS_KILLED: shx_process_status = 2;

pub(super) fn status_number(status: ProcessStatus) -> shx_process_status {
    match status {
        ProcessStatus::Running => SHX_PROCESS_STATUS_RUNNING,
        ProcessStatus::Completed => SHX_PROCESS_STATUS_COMPLETED,
        ProcessStatus::Killed => SHX_PROCESS_STATUS_KILLED,
    }
}

/// What ended an execution, or cut it short: the first of them.
pub type shx_cause = i32;

/// None yet.
pub const SHX_CAUSE_NONE: shx_cause = 0;
/// The leader ended by itself, by exiting or by a signal that this library did not send.
pub const SHX_CAUSE_EXIT: shx_cause = 1;
/// The deadline passed, or an offer to keep the command was declined or not answered.
pub const SHX_CAUSE_TIMEOUT: shx_cause = 2;
/// The abort token was fired.
pub const SHX_CAUSE_ABORT: shx_cause = 3;
/// `shx_execution_kill` was called.
pub const SHX_CAUSE_KILL: shx_cause = 4;
/// The service was disposed of.
pub const SHX_CAUSE_DISPOSAL: shx_cause = 5;

/// By which means what a command starts is held together.
pub type shx_containment = i32;

/// The leader's process group only.
pub const SHX_CONTAINMENT_PROCESS_GROUP: shx_containment = 0;
/// The leader's session, its descendants, and whoever carries the range's marker in the environment (Linux).
pub const SHX_CONTAINMENT_SESSION: shx_containment = 1;

pub(super) fn containment_number(containment: Containment) -> shx_containment {
    match containment {
        Containment::ProcessGroup => SHX_CONTAINMENT_PROCESS_GROUP,
        Containment::Session => SHX_CONTAINMENT_SESSION,
    }
}

/// The sandbox facts of one run. They never change; their views live as long as they.
pub struct shx_sandbox_info(pub(super) SandboxInfo);

/// The mode that the command ran under; `SHX_SANDBOX_MODE_NONE` for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_info_mode(info: Option<&shx_sandbox_info>) -> shx_sandbox_mode {
    number_of(info.map(|info| info.0.mode))
}

/// Whether the sandbox is known to have denied an operation on a file.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_info_denied(info: Option<&shx_sandbox_info>) -> bool {
    info.is_some_and(|info| info.0.denied)
}

/// How completely the mode is enforced.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_info_enforcement(info: Option<&shx_sandbox_info>) -> shx_enforcement {
    enforcement_number(info.and_then(|info| info.0.enforcement))
}

/// Whether the sandbox failed before the command could run.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_info_runner_failed(info: Option<&shx_sandbox_info>) -> bool {
    info.is_some_and(|info| info.0.runner_failed)
}

/// The backend that confines the command; empty without confinement, and as long as none has been chosen.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_info_backend(info: Option<&shx_sandbox_info>) -> shx_view {
    shx_view::of(info.and_then(|info| info.0.backend.as_deref()).unwrap_or_default())
}

/// Frees facts that `shx_execution_sandbox` has given; those of a result belong to the result. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_info_free(info: Option<Box<shx_sandbox_info>>) {
    free(info);
}

/// The outcome of one execution. It never changes; its views live as long as it.
pub struct shx_result {
    pub(super) result: RunResult,
    signal_name: String,
    sandbox: Option<shx_sandbox_info>,
}

impl shx_result {
    pub(super) fn of(result: RunResult) -> shx_result {
        let signal_name = result.signal_name().unwrap_or_default();
        let sandbox = result.sandbox.clone().map(shx_sandbox_info);
        shx_result { result, signal_name, sandbox }
    }
}

fn fact<T: Copy>(result: Option<&shx_result>, otherwise: T, of: impl FnOnce(&RunResult) -> T) -> T {
    result.map_or(otherwise, |result| of(&result.result))
}

/// Sets `code` (may be null) to the exit code. `false`, and nothing set, when a signal ended the leader, or it never
/// started.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_exit_code(
    result: Option<&shx_result>,
    code: Option<&mut MaybeUninit<i32>>,
) -> bool {
    tell(code, fact(result, None, |result| result.exit_code))
}

/// Sets `signal` (may be null) to the number of the signal that ended the leader. `false`, and nothing set, when none did.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_signal(
    result: Option<&shx_result>,
    signal: Option<&mut MaybeUninit<i32>>,
) -> bool {
    tell(signal, fact(result, None, |result| result.signal))
}

/// The signal's name, such as `SIGTERM`; empty without one.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_signal_name(result: Option<&shx_result>) -> shx_view {
    shx_view::of(result.map_or("", |result| &result.signal_name))
}

/// Whether the command ended by itself with exit code 0.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_success(result: Option<&shx_result>) -> bool {
    fact(result, false, RunResult::success)
}

/// Whether the deadline was the first cause to cut the command short.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_timed_out(result: Option<&shx_result>) -> bool {
    fact(result, false, |result| result.timed_out)
}

/// Whether the abort token was the first cause to cut the command short.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_aborted(result: Option<&shx_result>) -> bool {
    fact(result, false, |result| result.aborted)
}

/// Sets `milliseconds` (may be null) to the effective timeout. `false`, and nothing set, for a run without a deadline.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_timeout_ms(
    result: Option<&shx_result>,
    milliseconds: Option<&mut MaybeUninit<u64>>,
) -> bool {
    tell(milliseconds, fact(result, None, |result| result.timeout).map(ms))
}

fn stream(result: Option<&shx_result>, number: shx_stream) -> Option<&CollectedOutput> {
    let result = &result?.result;
    match number {
        SHX_STREAM_STDOUT => Some(&result.stdout),
        SHX_STREAM_STDERR => Some(&result.stderr),
        _ => None,
    }
}

/// The kept end of a stream as text (UTF-8). Empty for null and for a number that is no stream.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_text(result: Option<&shx_result>, number: shx_stream) -> shx_view {
    shx_view::of(stream(result, number).map_or("", |output| &output.text))
}

/// The kept end of a stream, exactly as it was written.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_bytes(result: Option<&shx_result>, number: shx_stream) -> shx_view {
    shx_view::of(stream(result, number).map_or(&[][..], CollectedOutput::bytes))
}

/// Whether bytes were dropped from the beginning of the stream.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_truncated(result: Option<&shx_result>, number: shx_stream) -> bool {
    stream(result, number).is_some_and(|output| output.truncated)
}

/// How many bytes the stream ever carried.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_total_bytes(result: Option<&shx_result>, number: shx_stream) -> u64 {
    stream(result, number).map_or(0, |output| output.total_bytes)
}

/// The file that holds the complete stream; empty without one. It lives until the service is disposed of, unless the service
/// keeps spill files.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_spill_path(result: Option<&shx_result>, number: shx_stream) -> shx_view {
    path_view(stream(result, number).and_then(|output| output.spill_path.as_deref()))
}

/// Why the stream overflowed and yet there is no file (UTF-8); else empty.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_spill_error(result: Option<&shx_result>, number: shx_stream) -> shx_view {
    let error = stream(result, number).and_then(|output| output.spill_error.as_deref());
    shx_view::of(error.unwrap_or_default())
}

/// The sandbox facts; null from an executor that does not confine. They belong to the result.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_sandbox(result: Option<&shx_result>) -> Option<&shx_sandbox_info> {
    result?.sandbox.as_ref()
}

/// `SHX_PROCESS_STATUS_COMPLETED` or `SHX_PROCESS_STATUS_KILLED`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_status(result: Option<&shx_result>) -> shx_process_status {
    fact(result, SHX_PROCESS_STATUS_RUNNING, |result| status_number(result.status))
}

/// The first cause.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_cause(result: Option<&shx_result>) -> shx_cause {
    cause_number(fact(result, None, |result| result.cause))
}

pub(super) fn cause_number(cause: Option<Cause>) -> shx_cause {
    match cause {
        None => SHX_CAUSE_NONE,
        Some(Cause::Exit) => SHX_CAUSE_EXIT,
        Some(Cause::Timeout) => SHX_CAUSE_TIMEOUT,
        Some(Cause::Abort) => SHX_CAUSE_ABORT,
        Some(Cause::Kill) => SHX_CAUSE_KILL,
        Some(Cause::Disposal) => SHX_CAUSE_DISPOSAL,
    }
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// From the start of the execution until it settled, in microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_duration_us(result: Option<&shx_result>) -> u64 {
    fact(result, 0, |result| us(result.duration))
}

/// Sets what the leader used, each of which may be null: CPU time in user mode and in the kernel, in microseconds, and its
/// largest resident size, in bytes, an upper bound. `false`, and nothing set, when it is not known.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_usage(
    result: Option<&shx_result>,
    user_us: Option<&mut MaybeUninit<u64>>,
    system_us: Option<&mut MaybeUninit<u64>>,
    max_rss_upper_bound: Option<&mut MaybeUninit<u64>>,
) -> bool {
    let usage: Option<ResourceUsage> = fact(result, None, |result| result.usage);
    tell(user_us, usage.map(|usage| us(usage.user)));
    tell(system_us, usage.map(|usage| us(usage.system)));
    tell(max_rss_upper_bound, usage.map(|usage| usage.max_rss_upper_bound))
}

/// Whether a descendant still held stdout or stderr when the run settled.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_pipes_held(result: Option<&shx_result>) -> bool {
    fact(result, false, |result| result.pipes_held)
}

/// How many processes of the range were alive when the run settled.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_survivors(result: Option<&shx_result>) -> usize {
    fact(result, 0, |result| result.survivors)
}

/// Whether the command ended, or closed its input, before all of the input was written to its pipe.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_stdin_truncated(result: Option<&shx_result>) -> bool {
    fact(result, false, |result| result.stdin_truncated)
}

/// How the range was held together.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_containment(result: Option<&shx_result>) -> shx_containment {
    fact(result, SHX_CONTAINMENT_PROCESS_GROUP, |result| containment_number(result.containment))
}

/// How many names were kept from the command's environment.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_scrubbed_count(result: Option<&shx_result>) -> usize {
    fact(result, 0, |result| result.scrubbed.len())
}

/// A name that was kept from the command's environment, in their order; empty past the last.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_scrubbed_at(result: Option<&shx_result>, index: usize) -> shx_view {
    let name = result.and_then(|result| result.result.scrubbed.get(index));
    shx_view::of(name.map_or(&[][..], |name| name.as_encoded_bytes()))
}

/// Frees a result. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_result_free(result: Option<Box<shx_result>>) {
    free(result);
}
