//! Output: the exact tail, the complete file, and readers that lose nothing silently.
#![cfg(target_os = "linux")]

mod support;

use proptest::prelude::*;
use shell_executor::{
    CollectedOutput, Disposition, Execution, OutputStream, ServiceConfig, SubprocessService,
};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use support::{
    Bed, PATIENCE, SOON, alone, child, files_below, is_alone, pattern, pattern_text, read_until, run_alone,
    see, skip, this_program, until, until_some,
};

/// `seq 1 200000` and a last line.
const LONG: &str = "seq 1 200000; echo FAIL_LAST; exit 1";
const LONG_TOTAL: u64 = 1_288_905;

fn long_output() -> Vec<u8> {
    let mut all: Vec<u8> = (1..=200_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    all.extend(b"FAIL_LAST\n");
    all
}

/// What a result must say of a stream that was `all`, by a budget of `limit`.
#[track_caller]
fn assert_tail(stream: &CollectedOutput, all: &[u8], limit: usize) {
    let tail = &all[all.len().saturating_sub(limit)..];
    assert!(stream.bytes() == tail, "{} bytes kept of {} at {limit}", stream.bytes().len(), all.len());
    assert_eq!(stream.total_bytes, all.len() as u64);
    assert_eq!(stream.truncated, all.len() > limit);
}

// O1, O3, case 72
#[test]
fn the_end_is_kept_and_the_count_is_exact() {
    let bed = Bed::with(|config| config.output_max_bytes = 4096);
    let result = bed.sh(LONG);
    assert_eq!(result.exit_code, Some(1));
    assert!(result.stdout.text.ends_with("\nFAIL_LAST\n"));
    assert_eq!(result.stdout.total_bytes, LONG_TOTAL);
    assert_tail(&result.stdout, &long_output(), 4096);
    let path = result.stdout.spill_path.as_ref().expect("the whole stream");
    assert!(fs::read(path).unwrap() == long_output());
    assert_eq!(result.stdout.spill_error, None);
}

// O1, case 73
#[test]
fn overflow_neither_blocks_nor_kills() {
    let bed = Bed::new();
    let result = bed.sh("head -c 5000000 /dev/zero | tr '\\0' a; touch $D/done; exit 8");
    assert_eq!(result.exit_code, Some(8));
    assert!(bed.path("done").exists());
    assert_eq!((result.stdout.total_bytes, result.stdout.text.len()), (5_000_000, 64_000));
    assert!(result.stdout.text.bytes().all(|byte| byte == b'a'));
}

// O1, case 70
#[test]
fn endless_output_neither_fills_memory_nor_outruns_the_deadline() {
    run_alone("drains_without_end");
}

#[test]
#[ignore = "a part of endless_output_neither_fills_memory_nor_outruns_the_deadline"]
fn drains_without_end() {
    if !is_alone("drains_without_end") {
        return;
    }
    let peak = || -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let bed = Bed::with(|config| config.spill_max_bytes = Some(8 << 20));
    // Whatever is paged in by the first use.
    bed.sh(LONG);
    let before = peak();
    let begun = Instant::now();
    let result = bed.run(bed.request("yes").timeout(Duration::from_secs(2)));
    assert!(result.timed_out && begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let grown = peak() - before;
    assert!(grown < 4096 + 64, "{grown} KiB more for {} bytes", result.stdout.total_bytes);
    assert!(result.stdout.total_bytes > 8 << 20, "{}", result.stdout.total_bytes);
    assert_eq!(result.stdout.bytes().len(), 64_000);
    assert!(result.stdout.text.trim_start_matches('\n').starts_with("y\ny\n"));
    assert_eq!(result.stdout.spill_path, None, "past its cap it is not complete");
    assert!(result.stdout.spill_error.unwrap().contains("cap"));
}

// O2, case 76
#[test]
fn bytes_that_are_no_text_are_kept_exactly() {
    let bed = Bed::new();
    let result = bed.sh("printf '\\xff\\xfe\\0ok'");
    assert_eq!(result.stdout.bytes(), b"\xff\xfe\0ok");
    assert_eq!(result.stdout.text, "\u{fffd}\u{fffd}\0ok");
    assert_eq!((result.stdout.total_bytes, result.stdout.truncated), (5, false));
    let execution = bed.begin("printf '\\xff\\xfe\\0ok'; printf '\\xf0\\x9f' >&2");
    execution.wait();
    let (bytes, next, lossy) = execution.observed().unwrap().stdout.bytes_from(1);
    assert_eq!((bytes.as_slice(), next, lossy), (&b"\xfe\0ok"[..], 5, false));
    let read = execution.read_output_bytes();
    assert_eq!(
        (read.stdout.as_slice(), read.stderr.as_slice(), read.lossy),
        (&b"\xff\xfe\0ok"[..], &b"\xf0\x9f"[..], false)
    );
    assert_eq!(execution.read_output().delta, "", "both readings have one place");
}

// O3
#[test]
fn exactly_the_budget_is_not_truncated() {
    let bed = Bed::with(|config| config.output_max_bytes = 100);
    let print = |count: usize| bed.sh(&format!("printf '%0{count}d' 7")).stdout;
    let exact = print(100);
    assert!(!exact.truncated && exact.spill_path.is_none() && exact.text.len() == 100);
    let over = print(101);
    assert!(over.truncated && over.text.len() == 100 && over.total_bytes == 101);
    assert_eq!(fs::metadata(over.spill_path.unwrap()).unwrap().len(), 101);
    let none = bed.sh(":").stdout;
    assert_eq!(none, CollectedOutput::default());
}

fn chunked(bed: &Bed, total: usize, chunks: &[usize], what: &str, limit: usize) -> CollectedOutput {
    let mut spec = bed.spawn_spec([child(), "write".into()]);
    let chunks = chunks.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    spec.argv.extend(["out".to_owned(), total.to_string(), chunks, what.to_owned()].map(Into::into));
    spec.stdout = Disposition::Collect { max_bytes: limit, spill_max_bytes: Some(1 << 30) };
    let result = bed.service.spawn(spec).unwrap().result().unwrap();
    assert_eq!(result.exit_code, Some(0), "{}", result.stderr.text);
    result.stdout
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // O3, O4, O5
    #[test]
    fn the_tail_is_exact_however_the_stream_was_chunked(
        total in prop_oneof![0_usize..40, 0_usize..3000, 60_000_usize..140_000],
        chunks in prop::collection::vec(prop_oneof![1_usize..20, 100_usize..5000, 60_000_usize..70_000], 1..5),
        limit in prop_oneof![1_usize..40, 1_usize..4000, 60_000_usize..130_000],
        text in any::<bool>(),
    ) {
        // A stream of single bytes costs a system call for each.
        prop_assume!(total / chunks.iter().sum::<usize>() * chunks.len() < 20_000);
        let bed = Bed::new();
        let all = if text { pattern_text(total) } else { pattern(total) };
        let stream = chunked(&bed, total, &chunks, if text { "text" } else { "bytes" }, limit);
        assert_tail(&stream, &all, limit);
        if text {
            let from = (all.len().saturating_sub(limit)..=all.len())
                .find(|&at| at == all.len() || all[at] & 0xc0 != 0x80)
                .unwrap();
            prop_assert_eq!(&stream.text, &String::from_utf8_lossy(&all[from..]));
        }
        prop_assert_eq!(stream.spill_path.is_some(), total > limit);
        if let Some(path) = stream.spill_path {
            prop_assert!(fs::read(path).unwrap() == all);
        }
    }
}

// O12
#[test]
fn single_bytes_add_up() {
    let bed = Bed::new();
    assert_tail(&chunked(&bed, 100_000, &[1], "bytes", 5000), &pattern(100_000), 5000);
}

// O1, case 77
#[test]
fn a_flood_without_a_line_end_stays_bounded() {
    let bed = Bed::with(|config| config.output_max_bytes = 1000);
    let begun = Instant::now();
    let result = bed.sh("for i in $(seq 50000); do printf '\\r%d' $i; done; echo");
    let mut all: Vec<u8> = (1..=50_000).flat_map(|number| format!("\r{number}").into_bytes()).collect();
    all.push(b'\n');
    assert_tail(&result.stdout, &all, 1000);
    assert!(begun.elapsed() < SOON);
}

// O4
#[test]
fn a_tail_that_begins_inside_a_character_begins_at_the_next() {
    let bed = Bed::with(|config| config.output_max_bytes = 4);
    let stream = bed.sh("printf 'a\\xf0\\x9f\\x98\\x80\\xe2\\x82\\xac'").stdout;
    assert_eq!((stream.text.as_str(), stream.bytes()), ("\u{20ac}", &b"\x80\xe2\x82\xac"[..]));
    assert!(stream.truncated);
}

// O4, O10, case 74
#[test]
fn a_character_written_in_two_halves_is_read_as_one() {
    let bed = Bed::new();
    let gate = bed.gate("gate");
    let execution = bed.begin("printf 'x\\xe2'; read x <$D/gate; printf '\\x82\\xac'");
    let observed = execution.observed().unwrap();
    until("the first half is there", || observed.stdout.total_bytes() == 2);
    assert_eq!(execution.read_output().delta, "x");
    assert_eq!(execution.read_output().delta, "", "half a character waits");
    let read = observed.stdout.read_from(0);
    assert_eq!((read.text.as_str(), read.next_offset), ("x", 1), "for offset readers too");
    assert!(!execution.wait_output(Some(Duration::from_millis(20))), "and it is no news");
    gate.open();
    execution.wait();
    assert_eq!(execution.read_output().delta, "\u{20ac}");
    assert_eq!(observed.stdout.read_from(1).text, "\u{20ac}");
}

// O4, case 74
#[test]
fn a_dangling_byte_is_flushed_once_at_the_end() {
    let bed = Bed::new();
    let execution = bed.begin("printf 'a\\xe2'");
    let mut joined = String::new();
    while execution.try_wait().is_none() || execution.wait_output(Some(Duration::ZERO)) {
        joined.push_str(&execution.read_output().delta);
    }
    joined.push_str(&execution.read_output().delta);
    assert_eq!(joined, "a\u{fffd}");
    let result = execution.result().unwrap();
    assert_eq!((result.stdout.text.as_str(), result.stdout.bytes()), ("a\u{fffd}", &b"a\xe2"[..]));
}

// O5, O8
#[test]
fn past_the_cap_the_file_is_gone_and_never_named_again() {
    let bed = Bed::with(|config| {
        config.output_max_bytes = 100;
        config.spill_max_bytes = Some(10_000);
    });
    let gates = ["first", "second"].map(|name| bed.gate(name));
    let command =
        "head -c 5000 /dev/zero; read x <$D/first; head -c 5001 /dev/zero; read x <$D/second; echo end";
    let execution = bed.begin(command);
    let observed = execution.observed().unwrap();
    until("the first part is there", || observed.stdout.total_bytes() == 5000);
    let path = observed.stdout.read_from(0).spill_path.expect("it has overflowed");
    assert_eq!(execution.read_output().stdout_spill_path.as_ref(), Some(&path));
    assert_eq!(fs::metadata(&path).unwrap().len(), 5000);
    let [first, second] = gates;
    first.open();
    until("the second part is there", || observed.stdout.total_bytes() == 10_001);
    assert!(!path.exists() && observed.stdout.read_from(0).spill_path.is_none());
    assert_eq!(execution.read_output().stdout_spill_path, None);
    second.open();
    let stdout = execution.result().unwrap().stdout;
    assert_eq!((stdout.spill_path, stdout.total_bytes), (None, 10_005));
    assert!(stdout.spill_error.unwrap().contains("10000"));
    assert!(files_below(&bed.spill_root()).is_empty());
}

// O5
#[test]
fn exactly_the_cap_still_stands() {
    let bed = Bed::with(|config| {
        config.output_max_bytes = 100;
        config.spill_max_bytes = Some(10_000);
    });
    let stdout = bed.sh("head -c 10000 /dev/zero").stdout;
    assert_eq!(fs::metadata(stdout.spill_path.unwrap()).unwrap().len(), 10_000);
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

// O6, case 82
#[test]
fn spill_files_are_private_random_and_below_the_configured_root() {
    let bed = Bed::with(|config| config.output_max_bytes = 10);
    bed.sh("echo short");
    assert_eq!(fs::read_dir(bed.spill_root()).unwrap().count(), 0, "the directory is made when it is needed");
    let overflow = || {
        let result = bed.sh("umask 0; head -c 100 /dev/zero; head -c 100 /dev/zero >&2");
        [result.stdout.spill_path.unwrap(), result.stderr.spill_path.unwrap()]
    };
    let paths = [overflow(), overflow()].concat();
    let mut names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4, "no name is used twice");
    let us = fs::metadata(bed.dir.path()).unwrap().uid();
    for path in &paths {
        let dir = path.parent().unwrap();
        assert_eq!(dir.parent(), Some(&*bed.spill_root()));
        assert_eq!((mode(path), mode(dir)), (0o600, 0o700));
        assert_eq!((fs::metadata(path).unwrap().uid(), fs::metadata(dir).unwrap().uid()), (us, us));
    }
    // Two services have two directories, whose names do not follow from one another.
    let other = Bed::with_both(
        |config| config.output_max_bytes = 10,
        |service| service.spill_root = bed.spill_root(),
    );
    let theirs = other.sh("head -c 100 /dev/zero").stdout.spill_path.unwrap();
    assert_ne!(theirs.parent(), paths[0].parent());
}

// O6, O8, case 82
#[test]
fn a_file_that_the_command_exchanged_is_neither_named_nor_followed() {
    let bed = Bed::with(|config| config.output_max_bytes = 10);
    let gate = bed.gate("gate");
    fs::write(bed.path("target"), "untouched").unwrap();
    let command = "head -c 1000 /dev/zero; read x <$D/gate; \
        f=$(echo $D/spill/*/*); rm \"$f\"; ln -s $D/target \"$f\"; echo \"${f##*/}\"; head -c 1000 /dev/zero";
    let execution = bed.begin(command);
    let observed = execution.observed().unwrap();
    until_some("there is a file", || observed.stdout.read_from(0).spill_path);
    gate.open();
    let result = execution.result().unwrap();
    assert_eq!((result.exit_code, &result.stdout.spill_path), (Some(0), &None));
    assert_eq!(result.stdout.bytes(), [0; 10]);
    let read = observed.stdout.read_from(0);
    assert!(read.lossy && read.spill_path.is_none() && read.text.len() == 10);
    bed.service.dispose();
    assert_eq!(fs::read(bed.path("target")).unwrap(), b"untouched");
    assert!(files_below(&bed.spill_root()).is_empty());
}

// O7
#[test]
fn a_root_that_is_not_there_costs_the_path_only() {
    let bed = Bed::with_both(
        |config| config.output_max_bytes = 4096,
        |service| service.spill_root = PathBuf::from("/nonexistent/root"),
    );
    let result = bed.sh(LONG);
    assert_eq!(result.exit_code, Some(1));
    assert_tail(&result.stdout, &long_output(), 4096);
    assert_eq!(result.stdout.spill_path, None);
    assert_eq!(result.stdout.spill_error.as_deref(), Some("no such file or directory"));
}

// O7, O8
#[test]
fn a_directory_removed_meanwhile_costs_the_path_only() {
    let bed = Bed::with(|config| config.output_max_bytes = 10);
    let gate = bed.gate("gate");
    let execution = bed.begin("head -c 1000 /dev/zero; read x <$D/gate; head -c 1000 /dev/zero; exit 4");
    let observed = execution.observed().unwrap();
    let path = until_some("there is a file", || observed.stdout.read_from(0).spill_path);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    assert_eq!(observed.stdout.read_from(0).spill_path, None, "it does not stand any more");
    gate.open();
    let result = execution.result().unwrap();
    assert_eq!((result.exit_code, result.stdout.total_bytes), (Some(4), 2000));
    assert_eq!((&result.stdout.spill_path, result.stdout.bytes()), (&None, &[0; 10][..]));
    // The service goes on, and so do its files.
    let next = bed.sh("head -c 1000 /dev/zero").stdout.spill_path.unwrap();
    assert_eq!(fs::metadata(next).unwrap().len(), 1000);
}

// O7
#[test]
fn a_full_disk_costs_the_path_only() {
    const PART: &str = "spills_into_a_small_file_system";
    let dir = tempfile::tempdir().unwrap();
    // A tiny file system that only this one process sees.
    let run = "mount -t tmpfs -o size=128k none \"$SMALL\" || exit 77; exec \"$@\"";
    let unshared = |flags: &[&str]| {
        let program = alone(this_program(), PART);
        let mut command = Command::new("unshare");
        command.args(flags).args(["--mount", "sh", "-c", run, "sh"]).arg(program.get_program());
        command.args(program.get_args()).env("SMALL", dir.path());
        for (name, value) in program.get_envs() {
            command.env(name, value.unwrap());
        }
        command.output()
    };
    let flags: &[&str] = if support::is_root() { &[] } else { &["--user", "--map-root-user"] };
    let output = match unshared(flags) {
        Ok(output) => output,
        Err(error) => skip!("no unshare(1): {error}"),
    };
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() && !stdout.contains("running 1 test") {
        skip!("nothing can be mounted here: {stderr}");
    }
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
}

#[test]
#[ignore = "a part of a_full_disk_costs_the_path_only"]
fn spills_into_a_small_file_system() {
    if !is_alone("spills_into_a_small_file_system") {
        return;
    }
    let small = PathBuf::from(std::env::var_os("SMALL").unwrap());
    let bed = Bed::with_both(
        |config| config.output_max_bytes = 4096,
        |service| service.spill_root.clone_from(&small),
    );
    let result = bed.sh(LONG);
    assert_eq!(result.exit_code, Some(1));
    assert_tail(&result.stdout, &long_output(), 4096);
    assert_eq!(result.stdout.spill_path, None);
    assert_eq!(result.stdout.spill_error.as_deref(), Some("no space left on device"));
    assert!(files_below(&small).is_empty(), "half a file would take others' room");
    let next = bed.sh("head -c 10000 /dev/zero").stdout;
    assert_eq!(fs::metadata(next.spill_path.unwrap()).unwrap().len(), 10_000);
}

// O8, case 80
#[test]
fn files_live_until_the_service_is_disposed_of() {
    let bed = Bed::with(|config| config.output_max_bytes = 1000);
    for _ in 0..20 {
        drop(bed.sh("head -c 1048576 /dev/zero"));
    }
    assert_eq!(files_below(&bed.spill_root()).len(), 20);
    bed.service.dispose();
    assert_eq!(fs::read_dir(bed.spill_root()).unwrap().count(), 0);
}

// O8
#[test]
fn files_go_with_the_last_reference_to_the_service() {
    let bed = Bed::with(|config| config.output_max_bytes = 1000);
    let result = bed.sh("head -c 2000 /dev/zero");
    let path = result.stdout.spill_path.unwrap();
    assert!(path.exists());
    let root = bed.spill_root();
    let Bed { service, dir, .. } = bed;
    drop(service);
    assert!(!path.exists() && fs::read_dir(root).unwrap().count() == 0);
    drop(dir);
}

// O8
#[test]
fn kept_files_outlive_the_service_and_are_not_swept() {
    let bed = Bed::with_both(|config| config.output_max_bytes = 1000, |service| service.keep_spill = true);
    let path = bed.sh("head -c 2000 /dev/zero").stdout.spill_path.unwrap();
    bed.service.dispose();
    let mut config = ServiceConfig::default();
    config.spill_root = bed.spill_root();
    drop(SubprocessService::with_config(config));
    assert_eq!(fs::metadata(path).unwrap().len(), 2000);
}

// O8, case 80
#[test]
fn what_a_dead_host_left_is_swept_and_what_a_living_one_has_is_not() {
    let living = Bed::with(|config| config.output_max_bytes = 1000);
    let kept = living.sh("head -c 2000 /dev/zero").stdout.spill_path.unwrap();
    let root = living.spill_root();
    let output = alone(this_program(), "dies_with_a_spill_file").env("SPILL_ROOT", &root).output().unwrap();
    assert!(!output.status.success(), "it kills itself");
    assert_eq!(files_below(&root).len(), 2, "{}", String::from_utf8_lossy(&output.stdout));
    // A directory of the same shape that is somebody else's lock, or nobody's work, is decided by the lock alone.
    let mut config = ServiceConfig::default();
    config.spill_root.clone_from(&root);
    drop(SubprocessService::with_config(config));
    assert_eq!(files_below(&root), [kept]);
}

#[test]
#[ignore = "a part of what_a_dead_host_left_is_swept_and_what_a_living_one_has_is_not"]
fn dies_with_a_spill_file() {
    if !is_alone("dies_with_a_spill_file") {
        return;
    }
    let root = PathBuf::from(std::env::var_os("SPILL_ROOT").unwrap());
    let bed = Bed::with_both(|config| config.output_max_bytes = 1000, |service| service.spill_root = root);
    assert!(bed.sh("head -c 2000 /dev/zero").stdout.spill_path.is_some());
    // Dropped by hand: a killed process drops nothing.
    let us = std::process::id().to_string();
    fs::remove_dir_all(bed.dir.path()).unwrap();
    Command::new("sh").args(["-c", "kill -KILL \"$1\"", "sh", &us]).status().unwrap();
    thread::sleep(PATIENCE);
}

// O9
#[test]
fn any_number_of_readers_is_independent() {
    let bed = Bed::with(|config| config.output_max_bytes = 1000);
    let execution = bed.begin("\"$CHILD\" write out 200000 7,1000,3 text; exit 2");
    let all = String::from_utf8(pattern_text(200_000))
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let read_all = |execution: &Execution, pause: u64| {
        let reader = execution.observed().unwrap().stdout;
        let (mut joined, mut offset) = (String::new(), 0);
        loop {
            let settled = execution.try_wait().is_some();
            let read = reader.read_from(offset);
            assert!(!read.lossy && read.next_offset >= offset);
            joined.push_str(&read.text);
            offset = read.next_offset;
            if settled && offset == reader.total_bytes() {
                return joined;
            }
            thread::sleep(Duration::from_millis(pause));
        }
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..6)
            .map(|pause| {
                let execution = &execution;
                scope.spawn(move || read_all(execution, pause))
            })
            .collect();
        for reader in readers {
            assert!(reader.join().unwrap() == all);
        }
    });
    assert!(read_all(&execution, 0) == all, "and again afterwards");
    assert!(execution.read_output().delta == all, "they have consumed nothing");
}

