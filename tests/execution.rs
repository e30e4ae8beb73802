//! One execution and its views: live, after settlement, from any thread, and without anybody to look.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{
    AbortToken, Cause, Containment, Error, Execution, ExecutionBackend, OnExpiry, OutputStream,
    ProcessStatus, RunResult, ShellExecutor, SpawnStage,
};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};
use support::{Bed, PATIENCE, SOON, is_our_zombie, lives, see, until, until_running};

// E1
#[test]
fn execute_returns_at_once_with_a_live_handle() {
    let bed = Bed::new();
    let gate = bed.gate("gate");
    let execution = bed.execute(bed.request("read x <$D/gate"));
    assert_eq!(execution.try_wait(), None);
    assert_eq!(execution.status(), ProcessStatus::Running);
    assert_eq!((execution.exit_code(), execution.signal()), (None, None));
    assert_eq!(execution.wait_timeout(Duration::from_millis(20)), None);
    execution.wait_started().unwrap();
    assert!(lives(execution.pid().unwrap()));
    gate.open();
    assert_eq!(execution.wait_timeout(PATIENCE), Some(ProcessStatus::Completed));
}

// E1, E4
#[test]
fn execute_never_fails_but_settles() {
    let bed = Bed::new();
    let execution = bed.execute(bed.request("echo hi").workdir(bed.path("missing")));
    assert_eq!(execution.wait(), ProcessStatus::Killed);
    assert_eq!((execution.exit_code(), execution.signal(), execution.pid()), (None, None, None));
    assert!(execution.result().is_err());
}

// E1
#[test]
fn foreground_and_background_are_two_views_of_one_execution() {
    let bed = Bed::new();
    let execution = bed.begin("echo out; echo err >&2; exit 4");
    let result = execution.result().unwrap();
    assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("out\n", "err\n"));
    assert_eq!(execution.read_output().delta, "out\n[stderr]\nerr\n", "the result has consumed nothing");
    assert_eq!((execution.exit_code(), result.exit_code), (Some(4), Some(4)));
}

// E2
#[test]
fn every_view_stays_valid_after_settlement_from_every_thread() {
    let bed = Bed::new();
    let execution = bed.begin("echo out; exit 3");
    let first = execution.result().unwrap();
    let pid = execution.pid();
    assert_eq!(execution.read_output().delta, "out\n");
    assert!(execution.wait_range(Some(PATIENCE)));
    drop(bed.bash);
    thread::scope(|scope| {
        for _ in 0..8 {
            let (execution, first) = (execution.clone(), &first);
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(&execution.result().unwrap(), first);
                    assert_eq!(execution.wait(), ProcessStatus::Completed);
                    assert_eq!(execution.wait_timeout(Duration::ZERO), Some(ProcessStatus::Completed));
                    assert_eq!(execution.try_wait(), Some(ProcessStatus::Completed));
                    assert_eq!(execution.status(), ProcessStatus::Completed);
                    assert_eq!((execution.exit_code(), execution.signal()), (Some(3), None));
                    assert_eq!(execution.pid(), pid);
                    assert_eq!(execution.read_output().delta, "");
                    assert!(!execution.wait_output(None), "nothing new will ever come");
                    assert_eq!(execution.observed().unwrap().stdout.read_from(0).text, "out\n");
                    assert!(!execution.kill());
                    assert!(!execution.kill_survivors());
                    assert!(execution.wait_range(Some(PATIENCE)));
                    assert!(execution.promotion().is_none());
                    assert!(execution.take_stdin().is_none());
                    assert!(execution.sandbox().is_none());
                }
            });
        }
    });
}

// E2
#[test]
fn every_waiting_thread_is_woken_by_the_settlement() {
    let bed = Bed::new();
    let gate = bed.gate("gate");
    let execution = bed.begin("read x <$D/gate; exit 6");
    let waiting = Arc::new(Barrier::new(5));
    let look: [fn(&Execution) -> bool; 4] = [
        |execution| execution.result().unwrap().exit_code == Some(6),
        |execution| execution.wait() == ProcessStatus::Completed,
        |execution| execution.wait_timeout(PATIENCE) == Some(ProcessStatus::Completed),
        |execution| execution.promotion().is_none() && !execution.wait_output(None),
    ];
    let threads = look.map(|look| {
        let (execution, waiting) = (execution.clone(), Arc::clone(&waiting));
        thread::spawn(move || {
            waiting.wait();
            look(&execution)
        })
    });
    waiting.wait();
    gate.open();
    for thread in threads {
        assert!(thread.join().unwrap());
    }
}

