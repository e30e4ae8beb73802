//! What a model reads of an execution, and what a host reads back out of that.

use proptest::prelude::*;
use shell_executor::{
    Cause, CollectedOutput, Error, ExitStatus, ProcessRead, ProcessStatus, RunResult, SandboxInfo,
    SandboxMode, parse_exit_status, render_read, render_result,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn exited(code: i32, stdout: &str, stderr: &str) -> RunResult {
    let mut result = RunResult::default();
    result.exit_code = Some(code);
    result.status = ProcessStatus::Completed;
    result.cause = Some(Cause::Exit);
    result.stdout = collected(stdout);
    result.stderr = collected(stderr);
    result
}

fn killed(signal: i32, stdout: &str) -> RunResult {
    let mut result = exited(0, stdout, "");
    result.exit_code = None;
    result.signal = Some(signal);
    result.status = ProcessStatus::Killed;
    result
}

fn collected(text: &str) -> CollectedOutput {
    let mut output = CollectedOutput::default();
    output.text = text.to_owned();
    output.total_bytes = text.len() as u64;
    output
}

fn read(delta: &str) -> ProcessRead {
    let mut read = ProcessRead::default();
    read.delta = delta.to_owned();
    read
}

/// Body and status.
#[track_caller]
fn parses(text: &str, body: &str, status: &ExitStatus) {
    let parsed = parse_exit_status(text);
    assert_eq!((parsed.body, &parsed.status), (body, status), "{text:?}");
}

// M2
#[test]
fn output_comes_first_and_the_status_last() {
    let text = |code, stdout: &str, stderr: &str| render_result(&exited(code, stdout, stderr));
    assert_eq!(text(0, "a\n", ""), "a\n");
    assert_eq!(text(0, "a", ""), "a");
    assert_eq!(text(0, "", ""), "(no output)");
    assert_eq!(text(0, "a\n", "e\n"), "a\n[stderr]\ne\n");
    assert_eq!(text(0, "a", "e"), "a\n[stderr]\ne");
    assert_eq!(text(0, "", "e"), "[stderr]\ne");
    assert_eq!(text(3, "a\n", ""), "a\n[exit code: 3]");
    assert_eq!(text(3, "a", ""), "a\n[exit code: 3]");
    assert_eq!(text(124, "", ""), "(no output)\n[exit code: 124]");
    assert_eq!(text(-1073741819, "", "e\n"), "[stderr]\ne\n[exit code: -1073741819]");
    assert_eq!(render_result(&killed(15, "a\r\n")), "a\r\n[killed by signal: SIGTERM]");
    assert_eq!(render_result(&killed(9, "a\r")), "a\r\n[killed by signal: SIGKILL]");
}

// M2, C2
#[test]
fn the_facts_of_a_run_that_was_cut_short_stand_before_its_status() {
    let mut result = exited(0, "a", "");
    result.timed_out = true;
    result.timeout = Some(Duration::from_millis(1500));
    result.cause = Some(Cause::Timeout);
    result.status = ProcessStatus::Killed;
    assert_eq!(render_result(&result), "a\n[timed out after 1.5s]");
    result.timeout = Some(Duration::from_secs(120));
    result.exit_code = None;
    result.signal = Some(9);
    assert_eq!(render_result(&result), "a\n[timed out after 120s]\n[killed by signal: SIGKILL]");
    result.stdout = collected("");
    result.signal = None;
    assert_eq!(render_result(&result), "(no output)\n[timed out after 120s]\n[no exit status]");

    let mut result = killed(15, "a\n");
    result.aborted = true;
    result.cause = Some(Cause::Abort);
    assert_eq!(render_result(&result), "a\n[aborted]\n[killed by signal: SIGTERM]");

    for cause in [Cause::Kill, Cause::Disposal] {
        let mut result = killed(15, "a\n");
        result.cause = Some(cause);
        assert_eq!(render_result(&result), "a\n[killed by signal: SIGTERM]");
        result.signal = None;
        result.exit_code = Some(0);
        assert_eq!(render_result(&result), "a\n[stopped by the host]", "or it would look like a success");
    }
}

// M2, S7, S10
#[test]
fn a_denial_names_the_mode_and_the_way_out() {
    let mut result = exited(1, "", "touch: x: Read-only file system\n");
    let mut info = SandboxInfo::new(SandboxMode::ReadOnly);
    result.sandbox = Some(info.clone());
    assert!(!render_result(&result).contains("sandbox"), "not denied");
    info.denied = true;
    result.sandbox = Some(info.clone());
    let expected = "[stderr]\ntouch: x: Read-only file system\n\
                    [sandbox: a file operation was denied in read-only mode; a wider mode can be asked for]\n\
                    [exit code: 1]";
    assert_eq!(render_result(&result), expected);
    info.mode = SandboxMode::DangerFullAccess;
    result.sandbox = Some(info.clone());
    assert!(!render_result(&result).contains("wider"), "there is none");
    info.mode = SandboxMode::WorkspaceWrite;
    info.runner_failed = true;
    result.sandbox = Some(info);
    let text = render_result(&result);
    assert!(text.contains("\n[sandbox: workspace-write could not be enforced; the command was not run]\n"));
    assert!(!text.contains("denied"), "a failed runner outranks a denial");
}

// M2, O2
#[test]
fn what_is_missing_is_said_before_the_text_and_so_is_where_it_can_be_found() {
    let truncated = |path: Option<&str>, error: Option<&str>| {
        let mut output = collected("c\n");
        output.truncated = true;
        output.total_bytes = 6;
        output.spill_path = path.map(PathBuf::from);
        output.spill_error = error.map(str::to_owned);
        output
    };
    let mut result = exited(1, "", "");
    result.stdout = truncated(Some("/tmp/x/stdout-1"), None);
    result.stderr = truncated(None, Some("no space\nleft"));
    let expected = "[truncated: the last 2 of 6 bytes of stdout; all of it is in /tmp/x/stdout-1]\nc\n\
                    [stderr]\n\
                    [truncated: the last 2 of 6 bytes of stderr; the rest is lost: no space left]\nc\n\
                    [exit code: 1]";
    assert_eq!(render_result(&result), expected);

    let mut result = exited(0, "", "");
    result.stdout = truncated(None, None);
    result.stdout.text.clear();
    let expected = "[truncated: the last 0 of 6 bytes of stdout; the rest was not kept]\n";
    assert_eq!(render_result(&result), expected, "not: no output");
    result.stdout.spill_path = Some("/tmp/a\n[exit code: 3]".into());
    assert_eq!(
        render_result(&result),
        "[truncated: the last 0 of 6 bytes of stdout; all of it is in \"/tmp/a\\n[exit code: 3]\"]\n"
    );
}

// M2, O10
#[test]
fn a_read_says_what_is_new_and_how_it_stands() {
    assert_eq!(render_read(&read("a\n"), None), "a\n[still running]");
    assert_eq!(render_read(&read(""), None), "(no new output)\n[still running]");
    let done = Ok(exited(0, "all of it", ""));
    assert_eq!(render_read(&read("a"), Some(&done)), "a");
    assert_eq!(render_read(&read(""), Some(&done)), "(no new output)");
    let mut failed = killed(15, "all of it");
    failed.timed_out = true;
    failed.timeout = Some(Duration::from_secs(1));
    let failed = Ok(failed);
    let expected = "a\n[stderr]\ne\n[timed out after 1s]\n[killed by signal: SIGTERM]";
    assert_eq!(render_read(&read("a\n[stderr]\ne\n"), Some(&failed)), expected);
}

// M2, O10
#[test]
fn a_read_that_has_lost_something_says_so_first() {
    let mut read = read("a\n");
    read.stdout_spill_path = Some("/tmp/o".into());
    assert_eq!(render_read(&read, None), "a\n[still running]", "nothing is missing");
    read.lossy = true;
    let lost = "[output was lost before it was read; all of stdout is in /tmp/o]\na\n[still running]";
    assert_eq!(render_read(&read, None), lost);
    read.stderr_spill_path = Some("/tmp/e".into());
    read.delta.clear();
    let lost = "[output was lost before it was read; all of stdout is in /tmp/o; all of stderr is in /tmp/e]\n\
                [still running]";
    assert_eq!(render_read(&read, None), lost);
    (read.stdout_spill_path, read.stderr_spill_path) = (None, None);
    assert_eq!(render_read(&read, None), "[output was lost before it was read]\n[still running]");
}

// M2, E4
#[test]
fn an_execution_without_a_result_says_why_once_in_a_text() {
    let lost = Err(Error::StatusLost);
    let text = render_read(&read("a\n"), Some(&lost));
    assert!(text.starts_with("a\n[error: the exit status was taken"), "{text}");
    assert!(text.ends_with("]\n[no exit status]"), "{text}");
    let aborted = Err(Error::Aborted);
    let note = "[stderr]\nspawn failed: aborted before the command was started\n";
    assert_eq!(render_read(&read(note), Some(&aborted)), format!("{note}[no exit status]"));
    let later = "(no new output)\n[error: aborted before the command was started]\n[no exit status]";
    assert_eq!(render_read(&read(""), Some(&aborted)), later);
}

// M3
#[test]
fn only_the_last_line_is_a_status_and_only_as_it_is_written() {
    use ExitStatus::{Code, Missing, Running, Signal, Success};
    parses("a\n[exit code: 3]", "a\n", &Code(3));
    parses("a\r\n[exit code: -3]\r\n", "a\r\n", &Code(-3));
    parses("a\n[exit code: 3]\n", "a\n", &Code(3));
    parses("[exit code: 3]", "", &Code(3));
    parses("a\n[exit code: 0]", "a\n", &Success);
    parses("a\n[killed by signal: SIGRTMIN+1]", "a\n", &Signal("SIGRTMIN+1".into()));
    parses("a\n[no exit status]", "a\n", &Missing);
    parses("a\n[still running]", "a\n", &Running);
    let none = [
        "",
        "\n",
        "a",
        "[exit code: 3]\na",
        "[exit code: 3]\n\n",
        "a[exit code: 3]",
        " [exit code: 3]",
        "[exit code: 3] ",
        "\r[exit code: 3]",
        "[exit code: 3]\r",
        "[exit code: ]",
        "[exit code: +3]",
        "[exit code: 03]",
        "[exit code: -0]",
        "[exit code: 2147483648]",
        "[exit code: ٣]",
        "[Exit code: 3]",
        "[exit code:3]",
        "[[exit code: 3]]",
        "[killed by signal: ]",
        "[killed by signal: SIG]",
        "[killed by signal: TERM]",
        "[killed by signal: SIG TERM]",
        "[killed by signal: SIGTERM]]",
        "[timed out after 1s]",
        "[",
        "]",
        "[]",
    ];
    for text in none {
        parses(text, text, &Success);
    }
    let long = format!("[exit code: {}]", "9".repeat(1 << 20));
    parses(&long, &long, &Success);
}

// M3: the one case in which 0 is written
#[test]
fn a_command_that_succeeds_with_a_status_for_its_last_line_has_succeeded() {
    for (stdout, rendered) in [
        ("[exit code: 3]\n", "[exit code: 3]\n[exit code: 0]"),
        ("[exit code: 3]", "[exit code: 3]\n[exit code: 0]"),
        ("a\n[killed by signal: SIGTERM]\n\n", "a\n[killed by signal: SIGTERM]\n\n[exit code: 0]"),
        ("[exit code: 0]\n", "[exit code: 0]\n[exit code: 0]"),
        ("[still running]\n", "[still running]\n[exit code: 0]"),
        ("50%\r [no exit status] ", "50%\r [no exit status] \n[exit code: 0]"),
        ("[exit code: 3]\nok\n", "[exit code: 3]\nok\n"),
        ("it said [exit code: 3]\n", "it said [exit code: 3]\n"),
    ] {
        let text = render_result(&exited(0, stdout, ""));
        assert_eq!(text, rendered);
        assert_eq!(parse_exit_status(&text).status, ExitStatus::Success);
        let text = render_result(&exited(1, stdout, ""));
        assert_eq!(parse_exit_status(&text).status, ExitStatus::Code(1));
    }
}

/// Text made of what a parser could stumble over.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "[exit code: 3]", "[exit code: 0]", "[exit code: -1]", "[exit code: 03]", "[exit code: ", "[",
            "]", "[killed by signal: SIGTERM]", "[killed by signal: ]", "[no exit status]", "[still running]",
            "[stderr]", "(no output)", "[timed out after 1s]", "exit code: 3", "é", "日本",
        ]).prop_map(str::to_owned),
        5 => prop::sample::select(vec!["\n", "\r\n", "\r", " ", "\t", "\n\n", "\u{2028}", "\u{85}", "\0"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn stream() -> impl Strategy<Value = CollectedOutput> {
    let path = prop::option::of(text().prop_map(PathBuf::from));
    (text(), any::<bool>(), path, prop::option::of(text()), any::<u64>()).prop_map(
        |(text, truncated, spill_path, spill_error, total_bytes)| {
            let mut output = collected(&text);
            (output.truncated, output.total_bytes) = (truncated, total_bytes);
            (output.spill_path, output.spill_error) = (spill_path, spill_error);
            output
        },
    )
}

fn sandbox() -> impl Strategy<Value = Option<SandboxInfo>> {
    use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
    let mode = prop::sample::select(vec![ReadOnly, WorkspaceWrite, DangerFullAccess]);
    prop::option::of((mode, any::<bool>(), any::<bool>()).prop_map(|(mode, denied, runner_failed)| {
        let mut info = SandboxInfo::new(mode);
        (info.denied, info.runner_failed) = (denied, runner_failed);
        info
    }))
}

/// Any result, one like the next or one that only a strange provider would give.
fn result() -> impl Strategy<Value = RunResult> {
    let plain = (prop::sample::select(vec![0, 0, 3]), text(), text());
    prop_oneof![plain.prop_map(|(code, stdout, stderr)| exited(code, &stdout, &stderr)), strange()]
}

fn strange() -> impl Strategy<Value = RunResult> {
    let code = prop::option::of(prop_oneof![Just(0), Just(3), any::<i32>()]);
    let signal = prop_oneof![4 => Just(None), 1 => any::<i32>().prop_map(Some), 1 => (1..65).prop_map(Some)];
    let cause = prop::sample::select(vec![
        None,
        Some(Cause::Exit),
        Some(Cause::Timeout),
        Some(Cause::Abort),
        Some(Cause::Kill),
    ]);
    let status =
        prop::sample::select(vec![ProcessStatus::Running, ProcessStatus::Completed, ProcessStatus::Killed]);
    let ending = (code, signal, cause, status, any::<(bool, bool)>(), any::<Option<Duration>>());
    (ending, stream(), stream(), sandbox()).prop_map(|(ending, stdout, stderr, sandbox)| {
        let (code, signal, cause, status, (timed_out, aborted), timeout) = ending;
        let mut result = RunResult::default();
        (result.exit_code, result.signal, result.cause, result.status) = (code, signal, cause, status);
        (result.timed_out, result.aborted, result.timeout) = (timed_out, aborted, timeout);
        (result.stdout, result.stderr, result.sandbox) = (stdout, stderr, sandbox);
        result
    })
}

/// How the result ended, in this test's own words.
fn ending(result: &RunResult) -> ExitStatus {
    match (result.signal, result.exit_code) {
        (Some(_), _) => ExitStatus::Signal(result.signal_name().expect("it has a signal")),
        (None, Some(0)) => ExitStatus::Success,
        (None, Some(code)) => ExitStatus::Code(code),
        (None, None) => ExitStatus::Missing,
    }
}

/// The parser, by looking at every line.
fn parse_naive(text: &str) -> (String, ExitStatus) {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let last = lines.pop().unwrap_or_default();
    let marker = match last.strip_suffix('\n') {
        Some(ended) => ended.strip_suffix('\r').unwrap_or(ended),
        None => last,
    };
    let between = |before: &str| marker.strip_prefix(before).and_then(|rest| rest.strip_suffix(']'));
    let status = if let Some(code) = between("[exit code: ") {
        code.parse::<i32>().ok().filter(|number| number.to_string() == code).map(|number| match number {
            0 => ExitStatus::Success,
            code => ExitStatus::Code(code),
        })
    } else if let Some(name) = between("[killed by signal: ") {
        let named = name.len() > 3 && name.starts_with("SIG");
        let plain = name.chars().all(|c| matches!(c, 'A'..='Z' | '0'..='9' | '+' | '-'));
        (named && plain).then(|| ExitStatus::Signal(name.to_owned()))
    } else {
        let statuses = [("[no exit status]", ExitStatus::Missing), ("[still running]", ExitStatus::Running)];
        statuses.into_iter().find(|(line, _)| *line == marker).map(|(_, status)| status)
    };
    match status {
        Some(status) => (lines.concat(), status),
        None => (text.to_owned(), ExitStatus::Success),
    }
}

/// The text with the line end that a line below it needs.
fn completed(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    // M3
    #[test]
    fn parse_after_render_gives_what_was(result in result()) {
        let text = render_result(&result);
        let parsed = parse_exit_status(&text);
        prop_assert_eq!(&parsed.status, &ending(&result));
        prop_assert_eq!(&parsed.status, &ExitStatus::from(&result));

        // The body is what it is for every other way to end, and begins with the output as it was.
        let mut other = result.clone();
        (other.exit_code, other.signal) = (Some(77), result.signal.and(Some(15)));
        let other = render_result(&other);
        prop_assert_eq!(completed(parsed.body), parse_exit_status(&other).body);
        if !result.stdout.truncated {
            let stdout = &result.stdout.text;
            prop_assert!(stdout.is_empty() || parsed.body.starts_with(stdout.as_str()));
        }
        prop_assert!(parsed.body.contains(&result.stdout.text) && parsed.body.contains(&result.stderr.text));

        // Nothing but the status stands after it, and after a success only where it has to.
        let line = &text[parsed.body.len()..];
        prop_assert!(text.starts_with(parsed.body) && !line.contains('\n'));
        if parsed.status == ExitStatus::Success && !line.is_empty() {
            prop_assert_eq!(line, "[exit code: 0]");
            let last = parsed.body.trim_end().rsplit(['\n', '\r']).next().unwrap_or_default().trim();
            prop_assert!(last.starts_with('[') && last.ends_with(']'), "{:?}", last);
        }
    }

    // M3: what hosts do to text on its way
    #[test]
    fn the_status_survives_trimming_and_another_line_end(result in result()) {
        let text = render_result(&result);
        for altered in [text.trim_end(), text.trim(), &(text.clone() + "\n"), &text.replace('\n', "\r\n")] {
            prop_assert_eq!(&parse_exit_status(altered).status, &ending(&result), "{:?}", altered);
        }
    }

    // M2, M3
    #[test]
    fn the_same_holds_for_a_read(delta in text(), lossy: bool, path in text(), outcome in prop::option::of(result())) {
        let mut read = read(&delta);
        read.lossy = lossy;
        read.stderr_spill_path = Some(Path::new(&path).to_owned());
        let status = outcome.as_ref().map_or(ExitStatus::Running, ending);
        let text = render_read(&read, outcome.map(Ok).as_ref());
        let parsed = parse_exit_status(&text);
        prop_assert_eq!(parsed.status, status);
        prop_assert!(parsed.body.contains(&delta));
    }

    // M3
    #[test]
    fn the_parser_agrees_with_the_slow_one_on_any_text(text in text()) {
        let parsed = parse_exit_status(&text);
        prop_assert_eq!((parsed.body.to_owned(), parsed.status), parse_naive(&text));
    }
}

// M2, M3: the whole way
#[cfg(target_os = "linux")]
#[test]
fn what_ran_is_what_is_read() {
    use shell_executor::{BashExecutor, Config, ExecRequest, ShellExecutor, SubprocessService};
    let service = SubprocessService::new();
    let mut config = Config::default();
    config.output_max_bytes = 8;
    let bash = BashExecutor::new(&service, config).unwrap();
    let ran = |command: &str, timeout: Duration| {
        let spec = bash.resolve(ExecRequest::new(command).timeout(timeout)).unwrap();
        render_result(&bash.run(spec).unwrap())
    };
    let minute = Duration::from_secs(60);
    assert_eq!(ran("echo a; echo b >&2; exit 3", minute), "a\n[stderr]\nb\n[exit code: 3]");
    assert_eq!(ran("kill -9 $$", minute), "(no output)\n[killed by signal: SIGKILL]");
    assert_eq!(ran("exit 124", minute), "(no output)\n[exit code: 124]");
    // On a busy machine a deadline can come before the start, which then never is.
    let mut timeout = Duration::from_millis(50);
    let late = loop {
        let late = ran("sleep 300", timeout);
        if late != format!("(no output)\n[timed out after {timeout:?}]\n[no exit status]") {
            break late;
        }
        timeout *= 2;
    };
    let stopped = format!("(no output)\n[timed out after {timeout:?}]\n[killed by signal: SIGTERM]");
    assert_eq!(late, stopped);
    let text = ran("echo 0123456789", minute);
    let (notice, tail) = text.split_once('\n').unwrap();
    assert_eq!(tail, "3456789\n");
    let path = notice.strip_prefix("[truncated: the last 8 of 11 bytes of stdout; all of it is in ");
    let path = path.and_then(|rest| rest.strip_suffix(']')).unwrap_or_else(|| panic!("{notice}"));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "0123456789\n");
}
