//! Processes by argv, without a shell, on the same mechanics.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{
    AbortToken, Cause, Disposition, Error, Input, OnExpiry, ProcessStatus, SpawnError, SpawnStage, Subprocess,
};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;
use support::{Bed, child, is_alone, run_alone, script, until};

#[track_caller]
fn not_spawned<T: std::fmt::Debug>(result: Result<T, Error>) -> SpawnError {
    match result {
        Err(Error::Spawn(error)) => error,
        other => panic!("not a failed start: {other:?}"),
    }
}

// E9
#[test]
fn arguments_arrive_as_they_are() {
    let bed = Bed::new();
    let odd = ["", " ", "$HOME", "a b", "'\"", "*", "\\", "-x", "line\nbreak", "\u{20ac}"];
    let mut argv = vec![child().into_os_string(), "arguments".into()];
    argv.extend(odd.map(Into::into));
    let result = bed.service.spawn(bed.spawn_spec(argv)).unwrap().result().unwrap();
    let expected: String = odd.iter().map(|word| format!("{word:?}\n")).collect();
    assert_eq!((result.stdout.text, result.exit_code), (expected, Some(0)));
}

// E9
#[test]
fn collected_streams_are_views_of_the_same_kind() {
    let bed = Bed::new();
    let process = bed.service.spawn(bed.spawn_sh("echo out; echo err >&2; exit 5")).unwrap();
    let result = process.result().unwrap();
    assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("out\n", "err\n"));
    assert_eq!((process.exit_code(), process.signal(), process.cause()), (Some(5), None, Some(Cause::Exit)));
    assert_eq!(process.status(), ProcessStatus::Completed);
    assert_eq!(process.read_output().delta, "out\n[stderr]\nerr\n");
    assert_eq!(process.observed().stderr.read_from(0).text, "err\n");
    assert!(process.take_stdin().is_none() && process.take_stdout().is_none());
    assert!(!process.kill() && process.wait_range(None));
}

// E9
#[test]
fn a_collected_stream_has_the_terms_of_its_disposition() {
    let bed = Bed::new();
    let mut spec = bed.spawn_sh("printf 0123456789; printf 0123456789 >&2");
    spec.stdout = Disposition::Collect { max_bytes: 4, spill_max_bytes: Some(1000) };
    spec.stderr = Disposition::Collect { max_bytes: 6, spill_max_bytes: None };
    let result = bed.service.spawn(spec).unwrap().result().unwrap();
    assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("6789", "456789"));
    assert_eq!(std::fs::read(result.stdout.spill_path.unwrap()).unwrap(), b"0123456789");
    assert_eq!((result.stderr.spill_path, result.stderr.spill_error), (None, None), "no file was asked for");
    assert!(result.stderr.truncated);
}

// E9
#[test]
fn a_piped_output_is_handed_over_raw_and_once() {
    let bed = Bed::new();
    let mut spec = bed.spawn_spec([child(), "write".into()]);
    spec.argv.extend(["out", "300000", "777", "bytes"].map(Into::into));
    spec.stdout = Disposition::Pipe;
    let process = bed.service.spawn(spec).unwrap();
    let mut all = Vec::new();
    let mut pipe = process.take_stdout().unwrap();
    assert!(process.take_stdout().is_none() && process.take_stderr().is_none());
    pipe.read_to_end(&mut all).unwrap();
    assert!(all == support::pattern(300_000));
    let result = process.result().unwrap();
    assert_eq!((result.stdout.total_bytes, result.exit_code), (0, Some(0)), "nothing of it is collected");
    assert_eq!(process.read_output().delta, "");
}

// E9
#[test]
fn one_stream_can_be_piped_and_the_other_collected() {
    let bed = Bed::new();
    let gate = bed.gate("gate");
    let mut spec = bed.spawn_sh("echo out; echo err >&2; read x <$D/gate");
    spec.stderr = Disposition::Pipe;
    let process = bed.service.spawn(spec).unwrap();
    let mut stderr = process.take_stderr().unwrap();
    gate.open();
    let mut err = String::new();
    stderr.read_to_string(&mut err).unwrap();
    assert_eq!((process.result().unwrap().stdout.text.as_str(), err.as_str()), ("out\n", "err\n"));
}