// O9
#[test]
fn a_reader_behind_the_ring_is_lossy_only_without_the_file() {
    let read = |bed: &Bed, offset| {
        let execution = bed.begin("seq 1 1000");
        execution.wait();
        execution.observed().unwrap().stdout.read_from(offset)
    };
    let all: String = (1..=1000).map(|number| format!("{number}\n")).collect();
    let with_file = Bed::with(|config| config.output_max_bytes = 100);
    let whole = read(&with_file, 9);
    assert_eq!((whole.text.as_str(), whole.lossy), (&all[9..], false));
    assert!(whole.spill_path.is_some());
    let without = Bed::with(|config| (config.output_max_bytes, config.spill_max_bytes) = (100, None));
    let lost = read(&without, 9);
    assert_eq!((lost.text.as_str(), lost.lossy), (&all[all.len() - 100..], true), "the whole retained tail");
    assert_eq!((lost.next_offset, lost.spill_path), (all.len() as u64, None));
    let near = read(&without, all.len() as u64 - 10);
    assert_eq!((near.text.as_str(), near.lossy), (&all[all.len() - 10..], false));
    let past = read(&without, u64::MAX);
    assert_eq!((past.text.as_str(), past.next_offset, past.lossy), ("", all.len() as u64, false));
}

// O10
#[test]
fn joined_reads_are_the_whole_stream() {
    let bed = Bed::with(|config| config.output_max_bytes = 5000);
    let execution = bed.begin("\"$CHILD\" write out 150000 1,5,4096,11 text");
    let mut joined = String::new();
    loop {
        let settled = execution.try_wait().is_some();
        execution.wait_output(Some(PATIENCE));
        let read = execution.read_output();
        assert!(!read.lossy);
        joined.push_str(&read.delta);
        if settled && !execution.wait_output(Some(Duration::ZERO)) {
            break;
        }
    }
    assert!(joined == String::from_utf8_lossy(&pattern_text(150_000)));
}

