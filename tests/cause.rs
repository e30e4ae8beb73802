//! Why an execution ended: the first cause wins, and the facts stand beside it.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{
    AbortToken, Cause, Error, OnExpiry, ProcessStatus, RunResult, ShellExecutor, Subprocess,
};
use std::thread;
use std::time::{Duration, Instant};
use support::{Bed, SOON, nap, see, until, until_running, with_argument};

fn flags(result: &RunResult) -> (bool, bool, Option<Cause>) {
    (result.timed_out, result.aborted, result.cause)
}

// C2, case 63
#[test]
fn a_command_that_traps_the_signal_and_exits_0_has_timed_out_all_the_same() {
    let bed = Bed::new();
    let begun = Instant::now();
    let command = "trap 'exit 0' TERM; sleep 300 & wait";
    let result = bed.run(bed.request(command).timeout(Duration::from_secs(1)));
    assert_eq!(flags(&result), (true, false, Some(Cause::Timeout)));
    assert_eq!((result.exit_code, result.signal), (Some(0), None));
    assert_eq!(result.status, ProcessStatus::Killed);
    assert!(begun.elapsed() >= Duration::from_secs(1) && begun.elapsed() < SOON);
}

// C2, case 67
#[test]
fn codes_that_look_like_a_timeout_are_ordinary() {
    let bed = Bed::new();
    for (command, code) in
        [("exit 124", 124), ("exit 137", 137), ("exit 143", 143), ("timeout 0.1 sleep 300", 124)]
    {
        let result = bed.sh(command);
        assert_eq!(flags(&result), (false, false, Some(Cause::Exit)), "{command}");
        assert_eq!((result.exit_code, result.signal), (Some(code), None), "{command}");
        assert_eq!(result.status, ProcessStatus::Completed);
    }
}

// C2
#[test]
fn a_signal_of_the_commands_own_is_no_cause_of_ours() {
    let bed = Bed::new();
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV] {
        let result = bed.sh(&format!("kill -{signal} $$"));
        assert_eq!(flags(&result), (false, false, Some(Cause::Exit)));
        assert_eq!((result.exit_code, result.signal), (None, Some(signal)));
    }
}

// C1
#[test]
fn each_cause_has_its_own_flag_or_none() {
    let bed = Bed::new();
    let run = |act: &dyn Fn(&shell_executor::Execution, &AbortToken)| {
        let token = AbortToken::new();
        let execution = bed.start(bed.request("echo ready; sleep 300").abort(&token));
        see(&execution, "ready");
        act(&execution, &token);
        let result = execution.result().unwrap();
        assert_eq!(result.signal, Some(libc::SIGTERM));
        flags(&result)
    };
    assert_eq!(run(&|execution, _| assert!(execution.kill())), (false, false, Some(Cause::Kill)));
    assert_eq!(run(&|_, token| assert!(token.fire())), (false, true, Some(Cause::Abort)));
    assert_eq!(run(&|_, _| _ = bed.service.dispose()), (false, false, Some(Cause::Disposal)));
}

// C1
#[test]
fn one_token_cuts_short_all_it_was_given_to() {
    let bed = Bed::new();
    let token = AbortToken::new();
    let running: Vec<_> =
        (0..5).map(|_| bed.start(bed.request("echo ready; sleep 300").abort(&token))).collect();
    running.iter().for_each(|execution| see(execution, "ready"));
    let finished = bed.run(bed.request("true").abort(&token));
    assert!(token.fire());
    assert!(running.iter().all(|execution| execution.result().unwrap().aborted));
    assert!(!finished.aborted);
    assert!(!bed.sh("true").aborted, "a command without it does not care");
}

/// Starts a command that the service knows and that ignores SIGTERM, and waits until it does.
fn stubborn(bed: &Bed, timeout: Duration, grace: Duration, token: &AbortToken) -> Subprocess {
    let mut spec = bed.spawn_spec([support::child(), "ignore-term".into()]);
    (spec.timeout, spec.grace, spec.abort) = (Some(timeout), grace, Some(token.clone()));
    let process = bed.service.spawn(spec).unwrap();
    let observed = process.observed();
    until("SIGTERM is ignored", || observed.stdout.read_from(0).text == "ready\n");
    process
}

// C4, case 65
#[test]
fn an_abort_in_the_grace_of_a_timeout_changes_nothing() {
    let bed = Bed::new();
    let token = AbortToken::new();
    let process = stubborn(&bed, Duration::from_secs(3), Duration::from_secs(2), &token);
    until("the deadline passes", || process.cause().is_some());
    assert!(token.fire());
    assert!(!process.kill());
    let result = process.result().unwrap();
    assert_eq!(flags(&result), (true, false, Some(Cause::Timeout)));
    assert_eq!(result.signal, Some(libc::SIGKILL));
}

