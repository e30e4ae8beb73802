//! `shx` as its users drive it: the binary, its streams, its exit status.

#![cfg(feature = "cli")]
#![allow(
    unsafe_code,
    reason = "signals are sent to the binary, and given back to it where the test's host ignores them"
)]

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Far beyond what anything here takes on a loaded machine, and far below the sleep of any sleeper.
const PATIENCE: Duration = Duration::from_secs(60);

// --- driving it ------------------------------------------------------------------------------------------------------

/// `shx` with these arguments, an empty stdin, and the signals that tests send at their defaults: a test run started in the
/// background of a script would hand down an ignored SIGINT.
fn shx<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shx"));
    command.args(args).stdin(Stdio::null());
    at_exec(command, &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP], libc::SIG_DFL)
}

fn at_exec(mut command: Command, signals: &'static [i32], disposition: libc::sighandler_t) -> Command {
    let set = move || {
        for &signal in signals {
            // SAFETY: integers only; signal(2) may be called between fork and exec.
            unsafe { libc::signal(signal, disposition) };
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(set) };
    command
}

fn output<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    shx(args).output().expect("shx starts")
}

fn code(args: &[&str]) -> Option<i32> {
    output(args).status.code()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// The one line of `--json`, and that it is one.
fn json_of(output: &Output) -> Value {
    let line = text(&output.stdout);
    assert!(line.ends_with('\n') && line.lines().count() == 1, "not one line: {line:?}");
    serde_json::from_str(line).expect("JSON")
}

fn json(args: &[&str]) -> Value {
    let output = output(["run", "--json"].iter().chain(args));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    json_of(&output)
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("shx starts")
}

/// Reads stdout up to this line.
fn read_until(child: &mut Child, line: &str) {
    let mut stdout = BufReader::with_capacity(1, child.stdout.as_mut().expect("a piped stdout"));
    let mut read = String::new();
    while !read.ends_with(&format!("{line}\n")) {
        let count = stdout.read_line(&mut read).expect("its stdout");
        assert_ne!(count, 0, "it ended after {read:?}");
    }
}

fn send(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).expect("a process number");
    // SAFETY: integers only. The child is ours and not waited for, so the number is its.
    unsafe { libc::kill(pid, signal) };
}

