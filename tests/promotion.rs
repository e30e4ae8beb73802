//! Promotion: a command that has outrun its deadline is kept if somebody says so in time, and stopped otherwise.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{AbortToken, Cause, Execution, OnExpiry, ProcessStatus};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use support::{Bed, PATIENCE, SOON, nap, see, until, until_running, with_argument};

/// Long enough for a command to be running when it passes, on any machine.
const DEADLINE: Duration = Duration::from_secs(1);

/// Long enough to be answered on any machine.
fn patient() -> Bed {
    Bed::with(|config| config.answer_window = PATIENCE)
}

/// A command that outruns its deadline, whose offer may be taken.
fn offered(bed: &Bed, command: &str) -> Execution {
    let request = bed.request(command).timeout(DEADLINE);
    bed.start(request.on_expiry(OnExpiry::Offer))
}

// P1
#[test]
fn without_an_offer_there_is_none_at_once() {
    let bed = Bed::new();
    for on_expiry in [OnExpiry::Kill, OnExpiry::None] {
        let execution = bed.start(bed.request("sleep 300").on_expiry(on_expiry));
        assert!(execution.promotion().is_none());
        assert_eq!(execution.try_wait(), None, "it has not waited for the end");
        assert!(execution.kill());
    }
}

// P1
#[test]
fn a_command_that_settles_first_is_not_offered() {
    let bed = patient();
    let gate = bed.gate("gate");
    let request = bed.request("read x <$D/gate; exit 3").on_expiry(OnExpiry::Offer);
    let execution = bed.start(request);
    let waiting = {
        let execution = execution.clone();
        thread::spawn(move || execution.promotion().is_none())
    };
    gate.open();
    assert!(waiting.join().unwrap());
    let result = execution.result().unwrap();
    assert_eq!((result.exit_code, result.timed_out), (Some(3), false));
    assert!(execution.promotion().is_none());
}

// P1
#[test]
fn the_offer_opens_when_the_deadline_passes_and_nothing_is_stopped() {
    let bed = patient();
    let begun = Instant::now();
    let execution = offered(&bed, "echo ready; sleep 300");
    let offer = execution.promotion().expect("the deadline passes");
    assert!(begun.elapsed() >= DEADLINE);
    assert_eq!(execution.status(), ProcessStatus::Running);
    see(&execution, "ready");
    assert!(offer.decline());
    execution.wait();
}

// P1
#[test]
fn the_offer_is_made_to_one_caller() {
    let bed = patient();
    let execution = offered(&bed, "sleep 300");
    let start = Barrier::new(4);
    let (offers, late) = thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    execution.promotion()
                })
            })
            .collect();
        let offers: Vec<_> = callers.into_iter().filter_map(|caller| caller.join().unwrap()).collect();
        (offers, execution.promotion())
    });
    assert_eq!(offers.len(), 1);
    assert!(late.is_none());
    assert_eq!(execution.try_wait(), None, "having none to give does not answer the one");
    drop(offers);
    assert!(execution.result().unwrap().timed_out);
}

// P2, case 79
#[test]
fn a_kept_command_goes_on_without_a_gap() {
    let bed = Bed::with(|config| {
        config.answer_window = PATIENCE;
        config.output_max_bytes = 3;
    });
    let gate = bed.gate("gate");
    let command = "echo a; read x <$D/gate; cat; echo b; echo err >&2; exit 5";
    let request = bed.request(command).timeout(DEADLINE).stdin("in\n");
    let execution = bed.start(request.on_expiry(OnExpiry::Offer));
    see(&execution, "a\n");
    let offer = execution.promotion().expect("the deadline passes");
    assert_eq!(execution.read_output().delta, "a\n");
    assert!(offer.accept());
    assert_eq!(execution.status(), ProcessStatus::Running);
    gate.open();
    let result = execution.result().unwrap();
    assert_eq!((result.exit_code, result.cause), (Some(5), Some(Cause::Exit)));
    assert_eq!((result.status, result.timed_out, result.aborted), (ProcessStatus::Completed, false, false));
    assert_eq!(result.timeout, Some(DEADLINE));
    assert_eq!(execution.read_output().delta, "in\nb\n[stderr]\nerr\n");
    let spilled = std::fs::read(result.stdout.spill_path.unwrap()).unwrap();
    assert_eq!(spilled, b"a\nin\nb\n", "from the first byte to the last");
}

