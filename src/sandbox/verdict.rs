//! The end of a confined run: did the sandbox fail, was something denied, how did the command itself end?

use super::denial::{contains, is_denied};
use super::provider::Confined;
use super::{SandboxInfo, SandboxMode};
use crate::error::Error;
use crate::process::{Conclusion, Confiner, End};
use crate::sys::{Exit, SIGKILL, SIGTERM};
use std::fs::File;
use std::io::Read;

/// By what it is known that the command, and not its runner, has ended.
#[derive(Debug)]
pub(super) enum Evidence {
    /// Who could be started was the command: the spawn itself tells of anything else.
    OfTheStart,
    /// The runner's own failures look like this, as far as anybody knows.
    Signatures { exit_codes: Vec<i32>, signatures: Vec<String> },
    /// The runner writes what became of the command to this pipe, and to nobody else.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "bubblewrap is Linux's"))]
    Status(File),
}

/// What a confined run is asked in the end.
pub(crate) struct Verdict {
    mode: SandboxMode,
    is_runner: bool,
    confined: Confined,
}

impl Verdict {
    pub(crate) fn new(mode: SandboxMode, is_runner: bool, confined: Confined) -> Verdict {
        Verdict { mode, is_runner, confined }
    }

    fn failure(&self, end: &End<'_>, code: i32) -> Error {
        let said = String::from_utf8_lossy(end.stderr);
        let said = said.trim().lines().last().unwrap_or("it said nothing").trim();
        let reason = format!("{} failed with exit code {code}: {said}", self.confined.backend);
        Error::SandboxUnavailable { mode: self.mode, reason }
    }
}

impl Confiner for Verdict {
    fn facts(&self) -> SandboxInfo {
        SandboxInfo {
            mode: self.mode,
            denied: false,
            enforcement: Some(self.confined.enforcement),
            runner_failed: false,
            backend: Some(self.confined.backend.clone()),
        }
    }

    fn is_runner(&self) -> bool {
        self.is_runner
    }

    fn waits(&self) -> bool {
        matches!(self.confined.evidence, Evidence::Status(_))
    }

    fn conclude(&mut self, end: &End<'_>) -> Conclusion {
        let code = end.exit.and_then(Exit::code);
        let (exit, failed) = match &mut self.confined.evidence {
            Evidence::OfTheStart => (end.exit, false),
            Evidence::Signatures { exit_codes, signatures } => {
                (end.exit, is_failed_runner(code, end.stderr, exit_codes, signatures))
            }
            Evidence::Status(pipe) => match exit_code_in(&read(pipe)) {
                Some(code) => (Some(command_exit(code, end)), false),
                // Cut short before the command has ended, the runner says nothing and has not failed.
                None => (end.exit, code.is_some() && !end.cause.is_cut()),
            },
        };
        let failure = code.filter(|_| failed).map(|code| self.failure(end, code));
        let denied =
            failure.is_none() && is_denied(exit.and_then(Exit::code), end.stderr, &self.confined.denials);
        let facts = SandboxInfo { denied, runner_failed: failure.is_some(), ..self.facts() };
        Conclusion { facts, exit, usage_is_the_commands: !self.waits(), failure }
    }
}

/// What the runner calls 128+N can be a signal or an exit code. It is a signal where we have sent that, and the command's
/// own code otherwise.
fn command_exit(code: i32, end: &End<'_>) -> Exit {
    let sent = [SIGTERM, SIGKILL].into_iter().find(|signal| code == 128 + signal);
    match sent.filter(|_| end.cause.is_cut()) {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(code),
    }
}

fn is_failed_runner(code: Option<i32>, stderr: &[u8], exit_codes: &[i32], signatures: &[String]) -> bool {
    let Some(code) = code.filter(|&code| code != 0) else { return false };
    let told = !exit_codes.is_empty() || !signatures.is_empty();
    told && (exit_codes.is_empty() || exit_codes.contains(&code))
        && (signatures.is_empty() || signatures.iter().any(|text| contains(stderr, text)))
}

/// What is there to be read. The pipe does not block, and a runner says little.
fn read(pipe: &mut File) -> Vec<u8> {
    const MOST: u64 = 64 * 1024;
    let mut said = Vec::new();
    // At the end of what is there it says "would block" if somebody still has the other end.
    let _ = pipe.take(MOST).read_to_end(&mut said);
    said
}

