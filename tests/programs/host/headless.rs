//! Members of a range whose main thread has ended while another goes on: the process table calls them zombies.

use crate::commands::{bash_with, execute, this_program};
use crate::expect::{Outcome, PATIENCE, ensure, equal, eventually};
use shell_executor::{ExecRequest, Execution, SubprocessService};
use std::io::Write;
use std::time::Duration;

/// Before the forceful signal, for those that ignore the polite one.
const GRACE: Duration = Duration::from_secs(2);

/// T4, T5: such a process is alive, and goes with the others.
pub(crate) fn play(whose: &str, term: &str, how: &str) -> Outcome {
    let own_session = match whose {
        "own-session" => format!("{} own-session ", this_program()?),
        "same-session" => String::new(),
        _ => return Err(format!("no such session: {whose}").into()),
    };
    let child = std::env::current_exe()?.with_file_name("test-child");
    let child = child.to_str().ok_or("the path of the child is not UTF-8")?.replace('\'', r"'\''");
    let service = SubprocessService::new();
    let command = format!("{own_session}'{child}' headless {term} & read -r line");
    let bash = bash_with(&service, |config| config.grace = GRACE)?;
    let execution = execute(&bash, ExecRequest::new(command).stdin_piped())?;
    let member = Headless(told(&execution)?);
    eventually("the main thread has ended alone", || state(member.0) == Some(('Z', 2)))?;
    match how {
        "kill" => ensure(execution.kill(), || "the kill was not the first".to_owned())?,
        "kill-survivors" => {
            let mut stdin = execution.take_stdin().ok_or("no stdin")?;
            stdin.write_all(b"end\n")?;
            let result = execution.result()?;
            equal("the end", (result.exit_code, result.signal), (Some(0), None))?;
            equal("the survivors", result.survivors, 1)?;
            ensure(execution.kill_survivors(), || "no survivors to kill".to_owned())?;
        }
        _ => return Err(format!("no such way: {how}").into()),
    }
    ensure(execution.wait_range(Some(PATIENCE)), || "the range is not over".to_owned())?;
    if how == "kill" {
        equal("the survivors", execution.result()?.survivors, 0)?;
    }
    // Nobody's child any more, it may be a true zombie until somebody reaps it.
    ensure(!is_alive(member.0), || format!("{} is still there: {:?}", member.0, state(member.0)))?;
    equal("what the disposal could not stop", service.dispose().survivors, 0)
}

/// A process that is taken down in any case.
struct Headless(i32);

impl Drop for Headless {
    fn drop(&mut self) {
        if is_alive(self.0) {
            // SAFETY: integers only. It has been there a moment ago, with the two threads of nobody else.
            unsafe { libc::kill(self.0, libc::SIGKILL) };
        }
    }
}

/// The number that the command's child says.
fn told(execution: &Execution) -> Outcome<i32> {
    let mut text = String::new();
    while !text.ends_with('\n') {
        ensure(execution.wait_output(Some(PATIENCE)), || "no output".to_owned())?;
        let read = execution.read_output().delta;
        ensure(!read.is_empty(), || format!("no number: {text:?}"))?;
        text += &read;
    }
    Ok(text.trim().parse()?)
}

/// The state that the process table shows, and how many threads there are, an ended first one included.
fn state(pid: i32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // Field 20; the state is field 3.
    Some((state, fields.nth(16)?.parse().ok()?))
}

fn is_alive(pid: i32) -> bool {
    state(pid).is_some_and(|(state, threads)| state != 'Z' || threads > 1)
}
