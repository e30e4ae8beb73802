//! One step of a CI runner: a live log, a time limit, and the whole log as an artefact.
//!
//! ```text
//! ci_step LOG LIMIT_MS COMMAND
//! ```
//!
//! Every line appears as it comes, with the seconds since the start. The whole log goes to the file `LOG`: from the spill
//! file, which has the complete stream however little of it is kept in memory. Nothing of the step outlives it, and its
//! exit status is the runner's: 124 past the limit, 125 when it could not be run.

use shell_executor::{
    BashExecutor, Config, ExecRequest, Execution, RunResult, ShellExecutor, SubprocessService,
};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [log, limit, command] = words.as_slice() else {
        eprintln!("usage: ci_step LOG LIMIT_MS COMMAND");
        return ExitCode::from(2);
    };
    let Some(limit) = limit.to_str().and_then(|limit| limit.parse().ok()).map(Duration::from_millis) else {
        eprintln!("ci_step: LIMIT_MS is {limit:?}, no whole number");
        return ExitCode::from(2);
    };
    match step(Path::new(log), limit, command.clone()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("ci_step: {error}");
            ExitCode::from(125)
        }
    }
}

fn step(log: &Path, limit: Duration, command: OsString) -> Result<u8, Box<dyn std::error::Error>> {
    // Dropped at the end of the step, it takes the step's daemons with it.
    let service = SubprocessService::new();
    let mut config = Config::default();
    config.max_timeout = Duration::MAX;
    config.spill_max_bytes = Some(1 << 30); // logs of more than a gibibyte are cut
    let bash = BashExecutor::new(&service, config)?;

    // Both streams into one, so that the log has the order in which they were written.
    let mut merged = OsString::from("exec 2>&1\n");
    merged.push(command);
    let request = ExecRequest::new(merged).timeout(limit).env("CI", "true");
    let execution = bash.start(bash.resolve(request)?)?;
    show(&execution)?;

    let result = execution.result()?;
    keep(log, &result)?;
    println!("{}", summary(&result, log));
    Ok(match (result.timed_out, result.exit_code) {
        (true, _) => 124,
        (false, Some(code)) => u8::try_from(code).unwrap_or(1),
        (false, None) => 128 + result.signal.and_then(|signal| u8::try_from(signal).ok()).unwrap_or(0),
    })
}

/// Passes lines on as they come, until the step has settled.
fn show(execution: &Execution) -> io::Result<()> {
    let begun = Instant::now();
    let mut out = io::stdout().lock();
    let mut unfinished = String::new();
    loop {
        // `false`: the step has settled, and all of its output has been read.
        let more = execution.wait_output(None);
        let read = execution.read_output();
        if read.lossy {
            writeln!(out, "[faster than it could be shown: lines are missing here, not in the log]")?;
        }
        unfinished.push_str(&read.delta);
        let whole = if more { unfinished.rfind('\n').map_or(0, |at| at + 1) } else { unfinished.len() };
        for line in unfinished.drain(..whole).as_str().lines() {
            writeln!(out, "{:8.3} {line}", begun.elapsed().as_secs_f64())?;
        }
        out.flush()?;
        if !more {
            return Ok(());
        }
    }
}

/// Writes the artefact: the spill file if the log outgrew memory, else what is in memory.
fn keep(log: &Path, result: &RunResult) -> io::Result<()> {
    match &result.stdout.spill_path {
        Some(whole) => fs::copy(whole, log).map(drop),
        None => fs::write(log, result.stdout.bytes()),
    }
}

fn summary(result: &RunResult, log: &Path) -> String {
    let how = match (result.timed_out, result.exit_code, result.signal_name()) {
        (true, ..) => format!("stopped at its limit of {:?}", result.timeout.unwrap_or_default()),
        (false, Some(code), _) => format!("exit code {code}"),
        (false, None, signal) => format!("killed by {}", signal.unwrap_or_default()),
    };
    let out = &result.stdout;
    let kept = match (&out.spill_path, out.truncated, &out.spill_error) {
        (None, true, reason) => format!("only the end of it ({})", reason.as_deref().unwrap_or("no file")),
        _ => "all of it".to_owned(),
    };
    format!("== {how}; {} bytes of output, {kept} in {}", out.total_bytes, log.display())
}
