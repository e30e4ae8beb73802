//! Confined runs as their users see them: facts, errors, and the range behind the walls.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "a signal to a runner, as somebody else sends it")]

mod support;

use shell_executor::{
    AbortToken, BashExecutor, Config, Confined, Enforcement, Error, Escalation, ExecRequest, Execution,
    OnExpiry, ProcessStatus, RunResult, SandboxBackend, SandboxChain, SandboxMode, SandboxPlan,
    SandboxPolicy, SandboxPolicyService, SandboxProvider, SandboxRunner, ServiceConfig, ShellExecutor,
    SubprocessService,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::{
    PATIENCE, alone, is_alone, lives, nap, read_until, run_alone, script, see, skip, this_program, until,
    until_running, with_argument,
};
use tempfile::TempDir;

/// One confining executor, with a workspace, and a place outside.
struct Bed {
    bash: BashExecutor,
    service: SubprocessService,
    dir: TempDir,
}

impl Bed {
    fn of(provider: Arc<dyn SandboxProvider>, mode: SandboxMode) -> Bed {
        let dir = tempfile::tempdir().unwrap();
        for name in ["workspace", "outside", "temp"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let service = SubprocessService::new();
        let policy = SandboxPolicy::new(mode, dir.path().join("workspace"));
        let bash =
            BashExecutor::new(&service, Config::default()).unwrap().with_sandbox(provider, policy).unwrap();
        Bed { bash, service, dir }
    }

    fn with(backend: SandboxBackend, mode: SandboxMode) -> Bed {
        // The test's own directories lie in the real temp directory, which would all be writable.
        let chain = SandboxChain::new().backends([backend]).temp_dir("/nonexistent");
        Bed::of(Arc::new(chain), mode)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn policy(&self, mode: SandboxMode) -> SandboxPolicy {
        SandboxPolicy::new(mode, self.path("workspace"))
    }

    fn request(&self, command: &str) -> ExecRequest {
        ExecRequest::new(command).env("W", self.path("workspace")).env("O", self.path("outside"))
    }

    fn execute(&self, request: ExecRequest) -> Execution {
        self.bash.execute(self.bash.resolve(request).unwrap())
    }

    fn run(&self, request: ExecRequest) -> RunResult {
        self.execute(request).result().unwrap()
    }

    fn sh(&self, command: &str) -> RunResult {
        self.run(self.request(command))
    }
}

/// The backends that work here.
fn working() -> Vec<SandboxBackend> {
    let service = SubprocessService::new();
    let rungs = service.sandbox_rungs(&SandboxChain::new()).unwrap();
    rungs.into_iter().filter(|rung| rung.unavailable.is_none()).map(|rung| rung.backend).collect()
}

/// Those that tell a denial from other failures.
fn telling() -> Vec<SandboxBackend> {
    working().into_iter().filter(|backend| backend.enforcement() == Enforcement::Full).collect()
}

// --- facts ---------------------------------------------------------------------------------------------------------

// S5, S8: the same facts in front, behind and kept, on the handle and in the result
#[test]
fn the_facts_do_not_depend_on_the_view() {
    for backend in telling() {
        let bed = Bed::with(backend, SandboxMode::ReadOnly);
        let command = "echo x >$O/x; exit 4";
        let front = bed.execute(bed.request(command));
        let result = front.result().unwrap();
        let facts = result.sandbox.clone().unwrap();
        assert_eq!((facts.mode, facts.denied, facts.runner_failed), (SandboxMode::ReadOnly, true, false));
        assert_eq!(facts.enforcement, Some(Enforcement::Full));
        assert_eq!(facts.backend.as_deref(), Some(backend.as_str()));
        assert_eq!(front.sandbox(), Some(facts.clone()));

        let behind = bed.bash.start(bed.bash.resolve(bed.request(command)).unwrap()).unwrap();
        behind.wait();
        assert_eq!(behind.sandbox(), Some(facts.clone()));

        let request = bed.request("read x; echo x >$O/x; exit 4").stdin_piped();
        let request = request.timeout(Duration::from_millis(100)).on_expiry(OnExpiry::Offer);
        let kept = bed.execute(request);
        if let Some(offer) = kept.promotion() {
            assert!(offer.accept());
            assert!(kept.sandbox().is_some_and(|facts| !facts.denied), "it has not ended");
            drop(kept.take_stdin());
            assert_eq!(kept.result().unwrap().exit_code, Some(4));
            assert_eq!(kept.sandbox(), Some(facts));
        } else {
            // It took longer than the deadline to start it: then there was nothing to keep.
            assert!(kept.result().unwrap().timed_out);
        }
    }
}

// S7, cases 88, 89
#[test]
fn only_a_failure_with_the_kernels_words_is_a_denial() {
    for backend in telling() {
        let bed = Bed::with(backend, SandboxMode::ReadOnly);
        let denied = |command: &str| bed.sh(command).sandbox.unwrap().denied;
        assert!(denied("touch $O/x"));
        assert!(!denied("touch $O/x; exit 0"), "a success");
        assert!(!denied("touch $O/x 2>/dev/null; exit 1"), "hidden");
        if backend != SandboxBackend::Bwrap {
            assert!(!denied("touch $O/x; kill -9 $$"), "a signal");
        }
        assert!(!denied("echo 'sandbox: permission denied' >&2; exit 1"));
        assert!(!denied("cat /nonexistent; exit 1"));
        let open = bed.request("echo 'Read-only file system' >&2; exit 1");
        let open = bed.run(open.sandbox_policy(bed.policy(SandboxMode::DangerFullAccess)));
        let facts = open.sandbox.unwrap();
        assert_eq!((facts.mode, facts.denied), (SandboxMode::DangerFullAccess, false));
        assert_eq!((facts.enforcement, facts.backend), (None, None));
    }
}

// S6: what a command prints is what a command prints
#[test]
fn no_text_makes_a_failed_runner() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::WorkspaceWrite);
        for text in [
            "bwrap: execvp bash: No such file or directory",
            "sandbox-exec: no",
            "native: no Landlock domain",
        ] {
            let result = bed.run(bed.request("echo \"$T\" >&2; exit 1").env("T", text));
            assert_eq!(result.exit_code, Some(1), "{}", backend.as_str());
            assert!(!result.sandbox.unwrap().runner_failed, "{}: {text}", backend.as_str());
        }
    }
}

