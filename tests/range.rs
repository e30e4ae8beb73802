//! The range: everything a command has started is found, stopped, or left running and counted.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{Cause, Containment, Execution, ProcessStatus, RunResult};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use support::{
    Bed, PATIENCE, SOON, is_alone, lives, nap, process, read_until, run_alone, script, see, until,
    until_running, until_some, with_argument,
};

/// A bed whose ladder takes no longer than a test likes to wait, and yet leaves SIGTERM its time.
fn short_grace() -> Bed {
    Bed::with(|config| config.grace = Duration::from_secs(1))
}

/// A bed where a held stream is given up soon.
fn short_drain() -> Bed {
    Bed::with(|config| config.drain_idle = Duration::from_millis(100))
}

#[track_caller]
fn assert_by_itself(result: &RunResult, stdout: &str) {
    assert_eq!(result.stdout.text, stdout);
    assert_eq!((result.exit_code, result.cause), (Some(0), Some(Cause::Exit)));
    assert_eq!(result.status, ProcessStatus::Completed);
    assert!(!result.timed_out && !result.aborted);
}

/// The number that `test-child daemon` prints.
#[track_caller]
fn daemon(execution: &Execution) -> i32 {
    read_until(execution, "\n").trim().parse().unwrap()
}

// --- held streams --------------------------------------------------------------------------------------------------

// T7, case 1
#[test]
fn a_background_child_that_holds_stdout_does_not_hold_the_call() {
    let bed = short_drain();
    let nap = nap();
    let begun = Instant::now();
    let result = bed.run(bed.request(format!("sleep {nap} & echo done")).timeout(Duration::from_secs(60)));
    assert!(begun.elapsed() < SOON);
    assert_by_itself(&result, "done\n");
    assert!(result.pipes_held && result.survivors == 1);
    until_running(&nap, 1);
}

// T7, T8, case 2
#[test]
fn a_process_substitution_that_outlives_the_shell_is_bounded_and_still_read() {
    let bed = short_drain();
    let gate = bed.gate("gate");
    let execution = bed.begin("echo hi > >(read x <$D/gate; cat)");
    let result = execution.result().unwrap();
    assert_by_itself(&result, "");
    assert!(result.pipes_held);
    gate.open();
    assert_eq!(read_until(&execution, "hi\n"), "hi\n");
}

// T7, O11, case 2
#[test]
fn the_last_words_of_a_process_substitution_are_caught() {
    // Whoever still works holds the stream; the idle time is only for one who does not.
    let bed = Bed::with(|config| {
        config.drain_idle = Duration::from_secs(20);
        config.grace = Duration::from_secs(20);
    });
    for round in 0..100 {
        let result = bed.sh("exec > >(cat) 2>&1; echo hi");
        assert_eq!((result.stdout.text.as_str(), result.pipes_held), ("hi\n", false), "round {round}");
    }
}

// T7, case 4
#[test]
fn giving_up_a_stream_keeps_what_was_read() {
    let bed = short_drain();
    let result = bed.sh(&format!("seq 1 1000; sleep {} &", nap()));
    let all: String = (1..=1000).map(|number| format!("{number}\n")).collect();
    assert_by_itself(&result, &all);
    assert!(result.pipes_held);
}

// T7, case 6
#[test]
fn a_held_stream_is_never_an_error() {
    let bed = short_drain();
    let result = bed.sh(&format!("sleep {} & exit 0", nap()));
    assert_by_itself(&result, "");
    assert!(result.pipes_held && result.success());
}

// T7, case 7
#[test]
fn a_helper_in_a_session_of_its_own_that_keeps_stderr_is_left_running() {
    let bed = short_drain();
    let nap = nap();
    let result = bed.sh(&format!("( setsid sleep {nap} >/dev/null & ); echo pushed"));
    assert_by_itself(&result, "pushed\n");
    assert!(result.pipes_held && result.survivors == 1);
    until_running(&nap, 1);
}