// O10
#[test]
fn threads_that_read_at_once_share_the_stream_out() {
    let bed = Bed::with(|config| config.output_max_bytes = 300_000);
    let execution = bed.begin("\"$CHILD\" write out 200000 13,700 bytes");
    let parts: Vec<Vec<u8>> = thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    loop {
                        let settled = execution.try_wait().is_some();
                        let read = execution.read_output_bytes();
                        mine.extend(read.stdout);
                        if settled {
                            return mine;
                        }
                        execution.wait_output(Some(Duration::from_millis(5)));
                    }
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    let mut counts = [0_usize; 251];
    parts.iter().flatten().for_each(|&byte| counts[usize::from(byte)] += 1);
    let mut expected = [0_usize; 251];
    pattern(200_000).iter().for_each(|&byte| expected[usize::from(byte)] += 1);
    assert_eq!(counts, expected, "nothing twice, and nothing missing");
}

// O10
#[test]
fn a_read_has_stdout_and_then_stderr_below_a_marker_line() {
    let bed = Bed::new();
    let delta = |command: &str| {
        let execution = bed.begin(command);
        execution.wait();
        execution.read_output().delta
    };
    assert_eq!(delta("echo err >&2; echo out"), "out\n[stderr]\nerr\n");
    assert_eq!(delta("printf out; printf err >&2"), "out\n[stderr]\nerr");
    assert_eq!(delta("echo err >&2"), "[stderr]\nerr\n");
    assert_eq!(delta("echo out"), "out\n");
    assert_eq!(delta(":"), "");
}