// P2
#[test]
fn a_kept_command_meets_no_second_deadline() {
    let bed = Bed::with(|config| config.answer_window = Duration::from_secs(3));
    let gate = bed.gate("gate");
    let execution = offered(&bed, "read x <$D/gate; exit 4");
    assert!(execution.promotion().expect("the deadline passes").accept());
    let accepted = Instant::now();
    // The deadline once more, or the whole of the answer window.
    thread::sleep(Duration::from_millis(3500).saturating_sub(accepted.elapsed()));
    assert_eq!(execution.try_wait(), None);
    gate.open();
    assert_eq!(execution.result().unwrap().exit_code, Some(4));
}

// P2
#[test]
fn accepting_detaches_the_token() {
    let bed = patient();
    let gate = bed.gate("gate");
    let token = AbortToken::new();
    let request = bed.request("read x <$D/gate; exit 4").timeout(DEADLINE).abort(&token);
    let execution = bed.start(request.on_expiry(OnExpiry::Offer));
    assert!(execution.promotion().expect("the deadline passes").accept());
    assert!(token.fire());
    gate.open();
    let result = execution.result().unwrap();
    assert_eq!((result.exit_code, result.aborted, result.cause), (Some(4), false, Some(Cause::Exit)));
}

// P2
#[test]
fn a_kept_command_can_still_be_killed() {
    let bed = patient();
    let nap = nap();
    let execution = offered(&bed, &format!("sleep {nap} & setsid sleep {nap} & wait"));
    assert!(execution.promotion().expect("the deadline passes").accept());
    until_running(&nap, 2);
    assert!(execution.kill());
    let result = execution.result().unwrap();
    assert_eq!((result.cause, result.timed_out, result.aborted), (Some(Cause::Kill), false, false));
    assert!(with_argument(&nap).is_empty());
}

// P2
#[test]
fn declining_kills_now_and_the_run_has_timed_out() {
    let bed = Bed::with(|config| {
        config.answer_window = Duration::from_secs(600);
        config.grace = Duration::from_secs(20);
    });
    let begun = Instant::now();
    let execution = offered(&bed, "sleep 300");
    assert!(execution.promotion().expect("the deadline passes").decline());
    let result = execution.result().unwrap();
    assert!(result.timed_out && result.cause == Some(Cause::Timeout) && begun.elapsed() < SOON);
    assert_eq!(result.signal, Some(libc::SIGTERM));
}

// P3
#[test]
fn a_dropped_offer_declines() {
    let bed = Bed::with(|config| config.answer_window = Duration::from_secs(600));
    let begun = Instant::now();
    let execution = offered(&bed, "sleep 300");
    drop(execution.promotion().expect("the deadline passes"));
    assert!(execution.result().unwrap().timed_out && begun.elapsed() < SOON);
}

// P3
#[test]
fn an_offer_nobody_takes_is_declined() {
    let bed = Bed::with(|config| config.answer_window = Duration::from_millis(200));
    let begun = Instant::now();
    let execution = offered(&bed, "sleep 300");
    let result = execution.result().unwrap();
    assert!(result.timed_out && begun.elapsed() < SOON);
    assert!(result.duration >= DEADLINE + Duration::from_millis(200), "the deadline and the window");
    assert!(execution.promotion().is_none());
}

// P3
#[test]
fn an_offer_nobody_answers_is_declined_and_then_accepts_nothing() {
    let bed = Bed::with(|config| config.answer_window = Duration::from_millis(400));
    let execution = offered(&bed, "sleep 300");
    // On a machine that takes longer than the window there is no offer any more, which is as good.
    let offer = execution.promotion();
    let result = execution.result().unwrap();
    assert!(result.timed_out);
    assert!(!offer.is_some_and(|offer| offer.accept()), "it came too late");
    assert!(execution.result().unwrap().timed_out);
}