// S5, S8
#[test]
fn runs_of_different_modes_side_by_side_have_their_own_facts() {
    let Some(backend) = working().first().copied() else { skip!("nothing confines here") };
    let bed = Bed::with(backend, SandboxMode::ReadOnly);
    let modes = [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite, SandboxMode::DangerFullAccess];
    let running: Vec<(SandboxMode, usize, Execution)> = (0..24)
        .map(|number| {
            let mode = modes[number % 3];
            let request = bed.request("echo x >$W/$N").env("N", number.to_string());
            (mode, number, bed.execute(request.sandbox_policy(bed.policy(mode))))
        })
        .collect();
    for (mode, number, execution) in running {
        let result = execution.result().unwrap();
        let written = bed.path("workspace").join(number.to_string()).exists();
        assert_eq!(written, mode != SandboxMode::ReadOnly, "{mode}");
        assert_eq!(result.exit_code, Some(i32::from(!written)));
        assert_eq!(result.sandbox.unwrap().mode, mode);
    }
}

// S3, S4
#[test]
fn a_chain_says_what_became_of_each_backend() {
    let service = SubprocessService::new();
    let all = service.sandbox_rungs(&SandboxChain::new()).unwrap();
    assert_eq!(all.iter().map(|rung| rung.backend).collect::<Vec<_>>(), SandboxBackend::ALL);
    assert!(all.iter().filter(|rung| rung.chosen).count() <= 1);
    assert!(all.iter().all(|rung| !rung.chosen || rung.unavailable.is_none()));
    let partial = SandboxChain::new().backends([SandboxBackend::Landlock]).require_full(true);
    let bed = Bed::of(Arc::new(partial), SandboxMode::ReadOnly);
    let execution = bed.execute(bed.request("echo x >$W/x"));
    let refused = execution.result().unwrap_err();
    assert_eq!(refused.code(), "SANDBOX_UNAVAILABLE");
    assert!(refused.to_string().contains("landlock: it enforces a mode only in part"), "{refused}");
    assert!(execution.sandbox().unwrap().runner_failed);
    let none = Bed::of(Arc::new(SandboxChain::new().backends([])), SandboxMode::ReadOnly);
    assert_eq!(none.execute(none.request("true")).result().unwrap_err().code(), "SANDBOX_UNAVAILABLE");
}

// --- how it ends -----------------------------------------------------------------------------------------------------

// C2, E8: the command's own code and signal, through every backend
#[test]
fn a_confined_command_ends_as_it_would_unconfined() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::WorkspaceWrite);
        for code in [0, 3, 124, 137, 255] {
            let result = bed.sh(&format!("exit {code}"));
            assert_eq!((result.exit_code, result.signal), (Some(code), None), "{}", backend.as_str());
        }
        let killed = bed.sh("kill -9 $$");
        let expected = if backend == SandboxBackend::Bwrap { (Some(137), None) } else { (None, Some(9)) };
        assert_eq!((killed.exit_code, killed.signal), expected, "{}", backend.as_str());
        assert_eq!(killed.usage.is_none(), backend == SandboxBackend::Bwrap);
    }
}

// C2, T4: a deadline is the command's to take, with its grace
#[test]
fn a_deadline_reaches_the_command_and_not_its_runner() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::WorkspaceWrite);
        let command = "trap 'echo trapped; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
        let execution = bed.execute(bed.request(command).timeout(Duration::from_secs(600)));
        see(&execution, "ready");
        assert!(execution.kill());
        let result = execution.result().unwrap();
        assert_eq!((result.exit_code, result.signal), (Some(0), None), "{}", backend.as_str());
        assert_eq!(result.stdout.text, "ready\ntrapped\n", "{}", backend.as_str());
        assert_eq!(result.status, ProcessStatus::Killed);

        let late = bed.run(bed.request("sleep 300").timeout(Duration::from_millis(300)));
        assert!(late.timed_out && !late.aborted);
        if late.sandbox.unwrap().backend.is_some() && late.exit_code.is_some() {
            panic!("{}: a signal ended it, not exit code {:?}", backend.as_str(), late.exit_code);
        }
        assert_eq!(late.survivors, 0);

        let token = AbortToken::new();
        let execution = bed.execute(bed.request("echo ready; sleep 300").abort(&token));
        see(&execution, "ready");
        token.fire();
        let result = execution.result().unwrap();
        assert!(result.aborted && result.signal == Some(libc::SIGTERM), "{}: {result:?}", backend.as_str());
    }
}

