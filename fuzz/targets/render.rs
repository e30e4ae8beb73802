//! M3: whatever a command has printed and however it ended, the rendered text says how it ended, and only that.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shell_executor::{
    Cause, CollectedOutput, ExitStatus, ProcessRead, ProcessStatus, RunResult, SandboxInfo, SandboxMode,
    parse_exit_status, render_read, render_result,
};
use std::path::PathBuf;
use std::time::Duration;

fuzz_target!(|input: (&[u8], &[u8], [u8; 8])| {
    let (stdout, stderr, facts) = input;
    any_text(&String::from_utf8_lossy(stdout));

    let result = result(stdout, stderr, facts);
    let status = ExitStatus::from(&result);
    says(&render_result(&result), &status);

    let mut read = ProcessRead::default();
    read.delta = String::from_utf8_lossy(stdout).into_owned();
    read.lossy = facts[7] & 1 == 1;
    says(&render_read(&read, None), &ExitStatus::Running);
    says(&render_read(&read, Some(&Ok(result))), &status);
});

/// Text that was never rendered is taken apart without a loss, and without a panic.
fn any_text(text: &str) {
    let parsed = parse_exit_status(text);
    let line =
        text.strip_prefix(parsed.body).expect("the body begins the text").trim_end_matches(['\r', '\n']);
    let has_line = !line.is_empty();
    assert!(has_line || parsed.status == ExitStatus::Success, "{text:?}");
    assert!(!has_line || (line.starts_with('[') && line.ends_with(']')), "{text:?}");
}

/// The status of rendered text, also after the handling that text gets on its way.
fn says(text: &str, status: &ExitStatus) {
    assert_eq!(parse_exit_status(text).status, *status, "{text:?}");
    assert_eq!(parse_exit_status(text.trim_end()).status, *status, "{text:?} without its end");
    assert_eq!(parse_exit_status(&format!("{text}\n")).status, *status, "{text:?} and a line end");
}

fn result(stdout: &[u8], stderr: &[u8], facts: [u8; 8]) -> RunResult {
    let [how, code, more, cause, truncated, sandbox, path, _] = facts;
    let mut result = RunResult::default();
    let number = i32::from_le_bytes([code, more, how >> 4, code]);
    match how % 4 {
        0 => result.exit_code = Some(0),
        1 => result.exit_code = Some(number),
        2 => result.signal = Some(number),
        _ => {}
    }
    result.cause = match cause % 6 {
        0 => Some(Cause::Exit),
        1 => Some(Cause::Timeout),
        2 => Some(Cause::Abort),
        3 => Some(Cause::Kill),
        4 => Some(Cause::Disposal),
        _ => None,
    };
    result.status = if cause & 64 == 0 { ProcessStatus::Completed } else { ProcessStatus::Killed };
    result.timed_out = result.cause == Some(Cause::Timeout);
    result.aborted = result.cause == Some(Cause::Abort);
    result.timeout = (cause & 128 != 0).then_some(Duration::from_millis(u64::from(more) << 5));
    let dropped = |bit: u8| u64::from(truncated & bit);
    result.stdout = CollectedOutput::new(stdout.to_vec(), stdout.len() as u64 + dropped(1));
    result.stderr = CollectedOutput::new(stderr.to_vec(), stderr.len() as u64 + dropped(2));
    if path & 1 == 1 {
        result.stdout.spill_path = Some(PathBuf::from(String::from_utf8_lossy(stderr).into_owned()));
    }
    if path & 2 == 2 {
        result.stderr.spill_error = Some(String::from_utf8_lossy(stdout).into_owned());
    }
    if sandbox & 1 == 1 {
        let mut info = SandboxInfo::new(match sandbox % 3 {
            0 => SandboxMode::ReadOnly,
            1 => SandboxMode::WorkspaceWrite,
            _ => SandboxMode::DangerFullAccess,
        });
        (info.denied, info.runner_failed) = (sandbox & 4 != 0, sandbox & 8 != 0);
        result.sandbox = Some(info);
    }
    result
}