// T7
#[test]
fn a_chatty_holder_is_bounded_by_the_grace() {
    let bed = Bed::with(|config| {
        config.drain_idle = Duration::from_secs(600);
        config.grace = Duration::from_millis(1500);
    });
    let begun = Instant::now();
    let result = bed.sh("while :; do echo more; sleep 0.02; done & echo started");
    assert!(result.duration >= Duration::from_millis(1500) && begun.elapsed() < SOON);
    assert!(result.stdout.text.contains("started\n") && result.stdout.text.contains("more\n"));
    assert!(result.pipes_held && result.exit_code == Some(0));
}

// T7
#[test]
fn a_silent_holder_is_given_up_after_the_idle_time() {
    let bed = Bed::with(|config| {
        config.drain_idle = Duration::from_millis(50);
        config.grace = Duration::from_secs(600);
    });
    let begun = Instant::now();
    assert!(bed.sh(&format!("sleep {} & echo started", nap())).pipes_held);
    assert!(begun.elapsed() < SOON);
}

// T7, E10
#[test]
fn held_streams_and_survivors_are_separate_facts() {
    let bed = short_drain();
    // It ends only when the sleeper has let go of the streams.
    let lets_go = format!("(exec >/dev/null 2>&1; : >$D/gone; exec sleep {}) &", nap());
    let silent = bed.sh(&format!("{lets_go} until [ -e $D/gone ]; do sleep 0.01; done; echo started"));
    assert_by_itself(&silent, "started\n");
    assert_eq!((silent.pipes_held, silent.survivors), (false, 1));
    let holding = bed.sh(&format!("sleep {} & sleep {} & echo started", nap(), nap()));
    assert_eq!((holding.pipes_held, holding.survivors), (true, 2));
    let neither = bed.sh("sleep 0.01 & wait; echo started");
    assert_eq!((neither.pipes_held, neither.survivors), (false, 0));
}

// --- survivors -----------------------------------------------------------------------------------------------------

// T8, case 68
#[test]
fn the_leader_has_ended_and_what_it_left_is_counted() {
    let bed = Bed::new();
    let nap = nap();
    let execution = bed.begin(&format!("nohup sleep {nap} >/dev/null 2>&1 & echo started"));
    let result = execution.result().unwrap();
    assert_by_itself(&result, "started\n");
    assert_eq!((result.survivors, execution.status()), (1, ProcessStatus::Completed));
    until_running(&nap, 1);
    assert!(!execution.wait_range(Some(Duration::from_millis(20))), "something is left");
}

// T8
#[test]
fn survivors_keep_running_and_are_still_read() {
    let bed = Bed::with(|config| {
        config.drain_idle = Duration::from_millis(100);
        config.output_max_bytes = 1000;
    });
    let gate = bed.gate("gate");
    let command = "{ read x <$D/gate; seq 1 100000; echo late >&2; touch $D/done; } & echo started";
    let execution = bed.begin(command);
    let result = execution.result().unwrap();
    assert_by_itself(&result, "started\n");
    assert_eq!(execution.read_output().delta, "started\n");
    gate.open();
    // Neither SIGPIPE nor a full pipe stops it.
    until("it has written all it had", || bed.path("done").exists());
    let observed = execution.observed().unwrap();
    until("all of it is read", || {
        observed.stdout.total_bytes() == 588_903 && observed.stderr.total_bytes() == 5
    });
    assert!(execution.wait_range(Some(PATIENCE)), "it has ended by itself");
    let all: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let read = execution.read_output();
    assert!(!read.lossy && read.delta == format!("{all}[stderr]\nlate\n"));
    assert_eq!(execution.result().unwrap().stdout.text, "started\n", "the result does not change");
}

