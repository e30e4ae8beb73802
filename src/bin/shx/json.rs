//! The result as one line of JSON.

use serde::Serialize;
use shell_executor::{Cause, CollectedOutput, Enforcement, RunResult, SandboxInfo};
use std::path::Path;
use std::time::Duration;

/// What `shx run --json` prints of a run that has a result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run<'a> {
    exit_code: Option<i32>,
    signal: Option<String>,
    timed_out: bool,
    aborted: bool,
    timeout_ms: Option<u64>,
    stdout: Stream<'a>,
    stderr: Stream<'a>,
    sandbox: Option<Sandbox<'a>>,
    status: &'static str,
    cause: Option<&'static str>,
    duration_ms: u64,
    pipes_held: bool,
    survivors: usize,
    stdin_truncated: bool,
    containment: &'static str,
    scrubbed: Vec<String>,
    usage: Option<Usage>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stream<'a> {
    text: &'a str,
    truncated: bool,
    spill_path: Option<String>,
    total_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    spill_error: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sandbox<'a> {
    mode: &'static str,
    denied: bool,
    enforcement: Option<&'static str>,
    runner_failed: bool,
    backend: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    user_ms: u64,
    system_ms: u64,
    max_rss_upper_bound: u64,
}

/// What it prints when there is none.
#[derive(Debug, Serialize)]
pub(crate) struct Failed<'a> {
    pub(crate) error: Failure<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Failure<'a> {
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
}

impl<'a> Run<'a> {
    pub(crate) fn new(result: &'a RunResult, stdin_truncated: bool) -> Run<'a> {
        Run {
            exit_code: result.exit_code,
            signal: result.signal_name(),
            timed_out: result.timed_out,
            aborted: result.aborted,
            timeout_ms: result.timeout.map(millis),
            stdout: (&result.stdout).into(),
            stderr: (&result.stderr).into(),
            sandbox: result.sandbox.as_ref().map(Sandbox::from),
            status: result.status.as_str(),
            cause: result.cause.map(Cause::as_str),
            duration_ms: millis(result.duration),
            pipes_held: result.pipes_held,
            survivors: result.survivors,
            stdin_truncated: result.stdin_truncated || stdin_truncated,
            containment: result.containment.as_str(),
            scrubbed: result.scrubbed.iter().map(|name| name.to_string_lossy().into_owned()).collect(),
            usage: result.usage.map(|usage| Usage {
                user_ms: millis(usage.user),
                system_ms: millis(usage.system),
                max_rss_upper_bound: usage.max_rss_upper_bound,
            }),
        }
    }
}

impl<'a> From<&'a CollectedOutput> for Stream<'a> {
    fn from(output: &'a CollectedOutput) -> Stream<'a> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        Stream {
            text: &output.text,
            truncated: output.truncated,
            spill_path: output.spill_path.as_deref().map(path),
            total_bytes: output.total_bytes,
            spill_error: output.spill_error.as_deref(),
        }
    }
}

impl<'a> From<&'a SandboxInfo> for Sandbox<'a> {
    fn from(info: &'a SandboxInfo) -> Sandbox<'a> {
        Sandbox {
            mode: info.mode.as_str(),
            denied: info.denied,
            enforcement: info.enforcement.map(|enforcement| match enforcement {
                Enforcement::Full => "full",
                // A kind that is not known here is at least not known to be full.
                _ => "partial",
            }),
            runner_failed: info.runner_failed,
            backend: info.backend.as_deref(),
        }
    }
}

/// One object on one line.
pub(crate) fn line(object: &impl Serialize) -> String {
    // Strings, numbers and fixed names only: nothing that JSON cannot say.
    serde_json::to_string(object).unwrap_or_default() + "\n"
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