fn finish(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("our child") {
            return status;
        }
        if began.elapsed() > PATIENCE {
            child.kill().expect("our child");
            panic!("shx did not come back");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn stderr_of(child: &mut Child) -> String {
    let mut read = String::new();
    child.stderr.take().expect("a piped stderr").read_to_string(&mut read).expect("its stderr");
    read
}

/// A time to sleep that no other sleeper has, for finding it in the process table.
fn unique_sleep() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("600.{:010}{:04}1", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Whether a living process has this in its command line. A dead one has none.
fn is_alive(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|line| line.windows(mark.len()).any(|window| window == mark.as_bytes()))
}

fn wait_until(what: &str, mut seen: impl FnMut() -> bool) {
    let began = Instant::now();
    while !seen() {
        assert!(began.elapsed() < PATIENCE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command's part that waits until `gate` exists.
fn wait_for(gate: &Path) -> String {
    format!("until [ -e {} ]; do sleep 0.01; done", gate.display())
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

// --- the exit status -------------------------------------------------------------------------------------------------

// L1
#[test]
fn the_status_is_the_commands_own() {
    for status in [0, 1, 3, 124, 137, 255] {
        assert_eq!(code(&["run", &format!("exit {status}")]), Some(status));
    }
    assert_eq!(code(&["run", "no-such-command-anywhere"]), Some(127));
}

// L1
#[test]
fn a_signal_is_128_and_its_number() {
    assert_eq!(code(&["run", "kill -KILL $$"]), Some(137));
    assert_eq!(code(&["run", "kill -TERM $$"]), Some(143));
}

// L1
#[test]
fn a_timeout_is_124_and_says_so_unless_quiet() {
    let sleep = format!("sleep {}", unique_sleep());
    let loud = output(["run", "-t", "200ms", &sleep]);
    assert_eq!(loud.status.code(), Some(124));
    assert_eq!(text(&loud.stderr), "shx: timed out after 200ms\n");
    let quiet = output(["run", "-q", "-t", "200ms", &sleep]);
    assert_eq!((quiet.status.code(), text(&quiet.stderr)), (Some(124), ""));
    assert!(!is_alive(&sleep["sleep ".len()..]));
}

// L1, E3
#[test]
fn what_cannot_be_run_is_125_and_says_why() {
    let workdir = output(["run", "-C", "/nonexistent/dir", "true"]);
    assert_eq!(workdir.status.code(), Some(125));
    assert!(text(&workdir.stderr).starts_with("shx: ") && text(&workdir.stderr).contains("/nonexistent/dir"));
    let shell = shx(["run", "-q", "true"]).env("PATH", "/nonexistent").output().expect("shx starts");
    assert_eq!(shell.status.code(), Some(125));
    assert!(text(&shell.stderr).contains("bash"), "{}", text(&shell.stderr));
}

// L2, W4
#[test]
fn the_shell_can_be_powershell() {
    let dir = tempfile::tempdir().expect("a directory");
    let missing = shx(["run", "--shell", "pwsh", "1"]).env("PATH", dir.path()).output().expect("shx starts");
    assert_eq!(missing.status.code(), Some(125));
    let told = "shx: cannot find the shell \"pwsh\" or \"powershell\" on PATH: ";
    assert!(text(&missing.stderr).starts_with(told), "{}", text(&missing.stderr));
    // Written by another process, so that nobody here has it open for writing when it is executed.
    let write = "printf '#!/bin/sh\\necho \"$1 $4\"; exit 9\\n' >\"$0\" && chmod 755 \"$0\"";
    let made = Command::new("sh").args(["-c", write]).arg(dir.path().join("pwsh")).status().expect("sh");
    assert!(made.success());
    let found = shx(["run", "--shell", "pwsh", "1"]).env("PATH", dir.path()).output().expect("shx starts");
    assert_eq!((found.status.code(), text(&found.stdout)), (Some(9), "-NoLogo -Command\n"));
}

// L1, R3, R4, V4
#[test]
fn a_wrong_command_line_is_2_and_names_the_option() {
    let wrong: &[(&[&str], &str)] = &[
        (&["run"], "COMMAND"),
        (&["run", "--no-such-option", "true"], "--no-such-option"),
        (&["run", "-t", "5", "true"], "5s"),
        (&["run", "-t", "0s", "true"], "--timeout"),
        (&["run", "-g", "1", "true"], "--grace"),
        (&["run", "--max-stdout", "0", "true"], "--max-stdout"),
        (&["run", "--max-output", "0k", "true"], "--max-output"),
        (&["run", "--max-spill", "0", "true"], "--max-spill"),
        (&["run", "-e", "NAME", "true"], "--env"),
        (&["run", "-e", "=x", "true"], "--env"),
        (&["run", "--managed", "HOME=x", "true"], "HOME"),
        (&["run", "--shell", "zsh", "true"], "it is bash or pwsh"),
        (&["run", "--containment", "cgroup", "true"], "not in this version"),
        (&["run", "-s", "tight", "true"], "--sandbox"),
        (&["run", "-w", "/", "true"], "--sandbox"),
        (&["walk"], "walk"),
    ];
    for (args, named) in wrong {
        let output = output(*args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(named), "{args:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{args:?}");
    }
}

// --- sandbox ---------------------------------------------------------------------------------------------------------

/// The backends that `shx doctor` says work here, with what they enforce.
fn backends() -> Vec<(String, String)> {
    let facts = output(["doctor", "--json"]);
    let facts = json_of(&facts);
    let rungs = facts["sandboxBackends"].as_array().expect("a list of backends");
    let working = rungs.iter().filter(|rung| rung["available"] == true);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    working.map(|rung| (text(&rung["name"]), text(&rung["enforcement"]))).collect()
}

// L2, L3, S1
#[test]
fn a_confined_command_writes_where_its_mode_lets_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    let write = format!("echo x >{}", file.display());
    let found = backends();
    if found.is_empty() {
        eprintln!("skipped: nothing confines here");
    }
    for (backend, enforcement) in found {
        let sandbox =
            |mode| ["run", "-s", mode, "-w", dir.path().to_str().unwrap(), "--sandbox-backend", &backend];
        let run = |mode, more: &[&str]| output(sandbox(mode).iter().chain(more).copied());
        let read_only = run("read-only", &[&write]);
        assert_eq!(read_only.status.code(), Some(1), "{backend}");
        assert!(!file.exists(), "{backend}");
        if enforcement == "full" {
            let told = text(&read_only.stderr);
            assert!(told.contains("the read-only sandbox has denied"), "{backend}: {told}");
        }
        let json = run("workspace-write", &["--json", &write]);
        assert_eq!(json.status.code(), Some(0), "{backend}");
        let facts = &json_of(&json)["sandbox"];
        assert_eq!(keys(facts), ["backend", "denied", "enforcement", "mode", "runnerFailed"]);
        assert_eq!((&facts["mode"], &facts["backend"]), (&"workspace-write".into(), &backend.clone().into()));
        assert_eq!((&facts["denied"], &facts["runnerFailed"]), (&false.into(), &false.into()));
        assert_eq!(facts["enforcement"], *enforcement);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n", "{backend}");
        fs::remove_file(&file).unwrap();
    }
    assert_eq!(code(&["run", "-s", "danger-full-access", &write]), Some(0));
    assert!(file.exists());
}

// S3, L1, L3
#[test]
fn a_command_that_cannot_be_confined_is_not_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    let write = format!("echo x >{}", file.display());
    let run = |more: &[&str]| {
        let mut command = shx(["run", "-s", "workspace-write", "--sandbox-backend", "bwrap"]);
        command.args(["--bwrap", "/nonexistent/bwrap"]).args(more).arg(&write).output().expect("shx")
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        text(&refused.stderr).contains("cannot start \"/nonexistent/bwrap\""),
        "{}",
        text(&refused.stderr)
    );
    let json = run(&["--json"]);
    assert_eq!(json.status.code(), Some(125));
    assert_eq!(json_of(&json)["error"]["code"], "SANDBOX_UNAVAILABLE");
    let nowhere = output(["run", "-s", "workspace-write", "-w", "/nonexistent/root", &write]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(text(&nowhere.stderr).contains("/nonexistent/root"), "{}", text(&nowhere.stderr));
    assert!(!file.exists());
}

// --- requests and rendering ------------------------------------------------------------------------------------------

fn with_stdin(args: &[&str], text: &str) -> Output {
    let mut child = spawn({
        let mut command = shx(args);
        command.stdin(Stdio::piped());
        command
    });
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("a reader");
    child.wait_with_output().expect("an end")
}

// L4, M2
#[test]
fn a_request_comes_as_json_and_a_result_goes_as_text() {
    let request = r#"{"command":"cat; echo $A$DSH_B; echo err >&2; exit 3","stdin":"in\n",
        "env":{"A":"1"},"managedEnv":{"DSH_B":"2"},"timeoutMs":60000}"#;
    let rendered = with_stdin(&["run", "--render", "--request", "-"], request);
    assert_eq!(rendered.status.code(), Some(3));
    assert_eq!(text(&rendered.stdout), "in\n12\n[stderr]\nerr\n[exit code: 3]\n");
    let json = with_stdin(&["run", "--json", "--request", "-"], request);
    assert_eq!(json_of(&json)["timeoutMs"], 60_000);
    let passed = with_stdin(&["run", "--request", "-"], request);
    assert_eq!((text(&passed.stdout), text(&passed.stderr)), ("in\n12\n", "err\n"));
    let wrong = with_stdin(&["run", "--request", "-"], r#"{"command":"x","env":{"A":1}}"#);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("env.A: is the number 1"), "{}", text(&wrong.stderr));
    let file = output(["run", "--request", "/nonexistent/request"]);
    assert_eq!(file.status.code(), Some(2));
    assert!(text(&file.stderr).contains("/nonexistent/request"), "{}", text(&file.stderr));
}

// L6: a terminal shows a line while the command is silent, and takes it away; a pipe never does
#[test]
fn only_a_terminal_shows_that_a_silent_command_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let gate = dir.path().join("gate");
    let command = format!("echo first; {}; echo second", wait_for(&gate));
    let quoted = format!("'{}' run -- '{command}'", env!("CARGO_BIN_EXE_shx"));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &quoted, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let Ok(mut child) = terminal.spawn() else {
        eprintln!("skipped: script(1) is not here");
        return;
    };
    let mut seen = String::new();
    let mut pipe = child.stdout.take().expect("a pipe");
    while !seen.contains("running for") {
        let mut byte = [0];
        assert_eq!(pipe.read(&mut byte).expect("a byte"), 1, "{seen}");
        seen.push(char::from(byte[0]));
    }
    fs::write(&gate, "").expect("a file");
    pipe.read_to_string(&mut seen).expect("the rest");
    finish(&mut child);
    assert!(seen.contains("first\r\n") && seen.ends_with("second\r\n"), "{seen:?}");
    let after = seen.rsplit("running for").next().expect("a rest");
    assert!(after.contains("\r\x1b[K"), "it is taken away: {seen:?}");
}

// --- passing through -------------------------------------------------------------------------------------------------

// L1
#[test]
fn output_comes_while_the_command_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let gate = dir.path().join("gate");
    let command = format!("echo first; {}; echo second; echo third >&2", wait_for(&gate));
    let mut child = spawn(shx(["run", &command]));
    read_until(&mut child, "first");
    fs::write(&gate, "").expect("the gate");
    read_until(&mut child, "second");
    assert_eq!(stderr_of(&mut child), "third\n");
    assert!(finish(&mut child).success());
}

// L1
#[test]
fn a_slow_reader_gets_every_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    let bytes: Vec<u8> = (0..12_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let path = dir.path().join("bytes");
    fs::write(&path, &bytes).expect("a file");
    let command = format!("cat {0}; head -c 1000000 {0} >&2", path.display());
    let mut child = spawn(shx(["run", &command]));
    let mut read = Vec::new();
    let mut piece = [0; 65536];
    let mut stdout = child.stdout.take().expect("a piped stdout");
    // Not to the end: that comes only once stderr, which waits meanwhile in a full pipe, has been read as well.
    while read.len() < bytes.len() {
        let count = stdout.read(&mut piece).expect("its stdout");
        assert_ne!(count, 0, "it ended after {} bytes", read.len());
        read.extend_from_slice(&piece[..count]);
        // Slow enough that every pipe and buffer on the way is full most of the time.
        std::thread::sleep(Duration::from_micros(300));
    }
    assert!(read == bytes, "{} of {} bytes, or other ones", read.len(), bytes.len());
    let mut errors = Vec::new();
    child.stderr.take().expect("a piped stderr").read_to_end(&mut errors).expect("its stderr");
    assert!(errors == bytes[..1_000_000]);
    assert!(finish(&mut child).success());
}

// L1, T7
#[test]
fn a_reader_that_has_gone_ends_what_the_command_has_left() {
    let mark = unique_sleep();
    let mut child = spawn(shx(["run", &format!("yes {mark} & exit 0")]));
    read_until(&mut child, &mark);
    drop(child.stdout.take());
    // Which of the two is seen first is a matter of time.
    let code = finish(&mut child).code();
    assert!(matches!(code, Some(0 | 141)), "{code:?}");
    assert!(!is_alive(&mark));
}

// L1
#[test]
fn a_reader_that_has_gone_ends_the_command() {
    let mark = unique_sleep();
    let mut child = spawn(shx(["run", &format!("yes {mark}")]));
    read_until(&mut child, &mark);
    drop(child.stdout.take());
    assert_eq!(finish(&mut child).code(), Some(141));
    assert_eq!(stderr_of(&mut child), "");
    assert!(!is_alive(&mark));
}

#[test]
fn a_full_disk_is_said() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = shx(["run", "echo text"]).stdout(full).stderr(Stdio::piped()).output().expect("shx starts");
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(text(&output.stderr), "shx: cannot write to stdout: no space left on device\n");
}

// L1, I4
#[test]
fn words_are_joined_by_spaces_and_may_begin_with_dashes() {
    let echoed = |args: &[&str]| {
        let output = output(["run"].iter().chain(args));
        (text(&output.stdout).to_owned(), output.status.code())
    };
    assert_eq!(echoed(&["echo", "a", "-n", "--json", "b"]), ("a -n --json b\n".to_owned(), Some(0)));
    assert_eq!(echoed(&["--", "echo 'a  b'", "c"]), ("a  b c\n".to_owned(), Some(0)));
    assert_eq!(echoed(&["--", "-no-such-command-anywhere"]), (String::new(), Some(127)));
    assert_eq!(echoed(&[""]), (String::new(), Some(0)));
    let bytes = OsStr::from_bytes(b"printf %s '\xff'");
    assert_eq!(output([OsStr::new("run"), bytes]).stdout, b"\xff");
}

// L2
#[test]
fn quiet_passes_nothing_through() {
    let output = output(["run", "-q", "seq 1 200000; echo err >&2; exit 7"]);
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(7), 0, 0));
}