// T8
#[test]
fn survivors_are_stopped_when_asked_for() {
    let bed = short_drain();
    let nap = nap();
    let gate = bed.gate("gate");
    let command = format!("sleep {nap} & setsid sleep {nap} & (sleep {nap}; :) & read x <$D/gate");
    let execution = bed.begin(&command);
    until_running(&nap, 3);
    gate.open();
    // The subshell that waits for its own sleeper counts as well.
    assert_eq!(execution.result().unwrap().survivors, 4);
    assert!(!execution.kill(), "the command has ended");
    assert_eq!(with_argument(&nap).len(), 3, "and kill() has sent nothing");
    assert!(execution.kill_survivors());
    assert!(execution.wait_range(Some(PATIENCE)));
    assert!(with_argument(&nap).is_empty());
    assert!(!execution.kill_survivors(), "nothing is left");
    assert_eq!(execution.result().unwrap().cause, Some(Cause::Exit));
}

// T8, T4
#[test]
fn a_survivor_that_ignores_the_signal_is_killed_after_the_grace() {
    let bed = Bed::with(|config| {
        config.grace = Duration::from_secs(1);
        config.drain_idle = Duration::from_millis(100);
    });
    let nap = nap();
    let execution = bed.begin(&format!("\"$CHILD\" ignore-term {nap} &"));
    see(&execution, "ready");
    execution.wait();
    assert!(execution.kill_survivors());
    assert!(execution.wait_range(Some(PATIENCE)));
    assert!(with_argument(&nap).is_empty());
}

// T8
#[test]
fn survivors_of_a_running_command_are_not_stopped() {
    let bed = Bed::new();
    let nap = nap();
    let execution = bed.begin(&format!("sleep {nap} & wait"));
    until_running(&nap, 1);
    assert!(!execution.kill_survivors(), "its leader still runs");
    assert_eq!(execution.status(), ProcessStatus::Running);
    assert_eq!(with_argument(&nap).len(), 1);
    assert!(execution.kill());
    execution.wait();
}

// T8
#[test]
fn a_command_that_leaves_nothing_has_no_survivors_to_stop() {
    let bed = Bed::new();
    for _ in 0..50 {
        let execution = bed.begin("true");
        assert_eq!(execution.result().unwrap().survivors, 0);
        assert!(!execution.kill_survivors());
    }
}

// T8
#[test]
fn the_range_is_over_when_its_last_member_ends_by_itself() {
    let bed = Bed::new();
    let gate = bed.gate("gate");
    let execution = bed.begin("{ read x <$D/gate; } >/dev/null 2>&1 & exit 4");
    assert_eq!(execution.result().unwrap().survivors, 1);
    let waiting = {
        let execution = execution.clone();
        thread::spawn(move || execution.wait_range(None))
    };
    gate.open();
    assert!(waiting.join().unwrap());
    assert!(execution.wait_range(Some(Duration::ZERO)));
    assert!(!lives(execution.pid().unwrap()));
}

// --- the ladder ----------------------------------------------------------------------------------------------------

// T4, T5, case 9
#[test]
fn a_deadline_stops_the_children_as_well() {
    let bed = short_grace();
    let nap = nap();
    let begun = Instant::now();
    let command = format!("sleep {nap} & sleep {nap}");
    let result = bed.run(bed.request(command).timeout(Duration::from_secs(1)));
    assert!(begun.elapsed() < SOON && result.cause == Some(Cause::Timeout));
    assert!(with_argument(&nap).is_empty());
    assert_eq!((result.survivors, result.signal), (0, Some(libc::SIGTERM)));
}

// T4, case 10
#[test]
fn a_tree_that_ignores_the_signal_is_killed_after_the_grace() {
    let bed = short_grace();
    let nap = nap();
    let begun = Instant::now();
    let command = format!("trap '' TERM; (trap '' TERM; sleep {nap}) & sleep {nap}; wait");
    let result = bed.run(bed.request(command).timeout(Duration::from_secs(1)));
    assert!(begun.elapsed() < SOON && begun.elapsed() >= Duration::from_secs(2));
    assert!(result.timed_out && result.signal == Some(libc::SIGKILL));
    assert!(with_argument(&nap).is_empty());
}

