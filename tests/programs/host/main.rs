//! The host program of the tests: it puts its own process into a state, uses the library in it, and says what it saw.
//!
//! `test-host SCENARIO [ARGS]` prints facts, one `key=value` per line, and exits with 0 when every promise held; otherwise
//! it names the broken one on stderr and exits with 1. A fact `skip=…` says why the scenario cannot be played here. It
//! is an example of Cargo's so that `cargo test` builds it and nobody installs it; `tests/hosts.rs` runs it.
//!
//! What it does to itself (ignored signals, closed descriptors, filters that stand in for old kernels, limits, other
//! users) would spoil a test process for every other test in it, hence a process for each scenario.
#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
mod battery;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod closed;
#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod crowd;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod ending;
#[cfg(target_os = "linux")]
mod expect;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod hang;
#[cfg(target_os = "linux")]
mod headless;
#[cfg(target_os = "linux")]
mod kernels;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod look;
#[cfg(target_os = "linux")]
mod reaping;
#[cfg(target_os = "linux")]
mod sandbox;
mod signals;
#[cfg(target_os = "linux")]
mod users;
#[cfg(target_os = "linux")]
mod wide;
#[cfg(target_os = "linux")]
mod workers;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match play(&arguments) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("test-host {}: {error}", arguments.join(" "));
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
fn play(arguments: &[&str]) -> expect::Outcome {
    let (scenario, arguments) = arguments.split_first().ok_or("usage: test-host SCENARIO [ARGS]")?;
    match (*scenario, arguments) {
        ("sigchld-ignored", [how, rounds]) => reaping::sigchld_ignored(how, rounds.parse()?),
        ("sigchld-ignored-range", []) => reaping::range_without_a_leader(),
        ("foreign-reaper", [rounds]) => reaping::foreign_reaper(rounds.parse()?),
        ("own-child", []) => reaping::own_child(),
        ("blocked-sigterm", []) => signals::blocked_sigterm(),
        ("clean-child", [kernel]) => signals::clean_child(kernel),
        ("default-sigpipe", [rounds]) => signals::default_sigpipe(rounds.parse()?),
        ("deaf-threads", [kernel]) => signals::deaf_threads(kernel),
        ("closed-streams", [kernel]) => closed::closed_streams(kernel),
        ("closed-streams-signals", []) => closed::with_signal_guard(),
        ("leaked-lock", [kernel]) => descriptors::leaked_lock(kernel),
        ("deleted-workdir", []) => descriptors::deleted_workdir(),
        ("kernel", [kernel]) => kernels::play(kernel),
        ("sandbox", [kernel]) => sandbox::play(kernel),
        ("no-proc", []) => kernels::without_proc(),
        ("hang", [step, how, kernel, rounds]) => hang::play(step, how, kernel, rounds.parse()?),
        ("late-answer", [how]) => hang::late_answer(how),
        ("no-descriptors", []) => limits::no_descriptors(),
        ("containment-without-descriptors", []) => limits::containment_without_descriptors(),
        ("no-processes", []) => limits::no_processes(),
        ("no-fork", []) => limits::no_fork(),
        ("process-refused", [rounds]) => cgroup::process_refused(rounds.parse()?),
        ("wide-range", []) => wide::larger_than_descriptors(),
        ("wide-range", [how, free]) => wide::few_descriptors_free(how, free.parse()?),
        ("headless", [whose, term, how]) => headless::play(whose, term, how),
        ("forks-beside-starts", [rounds]) => workers::forks_beside_starts(rounds.parse()?),
        ("large", [mebibytes]) => limits::large(mebibytes.parse()?),
        ("exit", [number]) => ending::exit(number),
        ("exit-soon", [microseconds, number]) => ending::exit_soon(microseconds.parse()?, number),
        ("forked-exit", []) => ending::forked_exit(),
        ("forked-host", []) => ending::forked_host(),
        ("dispose-on-signals-below-nohup", [number]) => ending::dispose_on_signals_below_nohup(number),
        ("dispose-on-signals", [number]) => ending::dispose_on_signals(number),
        ("spill", [root, number]) => ending::spill(root, number),
        ("crowd", [count]) => crowd::live(count.parse()?),
        ("short-ones", [count]) => crowd::short_ones(count.parse()?),
        ("other-user", [number]) => users::other_user(number),
        // Programs for the ranges of other scenarios.
        ("descriptors", []) => descriptors::list(),
        ("own-session", program) => users::own_session(program),
        ("become-uid", [uid, program @ ..]) => users::become_uid(uid.parse()?, program),
        _ => Err(format!("no such scenario: {scenario} {arguments:?}").into()),
    }
}

/// The states are those of a Linux host, so there is nothing to play elsewhere; the program must still compile.
#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skip=the scenarios need Linux");
}