// E3
#[test]
fn whatever_the_command_does_is_a_result() {
    let bed = Bed::with(|config| config.grace = Duration::from_millis(200));
    let code = |command: &str| bed.sh(command).exit_code;
    assert_eq!(code("exit 3"), Some(3));
    assert_eq!(code("no-such-command-anywhere"), Some(127));
    assert_eq!(code("cat /nonexistent/file"), Some(1));
    assert_eq!(code("/"), Some(126));
    assert_eq!(code("if"), Some(2), "a syntax error");
    assert_eq!(code(""), Some(0));
    assert_eq!(bed.sh("kill -KILL $$").signal, Some(libc::SIGKILL));
    let timed_out = bed.run(bed.request("sleep 300").timeout(Duration::from_millis(200)));
    assert!(timed_out.timed_out);
    let token = AbortToken::new();
    let aborted = bed.start(bed.request("echo ready; sleep 300").abort(&token));
    see(&aborted, "ready");
    assert!(token.fire());
    assert!(aborted.result().unwrap().aborted);
}

// E4
#[test]
fn a_failed_start_is_noted_once_and_given_every_time() {
    let bed = Bed::new();
    let execution = bed.execute(bed.request("echo hi").workdir(bed.path("missing")));
    assert!(execution.wait_output(Some(PATIENCE)), "the note is news");
    let read = execution.read_output();
    let error = execution.result().unwrap_err();
    assert_eq!(read.delta, format!("[stderr]\nspawn failed: {error}\n"));
    assert!(!read.lossy && read.stdout_spill_path.is_none() && read.stderr_spill_path.is_none());
    assert_eq!(execution.read_output().delta, "");
    assert!(!execution.wait_output(None));
    for _ in 0..3 {
        assert_eq!(execution.result().unwrap_err(), error, "the same error every time");
    }
    assert_eq!(execution.status(), ProcessStatus::Killed);
    match &error {
        Error::Spawn(spawn) => assert_eq!(spawn.stage(), SpawnStage::Workdir),
        other => panic!("{other:?}"),
    }
}

// E5
#[test]
fn run_is_execute_and_result() {
    let bed = Bed::new();
    let spec = || bed.bash.resolve(bed.request("echo same; exit 9")).unwrap();
    let (run, executed) = (bed.bash.run(spec()).unwrap(), bed.bash.execute(spec()).result().unwrap());
    let facts = |result: &RunResult| (result.exit_code, result.stdout.clone(), result.status, result.cause);
    assert_eq!(facts(&run), facts(&executed));
}

// E5
#[test]
fn start_gives_the_error_instead_of_a_handle() {
    let bed = Bed::new();
    let missing = bed.bash.resolve(bed.request("echo hi").workdir(bed.path("missing"))).unwrap();
    assert_eq!(bed.bash.start(missing).unwrap_err().code(), "SPAWN");
    let token = AbortToken::new();
    token.fire();
    let cancelled = bed.bash.resolve(bed.request("touch $D/made").abort(&token)).unwrap();
    assert_eq!(bed.bash.start(cancelled).unwrap_err(), Error::Aborted);
    assert!(!bed.path("made").exists());
    let started = bed.bash.start(bed.bash.resolve(bed.request("exit 3")).unwrap()).unwrap();
    assert!(started.pid().is_some(), "there is a process");
    assert_eq!(started.result().unwrap().exit_code, Some(3));
}