// T4, T5: all of the range, a daemon that left the session included, and one that ignores the polite signal
#[test]
fn a_kill_reaches_all_that_a_confined_command_started() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::WorkspaceWrite);
        let nap = nap();
        let command = format!(
            "( ( setsid sleep {nap} >/dev/null 2>&1 & ) ); (trap '' TERM; sleep {nap} & wait) & sleep {nap}"
        );
        let mut request = bed.request(&command);
        request.timeout = Some(Duration::from_secs(600));
        let execution = bed.execute(request);
        until_running(&nap, 3);
        assert!(execution.kill());
        assert_eq!(execution.result().unwrap().survivors, 0, "{}", backend.as_str());
        assert!(with_argument(&nap).is_empty(), "{}", backend.as_str());
    }
}

// T8: what a confined command leaves running goes on, is read, and goes when it is told to
#[test]
fn survivors_go_on_behind_their_walls() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::WorkspaceWrite);
        let nap = nap();
        let command =
            format!("(sleep 0.5; echo x >$O/x; echo late >$W/late; exec sleep {nap}) & echo started");
        let execution = bed.execute(bed.request(&command));
        let result = execution.result().unwrap();
        assert_eq!(
            (result.exit_code, result.stdout.text.as_str()),
            (Some(0), "started\n"),
            "{}",
            backend.as_str()
        );
        assert!(result.survivors >= 1 && result.pipes_held, "{}", backend.as_str());
        until_running(&nap, 1);
        assert!(bed.path("workspace/late").exists(), "it may still write there");
        assert!(!bed.path("outside/x").exists(), "and still not there");
        assert!(execution.kill_survivors());
        assert!(execution.wait_range(Some(PATIENCE)), "{}", backend.as_str());
        assert!(with_argument(&nap).is_empty(), "{}", backend.as_str());
        let clean = bed.sh("echo done");
        assert_eq!((clean.survivors, clean.pipes_held), (0, false), "{}", backend.as_str());
    }
}

// T9
#[test]
fn disposal_stops_confined_ranges() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::ReadOnly);
        let nap = nap();
        let execution = bed.execute(bed.request(&format!("setsid sleep {nap} & sleep {nap}")));
        until_running(&nap, 2);
        let disposal = bed.service.dispose();
        assert_eq!((disposal.stopped, disposal.survivors), (1, 0), "{}", backend.as_str());
        assert!(with_argument(&nap).is_empty(), "{}", backend.as_str());
        assert_eq!(execution.status(), ProcessStatus::Killed);
    }
}

// Case 21: a runner that somebody kills takes the command along
#[test]
fn a_killed_runner_leaves_no_command() {
    if !working().contains(&SandboxBackend::Bwrap) {
        skip!("no bubblewrap");
    }
    let bed = Bed::with(SandboxBackend::Bwrap, SandboxMode::ReadOnly);
    bed.sh("true");
    for round in 0..30 {
        let nap = nap();
        let request = bed.request(&format!("echo ready; sleep {nap} & sleep {nap}"));
        let execution = bed.bash.start(bed.bash.resolve(request).unwrap()).unwrap();
        if round % 2 == 0 {
            see(&execution, "ready");
        }
        // SAFETY: integers only. The runner is this process's child, and unreaped while the execution has not settled.
        unsafe { libc::kill(execution.pid().unwrap(), libc::SIGKILL) };
        let result = execution.result().unwrap();
        assert_eq!((result.signal, result.survivors), (Some(libc::SIGKILL), 0), "round {round}");
        assert!(execution.wait_range(Some(PATIENCE)));
        assert!(with_argument(&nap).is_empty(), "round {round}");
    }
}

// --- what cannot be confined -----------------------------------------------------------------------------------------

/// Must not be asked.
#[derive(Debug)]
struct Untouched;

impl SandboxProvider for Untouched {
    fn confine(&self, _: &SandboxPolicy, _: &mut SandboxPlan<'_>) -> Result<Confined, Error> {
        panic!("nobody is confined here")
    }
}

// S1
#[test]
fn full_access_asks_no_provider() {
    let bed = Bed::of(Arc::new(Untouched), SandboxMode::DangerFullAccess);
    assert_eq!(bed.bash.sandbox_mode(), Some(SandboxMode::DangerFullAccess));
    let result = bed.sh("echo x >$O/x");
    assert_eq!(result.exit_code, Some(0));
    assert!(bed.path("outside/x").exists());
    assert_eq!(result.sandbox.unwrap().mode, SandboxMode::DangerFullAccess);
}

// S3: a spec keeps its confinement wherever it is executed
#[test]
fn a_confined_spec_is_run_confined_or_not_at_all() {
    let Some(backend) = working().first().copied() else { skip!("nothing confines here") };
    let bed = Bed::with(backend, SandboxMode::ReadOnly);
    let plain = BashExecutor::new(&bed.service, Config::default()).unwrap();
    let spec = bed.bash.resolve(bed.request("echo x >$O/x")).unwrap();
    let refused = plain.execute(spec.clone()).result().unwrap_err();
    assert_eq!(refused.code(), "SANDBOX_UNAVAILABLE");
    // A spec that had no policy gets the executor's.
    let mut bare = plain.resolve(bed.request("echo x >$O/x")).unwrap();
    bare.sandbox_policy = None;
    assert_eq!(bed.bash.run(bare).unwrap().exit_code, Some(1));
    assert!(!bed.path("outside/x").exists());
}

