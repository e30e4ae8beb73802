//! Hosts in every state: what the library promises to each, played by the program `test-host` in a process of its own.
//!
//! Linux only: the states are made of its signals, limits, users and system-call filters.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

#[path = "support/host.rs"]
mod host;

use host::{Host, play, play_within};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// Held by everybody, and alone by those who need most of the machine.
static MACHINE: RwLock<()> = RwLock::new(());

fn together() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

// --- somebody else reaps ------------------------------------------------------------------------------------------

/// Whether the kernel keeps the status of a process that was reaped: since Linux 6.15.
fn status_is_kept() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers =
        release.split(|letter: char| !letter.is_ascii_digit()).map_while(|text| text.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 15)
}

#[track_caller]
fn codes_are_told(arguments: &[&str]) {
    let _together = together();
    let Some(ended) = play(arguments) else { return };
    let (told, lost) = (ended.number("told"), ended.number("lost"));
    assert!(told + lost > 0);
    if status_is_kept() {
        assert_eq!(lost, 0, "{told} were told");
    }
}

// T1, T3, case 32
#[test]
fn an_ignored_sigchld_costs_no_exit_code() {
    codes_are_told(&["sigchld-ignored", "ignored", "50"]);
}

// T1, T3, case 32
#[test]
fn children_that_are_not_waited_for_cost_no_exit_code() {
    codes_are_told(&["sigchld-ignored", "no-wait", "50"]);
}

// T1, T3
#[test]
fn a_thread_that_reaps_everything_costs_no_exit_code() {
    codes_are_told(&["foreign-reaper", "50"]);
}

// T3, case 32: before Linux 6.15
#[test]
fn a_lost_status_is_an_error_of_its_own() {
    let _together = together();
    play(&["kernel", "no-exit-info"]);
}

// T4, T6
#[test]
fn a_range_whose_leader_was_reaped_can_still_be_stopped() {
    let _together = together();
    play(&["sigchld-ignored-range"]);
}

// T2, case 34
#[test]
fn the_hosts_own_child_stays_the_hosts() {
    let _together = together();
    let Some(ended) = play(&["own-child"]) else { return };
    assert_eq!(ended.fact("own-child"), "9");
}

// --- signals ------------------------------------------------------------------------------------------------------

// T1, case 35
#[test]
fn a_command_of_a_host_that_blocks_sigterm_ends_by_sigterm() {
    let _together = together();
    let Some(ended) = play(&["blocked-sigterm"]) else { return };
    assert_eq!(ended.fact("signal"), "15");
    let took = ended.number("milliseconds");
    assert!((1_000..20_000).contains(&took), "{took} ms: the deadline is 1 s, the grace 20 s");
}

#[track_caller]
fn signals_are_clean(kernel: &str) {
    let _together = together();
    let Some(ended) = play(&["clean-child", kernel]) else { return };
    for key in ["SigBlk", "SigIgn", "SigCgt"] {
        assert_eq!(ended.fact(key), "0000000000000000", "{key}");
    }
}

// T1, T2, case 35
#[test]
fn a_command_inherits_no_ignored_and_no_blocked_signal() {
    signals_are_clean("this");
}

// T1, T2, case 35
#[test]
fn a_command_started_by_posix_spawn_inherits_no_ignored_and_no_blocked_signal() {
    signals_are_clean("no-clone");
}

// T2, I1, cases 37 and 38
#[test]
fn a_host_with_the_default_sigpipe_survives_commands_that_do_not_read() {
    let _together = together();
    let Some(ended) = play(&["default-sigpipe", "200"]) else { return };
    assert_eq!(ended.fact("rounds"), "200");
}

// T2
#[test]
fn no_thread_of_the_library_takes_a_signal() {
    let _together = together();
    let Some(ended) = play(&["deaf-threads", "this"]) else { return };
    assert_eq!(ended.fact("threads"), "shx-deadline,shx-run,shx-signals");
}

