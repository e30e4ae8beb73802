//! Below a host with a terminal: the command has none, so nothing it asks for can wait there.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::ProcessStatus;
use std::process::{Command, Stdio};
use std::time::Instant;
use support::{Bed, PATIENCE, SOON, alone, is_alone, process, skip, this_program};

/// Runs a part of a test below a terminal of its own, and gives what was written there.
fn below_a_terminal(part: &str) -> Option<String> {
    let program = alone(this_program(), part);
    let mut words = vec![program.get_program().to_string_lossy().into_owned()];
    words.extend(program.get_args().map(|word| word.to_string_lossy().into_owned()));
    let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let mut script = Command::new("script");
    // Nobody types: what reads the terminal waits.
    script.args(["-qec", &line.join(" "), "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    for (name, value) in program.get_envs() {
        script.env(name, value.unwrap());
    }
    let mut child = script.spawn().ok()?;
    let typing = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(typing);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{part}: {text}");
    Some(text)
}

fn has_a_terminal() -> bool {
    let us = i32::try_from(std::process::id()).unwrap();
    process(us).is_some_and(|us| us.terminal != 0)
}

// T1, case 25
#[test]
fn a_read_of_the_terminal_fails_at_once() {
    if below_a_terminal("reads_the_terminal").is_none() {
        skip!("no script(1)");
    }
}

#[test]
#[ignore = "a part of a_read_of_the_terminal_fails_at_once"]
fn reads_the_terminal() {
    if !is_alone("reads_the_terminal") {
        return;
    }
    assert!(has_a_terminal(), "or this would prove nothing");
    let bed = Bed::new();
    let begun = Instant::now();
    let result = bed.run(bed.request("read x </dev/tty; echo rc=$?").timeout(2 * PATIENCE));
    assert_eq!((result.stdout.text.as_str(), result.status), ("rc=1\n", ProcessStatus::Completed));
    assert!(!result.timed_out && begun.elapsed() < SOON);
    // Nor does one in the background, which a terminal would stop for ever.
    let background = bed.begin("cat </dev/tty & wait $!; echo rc=$?");
    assert_eq!(background.wait_timeout(PATIENCE), Some(ProcessStatus::Completed));
    assert_eq!(background.result().unwrap().stdout.text, "rc=1\n");
}

// T1, case 52
#[test]
fn a_prompt_neither_waits_nor_shows() {
    match below_a_terminal("prompts_on_the_terminal") {
        Some(text) => assert!(!text.contains("pw:") && !text.contains("secret:"), "{text}"),
        None => skip!("no script(1)"),
    }
}

#[test]
#[ignore = "a part of a_prompt_neither_waits_nor_shows"]
fn prompts_on_the_terminal() {
    if !is_alone("prompts_on_the_terminal") {
        return;
    }
    assert!(has_a_terminal(), "or this would prove nothing");
    let bed = Bed::new();
    let begun = Instant::now();
    let commands = [
        "read -p pw: x </dev/tty; echo rc=$?",
        "printf secret: >/dev/tty; echo rc=$?",
        "read -p pw: -t 60 x; echo rc=$?",
    ];
    for command in commands {
        let result = bed.run(bed.request(command).timeout(2 * PATIENCE));
        assert_eq!((result.stdout.text.as_str(), result.timed_out), ("rc=1\n", false), "{command}");
    }
    assert!(begun.elapsed() < SOON);
}