// S2, S3
#[test]
fn a_root_that_is_gone_confines_nobody() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::WorkspaceWrite);
        for root in [bed.path("missing"), PathBuf::from("/"), PathBuf::from("/proc/self")] {
            let policy = SandboxPolicy::new(SandboxMode::WorkspaceWrite, &root);
            let refused = bed.bash.resolve(bed.request("true").sandbox_policy(policy)).unwrap_err();
            assert_eq!(refused.code(), "INVALID_REQUEST");
            assert!(refused.to_string().contains("workspace_root"), "{refused}");
        }
        let root = bed.path("brief");
        fs::create_dir(&root).unwrap();
        let policy = SandboxPolicy::new(SandboxMode::WorkspaceWrite, &root);
        let request = bed.request("echo x >$O/x").workdir("/").sandbox_policy(policy);
        let spec = bed.bash.resolve(request).unwrap();
        fs::remove_dir(&root).unwrap();
        let refused = bed.bash.run(spec.clone()).unwrap_err();
        assert_eq!(refused.code(), "SANDBOX_UNAVAILABLE", "{}: {refused}", backend.as_str());
        // Nor one that somebody has led elsewhere meanwhile.
        std::os::unix::fs::symlink(bed.path("outside"), &root).unwrap();
        let led = bed.bash.run(spec);
        assert_eq!(led.unwrap_err().code(), "SANDBOX_UNAVAILABLE", "{}", backend.as_str());
        // Nor by way of one of its parents.
        let parent = bed.path("parent");
        fs::create_dir_all(parent.join("root")).unwrap();
        fs::create_dir(bed.path("outside/root")).unwrap();
        let policy = SandboxPolicy::new(SandboxMode::WorkspaceWrite, parent.join("root"));
        let request = bed.request("echo x >$O/root/x").workdir("/").sandbox_policy(policy);
        let mut spec = bed.bash.resolve(request).unwrap();
        fs::remove_dir_all(&parent).unwrap();
        std::os::unix::fs::symlink(bed.path("outside"), &parent).unwrap();
        assert_eq!(bed.bash.run(spec.clone()).unwrap_err().code(), "SANDBOX_UNAVAILABLE");
        // Nor one that is put into the spec by hand.
        spec.sandbox_policy = Some(SandboxPolicy::new(SandboxMode::WorkspaceWrite, "/"));
        let refused = bed.bash.run(spec).unwrap_err();
        assert!(refused.to_string().contains("nothing to confine"), "{refused}");
        assert!(!bed.path("outside/x").exists(), "{}", backend.as_str());
        assert!(!bed.path("outside/root/x").exists(), "{}", backend.as_str());
    }
}

/// Takes its time.
#[derive(Debug)]
struct Slow(std::sync::Mutex<Option<std::sync::mpsc::Receiver<()>>>);

impl SandboxProvider for Slow {
    fn confine(&self, _: &SandboxPolicy, _: &mut SandboxPlan<'_>) -> Result<Confined, Error> {
        let gate = self.0.lock().unwrap().take();
        // Until the test lets it go on.
        let _ = gate.unwrap().recv();
        Ok(Confined::by("slow", Enforcement::Full))
    }
}

// E6
#[test]
fn a_deadline_during_the_preparation_means_it_never_starts() {
    let (go_on, gate) = std::sync::mpsc::channel();
    let slow = Slow(std::sync::Mutex::new(Some(gate)));
    let bed = Bed::of(Arc::new(slow), SandboxMode::ReadOnly);
    let execution = bed.execute(bed.request("echo x >$O/x").timeout(Duration::from_millis(50)));
    let result = execution.result().unwrap();
    assert!(result.timed_out && result.exit_code.is_none() && result.signal.is_none());
    assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("", ""));
    let facts = result.sandbox.unwrap();
    assert_eq!((facts.mode, facts.denied, facts.runner_failed), (SandboxMode::ReadOnly, false, false));
    go_on.send(()).unwrap();
    assert!(execution.wait_range(Some(PATIENCE)));
    assert!(!bed.path("outside/x").exists());
    assert_eq!(execution.sandbox().unwrap(), facts, "what has settled does not change");
}

// --- a runner of the host's ------------------------------------------------------------------------------------------