// T2
#[test]
fn no_thread_of_the_library_takes_a_signal_where_one_waits_for_the_leader() {
    let _together = together();
    let Some(ended) = play(&["deaf-threads", "no-pidfd"]) else { return };
    assert_eq!(ended.fact("threads"), "shx-deadline,shx-run,shx-signals,shx-wait");
}

// --- descriptors, directory, memory -------------------------------------------------------------------------------

// T1, I2
#[test]
fn a_host_without_standard_streams_runs_commands_and_keeps_its_numbers() {
    let _together = together();
    let Some(ended) = play(&["closed-streams", "this"]) else { return };
    assert_eq!(ended.fact("combinations"), "8");
}

// T1, I2
#[test]
fn a_host_without_standard_streams_runs_commands_by_posix_spawn() {
    let _together = together();
    let Some(ended) = play(&["closed-streams", "no-clone"]) else { return };
    assert_eq!(ended.fact("combinations"), "8");
}

// T1
#[test]
fn listening_for_signals_takes_no_place_of_a_standard_stream() {
    let _together = together();
    play(&["closed-streams-signals"]);
}

// T1, case 41: the list itself, with leaky descriptors in the host, is part of every `kernel` below.
#[test]
fn a_command_holds_neither_lock_nor_port_of_its_host() {
    let _together = together();
    play(&["leaked-lock", "this"]);
}

// T1, case 41
#[test]
fn a_command_started_by_posix_spawn_holds_neither_lock_nor_port_of_its_host() {
    let _together = together();
    play(&["leaked-lock", "no-clone"]);
}

// T1, X1
#[test]
fn a_host_in_a_deleted_directory_runs_commands_elsewhere() {
    let _together = together();
    play(&["deleted-workdir"]);
}

// T1, case 43
#[test]
fn a_large_host_with_no_room_for_a_second_one_runs_commands() {
    let _alone = alone();
    let Some(ended) = play(&["large", "512"]) else { return };
    assert_eq!(ended.number("resident"), 512 << 20);
}

// --- old kernels and strict containers ----------------------------------------------------------------------------

#[track_caller]
fn all_holds_on(kernel: &str) {
    let _together = together();
    play(&["kernel", kernel]);
}

// T1, T4, X1, E7, cases 9, 41 and 58, and so for each of these
#[test]
fn all_holds_here() {
    all_holds_on("this");
}

#[test]
fn all_holds_without_close_range() {
    all_holds_on("no-close-range");
}

#[test]
fn all_holds_where_close_range_is_forbidden() {
    all_holds_on("close-range-forbidden");
}

#[test]
fn all_holds_where_close_range_only_closes() {
    all_holds_on("close-range-closes-only");
}

#[test]
fn all_holds_without_process_descriptors() {
    all_holds_on("no-pidfd");
}

#[test]
fn all_holds_where_process_descriptors_are_forbidden() {
    all_holds_on("pidfd-forbidden");
}

// A container profile from before these calls: `clone` gives a descriptor, which then cannot be used.
#[test]
fn all_holds_where_only_the_calls_on_process_descriptors_are_forbidden() {
    all_holds_on("pidfd-without-calls");
}

#[test]
fn all_holds_where_signals_by_descriptor_are_forbidden() {
    all_holds_on("pidfd-signal-forbidden");
}

#[test]
fn all_holds_where_signals_by_descriptor_are_unknown() {
    all_holds_on("pidfd-signal-unknown");
}

#[test]
fn all_holds_without_group_signals_by_descriptor() {
    all_holds_on("no-group-signal");
}

#[test]
fn all_holds_where_clone_is_forbidden() {
    all_holds_on("no-clone");
}

#[test]
fn all_holds_where_clone_is_forbidden_and_process_descriptors_are_missing() {
    all_holds_on("no-clone-no-pidfd");
}

