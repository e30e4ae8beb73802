//! How a command gets its text and its input: of any size, without deadlock, and nothing from the host.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{Error, OnExpiry, SpawnStage};
use std::io::Write;
use std::time::{Duration, Instant};
use support::{Bed, SOON, files_below, pattern, see, until};

// I1, case 50
#[test]
fn without_input_the_command_reads_the_end_at_once() {
    let bed = Bed::new();
    let command = "cat; echo after; readlink /proc/self/fd/0";
    let expected = "after\n/dev/null\n";
    assert_eq!(bed.sh(command).stdout.text, expected, "in the foreground");

    let background = bed.begin(command);
    background.wait();
    assert_eq!(background.read_output().delta, expected, "in the background");

    let gate = bed.gate("gate");
    let request = bed.request(format!("read x <$D/gate; {command}")).timeout(Duration::from_secs(1));
    let promoted = bed.start(request.on_expiry(OnExpiry::Offer));
    assert!(promoted.promotion().expect("the deadline passes").accept());
    gate.open();
    assert_eq!(promoted.result().unwrap().stdout.text, expected, "promoted");
}

// I1
#[test]
fn the_bytes_given_are_followed_by_the_end() {
    let bed = Bed::new();
    let read = |bytes: &[u8]| bed.run(bed.request("cat; echo after").stdin(bytes)).stdout.text;
    assert_eq!(read(b"one\ntwo\n"), "one\ntwo\nafter\n");
    assert_eq!(read(b"no line end"), "no line endafter\n");
    assert_eq!(read(b""), "after\n");
    let binary = bed.run(bed.request("cat").stdin(&b"\0\xff\n\0"[..]));
    assert_eq!(binary.stdout.bytes(), b"\0\xff\n\0");
    assert!(!binary.stdin_truncated);
}

// I1, case 49
#[test]
fn input_and_output_of_any_size_do_not_block_each_other() {
    const SIZE: usize = 8 << 20;
    let bed = Bed::new();
    let request = bed.request("cat").stdin(pattern(SIZE)).stdout_max_bytes(SIZE);
    let result = bed.run(request);
    assert!(result.stdout.bytes() == pattern(SIZE) && !result.stdout.truncated && !result.stdin_truncated);
    // The command may write all it has before it reads a byte.
    let late = "head -c 3000000 /dev/zero; wc -c";
    let result = bed.run(bed.request(late).stdin(pattern(3_000_000)));
    assert!(result.stdout.text.ends_with("3000000\n"));
    assert_eq!(result.stdout.total_bytes, 3_000_008);
}

// I1, O1, case 49
#[test]
fn neither_stream_waits_for_the_other() {
    let bed = Bed::new();
    let result = bed.sh("head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero");
    assert_eq!((result.stdout.total_bytes, result.stderr.total_bytes), (1_000_000, 1_000_000));
    assert_eq!(result.exit_code, Some(0));
}

// I1, case 38
#[test]
fn a_command_that_does_not_read_its_input_is_no_failure() {
    let bed = Bed::new();
    let result = bed.run(bed.request("exit 7").stdin(vec![0; 64 << 20]));
    assert_eq!((result.exit_code, result.stdin_truncated), (Some(7), true));
    let result = bed.run(bed.request("head -c1 >/dev/null").stdin(vec![0; 64 << 20]));
    assert_eq!((result.exit_code, result.stdin_truncated), (Some(0), true));
    // One that closes it and goes on goes on.
    let result = bed.run(bed.request("exec <&-; echo on; exit 6").stdin(vec![0; 1 << 20]));
    assert_eq!((result.exit_code, result.stdout.text.as_str()), (Some(6), "on\n"));
    assert!(result.stdin_truncated);
    assert!(!bed.sh("exec <&-; echo on").stdin_truncated, "there was none to lose");
}

// I1: a command that never reads, and a descendant that holds its input, stop no settlement
#[test]
fn an_unread_input_holds_nothing_up() {
    let bed = Bed::new();
    let begun = Instant::now();
    let result = bed.run(bed.request("sleep 300 >/dev/null 2>&1 & exit 3").stdin(vec![0; 1 << 20]));
    assert_eq!((result.exit_code, result.survivors), (Some(3), 1));
    let result =
        bed.run(bed.request("sleep 300").stdin(vec![0; 1 << 20]).timeout(Duration::from_millis(200)));
    assert!(result.timed_out && begun.elapsed() < SOON);
}

// I1
#[test]
fn a_piped_stdin_is_the_callers() {
    let bed = Bed::new();
    let execution = bed.start(bed.request("while read x; do echo \"got $x\"; done; echo end").stdin_piped());
    let mut stdin = execution.take_stdin().unwrap();
    assert!(execution.take_stdin().is_none());
    stdin.write_all(b"one\n").unwrap();
    see(&execution, "got one\n");
    stdin.write_all(b"two\n").unwrap();
    see(&execution, "got two\n");
    drop(stdin);
    assert_eq!(execution.result().unwrap().stdout.text, "got one\ngot two\nend\n");
}

// I2
#[test]
fn the_streams_are_pipes_that_can_be_opened_again() {
    let bed = Bed::new();
    let command = "[ -p /dev/stdin ] && [ -p /dev/stdout ] && [ -p /dev/stderr ] && \
        { echo out >/dev/stdout; echo err >/dev/stderr; cat /dev/stdin; cat </proc/self/fd/0; }";
    let result = bed.run(bed.request(command).stdin("in\n"));
    assert_eq!((result.exit_code, result.stdout.text.as_str()), (Some(0), "out\nin\n"));
    assert_eq!(result.stderr.text, "err\n");
    let tee = bed.sh("echo twice | tee /dev/stderr");
    assert_eq!((tee.stdout.text.as_str(), tee.stderr.text.as_str()), ("twice\n", "twice\n"));
}