// S4, S6
#[test]
fn a_runner_confines_or_fails_by_what_is_configured() {
    let tools = tempfile::tempdir().unwrap();
    let runner = tools.path().join("runner");
    script(
        &runner,
        "#!/bin/sh\nmode=$1 root=$2; shift 2\n[ -e \"$root/broken\" ] && { echo 'runner: cannot' >&2; exit 71; }\n\
         MODE=$mode ROOT=$root exec \"$@\"\n",
    );
    let words = [runner.to_str().unwrap(), "{mode}", "{workspace_root}"];
    let provider = SandboxRunner::new(words, Enforcement::Partial)
        .unwrap()
        .failure_exit_codes([71])
        .failure_signatures(["runner: "])
        .denial_signatures(["not allowed"]);
    let bed = Bed::of(Arc::new(provider), SandboxMode::WorkspaceWrite);
    let root = bed.path("workspace").canonicalize().unwrap();
    let result = bed.sh("echo $MODE $ROOT");
    assert_eq!(result.stdout.text, format!("workspace-write {}\n", root.display()));
    let facts = result.sandbox.unwrap();
    assert_eq!((facts.backend.as_deref(), facts.enforcement), (Some("runner"), Some(Enforcement::Partial)));
    assert!(bed.sh("echo NOT ALLOWED >&2; exit 2").sandbox.unwrap().denied);
    assert!(!bed.sh("echo runner: x >&2; exit 3").sandbox.unwrap().runner_failed, "another exit code");
    assert!(!bed.sh("exit 71").sandbox.unwrap().runner_failed, "nothing said");
    fs::write(bed.path("workspace/broken"), "").unwrap();
    let execution = bed.execute(bed.request("echo x >$O/x"));
    let failed = execution.result().unwrap_err();
    assert_eq!(failed.code(), "SANDBOX_UNAVAILABLE");
    assert!(failed.to_string().contains("runner: cannot"), "{failed}");
    assert_eq!(execution.status(), ProcessStatus::Killed);
    let facts = execution.sandbox().unwrap();
    assert!(facts.runner_failed && !facts.denied);
    let note = format!("spawn failed: {failed}");
    let read = execution.read_output().delta;
    assert!(read.contains("runner: cannot\n") && read.contains(&note), "{read}");
    assert!(!execution.read_output().delta.contains("spawn failed"));
    assert!(!bed.path("outside/x").exists());
}

// S3, X1
#[test]
fn a_runner_that_cannot_be_started_is_a_sandbox_that_is_not_there() {
    let tools = tempfile::tempdir().unwrap();
    let unexecutable = tools.path().join("unexecutable");
    fs::write(&unexecutable, "#!/bin/sh\nexec \"$@\"\n").unwrap();
    let odd = tools.path().join("odd");
    script(&odd, "#!/nonexistent/interpreter\n");
    for program in
        [Path::new("/nonexistent/runner"), Path::new("no-such-runner-anywhere"), &unexecutable, &odd]
    {
        let provider = SandboxRunner::new([program], Enforcement::Full).unwrap();
        let bed = Bed::of(Arc::new(provider), SandboxMode::ReadOnly);
        let execution = bed.execute(bed.request("echo x >$O/x"));
        let failed = execution.result().unwrap_err();
        assert_eq!(failed.code(), "SANDBOX_UNAVAILABLE", "{program:?}: {failed}");
        assert!(failed.to_string().contains(program.file_name().unwrap().to_str().unwrap()), "{failed}");
        assert!(execution.sandbox().unwrap().runner_failed);
        assert!(!bed.path("outside/x").exists());
    }
}

// --- a bubblewrap that is none -----------------------------------------------------------------------------------------

/// Counts its calls, and then does what each test wants.
fn fake_bwrap(what: &str) -> TempDir {
    let tools = tempfile::tempdir().unwrap();
    script(&tools.path().join("bwrap"), &format!("#!/bin/sh\necho >>\"${{0%/*}}/calls\"\n{what}\n"));
    tools
}

/// A chain of these backends, with this for bubblewrap.
fn chain_with(tools: &TempDir, backends: &[SandboxBackend]) -> SandboxChain {
    let chain = SandboxChain::new().backends(backends.iter().copied()).temp_dir("/nonexistent");
    chain.bwrap(tools.path().join("bwrap"))
}

fn calls(tools: &TempDir) -> usize {
    fs::read(tools.path().join("calls")).map_or(0, |calls| calls.len())
}

// S3, case 91: tried once, never believed, and never a reason to run unconfined
#[test]
fn a_bubblewrap_that_does_not_confine_is_not_used() {
    let fakes = [
        "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1",
        // One that runs the command as if nothing were, and one that says nothing of the command's end.
        "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"",
        "exit 0",
    ];
    for fake in fakes {
        let tools = fake_bwrap(fake);
        let chain = chain_with(&tools, &[SandboxBackend::Bwrap]);
        let bed = Bed::of(Arc::new(chain), SandboxMode::ReadOnly);
        for _ in 0..3 {
            let refused = bed.execute(bed.request("echo x >$O/x")).result().unwrap_err();
            assert_eq!(refused.code(), "SANDBOX_UNAVAILABLE", "{refused}");
            assert!(refused.to_string().contains("bwrap: "), "{refused}");
        }
        assert!(!bed.path("outside/x").exists());
        assert_eq!(calls(&tools), 1, "it is tried once, whatever came of it: {fake}");
    }
}

// S3: what is not needed is not tried, so that nothing of it can hang or harm
#[test]
fn a_backend_after_the_first_that_works_is_not_tried() {
    let Some(first) = working().into_iter().find(|&backend| backend != SandboxBackend::Bwrap) else {
        skip!("nothing confines here but perhaps bubblewrap");
    };
    let tools = fake_bwrap("exec sleep 300");
    let chain = chain_with(&tools, &[first, SandboxBackend::Bwrap]);
    let bed = Bed::of(Arc::new(chain), SandboxMode::ReadOnly);
    let result = bed.sh("echo ran");
    assert_eq!((result.exit_code, calls(&tools)), (Some(0), 0));
    assert_eq!(result.sandbox.unwrap().backend.as_deref(), Some(first.as_str()));
}