// L2
#[test]
fn a_command_runs_in_its_workdir() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().canonicalize().expect("the directory");
    fs::create_dir(dir.join("below")).expect("a directory");
    let absolute = shx(["run", "-C"]).arg(&dir).arg("pwd -P").output().expect("shx starts");
    assert_eq!(Path::new(text(&absolute.stdout).trim_end()), dir);
    let relative = shx(["run", "-C", "below", "pwd -P"]).current_dir(&dir).output().expect("shx starts");
    assert_eq!(Path::new(text(&relative.stdout).trim_end()), dir.join("below"));
}

// --- nothing is left -------------------------------------------------------------------------------------------------

// T4, T5, L1
#[test]
fn a_timeout_takes_what_ignores_the_polite_signal_and_left_the_session() {
    let mark = unique_sleep();
    let command = format!("trap '' TERM; (trap '' TERM; setsid sleep {mark}) & sleep {mark}");
    let began = Instant::now();
    let output = output(["run", "-t", "1s", "-g", "1s", &command]);
    let took = began.elapsed();
    assert_eq!(output.status.code(), Some(124));
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(10), "{took:?}");
    assert!(!is_alive(&mark));
}

// T7, T9
#[test]
fn what_is_left_running_goes_with_shx() {
    let mark = unique_sleep();
    let began = Instant::now();
    let output = output(["run", "--", &format!("sleep {mark} & echo started")]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "started\n"));
    assert_eq!(text(&output.stderr), "");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(!is_alive(&mark));
}