#[test]
fn all_holds_without_clone3() {
    all_holds_on("no-clone3");
}

#[test]
fn all_holds_without_anything_new() {
    all_holds_on("old");
}

// T1, T5
#[test]
fn without_proc_the_range_is_the_group() {
    let _together = together();
    play(&["no-proc"]);
}

// --- starts that hang ---------------------------------------------------------------------------------------------

/// E6: settled soon after it was cut short, whatever the start does.
#[track_caller]
fn a_hanging_start_is_cut_short(step: &str, how: &str) {
    let _together = together();
    let Some(ended) = play(&["hang", step, how, "this", "5"]) else { return };
    let took = ended.number("longest-ms");
    assert!(took < 10_000, "{took} ms");
}

// E6, case 46
#[test]
fn a_deadline_covers_a_workdir_that_hangs() {
    a_hanging_start_is_cut_short("chdir", "timeout");
}

// E6, case 46
#[test]
fn a_deadline_covers_an_exec_that_hangs() {
    a_hanging_start_is_cut_short("execve", "timeout");
}

// E6, C5
#[test]
fn an_abort_ends_a_workdir_that_hangs() {
    a_hanging_start_is_cut_short("chdir", "abort");
}

// E6, C5
#[test]
fn an_abort_ends_an_exec_that_hangs() {
    a_hanging_start_is_cut_short("execve", "abort");
}

// E6, T4
#[test]
fn a_kill_ends_a_workdir_that_hangs() {
    a_hanging_start_is_cut_short("chdir", "kill");
}

// E6, T4
#[test]
fn a_kill_ends_an_exec_that_hangs() {
    a_hanging_start_is_cut_short("execve", "kill");
}

// E6, T9
#[test]
fn a_disposal_ends_a_workdir_that_hangs() {
    a_hanging_start_is_cut_short("chdir", "dispose");
}

// E6, T9
#[test]
fn a_disposal_ends_an_exec_that_hangs() {
    a_hanging_start_is_cut_short("execve", "dispose");
}

// E6
#[test]
fn a_start_that_cannot_be_killed_and_comes_back_late_starts_nothing() {
    let _together = together();
    play(&["late-answer", "settle"]);
}

// E6, T9
#[test]
fn a_disposal_does_not_wait_for_a_start_that_cannot_be_killed() {
    let _together = together();
    play(&["late-answer", "dispose"]);
}

// --- what a sandbox is made of ---------------------------------------------------------------------------------------

/// What the backends come to on another kernel: each as told, with a word of its reason where it is not there.
fn backends_on(kernel: &str, missing: &[(&str, &str)]) {
    let _together = together();
    let Some(here) = play(&["sandbox", "this"]) else { return };
    let Some(ended) = play(&["sandbox", kernel]) else { return };
    for backend in ["native", "bwrap", "landlock"] {
        let told = ended.fact(backend);
        match missing.iter().find(|(name, _)| *name == backend) {
            // One that does not work here for another reason says that one; whether it should work is asked in `breakout`.
            Some((_, word)) => assert!(
                told != "works" && (told.contains(word) || told == here.fact(backend)),
                "{backend} on {kernel}: {told}"
            ),
            None => assert_eq!(told, here.fact(backend), "{backend} on {kernel}"),
        }
    }
    let first = ["native", "bwrap", "landlock"].into_iter().find(|name| ended.fact(name) == "works");
    assert_eq!(ended.fact("used"), first.unwrap_or("none"), "on {kernel}");
}

// S4, case 92
#[test]
fn without_landlock_there_is_bubblewrap() {
    backends_on("no-landlock", &[("native", "Landlock"), ("landlock", "Landlock")]);
    backends_on("landlock-off", &[("native", "Landlock"), ("landlock", "Landlock")]);
}

// S4
#[test]
fn without_read_only_trees_the_native_backend_is_not_used() {
    backends_on("no-mount-setattr", &[("native", "")]);
}

