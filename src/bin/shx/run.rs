//! `shx run`: one command, its output passed through as it comes, its status passed on.

use crate::args::{Backend, Held, RunArgs, Shell, Spill, Timeout};
use crate::feed::{Feed, Source};
use crate::json;
use crate::print::{FAILED, print, reason, say};
use crate::relay::Relay;
use crate::request;
use crate::signals;
use shell_executor::{
    AbortToken, BashExecutor, Cause, Config, Containment, Error, ExecRequest, Execution, HostFacts, OnExpiry,
    PwshExecutor, RunResult, SandboxChain, SandboxMode, SandboxPolicy, ServiceConfig, ShellExecutor,
    SubprocessService, render_result,
};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const WRONG_COMMAND_LINE: u8 = 2;
const TIMED_OUT: u8 = 124;
const ABORTED: u8 = 130;

/// Why there is no result.
#[derive(Debug)]
struct Failure {
    code: &'static str,
    message: String,
    /// The exit status without `--json`.
    status: u8,
}

pub(crate) fn run(args: Box<RunArgs>) -> ExitCode {
    let json = args.json;
    match attempt(*args) {
        Ok(status) => status,
        Err(Failure { code, message, .. }) if json => {
            let failure = json::Failed { error: json::Failure { code, message: &message } };
            print(&json::line(&failure));
            FAILED.into()
        }
        Err(Failure { message, status, .. }) => {
            say(format_args!("{message}"));
            status.into()
        }
    }
}

fn attempt(args: RunArgs) -> Result<ExitCode, Failure> {
    if args.containment == Some(Held::Session) {
        insist_on_session()?;
    }
    // Before the signals are taken: opening a FIFO can block, and Ctrl-C must end that.
    let source = Source::open(args.stdin.as_deref()).map_err(|error| Failure {
        code: "STDIN",
        message: format!(
            "cannot open {:?} as stdin: {}",
            args.stdin.as_deref().unwrap_or_default(),
            reason(&error)
        ),
        status: FAILED,
    })?;
    let service = SubprocessService::with_config(service_config(&args));
    let abort = AbortToken::new();
    let request = request(&args, &abort, source.is_some())?;
    let executor = executor(&args, &service, &request)?;
    let spec = executor.resolve(request)?;
    signals::listen(&service, &abort).map_err(|error| shortage("signals cannot be heard", &error))?;
    let execution = executor.execute(spec);
    let feed = source.map(|source| Feed::start(source, &execution)).transpose();
    let feed = feed.map_err(|error| shortage("no thread for its stdin", &error));
    let status = match feed {
        Ok(feed) if args.json => as_json(&execution, feed.as_ref()),
        Ok(_) if args.render => as_text(&execution),
        Ok(_) => as_stream(&execution, args.quiet),
        Err(failure) => Err(failure),
    };
    // Whatever is left goes with us.
    let disposal = service.dispose();
    if disposal.survivors > 0 {
        say(format_args!("{} of its processes could not be stopped", disposal.survivors));
    }
    status
}

fn insist_on_session() -> Result<(), Failure> {
    let facts = HostFacts::probe();
    if facts.containment == Containment::Session {
        return Ok(());
    }
    let message = format!("no session containment here: {}", facts.containment_reason);
    Err(Failure { code: "CONTAINMENT", message, status: FAILED })
}

fn service_config(args: &RunArgs) -> ServiceConfig {
    let mut config = ServiceConfig::default();
    if let Some(dir) = &args.spill_dir {
        config.spill_root.clone_from(dir);
    }
    config.keep_spill = args.keep_spill;
    config
}

fn executor(
    args: &RunArgs,
    service: &SubprocessService,
    request: &ExecRequest,
) -> Result<Box<dyn ShellExecutor>, Failure> {
    let config = config(args, request.timeout);
    let sandbox = request.sandbox_policy.clone().map(|policy| (Arc::new(chain(args)), policy));
    Ok(match (args.shell.unwrap_or(Shell::Bash), sandbox) {
        (Shell::Bash, None) => Box::new(BashExecutor::new(service, config)?),
        (Shell::Bash, Some((chain, policy))) => {
            Box::new(BashExecutor::new(service, config)?.with_sandbox(chain, policy)?)
        }
        (Shell::Pwsh, None) => Box::new(PwshExecutor::new(service, config)?),
        (Shell::Pwsh, Some((chain, policy))) => {
            Box::new(PwshExecutor::new(service, config)?.with_sandbox(chain, policy)?)
        }
    })
}

/// How much output waits for our own reader before the command does.
const RELAY: usize = 256 * 1024;

fn config(args: &RunArgs, timeout: Option<Duration>) -> Config {
    let mut config = Config::default();
    if let Some(timeout) = timeout {
        // The cap protects a host from its callers. Here they are the same person.
        config.max_timeout = config.max_timeout.max(timeout);
    }
    if let Some(grace) = args.grace {
        config.grace = grace;
    }
    if !args.json && !args.render {
        // Nothing is kept: it is passed through, or for nobody.
        config.spill_max_bytes = None;
        config.output_max_bytes = RELAY;
        return config;
    }
    if let Some(bytes) = args.max_output {
        config.output_max_bytes = bytes;
    }
    match args.max_spill {
        // A file that goes with us is for nobody either.
        _ if !args.keep_spill => config.spill_max_bytes = None,
        Some(Spill::None) => config.spill_max_bytes = None,
        Some(Spill::Bytes(bytes)) => config.spill_max_bytes = Some(bytes),
        None => {}
    }
    config
}