// T7: the bound is absolute, however much the one that is left has to say
#[test]
fn a_chatty_descendant_does_not_keep_shx() {
    let mark = unique_sleep();
    let output = output(["run", "-g", "300ms", &format!("yes {mark} & echo started")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.windows(8).any(|window| window == b"started\n"));
    assert!(!is_alive(&mark));
}

// --- signals ---------------------------------------------------------------------------------------------------------

// L1
#[test]
fn an_interrupt_aborts_the_command() {
    let mark = unique_sleep();
    let mut child = spawn(shx(["run", &format!("echo ready; exec sleep {mark}")]));
    read_until(&mut child, "ready");
    send(&child, libc::SIGINT);
    assert_eq!(finish(&mut child).code(), Some(130));
    assert_eq!(stderr_of(&mut child), "shx: aborted\n");
    assert!(!is_alive(&mark));
}

// L3
#[test]
fn an_interrupt_with_json_is_a_result() {
    let dir = tempfile::tempdir().expect("a directory");
    let ready = dir.path().join("ready");
    let sleep = format!("touch {}; exec sleep {}", ready.display(), unique_sleep());
    let child = spawn(shx(["run", "--json", &sleep]));
    wait_until("the command", || ready.exists());
    send(&child, libc::SIGINT);
    let output = child.wait_with_output().expect("our child");
    assert_eq!(output.status.code(), Some(0));
    let result = json_of(&output);
    assert_eq!((&result["aborted"], &result["timedOut"]), (&true.into(), &false.into()));
    assert_eq!((&result["cause"], &result["status"]), (&"abort".into(), &"killed".into()));
}

// L1, T10
#[test]
fn a_second_interrupt_does_not_wait_for_the_grace() {
    let mark = unique_sleep();
    // The sleeper ignores the polite signal from its birth; the shell tells that it came.
    let command = format!(
        "trap '' TERM; sleep {mark} & trap 'echo caught' TERM; echo ready; while kill -0 $! ; do wait $!; done"
    );
    let mut child = spawn(shx(["run", "-t", "none", "-g", "1h", &command]));
    read_until(&mut child, "ready");
    send(&child, libc::SIGINT);
    read_until(&mut child, "caught");
    send(&child, libc::SIGINT);
    assert_eq!(finish(&mut child).code(), Some(130));
    // At exit they are killed without being waited for.
    wait_until("the end of the sleeper", || !is_alive(&mark));
}

// T10
#[test]
fn a_termination_takes_everything_along() {
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        let mark = unique_sleep();
        let mut child = spawn(shx(["run", &format!("sleep {mark} & echo ready; wait")]));
        read_until(&mut child, "ready");
        send(&child, signal);
        assert_eq!(finish(&mut child).signal(), Some(signal));
        assert!(!is_alive(&mark));
    }
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let dir = tempfile::tempdir().expect("a directory");
    let gate = dir.path().join("gate");
    let command = shx(["run", &format!("echo ready; {}; echo done", wait_for(&gate))]);
    let mut child = spawn(at_exec(command, &[libc::SIGHUP], libc::SIG_IGN));
    read_until(&mut child, "ready");
    send(&child, libc::SIGHUP);
    fs::write(&gate, "").expect("the gate");
    read_until(&mut child, "done");
    assert!(finish(&mut child).success());
}

