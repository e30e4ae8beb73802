//! One live execution, and every view of it.

use super::boundary::*;
use super::error::{Failure, shx_error};
use super::offer::shx_promotion_offer;
use super::read::{shx_output_read, shx_process_read};
use super::result::{
    SHX_PROCESS_STATUS_RUNNING, containment_number, shx_containment, shx_process_status, shx_result,
    shx_sandbox_info, shx_stream, status_number, stream_of,
};
use super::view::shx_view;
use crate::{Execution, ProcessStatus, Subprocess};
use std::ffi::OsString;
use std::fs::File;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::time::Duration;

/// For a wait without an end, in milliseconds.
pub const SHX_FOREVER: u64 = u64::MAX;

/// A file descriptor on Unix, a `HANDLE` on Windows. It belongs to the caller, who closes it.
pub type shx_descriptor = isize;

/// One command, or one process that was started by its argv, live or settled. Handles made by `shx_execution_clone` are
/// the same execution. Every function can be called from any thread, at any time, also for ever after the settlement;
/// freeing a handle stops nothing.
pub struct shx_execution {
    execution: Execution,
    /// The same, where it was started by its argv.
    process: Option<Subprocess>,
    scrubbed: OnceLock<Vec<OsString>>,
}

impl shx_execution {
    pub(super) fn of(execution: Execution) -> shx_execution {
        shx_execution { execution, process: None, scrubbed: OnceLock::new() }
    }

    pub(super) fn of_process(process: Subprocess) -> shx_execution {
        let execution = process.clone().into();
        shx_execution { execution, process: Some(process), scrubbed: OnceLock::new() }
    }
}

fn timeout(ms: u64) -> Option<Duration> {
    (ms != SHX_FOREVER).then(|| Duration::from_millis(ms))
}

fn live(execution: Option<&shx_execution>) -> Result<&Execution, Failure> {
    Ok(&given(execution, "execution")?.execution)
}

/// Another handle of the same execution, to be freed by itself; null for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_clone(execution: Option<&shx_execution>) -> *mut shx_execution {
    quietly(std::ptr::null_mut(), || {
        let Some(execution) = execution else { return std::ptr::null_mut() };
        let (process, execution) = (execution.process.clone(), execution.execution.clone());
        into_raw(shx_execution { execution, process, scrubbed: OnceLock::new() })
    })
}

/// Frees the handle. The command goes on, and its other handles stay. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_free(execution: Option<Box<shx_execution>>) {
    free(execution);
}

/// Blocks until the command has settled, and gives its outcome, to be freed with `shx_result_free`. Asked again, it gives
/// the same again. An error only when the command could not be started, or its status was lost.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_result(
    execution: Option<&shx_execution>,
    result: Option<&mut MaybeUninit<*mut shx_result>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (execution, out) = (live(execution)?, given(result, "result")?);
        give(out, shx_result::of(execution.result()?));
        Ok(())
    })
}

/// Blocks until the process exists, or the execution has settled without one; an error when there never was a process
/// because of one.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_wait_started(
    execution: Option<&shx_execution>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || Ok(live(execution)?.wait_started()?))
}

/// Blocks until the command has settled, or the time is over (0: at once; `SHX_FOREVER`: without an end). `status` (may be
/// null) is set to where it stands then: `SHX_PROCESS_STATUS_RUNNING` when the time was over first.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_wait(
    execution: Option<&shx_execution>,
    timeout_ms: u64,
    status: Option<&mut MaybeUninit<shx_process_status>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let execution = live(execution)?;
        let now = match timeout(timeout_ms) {
            None => execution.wait(),
            Some(timeout) => execution.wait_timeout(timeout).unwrap_or(ProcessStatus::Running),
        };
        tell(status, Some(status_number(now)));
        Ok(())
    })
}

/// Where it stands: `SHX_PROCESS_STATUS_RUNNING` until it has settled, and for null. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_status(execution: Option<&shx_execution>) -> shx_process_status {
    quietly(SHX_PROCESS_STATUS_RUNNING, || {
        execution.map_or(SHX_PROCESS_STATUS_RUNNING, |live| status_number(live.execution.status()))
    })
}

/// Sets `code` (may be null) to the exit code. `false`, and nothing set, while it runs, and when it ended without one.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_exit_code(
    execution: Option<&shx_execution>,
    code: Option<&mut MaybeUninit<i32>>,
) -> bool {
    quietly(false, || tell(code, execution.and_then(|live| live.execution.exit_code())))
}