// S4, case 91
#[test]
fn without_namespaces_there_is_landlock_in_part() {
    backends_on("no-namespaces", &[("native", "no process"), ("bwrap", "")]);
}

// S3: a start of ours that cannot be made confines nobody; the fallback for unconfined ones is not taken
#[test]
fn without_clone_the_walls_of_the_spawn_are_not_there() {
    backends_on("no-clone", &[("native", ""), ("landlock", "")]);
}

// S3
#[test]
fn with_nothing_to_confine_by_nothing_is_run() {
    backends_on("no-sandbox", &[("native", "Landlock"), ("bwrap", ""), ("landlock", "Landlock")]);
}

// --- running out --------------------------------------------------------------------------------------------------

// T11, case 44
#[test]
fn every_step_that_finds_no_descriptor_says_so_and_leaks_nothing() {
    let _together = together();
    let Some(ended) = play(&["no-descriptors"]) else { return };
    let steps: Vec<&str> = ended.fact("steps").split('|').collect();
    for step in ["wake-up", "stdin", "stdout", "stderr", "report", "process"] {
        assert!(steps.iter().any(|named| named.contains(step)), "no step names the {step}: {steps:?}");
    }
}

// T5, T11
#[test]
fn the_containment_does_not_depend_on_when_it_is_asked_for() {
    let _together = together();
    play(&["containment-without-descriptors"]);
}

// T11, case 44
#[test]
fn every_step_that_finds_no_thread_or_process_says_so_and_leaks_nothing() {
    let _together = together();
    let Some(ended) = play(&["no-processes"]) else { return };
    let steps: Vec<&str> = ended.fact("steps").split('|').collect();
    let named = |index: usize, what: &str| steps.get(index).is_some_and(|step| step.contains(what));
    assert!(named(0, "thread"), "{steps:?}");
    if ended.fact("root") == "true" {
        assert!(named(1, "thread") && named(2, "process") && named(3, "none"), "{steps:?}");
    }
}

// T11, case 44
#[test]
fn no_room_for_a_process_is_told_and_leaks_nothing() {
    let _together = together();
    let Some(ended) = play(&["no-fork"]) else { return };
    assert!(ended.fact("step").contains("process"), "{}", ended.fact("step"));
}

// T1, T11: by the number that a refused `clone` has left nothing of the host's is closed.
#[test]
fn a_process_refused_late_is_told_and_closes_no_descriptor_of_the_host() {
    let _together = together();
    let Some(ended) = play(&["process-refused", "200"]) else { return };
    assert!(ended.fact("steps").contains("process"), "{}", ended.fact("steps"));
    assert!(ended.number("opened") > 0);
}

// T5, T9, T11
#[test]
fn a_range_larger_than_the_descriptors_is_stopped() {
    let _together = together();
    let Some(ended) = play(&["wide-range"]) else { return };
    let took = ended.number("kill-ms");
    assert!(took < 20_000, "{took} ms: the grace is 2 s");
}

/// T5, T9, T11: whoever cannot be reached is not said to be gone.
#[track_caller]
fn whoever_is_left_is_told(how: &str) {
    let _together = together();
    for free in ["2", "3"] {
        let Some(ended) = play(&["wide-range", how, free]) else { return };
        let took = ended.number("stop-ms");
        assert!(took < 20_000, "{took} ms with {free} free: the grace is 2 s");
    }
}

// T5, T9, T11
#[test]
fn a_kill_with_hardly_a_descriptor_tells_who_is_left() {
    whoever_is_left_is_told("kill");
}

// T5, T9, T11
#[test]
fn a_disposal_with_hardly_a_descriptor_tells_who_is_left() {
    whoever_is_left_is_told("dispose");
}

// --- forks and threads --------------------------------------------------------------------------------------------