// --- environment -----------------------------------------------------------------------------------------------------

// L2, V1, V3
#[test]
fn the_environment_is_set_emptied_and_removed() {
    let show = "echo \"${A-unset} ${B-unset} ${C-unset} ${DSH_FACT-unset} ${GONE_TOKEN-unset}\"";
    let mut command = shx(["run", "-e", "A=1", "-e", "A=2=3", "-e", "B=", "-e", "C-"]);
    command.args(["-e", "DSH_FACT=theirs", "--managed", "DSH_FACT=ours", show]);
    command.env("B", "inherited").env("C", "inherited").env("GONE_TOKEN", "secret");
    let output = command.output().expect("shx starts");
    assert_eq!(text(&output.stdout), "2=3  unset ours unset\n");
}

// V2, L3
#[test]
fn what_was_scrubbed_is_named() {
    let mut command = shx(["run", "--json", "true"]);
    command.env("ZZ_PASSWORD", "secret").env("AA_TOKEN", "secret");
    let output = command.output().expect("shx starts");
    let result = json_of(&output);
    let scrubbed: Vec<&str> =
        result["scrubbed"].as_array().expect("names").iter().flat_map(Value::as_str).collect();
    assert!(scrubbed.contains(&"AA_TOKEN") && scrubbed.contains(&"ZZ_PASSWORD"));
    assert!(scrubbed.is_sorted());
    assert!(!text(&output.stdout).contains("secret"));
}

