//! Disposal: the service takes down everything that it has started, once, and says what it could not.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{
    Cause, Disposal, Error, ExecRequest, Execution, OnExpiry, ProcessStatus, ShellExecutor,
};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};
use support::{
    Bed, PATIENCE, SOON, is_alone, lives, nap, run_alone, see, until, until_running, with_argument,
};

// T9
#[test]
fn every_range_is_stopped_and_every_waiter_woken() {
    let bed = Bed::new();
    let nap = nap();
    let foreground = bed.begin(&format!("sleep {nap} & setsid sleep {nap} & wait"));
    let background = bed.begin(&format!("sleep {nap}; :"));
    until_running(&nap, 3);
    let waiting = thread::spawn(move || foreground.result().unwrap());
    let disposal = bed.service.dispose();
    assert_eq!((disposal.stopped, disposal.survivors), (2, 0));
    assert!(with_argument(&nap).is_empty());
    let result = waiting.join().unwrap();
    assert_eq!((result.cause, result.status), (Some(Cause::Disposal), ProcessStatus::Killed));
    assert!(!result.timed_out && !result.aborted);
    assert_eq!(background.try_wait(), Some(ProcessStatus::Killed), "it is settled when dispose returns");
    assert!(background.wait_range(Some(Duration::ZERO)));
}

// T9, case 13
#[test]
fn survivors_of_settled_runs_are_stopped() {
    let bed = Bed::new();
    let nap = nap();
    let settled = bed.begin(&format!("( ( setsid sleep {nap} >/dev/null 2>&1 & ) ); echo up"));
    assert_eq!(settled.result().unwrap().stdout.text, "up\n");
    until_running(&nap, 1);
    assert_eq!(bed.service.dispose().stopped, 1);
    assert!(with_argument(&nap).is_empty());
    let result = settled.result().unwrap();
    assert_eq!((result.cause, result.survivors), (Some(Cause::Exit), 1), "its outcome stays");
}

// T9
#[test]
fn a_service_with_nothing_running_has_nothing_to_stop() {
    let bed = Bed::new();
    assert_eq!(bed.sh("true").exit_code, Some(0));
    // A range is released a moment after its result is known.
    let ended = bed.begin("true");
    assert!(ended.wait_range(None));
    let disposal = bed.service.dispose();
    assert_eq!(disposal.survivors, 0);
    assert!(disposal.stopped <= 1);
}

// T9
#[test]
fn disposal_is_idempotent() {
    let bed = Bed::new();
    let execution = bed.begin("echo ready; sleep 300");
    see(&execution, "ready");
    let first = bed.service.dispose();
    assert_eq!(first.stopped, 1);
    assert_eq!(bed.service.dispose(), first);
    assert_eq!(bed.service.clone().dispose(), first);
}

// T9
#[test]
fn concurrent_disposals_wait_for_one_another_and_agree() {
    let bed = Bed::with(|config| config.grace = Duration::from_secs(1));
    let nap = nap();
    let running: Vec<Execution> =
        (0..3).map(|_| bed.begin(&format!("trap '' TERM; echo ready; sleep {nap} & wait; wait"))).collect();
    running.iter().for_each(|execution| see(execution, "ready"));
    until_running(&nap, 3);
    let all: Vec<Disposal> = thread::scope(|scope| {
        let calls: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let disposal = bed.service.dispose();
                    assert!(with_argument(&nap).is_empty(), "whoever returns finds it done");
                    disposal
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(all.iter().all(|disposal| *disposal == all[0]));
    assert_eq!((all[0].stopped, all[0].survivors), (3, 0));
}

// T9, T4
#[test]
fn one_that_ignores_the_signal_is_killed_after_the_grace() {
    let bed = Bed::with(|config| config.grace = Duration::from_secs(1));
    let nap = nap();
    let execution = bed.begin(&format!("\"$CHILD\" ignore-term {nap} & \"$CHILD\" ignore-term {nap}"));
    until_running(&nap, 2);
    see(&execution, "ready\nready\n");
    let begun = Instant::now();
    assert_eq!(bed.service.dispose().survivors, 0);
    assert!(begun.elapsed() >= Duration::from_secs(1) && begun.elapsed() < SOON);
    assert!(with_argument(&nap).is_empty());
    assert_eq!(execution.signal(), Some(libc::SIGTERM), "its shell went at the first signal");
}

// T9
#[test]
fn nothing_is_started_afterwards() {
    let bed = Bed::new();
    bed.service.dispose();
    let spec = || bed.bash.resolve(bed.request("touch $D/made")).unwrap();
    assert_eq!(bed.bash.run(spec()).unwrap_err(), Error::Disposed);
    assert_eq!(bed.bash.start(spec()).unwrap_err(), Error::Disposed);
    let execution = bed.bash.execute(spec());
    assert_eq!((execution.wait(), execution.pid()), (ProcessStatus::Killed, None));
    assert_eq!(execution.result().unwrap_err().code(), "DISPOSED");
    assert!(execution.wait_range(None));
    assert_eq!(bed.service.spawn(bed.spawn_sh("touch $D/made")).unwrap_err(), Error::Disposed);
    assert!(!bed.path("made").exists());
}

// T9: what is started while a disposal goes on either runs and is stopped, or is refused
#[test]
fn a_start_beside_a_disposal_leaves_nothing() {
    for _ in 0..20 {
        let bed = Bed::new();
        let nap = nap();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let execution = bed.execute(bed.request(format!("exec sleep {nap}")));
                        match execution.result() {
                            Ok(result) => assert_eq!(result.cause, Some(Cause::Disposal)),
                            Err(error) => assert_eq!(error, Error::Disposed),
                        }
                    }
                });
            }
            scope.spawn(|| bed.service.dispose());
        });
        assert!(with_argument(&nap).is_empty());
    }
}