// O10
#[test]
fn unread_bytes_that_are_gone_make_the_read_lossy() {
    let bed = Bed::with(|config| (config.output_max_bytes, config.spill_max_bytes) = (10, None));
    let execution = bed.begin("printf 0123456789abcdef");
    execution.wait();
    let read = execution.read_output();
    assert_eq!((read.delta.as_str(), read.lossy), ("6789abcdef", true));
    let read = execution.read_output();
    assert_eq!((read.delta.as_str(), read.lossy), ("", false), "it is said once");
    // The same with a file: nothing is lost.
    let bed = Bed::with(|config| config.output_max_bytes = 10);
    let execution = bed.begin("printf 0123456789abcdef; printf 0123456789abcdef >&2");
    execution.wait();
    let read = execution.read_output();
    assert_eq!(read.delta, "0123456789abcdef\n[stderr]\n0123456789abcdef");
    assert!(!read.lossy && read.stdout_spill_path.is_some() && read.stderr_spill_path.is_some());
}

// O10, E2
#[test]
fn wait_output_wakes_for_news_and_for_the_end() {
    let bed = Bed::new();
    let [first_gate, second_gate, third_gate] = ["1", "2", "3"].map(|name| bed.gate(name));
    let execution = bed.begin("read x <$D/1; echo one; read x <$D/2; echo two >&2; read x <$D/3");
    assert!(!execution.wait_output(Some(Duration::from_millis(20))), "silence");
    let waiting = |execution: &Execution| {
        let execution = execution.clone();
        thread::spawn(move || execution.wait_output(None))
    };
    let first = waiting(&execution);
    first_gate.open();
    assert!(first.join().unwrap());
    assert!(execution.wait_output(None), "it is still news until it is read");
    assert_eq!(execution.read_output().delta, "one\n");
    let second = waiting(&execution);
    second_gate.open();
    assert!(second.join().unwrap(), "stderr is news as well");
    assert_eq!(execution.read_output().delta, "[stderr]\ntwo\n");
    let end = waiting(&execution);
    third_gate.open();
    assert!(!end.join().unwrap(), "the end brings nothing new");
}