/// A command of some length that does nothing before `rest`.
fn padded(length: usize, rest: &str) -> String {
    format!(": {}\n{rest}", "x".repeat(length))
}

// I3, case 56
#[test]
fn a_command_longer_than_one_argument_may_be_runs_all_the_same() {
    let bed = Bed::new();
    let rest = "echo ok; echo \"$0\" \"$#\"; cat; echo \"line $LINENO\"; exit 5";
    let short = bed.run(bed.request(padded(10, rest)).stdin("the input\n"));
    assert_eq!(short.exit_code, Some(5));
    assert!(short.stdout.text.starts_with("ok\nbash 0\nthe input\n"), "{}", short.stdout.text);
    for length in [200_000, 3_000_000] {
        let long = bed.run(bed.request(padded(length, rest)).stdin("the input\n"));
        assert_eq!(long.stdout.text, short.stdout.text, "{length}");
        assert_eq!((long.exit_code, long.stderr.text.as_str()), (Some(5), ""), "{length}");
    }
}

// I3
#[test]
fn the_limit_itself_and_one_byte_around_it_make_no_difference() {
    let bed = Bed::new();
    let page = 4096 * 32;
    for length in page - 3..=page + 2 {
        let command = padded(length - ": \necho $#".len(), "echo $#");
        assert_eq!(command.len(), length);
        let result = bed.sh(&command);
        assert_eq!((result.stdout.text.as_str(), result.exit_code), ("0\n", Some(0)), "{length}");
    }
}

// I3
#[test]
fn a_long_command_is_the_same_command() {
    let bed = Bed::new();
    let both = |rest: &str| {
        let (short, long) = (bed.sh(&padded(10, rest)), bed.sh(&padded(200_000, rest)));
        let facts = |result: &shell_executor::RunResult| {
            (
                result.exit_code,
                result.signal,
                result.status,
                result.stdout.text.clone(),
                result.stderr.text.clone(),
            )
        };
        assert_eq!(facts(&long), facts(&short), "{rest}");
    };
    both("nonsense-command-anywhere");
    both("echo 'quotes \" and \\ and $HOME'; echo \"$((1+1))\" `echo back`");
    both("cat <<'END'\n$not expanded\nEND");
    both("f() { echo \"f $1\"; return 3; }; f x");
    both("set -e; false; echo never");
    both("kill -TERM $$");
    both("trap 'echo leaving' EXIT; echo working");
    both("exec echo replaced");
    both("printf '\u{1}\u{7f}\u{80}' | od -c");
    both("echo \u{20ac}; printf '\\xff' | od -c | head -1");
}

// I3
#[test]
fn a_long_command_leaves_no_file_and_can_be_killed() {
    let bed = Bed::new();
    let execution = bed.begin(&padded(200_000, "echo ready; sleep 300; :"));
    see(&execution, "ready");
    assert!(execution.kill());
    assert_eq!(execution.result().unwrap().signal, Some(libc::SIGTERM));
    until("its file is gone", || files_below(&bed.spill_root()).is_empty());
}

// I3, case 56
#[test]
fn a_variable_that_is_too_long_names_sizes_and_limit() {
    let bed = Bed::new();
    let spec = bed.request("echo hi").env("BIG", "x".repeat(1 << 20));
    let execution = bed.execute(spec);
    let error = match execution.result() {
        Err(Error::Spawn(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!((error.stage(), error.raw_os_error()), (SpawnStage::Shell, Some(libc::E2BIG)));
    let text = error.to_string();
    // With its name, the equals sign and the NUL at the end.
    assert!(text.contains(&format!("{}", (1 << 20) + 5)) && text.contains("131072"), "{text}");
    assert!(text.contains("bash"), "{text}");
}

// I4
#[test]
fn a_command_that_begins_with_a_dash_is_a_command() {
    let bed = Bed::new();
    for command in ["-x", "--version", "-c", "--", "-", "--help", "-x; echo no"] {
        let result = bed.sh(command);
        let expected = if command.ends_with("no") { "no\n" } else { "" };
        assert_eq!(result.stdout.text, expected, "{command}");
        let name = command.split(';').next().unwrap();
        assert!(result.stderr.text.contains(&format!("{name}: command not found")), "{:?}", result.stderr);
    }
    let defined = bed.sh("-x() { echo called; }; -x");
    assert_eq!((defined.stdout.text.as_str(), defined.exit_code), ("called\n", Some(0)));
}

// I4, I3
#[test]
fn a_long_command_may_begin_with_a_dash_too() {
    let bed = Bed::new();
    let result = bed.sh(&format!("-x {}", "y".repeat(200_000)));
    assert_eq!((result.stdout.text.as_str(), result.exit_code), ("", Some(127)));
    assert!(result.stderr.text.contains("-x: command not found"), "{:?}", result.stderr);
}

// R1: a command is bytes
#[test]
fn a_command_may_hold_what_is_no_text() {
    use std::os::unix::ffi::OsStringExt;
    let bed = Bed::new();
    let command = std::ffi::OsString::from_vec(b"printf '\xff\xfe'".to_vec());
    assert_eq!(bed.run(bed.request(command)).stdout.bytes(), b"\xff\xfe");
}