// T4, case 10
#[test]
fn kill_reaches_a_grandchild_that_ignores_term() {
    let bed = short_grace();
    for session in ["", "setsid "] {
        let nap = nap();
        let execution = bed.begin(&format!("{session}\"$CHILD\" ignore-term {nap} & sleep {nap}; :"));
        see(&execution, "ready");
        until_running(&nap, 2);
        assert!(execution.kill());
        let result = execution.result().unwrap();
        assert_eq!(result.signal, Some(libc::SIGTERM), "the leader went at the first signal");
        assert!(with_argument(&nap).is_empty(), "and the ladder has not stopped there");
        assert_eq!(result.survivors, 0);
    }
}

// T4
#[test]
fn without_a_grace_the_forceful_signal_comes_first() {
    let bed = Bed::with(|config| config.grace = Duration::ZERO);
    let execution = bed.begin("trap 'echo asked' TERM; echo ready; sleep 300 & wait; sleep 300");
    see(&execution, "ready");
    assert!(execution.kill());
    let result = execution.result().unwrap();
    assert_eq!((result.signal, result.stdout.text.as_str()), (Some(libc::SIGKILL), "ready\n"));
}

// T4
#[test]
fn a_command_that_ends_in_its_grace_ends_as_it_likes() {
    let bed = Bed::with(|config| config.grace = Duration::from_secs(20));
    let gate = bed.gate("gate");
    let command =
        "trap 'echo saving; read x <$D/gate; echo saved; exit 3' TERM; echo ready; sleep 300 & wait";
    let execution = bed.begin(command);
    see(&execution, "ready");
    assert!(execution.kill());
    see(&execution, "saving");
    gate.open();
    let result = execution.result().unwrap();
    assert_eq!((result.exit_code, result.signal), (Some(3), None));
    assert_eq!(result.stdout.text, "ready\nsaving\nsaved\n");
}

// T4
#[test]
fn a_stopped_command_is_ended_all_the_same() {
    let bed = Bed::with(|config| config.grace = Duration::from_secs(20));
    let stopped = |pid: i32| until("it is stopped", || process(pid).is_some_and(|it| it.state == 'T'));

    let execution = bed.begin("kill -STOP $$; echo never");
    stopped(execution.pid().unwrap());
    assert!(execution.kill());
    let result = execution.result().unwrap();
    assert_eq!((result.signal, result.stdout.text.as_str()), (Some(libc::SIGTERM), ""));

    // A stopped child in a group of its own.
    let nap = nap();
    let execution = bed.begin(&format!(
        "set -m; sleep {nap} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; sleep {nap}"
    ));
    until_running(&nap, 2);
    let member = |pid: &i32| process(*pid).is_some_and(|it| it.state == 'T');
    until("the child is stopped", || with_argument(&nap).iter().any(member));
    assert!(execution.kill());
    execution.wait();
    assert!(with_argument(&nap).is_empty());

    let timed_out = bed.run(bed.request("kill -STOP $$").timeout(Duration::from_secs(1)));
    assert!(timed_out.timed_out && timed_out.signal == Some(libc::SIGTERM));
}

// T4
#[test]
fn kill_is_true_for_one_call() {
    let bed = Bed::new();
    for _ in 0..10 {
        let execution = bed.begin("sleep 300");
        let start = Barrier::new(8);
        let won: usize = thread::scope(|scope| {
            let calls: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        usize::from(execution.kill())
                    })
                })
                .collect();
            calls.into_iter().map(|call| call.join().unwrap()).sum()
        });
        assert_eq!(won, 1);
        assert_eq!(execution.wait(), ProcessStatus::Killed);
        assert!(!execution.kill());
        assert_eq!(execution.result().unwrap().cause, Some(Cause::Kill));
    }
}