// T9
#[test]
fn dropping_an_executor_leaves_its_processes_running() {
    let bed = Bed::new();
    let gate = bed.gate("gate");
    let execution = bed.begin("read x <$D/gate; exit 5");
    drop(bed.bash);
    gate.open();
    assert_eq!(execution.result().unwrap().exit_code, Some(5));
}

// T9
#[test]
fn dropping_the_last_reference_disposes() {
    let bed = Bed::new();
    let nap = nap();
    let execution = bed.begin(&format!("sleep {nap} & wait"));
    until_running(&nap, 1);
    let Bed { bash, service, dir } = bed;
    let second = service.clone();
    drop(service);
    assert_eq!(execution.try_wait(), None, "a clone is the same service");
    drop(second);
    assert!(with_argument(&nap).is_empty());
    assert_eq!(execution.try_wait(), Some(ProcessStatus::Killed));
    assert_eq!(execution.result().unwrap().cause, Some(Cause::Disposal));
    // The executor has no part in the service's life.
    let late = bash.run(bash.resolve(ExecRequest::new("true")).unwrap());
    assert_eq!(late.unwrap_err(), Error::Disposed);
    drop(dir);
}

// T9, E2
#[test]
fn a_handle_stays_valid_after_its_service() {
    let bed = Bed::with(|config| config.output_max_bytes = 100);
    let execution = bed.begin("seq 1 1000; echo err >&2; exit 3");
    let result = execution.result().unwrap();
    assert!(result.stdout.spill_path.as_ref().unwrap().exists());
    bed.service.dispose();
    drop((bed.bash, bed.service));
    assert_eq!(execution.result().unwrap(), result);
    assert!(!result.stdout.spill_path.unwrap().exists(), "the file went with the service");
    let read = execution.read_output();
    assert!(read.lossy, "and what only it had is gone");
    assert!(read.delta.ends_with("\n1000\n[stderr]\nerr\n") && read.stdout_spill_path.is_none());
    assert!(!execution.kill() && execution.wait_range(None));
}

// T9, P2
#[test]
fn a_promoted_command_is_stopped_as_well() {
    let bed = Bed::with(|config| config.answer_window = PATIENCE);
    let nap = nap();
    let request = bed.request(format!("sleep {nap} & wait")).timeout(Duration::from_secs(1));
    let execution = bed.start(request.on_expiry(OnExpiry::Offer));
    assert!(execution.promotion().expect("the deadline passes").accept());
    until_running(&nap, 1);
    bed.service.dispose();
    assert!(with_argument(&nap).is_empty());
    let result = execution.result().unwrap();
    assert_eq!((result.cause, result.timed_out), (Some(Cause::Disposal), false));
}

// T9
#[test]
fn every_thread_is_joined_and_every_descriptor_closed() {
    run_alone("counts_threads_and_descriptors");
}

#[test]
#[ignore = "a part of every_thread_is_joined_and_every_descriptor_closed"]
fn counts_threads_and_descriptors() {
    if !is_alone("counts_threads_and_descriptors") {
        return;
    }
    let ours = || {
        let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
        names.filter(|name| name.starts_with("shx-")).count()
    };
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    {
        let bed = Bed::new();
        for _ in 0..20 {
            bed.sh("echo hi");
        }
        let running: Vec<Execution> =
            (0..5).map(|_| bed.start(bed.request("echo ready; sleep 300").stdin(vec![0; 1 << 20]))).collect();
        running.iter().for_each(|execution| see(execution, "ready"));
        until("only those of the running ones are left", || ours() == 6);
        assert_eq!(bed.service.dispose().stopped, 5);
        assert_eq!(ours(), 0, "when dispose returns");
        assert_eq!(descriptors(), before, "with the handles still held");
    }
    assert_eq!(descriptors(), before);
}

// T9: one disposal does not reach into another service
#[test]
fn another_service_goes_on() {
    let (bed, other) = (Bed::new(), Bed::new());
    let gate = other.gate("gate");
    let execution = other.begin("read x <$D/gate; exit 2");
    bed.sh("true");
    bed.service.dispose();
    assert!(lives(execution.pid().unwrap()));
    gate.open();
    assert_eq!(execution.result().unwrap().exit_code, Some(2));
}

// T9: an execution that never was a process does not hold a disposal up
#[test]
fn failed_starts_do_not_count() {
    let bed = Bed::new();
    for _ in 0..10 {
        let execution = bed.execute(bed.request("true").workdir("/nonexistent"));
        assert!(execution.result().is_err());
        assert!(execution.wait_range(Some(PATIENCE)));
    }
    let disposal = bed.service.dispose();
    assert!(disposal.stopped <= 1 && disposal.survivors == 0, "{disposal:?}");
}