// S3, E6: one that hangs is given up after ten seconds, and the next one used; a command whose deadline comes first never
// starts
#[test]
fn a_bubblewrap_that_hangs_is_passed_over() {
    let nap = nap();
    let tools = fake_bwrap(&format!("exec sleep {nap}"));
    let backends: Vec<SandboxBackend> =
        working().into_iter().filter(|&backend| backend != SandboxBackend::Bwrap).collect();
    let chain = chain_with(&tools, &[&[SandboxBackend::Bwrap], &backends[..]].concat());
    let bed = Bed::of(Arc::new(chain.clone()), SandboxMode::ReadOnly);
    let late = bed.execute(bed.request("echo x >$O/x").timeout(Duration::from_millis(300)));
    let result = late.result().unwrap();
    assert!(result.timed_out && result.exit_code.is_none() && result.signal.is_none(), "{result:?}");
    let outcome = bed.execute(bed.request("echo ran").timeout(2 * PATIENCE)).result();
    match (outcome, backends.first()) {
        (Ok(result), Some(next)) => {
            assert_eq!(result.sandbox.unwrap().backend.as_deref(), Some(next.as_str()));
        }
        (Err(error), None) => assert!(error.to_string().contains("not over after 10 s"), "{error}"),
        (outcome, next) => panic!("{outcome:?} with {next:?}"),
    }
    let rungs = bed.service.sandbox_rungs(&chain).unwrap();
    assert_eq!(rungs[0].unavailable.as_deref(), Some("a trial of it was not over after 10 s"));
    until("the one that hung is gone", || with_argument(&nap).is_empty());
}

// S3, T9: a trial that ended with its service is no word on the backend
#[test]
fn a_chain_outlives_the_service_that_was_trying_it() {
    if !working().contains(&SandboxBackend::Bwrap) {
        skip!("no bubblewrap that works here");
    }
    // Hangs the first time only.
    let tools =
        fake_bwrap("[ $(wc -l <\"${0%/*}/calls\") -gt 1 ] || exec sleep 300; exec /usr/bin/bwrap \"$@\"");
    let chain = Arc::new(chain_with(&tools, &[SandboxBackend::Bwrap]));
    let first = Bed::of(chain.clone(), SandboxMode::ReadOnly);
    let cut_short = first.execute(first.request("true"));
    until("the trial has begun", || calls(&tools) == 1);
    first.service.dispose();
    drop(cut_short.result());
    let second = Bed::of(chain, SandboxMode::ReadOnly);
    assert_eq!(second.sh("echo ran").exit_code, Some(0));
}

// S3, T11: a shortage fails the run, and is no word on the backend: never the next one, and nothing is remembered
#[test]
fn a_shortage_of_descriptors_changes_no_choice() {
    run_alone("tries_with_hardly_a_descriptor");
}

#[test]
#[ignore = "a part of a_shortage_of_descriptors_changes_no_choice"]
fn tries_with_hardly_a_descriptor() {
    if !is_alone("tries_with_hardly_a_descriptor") {
        return;
    }
    let Some(first) = working().first().copied() else { skip!("nothing confines here") };
    let limit = |soft: Option<u64>| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is writable.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
        let before = limit.rlim_cur;
        limit.rlim_cur = soft.unwrap_or(limit.rlim_max);
        // SAFETY: `limit` is readable.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        before
    };
    let mut short = 0;
    for spare in 2..40 {
        let chain = SandboxChain::new().temp_dir("/nonexistent");
        let bed = Bed::of(Arc::new(chain), SandboxMode::ReadOnly);
        let used = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        let before = limit(Some(used + spare));
        let outcome = bed.execute(bed.request("true")).result();
        limit(Some(before));
        match outcome {
            Ok(result) => {
                assert_eq!(result.sandbox.unwrap().backend.as_deref(), Some(first.as_str()), "{spare}")
            }
            Err(error) => {
                assert_eq!(error.code(), "SPAWN", "with {spare} to spare: {error}");
                short += 1;
            }
        }
        let result = bed.sh("true");
        assert_eq!(result.sandbox.unwrap().backend.as_deref(), Some(first.as_str()), "after {spare}");
    }
    assert!(short > 0, "there was always enough");
}