// --- stdin -----------------------------------------------------------------------------------------------------------

// L2, I1
#[test]
fn without_stdin_there_is_nothing_to_read() {
    let mut child = shx(["run", "cat; echo end"]);
    child.stdin(Stdio::piped());
    let mut child = spawn(child);
    // Held open and full of text: it is not the command's.
    let mut stdin = child.stdin.take().expect("a piped stdin");
    stdin.write_all(b"text\n").expect("room in a pipe");
    let output = child.wait_with_output().expect("our child");
    assert_eq!(text(&output.stdout), "end\n");
    assert_eq!(text(&self::output(["run", "-i", "none", "cat"]).stdout), "");
}

// L2, I1, I2
#[test]
fn a_file_is_read_to_its_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a file");
    let bytes: Vec<u8> = (0..2_000_000_u32).map(|at| (at.wrapping_mul(747_796_405) >> 11) as u8).collect();
    fs::write(&path, &bytes).expect("a file");
    let output = shx(["run", "-i"]).arg(&path).arg("cat").output().expect("shx starts");
    assert!(output.status.success() && output.stdout == bytes);
    let stdin = fs::File::open(&path).expect("the file");
    let output = shx(["run", "-i", "-", "cat /dev/stdin"]).stdin(stdin).output().expect("shx starts");
    assert!(output.status.success() && output.stdout == bytes);
}

// L2
#[test]
fn our_own_stdin_is_passed_on_as_it_comes() {
    let mut command = shx(["run", "-i", "-", "while read -r line; do echo \"got $line\"; done; echo end"]);
    command.stdin(Stdio::piped());
    let mut child = spawn(command);
    let mut stdin = child.stdin.take().expect("a piped stdin");
    stdin.write_all(b"one\n").expect("shx reads");
    read_until(&mut child, "got one");
    stdin.write_all(b"two\n").expect("shx reads");
    read_until(&mut child, "got two");
    drop(stdin);
    read_until(&mut child, "end");
    assert!(finish(&mut child).success());
}

// I1
#[test]
fn input_that_nobody_reads_keeps_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("large");
    fs::write(&path, vec![b'x'; 2_000_000]).expect("a file");
    let path = path.to_str().expect("a temp directory with a plain name");
    assert_eq!(code(&["run", "-i", path, "exit 5"]), Some(5));
    let left = json(&["-i", path, "head -c 1"]);
    assert_eq!((&left["stdout"]["text"], &left["stdinTruncated"]), (&"x".into(), &true.into()));
    let taken = json(&["-i", path, "cat > /dev/null"]);
    assert_eq!(taken["stdinTruncated"], false);
    // One that never ends, and never comes.
    let mut command = shx(["run", "-i", "-", "exit 6"]);
    command.stdin(Stdio::piped());
    let mut child = spawn(command);
    let stdin = child.stdin.take();
    assert_eq!(finish(&mut child).code(), Some(6));
    drop(stdin);
}