// T4, T6, case 22
#[test]
fn kill_after_the_end_is_false_and_hits_nobody() {
    let bed = Bed::new();
    let ended: Vec<Execution> = (0..20).map(|_| bed.begin("exit 0")).collect();
    ended.iter().for_each(|execution| assert_eq!(execution.wait(), ProcessStatus::Completed));
    let bystanders: Vec<Execution> = (0..5).map(|_| bed.begin("read x <$D/gate || sleep 300")).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                bed.sh("true");
            }
        });
        for _ in 0..50 {
            assert!(!ended.iter().any(Execution::kill));
            assert!(!ended.iter().any(Execution::kill_survivors));
        }
    });
    assert!(bystanders.iter().all(|bystander| bystander.try_wait().is_none()));
    bystanders.iter().for_each(|bystander| assert!(bystander.kill()));
}

// T12, T4, case 30
#[test]
fn waiting_and_killing_from_many_threads_never_deadlocks() {
    let bed = Bed::new();
    let begun = Instant::now();
    for round in 0..100_u64 {
        let execution = bed.execute(bed.request("exec sleep 300"));
        let pause = Duration::from_micros(round % 10 * 300);
        let kills: usize = thread::scope(|scope| {
            let waiter = scope.spawn(|| execution.wait());
            let killers = [0, 1].map(|_| {
                scope.spawn(|| {
                    thread::sleep(pause);
                    usize::from(execution.kill())
                })
            });
            let poller = execution.clone();
            scope.spawn(move || {
                while poller.try_wait().is_none() {
                    let _ = (poller.status(), poller.read_output(), poller.pid());
                    thread::sleep(Duration::from_micros(200));
                }
            });
            let dropped = execution.clone();
            scope.spawn(move || drop(dropped));
            let ends = waiter.join().unwrap();
            assert_eq!(ends, ProcessStatus::Killed);
            killers.into_iter().map(|killer| killer.join().unwrap()).sum()
        });
        assert_eq!(kills, 1, "round {round}");
    }
    assert!(begun.elapsed() < 4 * PATIENCE);
}

// --- who belongs to it ---------------------------------------------------------------------------------------------

// T5
#[test]
fn jobs_in_groups_of_their_own_belong_to_the_range() {
    let bed = Bed::new();
    let nap = nap();
    let execution = bed.begin(&format!("set -m; sleep {nap} & sleep {nap} & timeout 300 sleep {nap} & wait"));
    // The last is found as an argument of timeout(1) as well.
    until_running(&nap, 4);
    let groups: Vec<i32> = with_argument(&nap).iter().filter_map(|&pid| Some(process(pid)?.group)).collect();
    assert!(groups.iter().all(|&group| Some(group) != execution.pid()), "{groups:?}");
    assert!(execution.kill());
    assert_eq!(execution.result().unwrap().survivors, 0);
    assert!(with_argument(&nap).is_empty());
}

// T5
#[test]
fn a_backgrounded_timeout_belongs_to_the_range() {
    let bed = Bed::new();
    let nap = nap();
    let execution = bed.begin(&format!("timeout 300 sleep {nap} >/dev/null 2>&1 & exit 0"));
    assert_eq!(execution.result().unwrap().exit_code, Some(0));
    until_running(&nap, 2);
    assert!(execution.kill_survivors());
    assert!(execution.wait_range(Some(PATIENCE)));
    assert!(with_argument(&nap).is_empty());
}

// T5, case 12
#[test]
fn a_child_in_a_session_of_its_own_belongs_to_the_range() {
    let bed = Bed::new();
    let nap = nap();
    let command = format!("setsid sleep {nap} >/dev/null 2>&1 & wait");
    let execution = bed.start(bed.request(command).timeout(Duration::from_secs(4)));
    until_running(&nap, 1);
    let result = execution.result().unwrap();
    assert!(result.timed_out && result.survivors == 0);
    assert_eq!((result.containment, execution.containment()), (Containment::Session, Containment::Session));
    assert!(with_argument(&nap).is_empty());
}