// P3: forgetting falls back to a timeout, never to a process that nobody watches
#[test]
fn a_forgotten_offer_keeps_nothing() {
    let bed = Bed::with(|config| config.answer_window = Duration::from_secs(2));
    let nap = nap();
    let execution = offered(&bed, &format!("sleep {nap}; :"));
    until_running(&nap, 1);
    if let Some(offer) = execution.promotion() {
        std::mem::forget(offer);
    }
    drop(execution);
    until("it is gone", || with_argument(&nap).is_empty());
}

// P4
#[test]
fn an_abort_while_the_offer_is_open_cuts_the_run_short() {
    let bed = patient();
    let token = AbortToken::new();
    let request = bed.request("sleep 300").timeout(DEADLINE).abort(&token);
    let execution = bed.start(request.on_expiry(OnExpiry::Offer));
    let offer = execution.promotion().expect("the deadline passes");
    assert!(token.fire());
    assert!(!offer.accept());
    let result = execution.result().unwrap();
    assert_eq!((result.aborted, result.timed_out, result.cause), (true, false, Some(Cause::Abort)));
}

// P4, T4
#[test]
fn a_kill_while_the_offer_is_open_cuts_the_run_short() {
    let bed = patient();
    let execution = offered(&bed, "sleep 300");
    let offer = execution.promotion().expect("the deadline passes");
    assert!(execution.kill());
    assert!(!offer.decline(), "it is not a timeout any more");
    let result = execution.result().unwrap();
    assert_eq!((result.cause, result.timed_out), (Some(Cause::Kill), false));
}

// P4, T9
#[test]
fn a_disposal_while_the_offer_is_open_cuts_the_run_short() {
    let bed = patient();
    let execution = offered(&bed, "sleep 300");
    let offer = execution.promotion().expect("the deadline passes");
    assert_eq!(bed.service.dispose().stopped, 1);
    assert!(!offer.accept());
    assert_eq!(execution.result().unwrap().cause, Some(Cause::Disposal));
}

// P1, C3, case 79
#[test]
fn an_exit_while_the_offer_is_open_is_an_exit() {
    let bed = patient();
    for accept in [true, false] {
        let name = format!("gate-{accept}");
        let gate = bed.gate(&name);
        let execution = offered(&bed, &format!("read x <$D/{name}; echo done; exit 3"));
        let offer = execution.promotion().expect("the deadline passes");
        gate.open();
        let result = execution.result().unwrap();
        assert!(
            !if accept { offer.accept() } else { offer.decline() },
            "there is nothing to keep or to stop"
        );
        assert_eq!((result.exit_code, result.cause), (Some(3), Some(Cause::Exit)));
        assert_eq!((result.timed_out, result.stdout.text.as_str()), (false, "done\n"));
        assert_eq!(execution.result().unwrap(), result);
    }
}

// P2, P4: whichever comes first, and never both
#[test]
fn an_answer_beside_an_abort_has_one_outcome() {
    let bed = Bed::with(|config| config.answer_window = PATIENCE);
    for round in 0..30_u64 {
        let token = AbortToken::new();
        let request = bed.request("exec sleep 300").timeout(Duration::from_millis(30)).abort(&token);
        let execution = bed.start(request.on_expiry(OnExpiry::Offer));
        let Some(offer) = execution.promotion() else {
            // The deadline came before the process.
            assert!(execution.result().unwrap().timed_out);
            continue;
        };
        let firing = thread::spawn(move || {
            thread::sleep(Duration::from_micros(round * 5));
            token.fire()
        });
        let kept = offer.accept();
        assert!(firing.join().unwrap());
        if kept {
            assert!(execution.kill(), "the token has left it alone");
            assert_eq!(execution.result().unwrap().cause, Some(Cause::Kill));
        } else {
            assert_eq!(execution.result().unwrap().cause, Some(Cause::Abort));
        }
    }
}

// P1: the offer outlives whoever asked for it
#[test]
fn an_offer_answers_after_its_handle_is_gone() {
    let bed = patient();
    let gate = bed.gate("gate");
    let execution = offered(&bed, "read x <$D/gate; touch $D/done");
    let offer = execution.promotion().expect("the deadline passes");
    drop(execution);
    assert!(offer.accept());
    gate.open();
    until("the command has gone on", || bed.path("done").exists());
}