/// Sets `signal` (may be null) to the number of the signal that ended it. `false`, and nothing set, while it runs, and when
/// none did.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_signal(
    execution: Option<&shx_execution>,
    signal: Option<&mut MaybeUninit<i32>>,
) -> bool {
    quietly(false, || tell(signal, execution.and_then(|live| live.execution.signal())))
}

/// The process id of the leader, for showing and never for signalling; 0 before it was started, and where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_pid(execution: Option<&shx_execution>) -> i32 {
    quietly(0, || execution.and_then(|live| live.execution.pid()).unwrap_or(0))
}

/// What is new on both streams since the last consuming read, to be freed with `shx_process_read_free`. Consecutive reads
/// never repeat and never skip silently. Does not wait for the command.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_read_output(
    execution: Option<&shx_execution>,
    read: Option<&mut MaybeUninit<*mut shx_process_read>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (execution, out) = (live(execution)?, given(read, "read")?);
        give(out, shx_process_read(execution.read_output()));
        Ok(())
    })
}

/// What is new on one stream, exactly as it was written, to be freed with `shx_output_read_free`. It shares the stream's
/// place with the reads of both.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_read_stream(
    execution: Option<&shx_execution>,
    stream: shx_stream,
    read: Option<&mut MaybeUninit<*mut shx_output_read>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (execution, out) = (live(execution)?, given(read, "read")?);
        let (bytes, lossy) = execution.read_stream(stream_of(stream)?);
        give(out, shx_output_read { bytes, lossy, next_offset: 0, read: None });
        Ok(())
    })
}

/// Blocks until a consuming read has something new to give, the command has settled, or the time is over (0: at once;
/// `SHX_FOREVER`: without an end). `news` (may be null) is set to whether there is something new. Without an end, false means
/// that the command has settled and everything was read; with one, ask `shx_execution_status` before the wait.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_wait_output(
    execution: Option<&shx_execution>,
    timeout_ms: u64,
    news: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let is_news = live(execution)?.wait_output(timeout(timeout_ms));
        tell(news, Some(is_news));
        Ok(())
    })
}

/// `shx_execution_wait_output` for one stream.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_wait_stream(
    execution: Option<&shx_execution>,
    stream: shx_stream,
    timeout_ms: u64,
    news: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let is_news = live(execution)?.wait_stream(stream_of(stream)?, timeout(timeout_ms));
        tell(news, Some(is_news));
        Ok(())
    })
}

/// The text of one stream from `offset` (in bytes) on, to be freed with `shx_output_read_free`. It consumes nothing, so any
/// number of readers are independent of each other.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_read_text_from(
    execution: Option<&shx_execution>,
    stream: shx_stream,
    offset: u64,
    read: Option<&mut MaybeUninit<*mut shx_output_read>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (reader, out) = (reader(execution, stream)?, given(read, "read")?);
        give(out, reader.read_from(offset).into());
        Ok(())
    })
}

/// The same, exactly as it was written.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_read_bytes_from(
    execution: Option<&shx_execution>,
    stream: shx_stream,
    offset: u64,
    read: Option<&mut MaybeUninit<*mut shx_output_read>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (reader, out) = (reader(execution, stream)?, given(read, "read")?);
        let (bytes, next_offset, lossy) = reader.bytes_from(offset);
        give(out, shx_output_read { bytes, next_offset, lossy, read: None });
        Ok(())
    })
}

/// How many bytes a stream has carried so far; 0 for null and for a number that is no stream.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_total_bytes(execution: Option<&shx_execution>, stream: shx_stream) -> u64 {
    quietly(0, || reader(execution, stream).map_or(0, |reader| reader.total_bytes()))
}

fn reader(execution: Option<&shx_execution>, stream: shx_stream) -> Result<crate::OutputReader, Failure> {
    let (stream, execution) = (stream_of(stream)?, live(execution)?);
    let observed = execution.observed();
    let observed = observed.ok_or(Failure::Argument("execution", "cannot be read at an offset".into()))?;
    Ok(match stream {
        crate::OutputStream::Stdout => observed.stdout,
        crate::OutputStream::Stderr => observed.stderr,
    })
}

/// Stops the command and all it started: SIGTERM, the grace, SIGKILL. `first` (may be null) is set to whether this call
/// started that on a command that nothing had ended yet; otherwise nothing is sent. Returns at once.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_kill(
    execution: Option<&shx_execution>,
    first: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let did = live(execution)?.kill();
        tell(first, Some(did));
        Ok(())
    })
}