// T5, case 13
#[test]
fn a_daemon_belongs_to_the_range_while_the_command_runs() {
    let bed = Bed::new();
    let nap = nap();
    let execution = bed.begin(&format!("\"$CHILD\" daemon close; exec sleep {nap}"));
    let daemon = daemon(&execution);
    until_running(&nap, 1);
    let itself = process(daemon).unwrap();
    assert_ne!(Some(itself.session), execution.pid());
    assert_ne!(Some(itself.parent), execution.pid());
    assert!(execution.kill());
    let result = execution.result().unwrap();
    assert_eq!(result.survivors, 0);
    assert!(!lives(daemon) && with_argument(&nap).is_empty());
}

// T5, T8, case 13
#[test]
fn a_daemon_belongs_to_the_range_after_the_command() {
    let bed = short_drain();
    for (held, pipes_held) in [("hold", true), ("close", false)] {
        let execution = bed.begin(&format!("\"$CHILD\" daemon {held}"));
        let daemon = daemon(&execution);
        let result = execution.result().unwrap();
        assert_eq!(
            (result.exit_code, result.pipes_held, result.survivors),
            (Some(0), pipes_held, 1),
            "{held}"
        );
        assert!(lives(daemon));
        assert!(execution.kill_survivors());
        assert!(execution.wait_range(Some(PATIENCE)));
        assert!(!lives(daemon));
    }
}

// T5, case 16
#[test]
fn a_child_that_cleared_its_environment_is_found_by_its_ancestry() {
    let bed = Bed::new();
    let nap = nap();
    let command = format!("env -i $(command -v setsid) sleep {nap} >/dev/null 2>&1 & echo ok; wait");
    let execution = bed.begin(&command);
    until_running(&nap, 1);
    let child = with_argument(&nap)[0];
    until("it has a session of its own", || process(child).is_some_and(|it| it.session == child));
    until("it has no marker", || std::fs::read(format!("/proc/{child}/environ")).unwrap().is_empty());
    assert!(execution.kill());
    let result = execution.result().unwrap();
    assert_eq!((result.survivors, result.containment), (0, Containment::Session));
    assert!(with_argument(&nap).is_empty());
}

// T5, case 16
#[test]
fn an_orphan_that_cleared_its_environment_is_found_by_its_session() {
    let bed = Bed::new();
    let nap = nap();
    let execution = bed.begin(&format!("env -i $(command -v sleep) {nap} >/dev/null 2>&1 & echo ok"));
    until_running(&nap, 1);
    assert_eq!(execution.result().unwrap().survivors, 1);
    assert!(execution.kill_survivors());
    assert!(execution.wait_range(Some(PATIENCE)));
    assert!(with_argument(&nap).is_empty());
}

// T5: a deep chain of generations, each an orphan of the last
#[test]
fn many_generations_of_orphans_are_found() {
    let bed = Bed::new();
    let nap = nap();
    let mut command = format!("setsid sleep {nap} &");
    for _ in 0..6 {
        command = format!("( {command} sleep {nap} & ) &");
    }
    let execution = bed.begin(&format!("({command}) >/dev/null 2>&1; echo ready; sleep {nap}"));
    until_running(&nap, 8);
    assert!(execution.kill());
    assert_eq!(execution.result().unwrap().survivors, 0);
    assert!(with_argument(&nap).is_empty());
}

// T5, T8
#[test]
fn a_daemon_that_is_always_between_two_programs_is_found() {
    let bed = Bed::new();
    // While a process changes its program it has no environment to be seen.
    script(&bed.path("again"), "#!/bin/sh\n[ -e \"$1\" ] || echo $$ >\"$1\"\nexec \"$0\" \"$1\"\n");
    for round in 0..40 {
        let seen = bed.path(&format!("seen{round}"));
        let command = format!("( ( setsid $D/again {} >/dev/null 2>&1 & ) )", seen.display());
        let execution = bed.begin(&command);
        let result = execution.result().unwrap();
        let number = || std::fs::read_to_string(&seen).ok()?.trim().parse().ok();
        let daemon: i32 = until_some("it runs", number);
        assert_eq!(result.survivors, 1, "round {round}");
        execution.kill_survivors();
        assert!(execution.wait_range(Some(PATIENCE)));
        let left = lives(daemon);
        if left {
            std::process::Command::new("kill").args(["-KILL", &daemon.to_string()]).status().unwrap();
        }
        assert!(!left, "round {round}");
    }
}

