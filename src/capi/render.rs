//! Rendering an outcome as text, and finding the exit status in that text again.

use super::boundary::*;
use super::error::{Failure, shx_error};
use super::read::shx_process_read;
use super::result::shx_result;
use super::text::shx_text;
use super::view::shx_view;
use crate::{ExitStatus, ProcessRead, parse_exit_status, render_read, render_result};
use std::mem::MaybeUninit;

/// The result as text (UTF-8) for a model: stdout, stderr below a line `[stderr]`, what cut it short, and last, unless it is
/// 0, how it ended. Free it with `shx_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_render_result(
    result: Option<&shx_result>,
    text: Option<&mut MaybeUninit<*mut shx_text>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (result, out) = (given(result, "result")?, given(text, "text")?);
        give(out, shx_text(render_result(&result.result).into_bytes()));
        Ok(())
    })
}

/// One consuming read as text (UTF-8) for a model that polls. `result` and `failure` are what `shx_execution_result` has
/// given: both null as long as the execution has not settled, and otherwise one of them. Ask whether it has settled before
/// reading. Free it with `shx_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_render_read(
    read: Option<&shx_process_read>,
    result: Option<&shx_result>,
    failure: Option<&shx_error>,
    text: Option<&mut MaybeUninit<*mut shx_text>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (read, out): (&ProcessRead, _) = (&given(read, "read")?.0, given(text, "text")?);
        let outcome = match (result, failure) {
            (None, None) => None,
            (Some(result), None) => Some(Ok(result.result.clone())),
            (None, Some(failure)) => {
                let failure = failure.library();
                let failure = failure.ok_or(Failure::Argument("failure", "is not an execution's".into()))?;
                Some(Err(failure.clone()))
            }
            (Some(_), Some(_)) => return Err(Failure::Argument("failure", "comes with a result".into())),
        };
        give(out, shx_text(render_read(read, outcome.as_ref()).into_bytes()));
        Ok(())
    })
}

/// How a command ended, as rendered text tells it.
pub type shx_exit_kind = i32;

/// It exited with 0, or the text has no status line.
pub const SHX_EXIT_KIND_SUCCESS: shx_exit_kind = 0;
/// It exited with another code.
pub const SHX_EXIT_KIND_CODE: shx_exit_kind = 1;
/// A signal ended it.
pub const SHX_EXIT_KIND_SIGNAL: shx_exit_kind = 2;
/// It never started, or nobody can tell.
pub const SHX_EXIT_KIND_MISSING: shx_exit_kind = 3;
/// It had not ended when it was read.
pub const SHX_EXIT_KIND_RUNNING: shx_exit_kind = 4;

/// Rendered text, taken apart. It never changes; its views live as long as it.
pub struct shx_parsed_output {
    body: String,
    status: ExitStatus,
}

/// Takes rendered text (UTF-8) apart. Any text can be given. Free it with `shx_parsed_output_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_parse_exit_status(
    text: shx_view,
    parsed: Option<&mut MaybeUninit<*mut shx_parsed_output>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (text, out) = (text.text("text")?, given(parsed, "parsed")?);
        let parsed = parse_exit_status(text);
        give(out, shx_parsed_output { body: parsed.body.to_owned(), status: parsed.status });
        Ok(())
    })
}

/// Everything before the status line; all of the text if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn shx_parsed_output_body(parsed: Option<&shx_parsed_output>) -> shx_view {
    shx_view::of(parsed.map_or("", |parsed| &parsed.body))
}

/// How the command ended.
#[unsafe(no_mangle)]
pub extern "C" fn shx_parsed_output_kind(parsed: Option<&shx_parsed_output>) -> shx_exit_kind {
    match parsed.map(|parsed| &parsed.status) {
        None | Some(ExitStatus::Success) => SHX_EXIT_KIND_SUCCESS,
        Some(ExitStatus::Code(_)) => SHX_EXIT_KIND_CODE,
        Some(ExitStatus::Signal(_)) => SHX_EXIT_KIND_SIGNAL,
        Some(ExitStatus::Missing) => SHX_EXIT_KIND_MISSING,
        Some(ExitStatus::Running) => SHX_EXIT_KIND_RUNNING,
    }
}

/// The exit code; 0 for every kind but `SHX_EXIT_KIND_CODE`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_parsed_output_code(parsed: Option<&shx_parsed_output>) -> i32 {
    match parsed.map(|parsed| &parsed.status) {
        Some(ExitStatus::Code(code)) => *code,
        _ => 0,
    }
}

/// The name of the signal; empty for every kind but `SHX_EXIT_KIND_SIGNAL`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_parsed_output_signal(parsed: Option<&shx_parsed_output>) -> shx_view {
    shx_view::of(match parsed.map(|parsed| &parsed.status) {
        Some(ExitStatus::Signal(name)) => name,
        _ => "",
    })
}

/// Frees it. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_parsed_output_free(parsed: Option<Box<shx_parsed_output>>) {
    free(parsed);
}