// L2
#[test]
fn a_missing_input_file_is_named_and_nothing_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let touched = dir.path().join("touched");
    let touch = format!("touch {}", touched.display());
    let missing = output(["run", "-i", "/nonexistent/input", &touch]);
    assert_eq!(missing.status.code(), Some(125));
    assert!(text(&missing.stderr).contains("/nonexistent/input"));
    let directory = output(["run", "-i", "/", &touch]);
    assert_eq!(directory.status.code(), Some(125));
    let json = output(["run", "--json", "-i", "/nonexistent/input", &touch]);
    assert_eq!((json.status.code(), &json_of(&json)["error"]["code"]), (Some(125), &"STDIN".into()));
    assert!(!touched.exists());
}

// --- JSON ------------------------------------------------------------------------------------------------------------

// L3
#[test]
fn a_result_is_one_object_with_these_keys() {
    let output = output(["run", "--json", "echo out; echo err >&2; exit 3"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let result = json_of(&output);
    let mut expected = [
        "exitCode",
        "signal",
        "timedOut",
        "aborted",
        "timeoutMs",
        "stdout",
        "stderr",
        "sandbox",
        "status",
        "cause",
        "durationMs",
        "pipesHeld",
        "survivors",
        "stdinTruncated",
        "containment",
        "scrubbed",
        "usage",
    ];
    expected.sort_unstable();
    assert_eq!(keys(&result), expected);
    for stream in ["stdout", "stderr"] {
        assert_eq!(keys(&result[stream]), ["spillPath", "text", "totalBytes", "truncated"]);
        assert_eq!(result[stream]["truncated"], false);
        assert_eq!(result[stream]["totalBytes"], 4);
    }
    assert_eq!((&result["stdout"]["text"], &result["stderr"]["text"]), (&"out\n".into(), &"err\n".into()));
    assert_eq!((&result["exitCode"], &result["signal"]), (&3.into(), &Value::Null));
    assert_eq!((&result["timedOut"], &result["aborted"]), (&false.into(), &false.into()));
    assert_eq!((&result["status"], &result["cause"]), (&"completed".into(), &"exit".into()));
    assert_eq!((&result["sandbox"], &result["timeoutMs"]), (&Value::Null, &120_000.into()));
    assert_eq!((&result["pipesHeld"], &result["survivors"]), (&false.into(), &0.into()));
    assert!(result["durationMs"].is_u64() && result["containment"].is_string());
    if !result["usage"].is_null() {
        assert_eq!(keys(&result["usage"]), ["maxRssUpperBound", "systemMs", "userMs"]);
    }
}

// L3, C2
#[test]
fn each_fact_stands_by_itself() {
    let signalled = json(&["kill -TERM $$"]);
    assert_eq!((&signalled["exitCode"], &signalled["signal"]), (&Value::Null, &"SIGTERM".into()));
    let timed_out = json(&["-t", "200ms", &format!("sleep {}", unique_sleep())]);
    assert_eq!((&timed_out["timedOut"], &timed_out["timeoutMs"]), (&true.into(), &200.into()));
    assert_eq!(timed_out["cause"], "timeout");
    let mark = unique_sleep();
    let held = json(&[&format!("sleep {mark} & echo started")]);
    assert_eq!((&held["pipesHeld"], &held["stdout"]["text"]), (&true.into(), &"started\n".into()));
    assert!(!is_alive(&mark));
}

// L3, X1
#[test]
fn a_failure_is_one_object_with_a_code() {
    let output = output(["run", "--json", "-C", "/nonexistent/dir", "true"]);
    assert_eq!(output.status.code(), Some(125));
    let failure = json_of(&output);
    assert_eq!(keys(&failure), ["error"]);
    assert_eq!(keys(&failure["error"]), ["code", "message"]);
    assert_eq!(failure["error"]["code"], "SPAWN");
    assert!(failure["error"]["message"].as_str().is_some_and(|text| text.contains("/nonexistent/dir")));
}

// L2, R2
#[test]
fn a_timeout_is_never_clamped() {
    assert_eq!(json(&["-t", "2h", "true"])["timeoutMs"], 7_200_000);
    assert_eq!(json(&["-t", "99999999999999999999h", "true"])["timeoutMs"], u64::MAX);
    assert_eq!(json(&["-t", "none", "true"])["timeoutMs"], Value::Null);
}

// L2, L3, O5, O8
#[test]
fn a_kept_file_has_the_whole_stream() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().to_str().expect("a temp directory with a plain name");
    let whole: String = (1..=2_000_000).map(|number| format!("{number}\n")).collect();
    let seq = "seq 1 2000000";
    let result = json(&["--keep-spill", "--spill-dir", root, seq]);
    let stdout = &result["stdout"];
    assert_eq!((&stdout["truncated"], &stdout["totalBytes"]), (&true.into(), &whole.len().into()));
    assert_eq!(stdout["text"], whole[whole.len() - 64_000..]);
    let path = Path::new(stdout["spillPath"].as_str().expect("a path"));
    assert!(path.starts_with(root));
    assert!(fs::read(path).expect("the file") == whole.as_bytes());
    fs::remove_dir_all(path.parent().expect("its directory")).expect("it can be removed");

    let result = json(&["--spill-dir", root, seq]);
    let stdout = &result["stdout"];
    assert_eq!((&stdout["truncated"], &stdout["totalBytes"]), (&true.into(), &whole.len().into()));
    assert_eq!(stdout["spillPath"], Value::Null);
    assert_eq!(fs::read_dir(root).expect("the directory").count(), 0, "nothing outlives shx unasked");
}

// L2, O7
#[test]
fn budgets_and_caps_are_as_asked() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().to_str().expect("a temp directory with a plain name");
    let both = "seq 1 10000; seq 1 10000 >&2";
    let result = json(&["--max-stdout", "10", "--max-output", "1k", both]);
    assert_eq!(result["stdout"]["text"], "999\n10000\n");
    assert_eq!(result["stderr"]["text"].as_str().map(str::len), Some(1024));

    let keep = ["--keep-spill", "--spill-dir", root, "--max-output", "100", "--max-spill"];
    let with = |cap: &str| json(&[&keep[..], &[cap, both]].concat());
    let over = with("1k");
    assert_eq!(over["stdout"]["spillPath"], Value::Null);
    assert!(over["stdout"]["spillError"].as_str().is_some_and(|reason| reason.contains("1024")));
    let none = with("none");
    assert_eq!((&none["stdout"]["spillPath"], none["stdout"].get("spillError")), (&Value::Null, None));
    assert_eq!(none["stdout"]["totalBytes"], 48_894);
}