// O10: for callers who pass the streams on separately
#[test]
fn each_stream_can_be_read_and_waited_for_by_itself() {
    let bed = Bed::new();
    let [first, second] = ["first", "second"].map(|name| bed.gate(name));
    let execution = bed.begin("echo out; read x <$D/first; echo err >&2; read x <$D/second");
    assert!(execution.wait_stream(OutputStream::Stdout, Some(PATIENCE)));
    assert!(!execution.wait_stream(OutputStream::Stderr, Some(Duration::from_millis(20))));
    assert_eq!(execution.read_stream(OutputStream::Stderr), (Vec::new(), false));
    assert_eq!(execution.read_stream(OutputStream::Stdout), (b"out\n".to_vec(), false));
    first.open();
    assert!(execution.wait_stream(OutputStream::Stderr, Some(PATIENCE)));
    assert!(!execution.wait_stream(OutputStream::Stdout, Some(Duration::ZERO)));
    assert_eq!(execution.read_output().delta, "[stderr]\nerr\n", "all reads have one place in each stream");
    assert_eq!(execution.read_stream(OutputStream::Stderr), (Vec::new(), false));
    second.open();
    assert!(!execution.wait_stream(OutputStream::Stdout, None), "the end brings nothing new");
}

// O11
#[test]
fn the_last_byte_of_a_quick_process_is_never_lost() {
    let bed = Bed::new();
    for round in 0..200 {
        let result =
            bed.service.spawn(bed.spawn_spec(["echo", &round.to_string()])).unwrap().result().unwrap();
        assert_eq!(result.stdout.text, format!("{round}\n"));
    }
    for _ in 0..20 {
        let result = bed.sh("\"$CHILD\" write out 60000 60000 bytes; printf last >&2; kill -KILL $$");
        assert!(result.stdout.bytes() == pattern(60_000));
        assert_eq!((result.stderr.text.as_str(), result.signal), ("last", Some(libc::SIGKILL)));
    }
}

