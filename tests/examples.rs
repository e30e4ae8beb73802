//! The examples, run as a reader would run them.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use support::{Gate, skip};

/// `cargo test` builds the examples beside the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

fn run(name: &str) -> String {
    let output = Command::new(program(name)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{name}: {}\n{text}", String::from_utf8_lossy(&output.stderr));
    text
}

// E2
#[test]
fn background() {
    let text = run("background");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("started as process "), "{text}");
    for expected in ["line 1", "line 2", "line 3", "[stderr]", "careful"] {
        assert!(lines.contains(&expected), "{expected}: {text}");
    }
    assert!(
        text.ends_with(
            "from offset 7: \"line 2\\nline 3\\n\"\nstopped by this call: true\nkilled, SIGTERM\n"
        )
    );
}

// P1, P2
#[test]
fn promotion() {
    let expected = "past its deadline; kept: true\nso far: working\nlater: got news\n\
                    exit code Some(5), timed out: false\n";
    assert_eq!(run("promotion"), expected);
}

// --- the agent's tool ----------------------------------------------------------------------------------------------

/// A tool in a directory of its own that is asked one thing after the other.
struct Agent {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    dir: tempfile::TempDir,
}

impl Agent {
    fn start() -> Agent {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(program("agent_tool"));
        command.arg("danger-full-access").current_dir(dir.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Agent { child, answers, dir }
    }

    fn ask(&mut self, request: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{request}").unwrap();
        let mut answer = String::new();
        while !answer.ends_with("\n---\n") {
            assert_ne!(self.answers.read_line(&mut answer).unwrap(), 0, "it ended after {answer:?}");
        }
        answer.truncate(answer.len() - "\n---\n".len());
        answer
    }

    /// Asks for a command that waits at a gate, with ever longer deadlines, until one has passed after the start.
    fn past_its_deadline(&mut self) -> String {
        for timeout in [200, 800, 3200, 12_800] {
            let command = "echo working; read word <gate; echo done; exit 4";
            let answer = self.ask(&format!(r#"{{"command": "{command}", "timeoutMs": {timeout}}}"#));
            if answer.contains("working") {
                return answer;
            }
        }
        panic!("it never got far enough");
    }
}

// M2, P2, V4
#[test]
fn an_agent_runs_a_command_keeps_a_late_one_and_stops_a_job() {
    let mut agent = Agent::start();
    let facts = agent.ask(r#"{"command": "echo $DSH_SHELL $DSH_SESSION_ID; pwd >&2; exit 3"}"#);
    let place = agent.dir.path().canonicalize().unwrap();
    assert_eq!(facts, format!("1 example\n[stderr]\n{}\n[exit code: 3]", place.display()));

    let gate = Gate::at(&agent.dir.path().join("gate"));
    assert_eq!(agent.past_its_deadline(), "[past its deadline, goes on as job 1]\nworking\n[still running]");
    assert_eq!(agent.ask(r#"{"poll": 1}"#), "(no new output)\n[still running]");
    gate.open();
    let mut all = String::new();
    while !all.ends_with("[exit code: 4]") {
        all += &agent.ask(r#"{"poll": 1, "waitMs": 30000}"#);
    }
    assert!(all.starts_with("done\n"), "{all}");
    assert_eq!(agent.ask(r#"{"poll": 1}"#), "[error: there is no job 1]");

    let started = agent.ask(r#"{"command": "exec sleep 300", "background": true}"#);
    assert_eq!(started, "[job 2]\n(no new output)\n[still running]");
    assert_eq!(agent.ask(r#"{"kill": 2}"#), "(no new output)\n[killed by signal: SIGTERM]");

    assert_eq!(agent.ask(r#"{"command": 3}"#), "[error: command is 3, not a string]");
    assert!(agent.ask("nonsense").starts_with("[error: expected"));
    assert!(agent.ask("{}").contains("none of"));
    drop(agent.child.stdin.take());
    assert!(agent.child.wait().unwrap().success());
}

/// What the tool answers to a command that may not write, and a second time for a wider mode, to a person who types
/// `reply`. `None` without script(1).
fn asked_at_a_terminal(reply: &str) -> Option<(String, PathBuf, tempfile::TempDir)> {
    let dir = tempfile::tempdir().unwrap();
    let forbidden = dir.path().join("forbidden");
    let requests = [
        r#"{"command": "touch forbidden"}"#,
        r#"{"command": "touch forbidden", "mode": "danger-full-access", "justification": "it is needed"}"#,
    ];
    fs::write(dir.path().join("requests"), requests.join("\n")).unwrap();
    let line = format!("'{}' read-only <requests", program("agent_tool").display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(dir.path());
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    // Typed ahead: the terminal keeps it until somebody reads. Its other end stays open, or the reader would be hung up.
    let mut typing = child.stdin.take().unwrap();
    writeln!(typing, "{reply}").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(typing);
    Some((String::from_utf8_lossy(&output.stdout).replace('\r', ""), forbidden, dir))
}

// S10
#[test]
fn an_agent_gets_more_than_its_mode_only_from_whoever_sits_at_the_terminal() {
    for (reply, granted) in [("y", true), ("n", false)] {
        let Some((text, forbidden, _dir)) = asked_at_a_terminal(reply) else { skip!("no script(1)") };
        if text.contains("sandbox unavailable") {
            skip!("nothing can confine here: {text}");
        }
        let (before, after) = text.split_once("Let it? [y/N]").expect(&text);
        assert!(before.contains("Read-only file system") || before.contains("Permission denied"), "{text}");
        assert!(before.contains(r#"run "touch forbidden" in"#) && before.contains("it is needed"), "{text}");
        assert_eq!(after.contains("was not approved"), !granted, "{text}");
        assert_eq!(forbidden.exists(), granted, "{text}");
    }
}

// --- a CI step -----------------------------------------------------------------------------------------------------

fn step(log: &Path, limit: &str, command: &str) -> Output {
    Command::new(program("ci_step")).arg(log).args([limit, command]).output().unwrap()
}

// O5, O8
#[test]
fn a_ci_step_shows_its_log_and_keeps_all_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let output = step(&log, "600000", "echo first; seq 1 50000 >&2; exit 3");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(" first") && lines[0].trim_start().starts_with("0."), "{}", lines[0]);
    let summary = format!("== exit code 3; 288900 bytes of output, all of it in {}", log.display());
    assert_eq!(lines.last(), Some(&summary.as_str()));
    let kept = fs::read_to_string(&log).unwrap();
    assert_eq!((kept.len(), kept.lines().count()), (288_900, 50_001));
    assert!(kept.starts_with("first\n1\n2\n") && kept.ends_with("\n50000\n"));
}

// T4, E7
#[test]
fn a_ci_step_past_its_limit_is_stopped_with_all_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let nap = support::nap();
    let output = step(&log, "1000", &format!("setsid sleep {nap} & sleep {nap}"));
    assert_eq!(output.status.code(), Some(124));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("== stopped at its limit of 1s; 0 bytes of output"), "{text}");
    assert!(support::with_argument(&nap).is_empty());
    assert_eq!(fs::read(&log).unwrap(), b"");
}

#[test]
fn a_ci_step_that_cannot_be_run_says_so() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(step(&dir.path().join("log"), "soon", "true").status.code(), Some(2));
    let output = step(&dir.path().join("missing/log"), "60000", "true");
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ci_step: No such file"));
}

// --- another machine -----------------------------------------------------------------------------------------------

#[test]
fn a_remote_command_is_rendered_like_a_local_one() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = dir.path().join("ssh");
    support::script(&ssh, "#!/bin/sh\nshift 3\nexec sh -c \"$*\"\n");
    let remote = |workdir: &str| {
        let mut command = Command::new(program("remote"));
        command.args(["host", workdir, "echo it\\'s; pwd; exit 3"]).env("SSH", &ssh).output().unwrap()
    };
    assert_eq!(String::from_utf8(remote("/").stdout).unwrap(), "it's\n/\n[exit code: 3]\n");
    let refused = remote("/nonexistent");
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("/nonexistent"));
}