// E6
#[test]
fn a_deadline_before_the_process_means_it_never_starts() {
    let bed = Bed::with(|config| config.grace = Duration::from_millis(500));
    let mut unstarted = 0;
    for round in 0..200 {
        let made = bed.path(&round.to_string());
        let request = bed.request(": >\"$MADE\"; echo started; sleep 300").env("MADE", &made);
        let execution = bed.execute(request.timeout(Duration::from_nanos(1)));
        let result = execution.result().unwrap();
        assert!(result.timed_out && !result.aborted && result.status == ProcessStatus::Killed);
        assert_eq!(result.cause, Some(Cause::Timeout));
        if execution.pid().is_none() {
            unstarted += 1;
            assert_eq!((result.exit_code, result.signal), (None, None));
            assert_eq!((result.stdout.total_bytes, result.stderr.total_bytes), (0, 0));
            assert!(execution.wait_range(Some(PATIENCE)), "the preparation comes back");
            assert!(!made.exists(), "and the command has not been started by it");
            assert_eq!(execution.read_output().delta, "", "a timeout is no failed start");
        }
        if unstarted == 20 {
            return;
        }
    }
    assert!(unstarted > 0, "no deadline of a nanosecond came before the process in 200 rounds");
}

// E7
#[test]
fn dropping_the_handle_stops_nothing() {
    let bed = Bed::new();
    let gate = bed.gate("gate");
    drop(bed.begin("read x <$D/gate; touch $D/done"));
    gate.open();
    until("the command has gone on", || bed.path("done").exists());
}

// E7, case 23
#[test]
fn dropped_handles_leave_no_zombie() {
    let bed = Bed::new();
    let begun = Instant::now();
    let pids: Vec<i32> = (0..100).map(|_| bed.begin("true").pid().unwrap()).collect();
    assert!(begun.elapsed() < PATIENCE, "dropping does not wait for anything");
    // In the order of a process's states: one that does not live any more and is no zombie has been reaped.
    until("all of them are reaped", || pids.iter().all(|&pid| !lives(pid) && !is_our_zombie(pid)));
}

// E7
#[test]
fn whoever_has_the_result_finds_no_zombie() {
    let bed = Bed::new();
    for _ in 0..50 {
        let execution = bed.begin("true");
        execution.wait();
        assert!(!is_our_zombie(execution.pid().unwrap()));
    }
}

// E7
#[test]
fn the_outcome_never_changes_again() {
    let bed = Bed::with(|config| config.drain_idle = Duration::from_millis(50));
    let nap = support::nap();
    let execution = bed.begin(&format!("sleep {nap} & echo early"));
    let first = execution.result().unwrap();
    until_running(&nap, 1);
    assert!(execution.kill_survivors());
    assert!(execution.wait_range(Some(PATIENCE)));
    assert!(!execution.kill());
    bed.service.dispose();
    assert_eq!(execution.result().unwrap(), first);
    assert_eq!(first.survivors, 1);
}

// E8
#[test]
fn killed_is_whoever_was_cut_short_or_died_of_a_signal() {
    let bed = Bed::with(|config| config.grace = Duration::from_secs(20));
    let by_itself = bed.sh("exit 143");
    assert_eq!((by_itself.status, by_itself.success()), (ProcessStatus::Completed, false));
    assert!(bed.sh("true").success());

    let own_signal = bed.sh("kill -TERM $$");
    assert_eq!(own_signal.status, ProcessStatus::Killed);
    assert_eq!((own_signal.signal, own_signal.exit_code), (Some(libc::SIGTERM), None));
    assert_eq!(own_signal.signal_name().as_deref(), Some("SIGTERM"));
    assert_eq!(own_signal.cause, Some(Cause::Exit), "nobody cut it short");
    assert!(!own_signal.timed_out && !own_signal.aborted && !own_signal.success());

    let polite = "trap 'exit 0' TERM; echo ready; sleep 300 & wait";
    let killed = bed.begin(polite);
    see(&killed, "ready");
    assert!(killed.kill());
    let killed = killed.result().unwrap();
    assert_eq!((killed.status, killed.exit_code), (ProcessStatus::Killed, Some(0)));
    assert!(!killed.success() && !killed.timed_out && !killed.aborted);

    let token = AbortToken::new();
    let aborted = bed.start(bed.request(polite).abort(&token));
    see(&aborted, "ready");
    token.fire();
    let aborted = aborted.result().unwrap();
    assert_eq!((aborted.status, aborted.exit_code), (ProcessStatus::Killed, Some(0)));

    let disposed = bed.begin(polite);
    see(&disposed, "ready");
    bed.service.dispose();
    let disposed = disposed.result().unwrap();
    assert_eq!((disposed.status, disposed.cause), (ProcessStatus::Killed, Some(Cause::Disposal)));
}