// O1, E9: with back pressure nothing is dropped, and the command waits
#[test]
fn a_relayed_stream_waits_for_its_reader_and_loses_nothing() {
    const TOTAL: usize = 5_000_000;
    const BUDGET: usize = 4096;
    let bed = Bed::new();
    let command = format!("\"$CHILD\" write out {TOTAL} 5000,1,70000 bytes; touch $D/written");
    let request = bed.request(command).stdout_max_bytes(BUDGET).backpressure(true);
    let execution = bed.start(request);
    let observed = execution.observed().unwrap();
    until("the budget is full", || observed.stdout.total_bytes() == BUDGET as u64);
    let mut all = Vec::new();
    while all.len() < TOTAL {
        assert!(execution.wait_output(Some(PATIENCE)), "after {} bytes", all.len());
        let unread = observed.stdout.total_bytes() - all.len() as u64;
        // What it has written lies in the budget, the pipe, or here.
        let goes_on = all.len() + BUDGET + (1 << 20) < TOTAL;
        if goes_on {
            assert!(!bed.path("written").exists(), "after {} bytes", all.len());
        }
        // Once it has ended, what it has left in the pipe is taken as well.
        assert!(!goes_on || unread <= BUDGET as u64, "{unread} bytes wait");
        let read = execution.read_output_bytes();
        assert!(!read.lossy && (!goes_on || read.stdout.len() <= BUDGET));
        all.extend(read.stdout);
    }
    assert!(all == pattern(TOTAL));
    let result = execution.result().unwrap();
    assert_eq!((result.exit_code, result.stdout.total_bytes), (Some(0), TOTAL as u64));
    assert!(bed.path("written").exists() && result.stdout.spill_path.is_none());
}