// E1, T1
#[test]
fn workers_forked_in_the_middle_of_starts_hold_nobody_up() {
    let _together = together();
    let Some(ended) = play(&["forks-beside-starts", "100"]) else { return };
    assert!(ended.number("forked") > 0);
}

/// T4, T5: the process table calls it a zombie, and it is none.
#[track_caller]
fn one_without_its_main_thread_goes(whose: &str, how: &str) {
    let _together = together();
    for term in ["take-term", "ignore-term"] {
        play(&["headless", whose, term, how]);
    }
}

// T4, T5
#[test]
fn a_member_without_its_main_thread_is_killed() {
    one_without_its_main_thread_goes("same-session", "kill");
}

// T4, T5
#[test]
fn a_member_without_its_main_thread_in_a_session_of_its_own_is_killed() {
    one_without_its_main_thread_goes("own-session", "kill");
}

// T4, T5, T8
#[test]
fn a_survivor_without_its_main_thread_is_killed() {
    one_without_its_main_thread_goes("same-session", "kill-survivors");
}

// T4, T5, T8: only the marker is left to find it by.
#[test]
fn a_survivor_without_its_main_thread_in_a_session_of_its_own_is_killed() {
    one_without_its_main_thread_goes("own-session", "kill-survivors");
}

// --- other users and crowds ---------------------------------------------------------------------------------------

// T4, T9, case 26
#[test]
fn a_member_of_another_user_is_counted_and_not_waited_for() {
    let _together = together();
    let number = unique();
    let Some(ended) = play(&["other-user", &number]) else { return };
    let left = i32::try_from(ended.number("left")).unwrap();
    assert_eq!(sleepers(&number), [left]);
    // SAFETY: integers only. The process was told by the host that made it, and sleeps still.
    unsafe { libc::kill(left, libc::SIGKILL) };
    assert!(ended.number("survivors") >= 1);
    assert!(ended.number("disposal-survivors") >= 1);
    for key in ["kill-ms", "dispose-ms"] {
        assert!(ended.number(key) < 20_000, "{key} is {}", ended.number(key));
    }
}

/// Seconds of work for the machine, more when it has other work as well.
const CROWD_PATIENCE: Duration = Duration::from_secs(300);

// T9, T11
#[test]
fn a_thousand_live_executions_cost_a_thread_each_and_leave_nothing() {
    let _alone = alone();
    let Some(ended) = play_within(CROWD_PATIENCE, &["crowd", "1000"]) else { return };
    assert!(ended.number("threads") < 1_008);
}

// T11
#[test]
fn ten_thousand_short_ones_leave_nothing() {
    let _alone = alone();
    play_within(CROWD_PATIENCE, &["short-ones", "10000"]);
}

// --- the end of the host ------------------------------------------------------------------------------------------

/// A number of seconds that no other process on this machine sleeps.
fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(500);
    format!(
        "{}",
        1_000 + u64::from(std::process::id()) * 1_000 + u64::from(NEXT.fetch_add(1, Ordering::Relaxed))
    )
}

/// The processes called `sleep` whose last argument is `number`.
fn sleepers(number: &str) -> Vec<i32> {
    let sleeps = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut pieces = line.split(|&byte| byte == 0).filter(|piece| !piece.is_empty());
        let program = pieces.next().and_then(|path| path.rsplit(|&byte| byte == b'/').next());
        program == Some(b"sleep".as_slice()) && pieces.next_back() == Some(number.as_bytes())
    };
    let listed = std::fs::read_dir("/proc").unwrap();
    let ids = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(sleeps).collect()
}

#[track_caller]
fn gone(number: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while !sleepers(number).is_empty() {
        assert!(Instant::now() < until, "left behind: {:?}", sleepers(number));
        std::thread::sleep(Duration::from_millis(5));
    }
}

// T10
#[test]
fn an_exit_of_the_host_leaves_nobody() {
    let _together = together();
    let number = unique();
    let mut host = Host::start(&["exit", &number]);
    assert_eq!(host.fact("ready"), number);
    let ended = host.end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    gone(&number);
}