// --- help and doctor -------------------------------------------------------------------------------------------------

// L2
#[test]
fn the_help_mentions_every_option() {
    let help = output(["run", "--help"]);
    assert_eq!((help.status.code(), text(&help.stderr)), (Some(0), ""));
    let help = text(&help.stdout);
    let options = [
        "-t, --timeout",
        "-g, --grace",
        "-C, --workdir",
        "-e, --env",
        "--managed",
        "-i, --stdin",
        "--max-stdout",
        "--max-output",
        "--max-spill",
        "--spill-dir",
        "--keep-spill",
        "--shell",
        "--containment",
        "-s, --sandbox",
        "-w, --workspace",
        "-q, --quiet",
        "--json",
        "-h, --help",
    ];
    for word in options.iter().chain(&["Exit status", "128+N", "124", "125", "130", "Examples"]) {
        assert!(help.contains(word), "{word} is not in the help");
    }
    assert!(text(&output(["--help"]).stdout).contains("doctor"));
    let version = output(["--version"]);
    assert_eq!(text(&version.stdout), format!("shx {}\n", env!("CARGO_PKG_VERSION")));
}

// L5
#[test]
fn the_doctor_says_what_there_is() {
    let table = output(["doctor"]);
    assert_eq!((table.status.code(), text(&table.stderr)), (Some(0), ""));
    let table = text(&table.stdout);
    let rows = [
        "bash",
        "sh",
        "pwsh",
        "containment",
        "pidfd_open",
        "clone3",
        "close_range",
        "Landlock ABI",
        "user namespaces",
        "native",
        "bwrap",
        "landlock",
        "open files",
        "one argument",
        "temp directory",
    ];
    for row in rows {
        assert!(table.lines().any(|line| line.trim_start().starts_with(row)), "{row} is not in\n{table}");
    }
    let facts = output(["doctor", "--json"]);
    let facts = json_of(&facts);
    assert_eq!(facts["shells"][0]["name"], "bash");
    assert!(facts["shells"][0]["path"].as_str().is_some_and(|path| path.starts_with('/')));
    assert!(facts["kernel"]["pidfdOpen"]["available"].is_boolean());
    let rungs = facts["sandboxBackends"].as_array().expect("a list");
    assert_eq!(rungs.len(), 3);
    assert!(rungs.iter().filter(|rung| rung["used"] == true).count() <= 1);
    assert!(rungs.iter().all(|rung| rung["available"] == rung["reason"].is_null()));
}