/// The number after the last `"exit-code":` of the runner's status, which is one JSON object after the other. Only the
/// runner has the pipe, so nothing a command prints gets into it. (A command that takes the runner's first process over from
/// within, as one of the same user can, may have it report any code, as it could have exited with any.)
pub(super) fn exit_code_in(status: &[u8]) -> Option<i32> {
    const KEY: &[u8] = b"\"exit-code\"";
    let at = status.windows(KEY.len()).rposition(|window| window == KEY)?;
    let mut rest = status[at + KEY.len()..].iter().skip_while(|byte| byte.is_ascii_whitespace());
    if rest.next() != Some(&b':') {
        return None;
    }
    let digits: Vec<u8> = rest
        .skip_while(|byte| byte.is_ascii_whitespace())
        .take_while(|byte| byte.is_ascii_digit())
        .copied()
        .collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::Enforcement;
    use super::*;
    use crate::process::Cause;

    fn end(exit: Exit, cause: Cause, stderr: &str) -> End<'_> {
        End { exit: Some(exit), cause, stderr: stderr.as_bytes() }
    }

    // S6
    #[test]
    fn the_last_exit_code_of_the_status_is_the_commands() {
        assert_eq!(
            exit_code_in(b"{ \"child-pid\": 7, \"net-namespace\": 4 }\n{ \"exit-code\": 3 }\n"),
            Some(3)
        );
        assert_eq!(exit_code_in(b"{\"exit-code\":137}"), Some(137));
        assert_eq!(exit_code_in(b"{ \"child-pid\": 7 }\n"), None);
        for odd in [&b""[..], b"\"exit-code\"", b"\"exit-code\":", b"\"exit-code\": x", b"\"exit-code\" 3"] {
            assert_eq!(exit_code_in(odd), None);
        }
        assert_eq!(exit_code_in(b"\"exit-code\": 99999999999999"), None);
    }

    // S4, S6: both kinds of evidence, where both are configured
    #[test]
    fn a_runner_has_failed_when_all_its_configured_evidence_is_there() {
        let signatures = ["runner: ".to_owned()];
        let failed = |code, stderr: &str, codes: &[i32], signatures: &[String]| {
            is_failed_runner(Some(code), stderr.as_bytes(), codes, signatures)
        };
        assert!(failed(71, "Runner: no", &[71], &signatures));
        assert!(!failed(72, "runner: no", &[71], &signatures));
        assert!(!failed(71, "no", &[71], &signatures));
        assert!(failed(72, "runner: no", &[], &signatures));
        assert!(failed(71, "no", &[71], &[]));
        assert!(!failed(71, "runner: no", &[], &[]), "nothing was configured");
        assert!(!failed(0, "runner: no", &[0], &signatures), "success is no failure");
        assert!(!is_failed_runner(None, b"runner: no", &[], &signatures));
    }

    // S6: a failed runner outranks a denial
    #[test]
    fn a_failed_runner_denies_nothing() {
        let confined = Confined::by("mine", Enforcement::Full).denial("denied").runner_failure(&[9], &[]);
        let mut verdict = Verdict::new(SandboxMode::ReadOnly, true, confined);
        let conclusion = verdict.conclude(&end(Exit::Code(9), Cause::Exit, "it was DENIED\n"));
        assert!(conclusion.facts.runner_failed && !conclusion.facts.denied);
        let said = conclusion.failure.unwrap().to_string();
        assert_eq!(said, "sandbox unavailable for read-only: mine failed with exit code 9: it was DENIED");
        let conclusion = verdict.conclude(&end(Exit::Code(8), Cause::Exit, "it was DENIED\n"));
        assert!(conclusion.failure.is_none() && conclusion.facts.denied && !conclusion.facts.runner_failed);
    }

    // C2, S6: 137 is an exit code unless we have sent the signal
    #[test]
    fn a_code_above_128_is_a_signal_only_where_it_was_sent() {
        let told = |code, cause| command_exit(code, &end(Exit::Code(code), cause, ""));
        assert_eq!(told(143, Cause::Timeout), Exit::Signal(15));
        assert_eq!(told(137, Cause::Kill), Exit::Signal(9));
        assert_eq!(told(137, Cause::Exit), Exit::Code(137));
        assert_eq!(told(139, Cause::Abort), Exit::Code(139));
        assert_eq!(told(0, Cause::Timeout), Exit::Code(0));
    }
}