// T5
#[test]
fn nobody_else_is_touched() {
    let bed = Bed::new();
    let (mine, other) = (nap(), nap());
    let killed = bed.begin(&format!("sleep {mine} & setsid sleep {mine} & wait"));
    let neighbour = bed.begin(&format!("sleep {other} & setsid sleep {other} & wait"));
    until_running(&mine, 2);
    until_running(&other, 2);
    assert!(killed.kill());
    killed.wait();
    assert!(with_argument(&mine).is_empty());
    assert_eq!(with_argument(&other).len(), 2);
    assert_eq!(neighbour.try_wait(), None);
}

// T5: no range's mark is a part of another's, whatever their numbers
#[test]
fn the_hundredth_range_is_not_taken_for_the_first() {
    let bed = Bed::new();
    // The service counts its ranges; a mark that ended in the bare number would be found in those that begin with it.
    let daemons: Vec<(Execution, String)> = (0..40)
        .map(|_| {
            let nap = nap();
            let execution = bed.begin(&format!("( ( setsid sleep {nap} >/dev/null 2>&1 & ) )"));
            execution.wait();
            until_running(&nap, 1);
            (execution, nap)
        })
        .collect();
    for (stopped, (execution, nap)) in daemons.iter().enumerate() {
        assert!(execution.kill_survivors());
        assert!(execution.wait_range(Some(PATIENCE)));
        assert!(with_argument(nap).is_empty());
        for (_, other) in &daemons[stopped + 1..] {
            assert_eq!(with_argument(other).len(), 1, "stopping {stopped} has stopped another");
        }
    }
}

// T4
#[test]
fn a_range_of_zombies_is_gone() {
    run_alone("adopts_orphans_and_never_reaps_them");
}

#[test]
#[ignore = "a part of a_range_of_zombies_is_gone"]
fn adopts_orphans_and_never_reaps_them() {
    if !is_alone("adopts_orphans_and_never_reaps_them") {
        return;
    }
    // SAFETY: PR_SET_CHILD_SUBREAPER takes an integer. This process is here for this test alone.
    #[allow(unsafe_code, reason = "a host that is the first process of a container")]
    let set = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    assert_eq!(set, 0);
    let bed = Bed::with(|config| config.grace = Duration::from_secs(60));
    let execution = bed.begin("\"$CHILD\" daemon close; exec sleep 300");
    let daemon = daemon(&execution);
    assert!(execution.kill());
    let result = execution.result().unwrap();
    assert!(result.duration < SOON, "{:?}", result.duration);
    assert_eq!(result.survivors, 0);
    let us = i32::try_from(std::process::id()).unwrap();
    let zombie = process(daemon).unwrap();
    assert_eq!(
        (zombie.state, zombie.parent),
        ('Z', us),
        "T2: it is the host's, and nobody else waits for it"
    );

    // What a command leaves and what then ends by itself is no survivor either.
    let gate = bed.gate("gate");
    let execution = bed.begin("(read x <$D/gate & ) >/dev/null 2>&1; exit 0");
    assert_eq!(execution.result().unwrap().survivors, 1);
    gate.open();
    assert!(execution.wait_range(Some(PATIENCE)));
}

// T9, case 17
#[test]
fn what_is_left_of_a_finished_call_is_counted_and_goes_with_the_service() {
    let bed = Bed::new();
    let nap = nap();
    let command = format!("for i in 1 2 3; do sleep {nap} >/dev/null 2>&1 & done; exit 0");
    let result = bed.sh(&command);
    assert_eq!((result.exit_code, result.survivors), (Some(0), 3));
    until_running(&nap, 3);
    let disposal = bed.service.dispose();
    assert_eq!((disposal.stopped, disposal.survivors), (1, 0));
    assert!(with_argument(&nap).is_empty());
}