// E9
#[test]
fn a_piped_stdin_is_written_by_the_caller_and_ends_when_he_drops_it() {
    let bed = Bed::new();
    let mut spec = bed.spawn_spec(["cat"]);
    spec.stdin = Input::Pipe;
    let process = bed.service.spawn(spec).unwrap();
    let mut stdin = process.take_stdin().unwrap();
    assert!(process.take_stdin().is_none());
    stdin.write_all(b"one\n").unwrap();
    let observed = process.observed();
    until("the first line comes back", || observed.stdout.read_from(0).text == "one\n");
    stdin.write_all(b"two\n").unwrap();
    assert_eq!(process.try_wait(), None, "it still waits for more");
    drop(stdin);
    assert_eq!(process.result().unwrap().stdout.text, "one\ntwo\n");
}

// E9, I1
#[test]
fn stdin_bytes_are_written_and_closed() {
    let bed = Bed::new();
    let mut spec = bed.spawn_spec([child(), "copy".into()]);
    spec.stdin = Input::Bytes(support::pattern(300_000));
    spec.stdout = Disposition::Collect { max_bytes: 1_000_000, spill_max_bytes: None };
    let result = bed.service.spawn(spec).unwrap().result().unwrap();
    assert!(result.stdout.bytes() == support::pattern(300_000) && !result.stdin_truncated);
}

// E9
#[test]
fn an_inherited_stream_is_the_hosts_own() {
    let output = support::alone(support::this_program(), "inherits").output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("straight to stdout\n") && stderr.contains("straight to stderr\n"));
}

#[test]
#[ignore = "a part of an_inherited_stream_is_the_hosts_own"]
fn inherits() {
    if !is_alone("inherits") {
        return;
    }
    let bed = Bed::new();
    let mut spec = bed.spawn_sh("echo straight to stdout; echo straight to stderr >&2");
    (spec.stdout, spec.stderr) = (Disposition::Inherit, Disposition::Inherit);
    let result = bed.service.spawn(spec).unwrap().result().unwrap();
    assert_eq!((result.stdout.total_bytes, result.stderr.total_bytes), (0, 0));
    assert_eq!((result.exit_code, result.pipes_held), (Some(0), false));
}

fn searching(bed: &Bed, program: &str, path: &str) -> Result<Subprocess, Error> {
    let mut spec = bed.spawn_spec([program]);
    spec.env.retain(|(name, _)| name != "PATH");
    spec.env.push(("PATH".into(), path.into()));
    bed.service.spawn(spec)
}

// E9
#[test]
fn a_bare_name_is_looked_up_on_the_childs_path() {
    let bed = Bed::new();
    for (dir, says) in [("first", "one"), ("second", "two")] {
        std::fs::create_dir(bed.path(dir)).unwrap();
        script(&bed.path(dir).join("only-here"), &format!("#!/bin/sh\necho {says}\n"));
    }
    std::fs::create_dir(bed.path("none")).unwrap();
    std::fs::write(bed.path("none/only-here"), "not executable").unwrap();
    let path = |dirs: &[&str]| -> String {
        dirs.iter().map(|dir| bed.path(dir).display().to_string()).collect::<Vec<_>>().join(":")
    };
    let says = |path: &str| searching(&bed, "only-here", path).unwrap().result().unwrap().stdout.text;
    assert_eq!(says(&path(&["first", "second"])), "one\n");
    assert_eq!(says(&path(&["second", "first"])), "two\n");
    assert_eq!(
        says(&path(&["missing", "none", "second"])),
        "two\n",
        "a file that may not be executed is passed"
    );
    assert_eq!(says(&format!("first:.::{}", path(&["second"]))), "two\n", "only absolute directories count");
    let error = not_spawned(searching(&bed, "only-here", &path(&["missing"])));
    assert_eq!((error.stage(), error.raw_os_error()), (SpawnStage::Exec, Some(libc::ENOENT)));
    assert_eq!(error.path(), Some(Path::new("only-here")));
    let error = not_spawned(searching(&bed, "only-here", &path(&["missing", "none"])));
    assert_eq!((error.stage(), error.raw_os_error()), (SpawnStage::Exec, Some(libc::EACCES)));
    assert_eq!(error.path(), Some(&*bed.path("none/only-here")));
}

