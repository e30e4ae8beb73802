//! The seam is one: a consumer that knows only [`ShellExecutor`] gets the same from the local service and from a provider
//! that owes it nothing, `examples/remote`, over a stand-in for `ssh`.
#![cfg(unix)]

#[path = "../examples/remote/executor.rs"]
mod executor;
#[path = "../examples/remote/session.rs"]
mod session;
mod support;

use executor::SshExecutor;
use shell_executor::{
    AbortToken, Cause, Error, ExecRequest, Execution, ExitStatus, OnExpiry, ProcessStatus, SandboxMode,
    SandboxPolicy, ShellExecutor, parse_exit_status, render_read, render_result,
};
use std::path::Path;
use std::time::Duration;
use support::{Bed, Gate, PATIENCE, script};

/// What takes its time is one process, so that it ends with the connection. See `SshExecutor`.
const SLEEPER: &str = "echo ready; exec sleep 300";

/// What a host does, over whichever provider.
struct Consumer<'a>(&'a dyn ShellExecutor, &'a Path);

impl Consumer<'_> {
    fn execute(&self, request: ExecRequest) -> Execution {
        self.0.execute(self.0.resolve(request).unwrap())
    }

    /// Runs with ever longer deadlines, until one has passed after the command was started.
    fn past_its_deadline(
        &self,
        command: &str,
        on_expiry: OnExpiry,
        look: impl Fn(&Execution) -> bool,
    ) -> Execution {
        let mut timeout = Duration::from_millis(200);
        loop {
            let request = ExecRequest::new(command).on_expiry(on_expiry).timeout(timeout);
            let execution = self.execute(request);
            if look(&execution) {
                return execution;
            }
            assert!(timeout < PATIENCE, "it never got far enough");
            timeout *= 2;
        }
    }

    fn has_begun(execution: &Execution) -> bool {
        execution.observed().unwrap().stdout.read_from(0).text.contains("ready")
    }

    fn foreground(&self) {
        let request =
            ExecRequest::new("cat; pwd; echo \"it's $A\" >&2; exit 3").stdin("in\n").env("A", "'a  b'");
        let result = self.execute(request.timeout(PATIENCE)).result().unwrap();
        assert_eq!(
            (result.exit_code, result.signal, result.status),
            (Some(3), None, ProcessStatus::Completed)
        );
        assert_eq!((result.timed_out, result.aborted, result.cause), (false, false, Some(Cause::Exit)));
        let place = self.1.display();
        let rendered = format!("in\n{place}\n[stderr]\nit's 'a  b'\n[exit code: 3]");
        assert_eq!(render_result(&result), rendered);
        assert_eq!(parse_exit_status(&rendered).status, ExitStatus::Code(3));
    }

    fn bounded(&self) {
        let request = ExecRequest::new("seq 1 20000").stdout_max_bytes(20).timeout(PATIENCE);
        let result = self.execute(request).result().unwrap();
        assert_eq!(
            (result.stdout.bytes(), result.stdout.total_bytes),
            (&b"7\n19998\n19999\n20000\n"[..], 108_894)
        );
    }

    fn background(&self) {
        let job = self.0.resolve(ExecRequest::new(SLEEPER).on_expiry(OnExpiry::None));
        let job = self.0.start(job.unwrap()).unwrap();
        assert!(job.wait_output(Some(PATIENCE)));
        assert_eq!(render_read(&job.read_output(), None), "ready\n[still running]");
        assert_eq!(job.read_output().delta, "");
        let observed = job.observed().unwrap();
        assert_eq!(observed.stdout.read_from(2).text, "ady\n");
        assert_eq!((job.status(), job.wait_timeout(Duration::ZERO)), (ProcessStatus::Running, None));
        assert!(job.promotion().is_none());
        assert!(job.kill() && !job.kill());
        assert_eq!(job.wait(), ProcessStatus::Killed);
        assert!(!job.kill() && !job.wait_output(None));
        let result = job.result().unwrap();
        assert_eq!((result.cause, result.timeout, job.exit_code()), (Some(Cause::Kill), None, None));
        assert!(result.signal.is_some() && job.signal() == result.signal);
    }

    fn deadlines(&self) {
        let gate = Gate::at(&self.1.join("gate"));
        let late = self.past_its_deadline(SLEEPER, OnExpiry::Kill, |late| {
            late.wait();
            Self::has_begun(late)
        });
        let result = late.result().unwrap();
        assert_eq!((result.timed_out, result.aborted, result.status), (true, false, ProcessStatus::Killed));
        assert!(result.signal.is_some() && result.cause == Some(Cause::Timeout));

        let kept = self.past_its_deadline("echo ready; read x <gate; echo $x", OnExpiry::Offer, |late| {
            late.promotion().is_some_and(|it| it.accept())
        });
        assert!(kept.promotion().is_none(), "the offer is one");
        gate.open();
        let result = kept.result().unwrap();
        assert_eq!((result.exit_code, result.timed_out), (Some(0), false));
        assert_eq!(result.stdout.text, "ready\ngo\n");

        let dropped = self.past_its_deadline(SLEEPER, OnExpiry::Offer, |late| late.promotion().is_some());
        assert!(dropped.result().unwrap().timed_out, "an offer that is dropped declines");
    }

    fn aborts(&self) {
        let token = AbortToken::new();
        let request = ExecRequest::new(SLEEPER).timeout(PATIENCE).abort(&token);
        let execution = self.execute(request.clone());
        execution.wait_output(None);
        token.fire();
        let result = execution.result().unwrap();
        assert_eq!((result.timed_out, result.aborted, result.cause), (false, true, Some(Cause::Abort)));
        let refused = self.0.start(self.0.resolve(request).unwrap()).unwrap_err();
        assert_eq!(refused, Error::Aborted);
    }

    fn refusals(&self) {
        let code = |request: ExecRequest| self.0.resolve(request).unwrap_err().code();
        let request = || ExecRequest::new("true");
        assert_eq!(code(request().timeout(Duration::ZERO)), "INVALID_REQUEST");
        assert_eq!(code(request().env("A", "\0")), "INVALID_REQUEST");
        let policy = SandboxPolicy::new(SandboxMode::ReadOnly, "/");
        assert_eq!(code(request().sandbox_policy(policy)), "SANDBOX_UNAVAILABLE");
        let missing = self.0.resolve(request().workdir("/nonexistent/place")).unwrap();
        let error = self.0.run(missing).unwrap_err();
        let Error::Spawn(failure) = &error else { panic!("{error}") };
        assert_eq!(failure.path(), Some(Path::new("/nonexistent/place")), "{error}");
    }

    fn all(&self) {
        self.foreground();
        self.bounded();
        self.background();
        self.deadlines();
        self.aborts();
        self.refusals();
    }
}

// E1, E2; and no executor but the local one is known to the consumer's code
#[test]
fn the_local_provider_serves_the_consumer() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap();
    let bed = Bed::with(|config| config.workdir = Some(place.clone()));
    Consumer(&bed.bash, &place).all();
}

#[test]
fn another_provider_serves_the_same_consumer() {
    let bed = Bed::new();
    let place = bed.dir.path().canonicalize().unwrap();
    // As sshd does: the words after the host, joined by spaces, to the user's shell.
    let ssh = place.join("ssh");
    script(
        &ssh,
        "#!/bin/sh\nwhile [ \"$1\" != host ]; do shift; done\nshift\necho welcome >&2\nexec sh -c \"$*\"\n",
    );
    Consumer(&SshExecutor::new(ssh, "host", &place), &place).all();
}