// E10
#[test]
fn extras_are_plain_facts() {
    let bed = Bed::with(|config| config.scrub.also = vec!["HIDDEN_FROM_COMMANDS".into()]);
    let before = Instant::now();
    let busy = bed.sh("for ((i = 0; i < 200000; i++)); do :; done");
    assert!(busy.duration > Duration::ZERO && busy.duration <= before.elapsed());
    let usage = busy.usage.unwrap();
    assert!(usage.user + usage.system > Duration::from_millis(20), "{usage:?}");
    assert!(usage.user + usage.system < busy.duration * 2 + Duration::from_millis(50), "{usage:?}");
    assert!(usage.max_rss_upper_bound > 100 * 1024, "{usage:?}");
    assert!(!busy.pipes_held && busy.survivors == 0 && !busy.stdin_truncated);
    assert_eq!(busy.containment, Containment::Session);
    assert!(busy.sandbox.is_none());
    // This child only, and not the ones before it.
    let idle = bed.sh(":").usage.unwrap();
    assert!(idle.user + idle.system < usage.user + usage.system, "{idle:?} {usage:?}");
}

// E10, T1
#[test]
fn the_command_has_descriptors_0_to_2_and_a_session_of_its_own() {
    use std::os::fd::AsRawFd;
    let bed = Bed::new();
    let leak = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: F_SETFD takes an integer, and the descriptor is open. It is then inherited by whoever does not prevent it.
    #[allow(unsafe_code, reason = "a host that has forgotten a flag")]
    let inheritable = unsafe { libc::fcntl(leak.as_raw_fd(), libc::F_SETFD, 0) };
    assert_eq!(inheritable, 0);
    assert_eq!(bed.sh("\"$CHILD\" descriptors").stdout.text, "0 1 2\n");
    let gate = bed.gate("gate");
    let execution = bed.begin("read x <$D/gate");
    let pid = execution.pid().unwrap();
    let leader = support::process(pid).unwrap();
    assert_eq!((leader.session, leader.group, leader.terminal), (pid, pid, 0));
    gate.open();
    execution.wait();
}

/// A provider that runs nothing, as one of another kind would implement it.
#[derive(Debug)]
struct Elsewhere;

impl ExecutionBackend for Elsewhere {
    fn result(&self) -> Result<RunResult, Error> {
        let mut result = RunResult::default();
        result.exit_code = Some(0);
        result.status = ProcessStatus::Completed;
        Ok(result)
    }
    fn wait_started(&self) -> Result<(), Error> {
        Ok(())
    }
    fn wait(&self, _timeout: Option<Duration>) -> Option<ProcessStatus> {
        Some(ProcessStatus::Completed)
    }
    fn exit_code(&self) -> Option<i32> {
        Some(0)
    }
    fn signal(&self) -> Option<i32> {
        None
    }
    fn read_output(&self) -> shell_executor::ProcessRead {
        shell_executor::ProcessRead::default()
    }
    fn read_output_bytes(&self) -> shell_executor::OutputBytes {
        shell_executor::OutputBytes::default()
    }
    fn read_stream(&self, _stream: OutputStream) -> (Vec<u8>, bool) {
        (Vec::new(), false)
    }
    fn wait_output(&self, _timeout: Option<Duration>) -> bool {
        false
    }
    fn wait_stream(&self, _stream: OutputStream, _timeout: Option<Duration>) -> bool {
        false
    }
    fn kill(&self) -> bool {
        false
    }
}

// E2: what another provider does not know has an answer all the same
#[test]
fn another_provider_of_executions_needs_only_the_essentials() {
    let execution = Execution::new(Arc::new(Elsewhere));
    assert!(execution.result().unwrap().success());
    assert!(execution.pid().is_none() && execution.observed().is_none() && execution.promotion().is_none());
    assert!(execution.wait_range(None) && !execution.kill_survivors());
    assert_eq!(execution.status(), ProcessStatus::Completed);
}

// E2
#[test]
fn without_a_deadline_there_is_none() {
    let bed = Bed::with(|config| config.default_timeout = Duration::from_millis(1));
    let begun = Instant::now();
    let result = bed.run(bed.request("sleep 0.2; echo ok").on_expiry(OnExpiry::None));
    assert_eq!((result.stdout.text.as_str(), result.timeout, result.timed_out), ("ok\n", None, false));
    assert!(begun.elapsed() < SOON);
}