// E9
#[test]
fn the_hosts_own_path_does_not_count() {
    let bed = Bed::new();
    let error = not_spawned(searching(&bed, "ls", &bed.path("empty").display().to_string()));
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    assert!(error.to_string().contains("\"ls\""), "{error}");
}

// E9
#[test]
fn a_relative_path_is_refused() {
    let bed = Bed::new();
    script(&bed.path("tool"), "#!/bin/sh\n: >made\n");
    for program in ["./tool", "a/tool", "../tool", ".", "..", "a/../tool"] {
        match bed.service.spawn(bed.spawn_spec([program])) {
            Err(Error::InvalidRequest { field, .. }) => assert_eq!(field, "argv", "{program}"),
            other => panic!("{program}: {other:?}"),
        }
    }
    assert!(!bed.path("made").exists());
    // Nor is one found in the working directory by its bare name.
    assert_eq!(searching(&bed, "tool", ".:").unwrap_err().code(), "SPAWN");
    assert!(bed.service.spawn(bed.spawn_spec([bed.path("tool")])).is_ok(), "an absolute path is fine");
}

// E9, X1
#[test]
fn a_program_that_cannot_be_executed_says_why() {
    let bed = Bed::new();
    std::fs::write(bed.path("plain"), "text").unwrap();
    script(&bed.path("no-format"), "echo no shell is tried\n");
    let spawn = |path: &Path| not_spawned(bed.service.spawn(bed.spawn_spec([path])));
    let missing = spawn(&bed.path("missing"));
    assert_eq!((missing.stage(), missing.raw_os_error()), (SpawnStage::Exec, Some(libc::ENOENT)));
    assert_eq!(missing.path(), Some(&*bed.path("missing")));
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(spawn(&bed.path("plain")).raw_os_error(), Some(libc::EACCES));
    assert_eq!(spawn(bed.dir.path()).raw_os_error(), Some(libc::EACCES));
    assert_eq!(spawn(&bed.path("no-format")).raw_os_error(), Some(libc::ENOEXEC));
}

// E9
#[test]
fn a_separator_at_the_end_makes_a_relative_path_too() {
    let bed = Bed::new();
    script(&bed.path("tool"), "#!/bin/sh\n: >made\n");
    for program in ["tool/", "tool/."] {
        match bed.service.spawn(bed.spawn_spec([program])) {
            Err(Error::InvalidRequest { field, .. }) => assert_eq!(field, "argv", "{program}"),
            other => panic!("{program}: {other:?}"),
        }
    }
}

// X1
#[test]
fn a_path_through_a_file_says_so() {
    let bed = Bed::new();
    std::fs::write(bed.path("plain"), "text").unwrap();
    let error = not_spawned(bed.service.spawn(bed.spawn_spec([bed.path("plain/below")])));
    assert_eq!(error.raw_os_error(), Some(libc::ENOTDIR));
}

// E9, V1
#[test]
fn the_environment_is_what_the_order_says_and_the_marker() {
    let bed = Bed::new();
    let mut spec = bed.spawn_spec(["/usr/bin/env"]);
    spec.env = vec![("B".into(), "2".into()), ("A".into(), String::new().into())];
    let result = bed.service.spawn(spec).unwrap().result().unwrap();
    let lines: Vec<&str> = result.stdout.text.lines().collect();
    assert_eq!(lines[..2], ["B=2", "A="]);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[2].starts_with("SHELL_EXECUTOR_RANGE="));
}