fn request(args: &RunArgs, abort: &AbortToken, piped: bool) -> Result<ExecRequest, Failure> {
    let kept = args.json || args.render;
    if let Some(from) = &args.request {
        let wrong = |message| Failure { code: "REQUEST", message, status: WRONG_COMMAND_LINE };
        let mut request = request::read(from).map_err(wrong)?.abort(abort);
        request.backpressure = !kept && !args.quiet;
        if !kept {
            request.stdout_max_bytes = None;
        }
        return Ok(request);
    }
    let mut request = ExecRequest::new(joined(&args.command)).abort(abort);
    request.workdir.clone_from(&args.workdir);
    match args.timeout {
        Some(Timeout::None) => request.on_expiry = OnExpiry::None,
        Some(Timeout::After(timeout)) => request.timeout = Some(timeout),
        None => {}
    }
    if piped {
        request = request.stdin_piped();
    }
    if kept {
        request.stdout_max_bytes = args.max_stdout;
    }
    request.env.clone_from(&args.env);
    request.managed_env.clone_from(&args.managed);
    request.backpressure = !kept && !args.quiet;
    request.sandbox_policy = args.sandbox.map(|mode| policy(args, mode));
    Ok(request)
}

fn policy(args: &RunArgs, mode: SandboxMode) -> SandboxPolicy {
    let root = args.workspace.clone().or_else(|| args.workdir.clone());
    SandboxPolicy::new(mode, root.unwrap_or_else(|| PathBuf::from(".")))
}

fn chain(args: &RunArgs) -> SandboxChain {
    let chain = match args.sandbox_backend {
        None | Some(Backend::Auto) => SandboxChain::new(),
        Some(Backend::Only(backend)) => SandboxChain::new().backends([backend]),
    };
    match &args.bwrap {
        Some(program) => chain.bwrap(program),
        None => chain,
    }
}

fn joined(words: &[OsString]) -> OsString {
    words.join(OsStr::new(" "))
}

/// Runs it to its end and prints the result as one line.
fn as_json(execution: &Execution, feed: Option<&Feed>) -> Result<ExitCode, Failure> {
    let result = result(execution)?;
    let truncated = feed.is_some_and(Feed::is_truncated);
    Ok(print(&json::line(&json::Run::new(&result, truncated))))
}

/// Runs it to its end and prints the result as text for a model.
fn as_text(execution: &Execution) -> Result<ExitCode, Failure> {
    let result = result(execution)?;
    let printed = print(&(render_result(&result) + "\n"));
    if printed == ExitCode::SUCCESS { status(&result).map(ExitCode::from) } else { Ok(printed) }
}

/// Runs it to its end, its output passed through unless `quiet`.
fn as_stream(execution: &Execution, quiet: bool) -> Result<ExitCode, Failure> {
    if !quiet {
        let relay =
            Relay::start(execution).map_err(|error| shortage("its output cannot be passed on", &error))?;
        if let Err(error) = relay.finish() {
            return Ok(error.report().into());
        }
    }
    let result = result(execution)?;
    if result.timed_out && !quiet {
        let after = result.timeout.map_or_else(String::new, |timeout| format!(" after {}", spelt(timeout)));
        say(format_args!("timed out{after}"));
    }
    if result.aborted && !quiet {
        say(format_args!("aborted"));
    }
    if let Some(sandbox) = result.sandbox.as_ref().filter(|sandbox| sandbox.denied && !quiet) {
        say(format_args!("the {} sandbox has denied it a file", sandbox.mode));
    }
    status(&result).map(ExitCode::from)
}

/// The outcome; never returns when a signal to us has disposed of the service, since the process ends with that.
fn result(execution: &Execution) -> Result<RunResult, Failure> {
    match execution.result() {
        Ok(RunResult { cause: Some(Cause::Disposal), .. }) | Err(Error::Disposed) => {
            signals::wait_for_death()
        }
        Ok(result) => Ok(result),
        Err(error) => Err(error.into()),
    }
}

fn status(result: &RunResult) -> Result<u8, Failure> {
    let by_fact = match (result.exit_code, result.signal) {
        _ if result.timed_out => Some(TIMED_OUT),
        _ if result.aborted => Some(ABORTED),
        (Some(code), _) => u8::try_from(code).ok(),
        (None, Some(signal)) => u8::try_from(128 + signal).ok(),
        (None, None) => None,
    };
    by_fact.ok_or_else(|| Failure {
        code: "STATUS",
        message: "the command has no exit status".to_owned(),
        status: FAILED,
    })
}

/// A time as it is written on the command line, in the largest unit that needs no fraction.
fn spelt(time: Duration) -> String {
    let millis = time.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let unit = units.into_iter().find(|(size, _)| millis % size == 0);
    unit.map_or_else(|| format!("{millis}ms"), |(size, name)| format!("{}{name}", millis / size))
}

fn shortage(what: &str, error: &io::Error) -> Failure {
    Failure { code: "RESOURCES", message: format!("{what}: {}", reason(error)), status: FAILED }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match error {
            Error::InvalidRequest { .. } => WRONG_COMMAND_LINE,
            // Ctrl-C came before the command did.
            Error::Aborted => ABORTED,
            _ => FAILED,
        };
        Failure { code: error.code(), message: error.to_string(), status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_spelt_in_its_largest_whole_unit() {
        let spelt = |millis| spelt(Duration::from_millis(millis));
        assert_eq!(spelt(1), "1ms");
        assert_eq!(spelt(1500), "1500ms");
        assert_eq!(spelt(90_000), "90s");
        assert_eq!(spelt(120_000), "2m");
        assert_eq!(spelt(7_200_000), "2h");
    }

    // L1
    #[test]
    fn words_are_joined_as_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let words = ["a", "b  c"].map(OsString::from);
        assert_eq!(joined(&words), "a b  c");
        assert_eq!(joined(&[OsStr::from_bytes(b"\xff").to_owned()]).as_bytes(), b"\xff");
    }
}
