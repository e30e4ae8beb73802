//! What has to hold on every kernel: codes, streams, stages of failure, a deadline that reaches everybody, nothing left.

use crate::commands::{argv, bash, bash_with, run, run_past_its_deadline};
use crate::expect::{Outcome, ensure, equal};
use crate::look::{self, Belongings, unique};
use shell_executor::{Error, ExecRequest, RunResult, SpawnError, SpawnStage, SubprocessService};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Plays all of it, in a host that has leaky descriptors of its own.
pub(crate) fn play() -> Outcome {
    let _leaky = Leaky::open()?;
    let before = Belongings::now();
    let service = SubprocessService::new();
    codes(&service)?;
    streams(&service)?;
    descriptors_of_a_child(&service)?;
    signals_of_a_child(&service)?;
    stages(&service)?;
    deadline(&service)?;
    before_disposal(&service)?;
    equal("survivors of the disposal", service.dispose().survivors, 0)?;
    before.ensure_as_before()
}

fn codes(service: &SubprocessService) -> Outcome {
    let bash = bash(service)?;
    for code in [0, 7, 255] {
        let result = run(&bash, ExecRequest::new(format!("exit {code}")))?;
        equal("the exit code", (result.exit_code, result.signal), (Some(code), None))?;
    }
    let result = run(&bash, ExecRequest::new("kill -KILL $$"))?;
    equal("the end by a signal", (result.exit_code, result.signal), (None, Some(libc::SIGKILL)))
}

fn streams(service: &SubprocessService) -> Outcome {
    let bash = bash(service)?;
    let input = "in\n".repeat(100_000);
    let request = ExecRequest::new("echo err >&2; cat; echo out").stdin(input.clone().into_bytes());
    let result = run(&bash, request.stdout_max_bytes(1 << 20))?;
    equal("stderr", result.stderr.text.as_str(), "err\n")?;
    ensure(result.stdout.text == input + "out\n", || {
        format!("stdout of {} bytes", result.stdout.total_bytes)
    })?;
    ensure(!result.pipes_held && !result.stdin_truncated, || format!("{result:?}"))
}

/// The numbers of the descriptors that a command has, in order. T1.
pub(crate) const LIST_DESCRIPTORS: &str =
    r#"for fd in /proc/$$/fd/*; do if [ -e "$fd" ]; then echo "${fd##*/}"; fi; done"#;

fn descriptors_of_a_child(service: &SubprocessService) -> Outcome {
    let result = run(&bash(service)?, ExecRequest::new(LIST_DESCRIPTORS))?;
    equal("the descriptors of a command", result.stdout.text.as_str(), "0\n1\n2\n")
}

fn signals_of_a_child(service: &SubprocessService) -> Outcome {
    let result = service.spawn(argv(["cat", "/proc/self/status"]))?.result()?;
    for key in ["SigBlk", "SigIgn", "SigCgt"] {
        let mask = look::status_field(&result.stdout.text, key).ok_or("no such line")?;
        // 32 and 33 are the C library's own; `clean-child` asks for them.
        let mask = u64::from_str_radix(&mask, 16)? & !(0b11 << 31);
        ensure(mask == 0, || format!("{key} is {mask:016x}"))?;
    }
    Ok(())
}

/// A failure is reported at its own stage: never a missing workdir as a missing shell. X1, case 58.
fn stages(service: &SubprocessService) -> Outcome {
    let cases = [
        ("/nonexistent/dir", SpawnStage::Workdir, libc::ENOENT),
        ("/dev/null", SpawnStage::Workdir, libc::ENOTDIR),
    ];
    let here = bash(service)?;
    for (workdir, stage, errno) in cases {
        let failure = failure(run(&here, ExecRequest::new("true").workdir(workdir)))?;
        is(&failure, stage, errno, workdir)?;
        let mut spec = argv(["true"]);
        spec.cwd = workdir.into();
        is(&start_failure(service, spec)?, stage, errno, workdir)?;
    }
    let shell = bash_with(service, |config| config.shell = "/nonexistent/bash".into())?;
    is(
        &failure(run(&shell, ExecRequest::new("true")))?,
        SpawnStage::Shell,
        libc::ENOENT,
        "/nonexistent/bash",
    )?;
    let missing = "/nonexistent/program";
    is(&start_failure(service, argv([missing]))?, SpawnStage::Exec, libc::ENOENT, missing)?;
    let missing = "no-such-program-anywhere";
    let mut spec = argv([missing]);
    // A directory on the host's own path that may not be searched would be told instead.
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    is(&start_failure(service, spec)?, SpawnStage::Exec, libc::ENOENT, missing)?;
    // A directory is not executable for anybody, root included.
    is(&start_failure(service, argv(["/dev"]))?, SpawnStage::Exec, libc::EACCES, "/dev")
}

fn start_failure(service: &SubprocessService, spec: shell_executor::SpawnSpec) -> Outcome<SpawnError> {
    failure(service.spawn(spec).and_then(|process| process.result()))
}

pub(crate) fn failure(outcome: Result<RunResult, Error>) -> Outcome<SpawnError> {
    match outcome {
        Err(Error::Spawn(failure)) => Ok(failure),
        other => Err(format!("not a failure to start: {other:?}").into()),
    }
}

fn is(failure: &SpawnError, stage: SpawnStage, errno: i32, path: &str) -> Outcome {
    let got = (failure.stage(), failure.raw_os_error(), failure.path());
    ensure(got == (stage, Some(errno), Some(Path::new(path))), || format!("{failure:?} over {path}"))?;
    ensure(failure.to_string().contains(path), || format!("{failure} does not name {path}"))
}

/// T4, case 9: politely, and everybody.
fn deadline(service: &SubprocessService) -> Outcome {
    let number = unique();
    let command = format!("sleep {number} & sleep {number}");
    let result = run_past_its_deadline(&bash(service)?, &command)?;
    ensure(result.timed_out && !result.aborted, || format!("not timed out: {result:?}"))?;
    equal("the end", (result.exit_code, result.signal), (None, Some(libc::SIGTERM)))?;
    equal("the survivors", result.survivors, 0)?;
    // The ladder watches the range, so that nobody is left when the result is there.
    equal("what sleeps on", look::sleepers(&number), Vec::new())
}

/// E7: a settled run leaves no zombie, whether or not its handle is dropped.
fn before_disposal(service: &SubprocessService) -> Outcome {
    let handles = (0..5).map(|_| service.spawn(argv(["true"]))).collect::<Result<Vec<_>, _>>()?;
    for handle in &handles {
        handle.wait_range(None);
    }
    equal("the children of the host", look::children(), Vec::new())
}

/// Descriptors of a careless host: not close-on-exec, one of them high.
pub(crate) struct Leaky {
    _files: Vec<File>,
}

impl Leaky {
    pub(crate) fn open() -> Outcome<Leaky> {
        let mut files = Vec::new();
        for least in [3, 50, 700] {
            let null = File::open("/dev/null")?;
            // SAFETY: F_DUPFD takes no pointer, and the file is open.
            let raw = unsafe { libc::fcntl(null.as_raw_fd(), libc::F_DUPFD, least) };
            ensure(raw >= least, || format!("no descriptor from {least} on"))?;
            // SAFETY: the call above made the number.
            files.push(unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(raw) });
        }
        Ok(Leaky { _files: files })
    }
}