// O11, E9: what the pipe holds when a run is cut short is not lost to a reader who is behind
#[test]
fn a_relayed_stream_cut_short_behind_its_reader_loses_nothing() {
    let bed = Bed::new();
    let request = bed.request("head -c 60000 /dev/zero; echo written >&2; sleep 300");
    let execution = bed.start(request.stdout_max_bytes(20_000).backpressure(true));
    // The rest of stdout waits in the pipe, and nobody has read the relayed part.
    assert!(execution.wait_stream(OutputStream::Stderr, Some(PATIENCE)));
    assert!(execution.kill());
    execution.wait();
    let (bytes, lossy) = execution.read_stream(OutputStream::Stdout);
    assert_eq!((bytes.len(), lossy), (60_000, false));
}

// T7, O11: whoever does not read keeps nothing from ending, and finds all of it later
#[test]
fn a_relayed_stream_that_nobody_reads_does_not_outlive_its_leader() {
    let bed = Bed::new();
    let request = |command: &str| bed.request(command).stdout_max_bytes(64_000).backpressure(true);
    let execution = bed.start(request("head -c 100000 /dev/zero"));
    let result = execution.result().unwrap();
    assert_eq!((result.exit_code, result.pipes_held), (Some(0), false));
    assert_eq!(execution.read_stream(OutputStream::Stdout).0.len(), 100_000);
    // One that a descendant goes on writing is held like any other.
    let execution = bed.start(request("yes & exit 3"));
    let result = execution.result().unwrap();
    assert_eq!((result.exit_code, result.pipes_held, result.survivors), (Some(3), true, 1));
    assert!(execution.kill_survivors());
    assert!(execution.wait_range(Some(PATIENCE)));
}