/// Stops what a command that has ended left running. `any` (may be null) is set to whether there was something. Returns at
/// once.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_kill_survivors(
    execution: Option<&shx_execution>,
    any: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let did = live(execution)?.kill_survivors();
        tell(any, Some(did));
        Ok(())
    })
}

/// Blocks until nothing that the command started is left, or the time is over (0: at once; `SHX_FOREVER`: without an end).
/// `gone` (may be null) is set to whether nothing is left.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_wait_range(
    execution: Option<&shx_execution>,
    timeout_ms: u64,
    gone: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let is_gone = live(execution)?.wait_range(timeout(timeout_ms));
        tell(gone, Some(is_gone));
        Ok(())
    })
}

/// Blocks until the command has outrun its deadline under `SHX_ON_EXPIRY_OFFER`, and gives the offer to keep it, to be
/// freed with `shx_promotion_offer_free`. `offer` is set to null when it settles first, at once under every other policy,
/// and for every caller but the first.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_promotion(
    execution: Option<&shx_execution>,
    offer: Option<&mut MaybeUninit<*mut shx_promotion_offer>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (execution, out) = (live(execution)?, given(offer, "offer")?);
        match execution.promotion() {
            Some(offer) => give(out, shx_promotion_offer::of(offer)),
            None => _ = out.write(std::ptr::null_mut()),
        }
        Ok(())
    })
}

/// The other end of a piped stdin, once: `descriptor` is set to it, and to -1 when there is none, it was taken, or the
/// command has ended. Closing it is the command's end of file. Blocks until the command has started. Writing to a command
/// that reads no more raises SIGPIPE in a process that has not ignored it.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_take_stdin(
    execution: Option<&shx_execution>,
    descriptor: Option<&mut MaybeUninit<shx_descriptor>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (execution, out) = (live(execution)?, given(descriptor, "descriptor")?);
        out.write(execution.take_stdin().map_or(-1, into_descriptor));
        Ok(())
    })
}

/// The other end of a piped stream, once: `descriptor` is set to it, and to -1 when there is none, or it was taken. Only of
/// a process that was started by its argv. Blocks until the process has started.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_take_stream(
    execution: Option<&shx_execution>,
    stream: shx_stream,
    descriptor: Option<&mut MaybeUninit<shx_descriptor>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (execution, out) = (given(execution, "execution")?, given(descriptor, "descriptor")?);
        let stream = stream_of(stream)?;
        let taken = execution.process.as_ref().and_then(|process| match stream {
            crate::OutputStream::Stdout => process.take_stdout(),
            crate::OutputStream::Stderr => process.take_stderr(),
        });
        out.write(taken.map_or(-1, into_descriptor));
        Ok(())
    })
}

#[cfg(unix)]
fn into_descriptor(file: File) -> shx_descriptor {
    std::os::fd::IntoRawFd::into_raw_fd(file) as shx_descriptor
}

#[cfg(windows)]
fn into_descriptor(file: File) -> shx_descriptor {
    std::os::windows::io::IntoRawHandle::into_raw_handle(file) as shx_descriptor
}

/// The sandbox facts as they are now, present before a confined run settles, to be freed with `shx_sandbox_info_free`; null
/// from an executor that does not confine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_sandbox(execution: Option<&shx_execution>) -> *mut shx_sandbox_info {
    quietly(std::ptr::null_mut(), || {
        let info = execution.and_then(|live| live.execution.sandbox());
        info.map_or(std::ptr::null_mut(), |info| into_raw(shx_sandbox_info(info)))
    })
}

/// By which means what it starts is held together.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_containment(execution: Option<&shx_execution>) -> shx_containment {
    quietly(0, || execution.map_or(0, |live| containment_number(live.execution.containment())))
}

/// How many names were kept from its environment.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_scrubbed_count(execution: Option<&shx_execution>) -> usize {
    quietly(0, || scrubbed(execution).len())
}

/// A name that was kept from its environment, in their order; empty past the last. Lives as long as the handle.
#[unsafe(no_mangle)]
pub extern "C" fn shx_execution_scrubbed_at(execution: Option<&shx_execution>, index: usize) -> shx_view {
    quietly(shx_view::of(""), || {
        shx_view::of(scrubbed(execution).get(index).map_or(&[][..], |name| name.as_encoded_bytes()))
    })
}

fn scrubbed(execution: Option<&shx_execution>) -> &[OsString] {
    execution.map_or(&[], |live| live.scrubbed.get_or_init(|| live.execution.scrubbed()))
}