// S2, S9: what no workspace could be is not opened as the temp directory either
#[test]
fn a_temp_directory_that_would_open_too_much_is_left_out() {
    for backend in working() {
        for temp in ["/", ".", "/dev", "/proc", "/sys"] {
            let chain = SandboxChain::new().backends([backend]).temp_dir(temp);
            let bed = Bed::of(Arc::new(chain), SandboxMode::WorkspaceWrite);
            let command = "echo x >$W/x || exit 1
                for forbidden in here /dev/shm/$$ \"$H/.written\"; do
                    ! { echo x >\"$forbidden\"; } 2>/dev/null || exit 2
                done";
            let result = bed.run(
                bed.request(command).env("H", std::env::current_dir().unwrap()).workdir(bed.path("outside")),
            );
            assert_eq!(result.exit_code, Some(0), "{} with {temp}: {}", backend.as_str(), result.stderr.text);
            assert!(!bed.path("outside/here").exists());
        }
    }
}

// S3: a name on PATH is anybody's who may write in one of its directories
#[test]
fn a_bubblewrap_on_the_path_is_not_run() {
    let tools = fake_bwrap("exec /usr/bin/bwrap \"$@\"");
    let mut other = alone(this_program(), "tries_all_backends");
    let path = std::env::var("PATH").unwrap_or_default();
    other.env("PATH", format!("{}:{path}", tools.path().display()));
    let output = other.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    assert_eq!(calls(&tools), 0);
}

#[test]
#[ignore = "a part of a_bubblewrap_on_the_path_is_not_run"]
fn tries_all_backends() {
    if is_alone("tries_all_backends") {
        assert_eq!(SubprocessService::new().sandbox_rungs(&SandboxChain::new()).unwrap().len(), 3);
    }
}

// S3: what a command is given to be steered by steers the command, not what confines it
#[test]
fn a_runner_does_not_run_code_of_the_commands_choice() {
    let tools = tempfile::tempdir().unwrap();
    let runner = tools.path().join("runner");
    script(&runner, "#!/bin/sh\nenv >\"${0%/*}/seen\"\nexec \"$@\"\n");
    let provider = SandboxRunner::new([runner], Enforcement::Full).unwrap();
    let bed = Bed::of(Arc::new(provider), SandboxMode::ReadOnly);
    let mut request = bed.request("printenv BASH_ENV LD_LIBRARY_PATH PYTHONPATH ORDINARY");
    for name in ["BASH_ENV", "LD_LIBRARY_PATH", "PYTHONPATH", "ORDINARY"] {
        request = request.env(name, format!("/nonexistent/{name}"));
    }
    let result = bed.run(request);
    let given: Vec<&str> = result.stdout.text.lines().collect();
    assert_eq!(given.len(), 4, "{result:?}");
    assert!(given.iter().all(|value| value.starts_with("/nonexistent/")), "{given:?}");
    let seen = fs::read_to_string(tools.path().join("seen")).unwrap();
    let of_the_commands: Vec<&str> = seen.lines().filter(|line| line.contains("=/nonexistent/")).collect();
    assert_eq!(of_the_commands, ["ORDINARY=/nonexistent/ORDINARY"]);
}

// O6, S9: the service's own files lie in the temp directory, and are not the command's to change
#[test]
fn the_services_own_files_are_kept_from_a_confined_command() {
    for backend in working().into_iter().filter(|&backend| backend != SandboxBackend::Landlock) {
        let dir = tempfile::tempdir().unwrap();
        let temp = dir.path().join("temp");
        fs::create_dir(&temp).unwrap();
        let workspace = dir.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let mut of_service = ServiceConfig::default();
        of_service.spill_root = temp.clone();
        let service = SubprocessService::with_config(of_service);
        let plain = BashExecutor::new(&service, Config::default()).unwrap();
        let big = plain.run(plain.resolve(ExecRequest::new("seq 1 20000")).unwrap()).unwrap();
        let spill = big.stdout.spill_path.unwrap();
        let before = fs::read(&spill).unwrap();

        let chain = SandboxChain::new().backends([backend]).temp_dir(&temp);
        let policy = SandboxPolicy::new(SandboxMode::WorkspaceWrite, &workspace);
        let bash = plain.with_sandbox(Arc::new(chain), policy).unwrap();
        let attempts = "echo x >>\"$S\"; rm -f \"$S\"; chmod 777 \"$S\"; mv \"${S%/*}\" \"$T/moved\";
            touch \"${S%/*}/new\"; ln -s /usr \"${S%/*}/link\"; echo ok >\"$T/allowed\"";
        let request = ExecRequest::new(attempts).env("S", &spill).env("T", &temp);
        let result = bash.run(bash.resolve(request).unwrap()).unwrap();
        assert_eq!(result.stderr.text.lines().count(), 6, "{}: {}", backend.as_str(), result.stderr.text);
        assert!(temp.join("allowed").exists());
        assert_eq!(fs::read(&spill).unwrap(), before, "{}", backend.as_str());
        // A command that is too long for an argument is read from there all the same.
        let long = format!(": {}\necho read", "x".repeat(200_000));
        assert_eq!(bash.run(bash.resolve(ExecRequest::new(long)).unwrap()).unwrap().stdout.text, "read\n");
    }
}

// --- policies and escalation -----------------------------------------------------------------------------------------

// S10, S2
#[test]
fn an_escalated_call_runs_once_in_the_wider_mode() {
    let Some(backend) = working().first().copied() else { skip!("nothing confines here") };
    let bed = Bed::with(backend, SandboxMode::ReadOnly);
    let asked = AtomicUsize::new(0);
    let spec = || bed.bash.resolve(bed.request("echo x >$W/x")).unwrap();
    let refuse = |_: &Escalation| {
        asked.fetch_add(1, Ordering::SeqCst);
        false
    };
    let refused = spec().escalate(SandboxMode::WorkspaceWrite, "it builds", &refuse).unwrap_err();
    assert_eq!((refused.code(), asked.load(Ordering::SeqCst)), ("NOT_APPROVED", 1));
    assert!(spec().escalate(SandboxMode::ReadOnly, "it builds", &refuse).is_err());
    assert!(spec().escalate(SandboxMode::WorkspaceWrite, " ", &refuse).is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 1, "what cannot be asked is not");
    assert!(!bed.path("workspace/x").exists());
    let grant = |escalation: &Escalation| escalation.command == "echo x >$W/x";
    let granted = spec().escalate(SandboxMode::WorkspaceWrite, "it builds", &grant).unwrap();
    let result = bed.bash.run(granted).unwrap();
    assert_eq!((result.exit_code, result.sandbox.unwrap().mode), (Some(0), SandboxMode::WorkspaceWrite));
    fs::remove_file(bed.path("workspace/x")).unwrap();
    assert_eq!(bed.bash.run(spec()).unwrap().exit_code, Some(1), "the next call is as narrow as before");
    let plain = BashExecutor::new(&bed.service, Config::default()).unwrap();
    let unconfined = plain.resolve(bed.request("true")).unwrap();
    assert!(unconfined.escalate(SandboxMode::DangerFullAccess, "why not", &grant).is_err());
}

// S2
#[test]
fn a_sessions_policy_is_what_its_calls_run_under() {
    let Some(backend) = working().first().copied() else { skip!("nothing confines here") };
    let bed = Bed::with(backend, SandboxMode::ReadOnly);
    let policies = SandboxPolicyService::new(SandboxMode::ReadOnly, bed.path("workspace"));
    policies.set_session_mode("open", SandboxMode::WorkspaceWrite);
    for (session, expected) in [("open", Some(0)), ("other", Some(1))] {
        let policy = policies.resolve(Some(session), None).unwrap();
        let result = bed.run(bed.request("echo x >$W/x").sandbox_policy(policy));
        assert_eq!(result.exit_code, expected, "{session}");
    }
}

// --- what goes through, and what is left -----------------------------------------------------------------------------

// I1, I3, T1, X1: input, long commands and descriptors are as without a sandbox
#[test]
fn what_goes_into_a_confined_command_arrives() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::ReadOnly);
        let result = bed.run(bed.request("cat").stdin("in\n"));
        assert_eq!(result.stdout.text, "in\n", "{}", backend.as_str());
        let long = format!("x='{}'; echo ${{#x}}", "y".repeat(200_000));
        assert_eq!(bed.sh(&long).stdout.text, "200000\n", "{}", backend.as_str());
        // The shell's own look at the directory takes one.
        let listed = bed.sh("for fd in /proc/$$/fd/*; do [ -e \"$fd\" ] && echo \"${fd##*/}\"; done");
        assert_eq!(listed.stdout.text, "0\n1\n2\n", "{}", backend.as_str());
        let gone = bed.execute(bed.request("true").workdir("/nonexistent/dir")).result().unwrap_err();
        assert_eq!(gone.code(), "SPAWN", "{}: {gone}", backend.as_str());
        let inner = bed.sh("env -i /bin/sh -c 'kill -9 $$'; echo $?");
        assert_eq!(inner.stdout.text, "137\n", "{}", backend.as_str());
    }
}