// E9
#[test]
fn deadline_token_and_offer_are_those_of_every_execution() {
    let bed = Bed::new();
    let mut spec = bed.spawn_spec(["sleep", "300"]);
    spec.timeout = Some(Duration::from_secs(1));
    let result = bed.service.spawn(spec.clone()).unwrap().result().unwrap();
    assert!(result.timed_out && result.signal == Some(libc::SIGTERM));
    assert_eq!(result.timeout, Some(Duration::from_secs(1)));

    spec.on_expiry = OnExpiry::Offer;
    let process = bed.service.spawn(spec.clone()).unwrap();
    assert!(process.promotion().expect("the deadline passes").accept());
    assert!(process.kill());
    assert_eq!(process.result().unwrap().cause, Some(Cause::Kill));

    let token = AbortToken::new();
    spec.abort = Some(token.clone());
    spec.timeout = None;
    let process = bed.service.spawn(spec.clone()).unwrap();
    assert!(token.fire());
    assert!(process.result().unwrap().aborted);
    assert_eq!(bed.service.spawn(spec).unwrap_err(), Error::Aborted, "nothing is spawned any more");
}

// E9, E1
#[test]
fn execute_gives_as_a_result_what_spawn_gives_as_an_error() {
    let bed = Bed::new();
    let process = bed.service.execute(bed.spawn_spec(["no-such-program-anywhere"]));
    assert_eq!(process.wait(), ProcessStatus::Killed);
    let error = process.result().unwrap_err();
    assert_eq!(error.code(), "SPAWN");
    assert_eq!(process.read_output().delta, format!("[stderr]\nspawn failed: {error}\n"));
    assert!(process.take_stdout().is_none() && process.pid().is_none());
}

// I3, X1
#[test]
fn an_argument_that_is_too_long_names_sizes_and_limit() {
    let bed = Bed::new();
    let error = not_spawned(bed.service.spawn(bed.spawn_spec(["true".to_owned(), "x".repeat(200_000)])));
    assert_eq!((error.stage(), error.raw_os_error()), (SpawnStage::Exec, Some(libc::E2BIG)));
    let text = error.to_string();
    assert!(text.contains("200001") && text.contains("131072"), "{text}");
    let many = std::iter::once("true".to_owned()).chain((0..40_000).map(|_| "x".repeat(1000)));
    let text = not_spawned(bed.service.spawn(bed.spawn_spec(many))).to_string();
    assert!(text.contains("too long") && text.contains("1001"), "{text}");
}

// T8: what a caller has not taken does not keep a process from ending
#[test]
fn a_pipe_nobody_takes_holds_nothing_up() {
    let bed = Bed::new();
    let mut spec = bed.spawn_sh("echo unread");
    (spec.stdout, spec.stdin) = (Disposition::Pipe, Input::Pipe);
    let process = bed.service.spawn(spec).unwrap();
    assert_eq!(process.result().unwrap().exit_code, Some(0));
    assert!(process.wait_range(Some(support::PATIENCE)));
    assert!(process.take_stdin().is_none(), "nobody reads it any more");
}

// E9, O11
#[test]
fn the_piped_output_of_a_quick_process_is_not_lost() {
    let bed = Bed::new();
    let mut spec = bed.spawn_spec(["echo", "quick"]);
    spec.stdout = Disposition::Pipe;
    let process = bed.service.spawn(spec).unwrap();
    assert!(process.wait_range(Some(support::PATIENCE)));
    let mut out = String::new();
    process.take_stdout().expect("nobody has taken it").read_to_string(&mut out).unwrap();
    assert_eq!(out, "quick\n");
}

// T2
#[test]
fn a_host_that_has_not_ignored_sigpipe_survives_the_feeding_of_stdin() {
    run_alone("feeds_a_command_that_does_not_read");
}

#[test]
#[ignore = "a part of a_host_that_has_not_ignored_sigpipe_survives_the_feeding_of_stdin"]
fn feeds_a_command_that_does_not_read() {
    if !is_alone("feeds_a_command_that_does_not_read") {
        return;
    }
    // SAFETY: SIG_DFL is a disposition of the system's own; this process is here for this test alone.
    #[allow(unsafe_code, reason = "a host in C has SIGPIPE as the system gives it")]
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL)
    };
    let bed = Bed::new();
    for _ in 0..10 {
        let mut spec = bed.spawn_spec(["true"]);
        spec.stdin = Input::Bytes(vec![b'x'; 1 << 20]);
        let result = bed.service.spawn(spec).unwrap().result().unwrap();
        assert_eq!((result.exit_code, result.stdin_truncated), (Some(0), true));
    }
}