// C4, case 65
#[test]
fn a_timeout_in_the_grace_of_an_abort_changes_nothing() {
    let bed = Bed::new();
    let token = AbortToken::new();
    let process = stubborn(&bed, Duration::from_secs(3), Duration::from_secs(4), &token);
    assert!(token.fire());
    assert_eq!(process.cause(), Some(Cause::Abort), "at once");
    let result = process.result().unwrap();
    assert!(result.duration > Duration::from_secs(3), "the deadline has passed meanwhile");
    assert_eq!(flags(&result), (false, true, Some(Cause::Abort)));
    assert_eq!(result.signal, Some(libc::SIGKILL));
}

// C1, case 65
#[test]
fn an_abort_beside_the_deadline_leaves_one_stable_cause() {
    let bed = Bed::with(|config| config.grace = Duration::from_secs(10));
    let deadline = Duration::from_millis(30);
    let mut seen = [0, 0];
    for round in 0..100_u32 {
        let token = AbortToken::new();
        let request = bed.request("exec sleep 300").timeout(deadline).abort(&token);
        let execution = bed.execute(request);
        // From one millisecond before to one after.
        let at = Instant::now() + deadline - Duration::from_millis(1)
            + Duration::from_micros(u64::from(round % 21) * 100);
        let firing = thread::spawn(move || {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            token.fire()
        });
        match execution.result() {
            Ok(result) => {
                assert_ne!(result.timed_out, result.aborted, "exactly one");
                let cause = if result.timed_out { Cause::Timeout } else { Cause::Abort };
                assert_eq!(result.cause, Some(cause));
                seen[usize::from(result.aborted)] += 1;
                assert!(firing.join().unwrap());
                assert_eq!(flags(&execution.result().unwrap()), flags(&result));
            }
            // Aborted before there was a process.
            Err(error) => {
                assert_eq!(error, Error::Aborted);
                assert!(firing.join().unwrap());
            }
        }
        assert_eq!(execution.status(), ProcessStatus::Killed);
    }
    eprintln!("{} timeouts, {} aborts", seen[0], seen[1]);
}

// C3
#[test]
fn once_the_leader_has_exited_neither_deadline_nor_token_nor_kill_claims_the_run() {
    let bed = Bed::new();
    let token = AbortToken::new();
    let gate = bed.gate("gate");
    let mut spec = bed.spawn_sh("{ read x <$D/gate; echo late; } & echo early; exit 3");
    spec.timeout = Some(Duration::from_secs(3));
    spec.abort = Some(token.clone());
    // The stream is held, and nobody gives it up: the run does not settle before the gate is opened.
    (spec.drain_idle, spec.grace) = (Duration::from_secs(600), Duration::from_secs(600));
    let begun = Instant::now();
    let process = bed.service.spawn(spec).unwrap();
    until("the leader's exit is seen", || process.cause().is_some());
    assert_eq!(process.cause(), Some(Cause::Exit));
    assert!(token.fire());
    assert!(!process.kill());
    thread::sleep((begun + Duration::from_millis(3500)).saturating_duration_since(Instant::now()));
    assert_eq!(process.try_wait(), None);
    gate.open();
    let result = process.result().unwrap();
    assert_eq!(flags(&result), (false, false, Some(Cause::Exit)));
    assert_eq!((result.exit_code, result.status), (Some(3), ProcessStatus::Completed));
    assert_eq!(result.stdout.text, "early\nlate\n");
}

// C5, case 65
#[test]
fn a_token_fired_before_spawns_nothing() {
    let bed = Bed::new();
    let token = AbortToken::new();
    token.fire();
    let spec = || bed.bash.resolve(bed.request("touch $D/x").abort(&token)).unwrap();
    assert_eq!(bed.bash.run(spec()).unwrap_err(), Error::Aborted);
    assert_eq!(bed.bash.start(spec()).unwrap_err(), Error::Aborted);
    let execution = bed.bash.execute(spec());
    assert_eq!((execution.status(), execution.pid()), (ProcessStatus::Killed, None));
    assert_eq!(execution.result().unwrap_err(), Error::Aborted);
    assert_eq!(execution.result().unwrap_err().code(), "ABORTED");
    let offered = bed.bash.resolve(bed.request("touch $D/x").abort(&token).on_expiry(OnExpiry::Offer));
    assert!(bed.bash.execute(offered.unwrap()).promotion().is_none());
    bed.service.dispose();
    assert!(!bed.path("x").exists());
}

// C1, T4
#[test]
fn nothing_is_left_whatever_the_cause() {
    let bed = Bed::new();
    let (by_timeout, by_abort) = (nap(), nap());
    let token = AbortToken::new();
    let tree = |nap: &str| format!("sleep {nap} & (sleep {nap}; :) & echo ready; sleep {nap}");
    let aborted = bed.start(bed.request(tree(&by_abort)).abort(&token));
    until_running(&by_abort, 3);
    token.fire();
    let timed_out = bed.run(bed.request(tree(&by_timeout)).timeout(Duration::from_millis(500)));
    assert!(timed_out.timed_out && aborted.result().unwrap().aborted);
    assert!(with_argument(&by_timeout).is_empty() && with_argument(&by_abort).is_empty());
}