// T11
#[test]
fn confined_runs_leave_nothing_behind() {
    if is_alone("runs_many_confined") {
        return;
    }
    support::run_alone("runs_many_confined");
}

#[test]
#[ignore = "a part of confined_runs_leave_nothing_behind"]
fn runs_many_confined() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::ReadOnly);
        let refused = Bed::of(
            Arc::new(SandboxRunner::new(["/nonexistent"], Enforcement::Full).unwrap()),
            SandboxMode::ReadOnly,
        );
        let round = || {
            bed.sh("true");
            assert!(refused.execute(refused.request("true")).result().is_err());
        };
        round();
        let count = |what: &str| fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
        let before = count("fd");
        for _ in 0..50 {
            round();
        }
        until("the last thread is gone", || count("fd") <= before);
        let ours = i32::try_from(std::process::id()).unwrap();
        let spill = bed.sh("echo $TMPDIR").stdout.text;
        drop(bed);
        if backend != SandboxBackend::Landlock {
            assert!(!Path::new(spill.trim()).exists(), "{spill}");
        }
        assert!(lives(ours));
        let children = fs::read_to_string(format!("/proc/self/task/{ours}/children")).unwrap_or_default();
        assert_eq!(children.trim(), "", "{}", backend.as_str());
    }
}

// S9: two commands share what lies in the host's temp directory
#[test]
fn the_temp_directory_is_shared_in_workspace_write() {
    for backend in working() {
        let chain = SandboxChain::new().backends([backend]);
        let bed = Bed::of(Arc::new(chain), SandboxMode::WorkspaceWrite);
        let first = bed.sh("f=$(mktemp) && echo shared >$f && echo $f");
        let file = first.stdout.text.trim().to_owned();
        let second = bed.run(bed.request("cat $F && rm $F").env("F", &file));
        assert_eq!(second.stdout.text, "shared\n", "{}: {}", backend.as_str(), second.stderr.text);
        assert!(!Path::new(&file).exists());
    }
}

// O10: the incremental view of a confined run
#[test]
fn a_confined_run_is_read_as_it_goes() {
    for backend in working() {
        let bed = Bed::with(backend, SandboxMode::ReadOnly);
        let execution = bed.execute(bed.request("echo first; read x; echo second").stdin_piped());
        read_until(&execution, "first");
        drop(execution.take_stdin());
        execution.wait();
        assert_eq!(execution.read_output().delta, "second\n", "{}", backend.as_str());
    }
}