// O10
#[test]
fn the_streams_can_be_read_apart() {
    let bed = Bed::new();
    let command = "echo out; echo err >&2; read line; echo more";
    let execution = bed.start(bed.request(command).stdin_piped());
    for (stream, text) in [(OutputStream::Stderr, "err\n"), (OutputStream::Stdout, "out\n")] {
        assert!(execution.wait_stream(stream, Some(PATIENCE)));
        assert_eq!(execution.read_stream(stream), (text.into(), false));
        assert!(!execution.wait_stream(stream, Some(Duration::ZERO)));
    }
    drop(execution.take_stdin());
    assert!(execution.wait_stream(OutputStream::Stdout, Some(PATIENCE)));
    assert_eq!(execution.read_output().delta, "more\n");
    assert!(!execution.wait_stream(OutputStream::Stdout, None), "nothing more comes after the settlement");
}

// E4, O10
#[test]
fn a_note_is_no_news_for_a_reader_of_bytes_and_stays_for_one_of_text() {
    let bed = Bed::new();
    let execution = bed.execute(bed.request("true").workdir("/nonexistent"));
    assert!(execution.wait_output(None));
    let read = execution.read_output_bytes();
    assert_eq!((read.stdout.len(), read.stderr.len()), (0, 0));
    assert!(!execution.wait_output(None));
    assert!(execution.read_output().delta.starts_with("[stderr]\nspawn failed: "));
    assert_eq!(execution.read_output().delta, "");
}

// O10: reading as text makes room as well
#[test]
fn a_relayed_stream_can_be_read_as_text() {
    let bed = Bed::new();
    let command = "\"$CHILD\" write out 100000 7,64 text";
    let execution = bed.start(bed.request(command).stdout_max_bytes(16).backpressure(true));
    let mut all = String::new();
    while execution.wait_output(Some(PATIENCE)) || execution.try_wait().is_none() {
        let read = execution.read_output();
        assert!(!read.lossy);
        all.push_str(&read.delta);
    }
    assert!(all == String::from_utf8_lossy(&pattern_text(100_000)), "{} bytes", all.len());
}

// T4: a command that waits for a reader who never comes can be stopped
#[test]
fn a_relayed_command_without_a_reader_can_be_killed() {
    let bed = Bed::new();
    let request = bed.request("echo ready >&2; yes").stdout_max_bytes(4096).backpressure(true);
    let execution = bed.start(request);
    let observed = execution.observed().unwrap();
    until("the budget is full", || observed.stdout.total_bytes() == 4096);
    assert!(execution.kill());
    let result = execution.result().unwrap();
    assert_eq!(result.signal, Some(libc::SIGTERM));
    let timed_out = bed.request("yes").stdout_max_bytes(4096).backpressure(true);
    assert!(bed.run(timed_out.timeout(Duration::from_millis(300))).timed_out);
}

// O10: two commands at once do not share anything
#[test]
fn executions_side_by_side_do_not_mix() {
    let bed = Bed::with(|config| config.output_max_bytes = 100);
    let running: Vec<Execution> =
        (0..10).map(|index| bed.begin(&format!("for i in $(seq 500); do echo {index}; done"))).collect();
    for (index, execution) in running.iter().enumerate() {
        assert!(read_until(execution, &index.to_string()).lines().all(|line| line == index.to_string()));
        let stdout = execution.result().unwrap().stdout;
        let whole = fs::read_to_string(stdout.spill_path.unwrap()).unwrap();
        assert_eq!(whole, format!("{index}\n").repeat(500));
    }
}

// O2
#[test]
fn the_two_streams_are_kept_apart() {
    let bed = Bed::new();
    let execution = bed.begin("for i in 1 2 3; do echo o$i; echo e$i >&2; done");
    see(&execution, "o3\n");
    let result = execution.result().unwrap();
    assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("o1\no2\no3\n", "e1\ne2\ne3\n"));
    assert_eq!(execution.observed().unwrap().stderr.read_from(3).text, "e2\ne3\n");
}