// T10: between the call of `execve` and the moment the supervisor hears of it there is a process, too.
#[test]
fn an_exit_of_the_host_in_the_middle_of_a_start_leaves_nobody() {
    let _together = together();
    let number = unique();
    for microseconds in (0..60_u32).map(|round| round * 100) {
        let ended = Host::start(&["exit-soon", &microseconds.to_string(), &number]).end();
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    }
    gone(&number);
}

// T10
#[test]
fn an_exit_of_a_forked_child_kills_nobody() {
    let _together = together();
    play(&["forked-exit"]);
}

// T10
#[test]
fn a_fatal_signal_disposes_first_and_then_ends_the_host() {
    let _together = together();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let number = unique();
        let mut host = Host::start(&["dispose-on-signals", &number]);
        assert_eq!(host.fact("ready"), number);
        assert_eq!(sleepers(&number).len(), 2);
        let id = i32::try_from(host.id()).unwrap();
        // SAFETY: integers only; the host is our child, and unreaped.
        unsafe { libc::kill(id, signal) };
        let ended = host.end();
        assert_eq!(ended.status.signal(), Some(signal), "{}: {}", ended.status, ended.stderr);
        // Disposal waits for each: nobody is left when the host is gone.
        assert_eq!(sleepers(&number), [0; 0]);
    }
}

// T10
#[test]
fn an_exit_of_a_forked_host_takes_its_own_ranges_along_and_no_others() {
    let _together = together();
    play(&["forked-host"]);
}

// T10
#[test]
fn a_signal_that_the_host_ignores_stays_ignored_and_disposes_of_nothing() {
    let _together = together();
    let number = unique();
    let mut host = Host::start(&["dispose-on-signals-below-nohup", &number]);
    assert_eq!(host.fact("ready"), number);
    assert_eq!(sleepers(&number).len(), 2);
    let id = i32::try_from(host.id()).unwrap();
    // SAFETY: integers only; the host is our child, and unreaped.
    unsafe { libc::kill(id, libc::SIGTERM) };
    let ended = host.end();
    assert_eq!(ended.status.signal(), Some(libc::SIGTERM), "{}: {}", ended.status, ended.stderr);
    assert_eq!(sleepers(&number), [0; 0]);
}

// O8, case 80
#[test]
fn the_spill_files_of_a_killed_host_are_swept_and_no_others() {
    let _together = together();
    let root = std::env::temp_dir().join(format!("hosts-{}-{}", std::process::id(), unique()));
    std::fs::create_dir(&root).unwrap();
    let start = || {
        let mut host = Host::start(&["spill", root.to_str().unwrap(), &unique()]);
        let file = PathBuf::from(host.fact("spill"));
        host.fact("ready");
        (host, file)
    };
    let (dead, of_dead) = start();
    let (mut live, of_live) = start();
    assert!(of_dead.exists() && of_live.exists());
    let id = i32::try_from(dead.id()).unwrap();
    // SAFETY: integers only; the host is our child, and unreaped.
    unsafe { libc::kill(id, libc::SIGKILL) };
    assert_eq!(dead.end().status.signal(), Some(libc::SIGKILL));
    assert!(of_dead.exists(), "nobody has swept it yet");

    let (mut later, of_later) = start();
    assert!(!of_dead.exists(), "the dead host's file is still there");
    assert!(!of_dead.parent().is_some_and(Path::exists), "the dead host's directory is still there");
    assert!(of_live.exists(), "a live host's file is gone");
    for host in [&mut live, &mut later] {
        host.close_stdin();
    }
    for host in [live, later] {
        let ended = host.end();
        assert!(ended.status.success(), "{}", ended.stderr);
    }
    assert!(!of_live.exists() && !of_later.exists());
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
    std::fs::remove_dir(&root).unwrap();
}
