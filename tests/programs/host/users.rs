//! Several users in one range, and programs for it.

use crate::commands::{bash_with, execute, this_program};
use crate::expect::{Outcome, ensure, equal, eventually, fact};
use crate::look::{sleepers, status_field};
use shell_executor::{ExecRequest, SubprocessService};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid takes nothing.
    unsafe { libc::geteuid() == 0 }
}

/// Whether this process's user namespace has such a user.
pub(crate) fn can_become(uid: libc::uid_t) -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_ascii_whitespace().filter_map(|text| text.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if (first..first + count).contains(&uid.into()))
    })
}

/// The whole process becomes another user, for good.
pub(crate) fn become_user(uid: libc::uid_t) -> Outcome {
    let call = |name: &str, result: libc::c_int| {
        ensure(result == 0, || format!("{name}: {}", std::io::Error::last_os_error()))
    };
    // SAFETY: no groups, so no array.
    call("setgroups", unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: takes an integer.
    call("setgid", unsafe { libc::setgid(uid) })?;
    // SAFETY: takes an integer.
    call("setuid", unsafe { libc::setuid(uid) })?;
    // A process that changed its user may not look at itself any more.
    // SAFETY: integers only.
    call("prctl", unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) })
}

/// As `setsid` of the system: not every system has it.
pub(crate) fn own_session(program: &[&str]) -> Outcome {
    // SAFETY: takes nothing.
    ensure(unsafe { libc::setsid() } >= 0, || "this process leads a group already".to_owned())?;
    become_program(program)
}

/// As `setpriv --reuid` of the system.
pub(crate) fn become_uid(uid: libc::uid_t, program: &[&str]) -> Outcome {
    become_user(uid)?;
    become_program(program)
}

fn become_program(program: &[&str]) -> Outcome {
    let (program, arguments) = program.split_first().ok_or("no program")?;
    Err(Command::new(program).args(arguments).exec().into())
}

/// T4, case 26: a member that became another user cannot be signalled; it is counted, and waited for no longer than the
/// bound. The test, which is root, takes it down.
pub(crate) fn other_user(number: &str) -> Outcome {
    const US: libc::uid_t = 65_533;
    const THEM: libc::uid_t = 65_532;
    if !is_root() || !can_become(US) || !can_become(THEM) {
        fact("skip", "only root can become somebody else, where there is somebody else");
        return Ok(());
    }
    let host = this_program()?;
    let service = SubprocessService::new();
    let bash = bash_with(&service, |config| config.grace = Duration::from_secs(2))?;
    let sleep = format!("sleep {number}");
    let command = format!("{host} become-uid {THEM} {sleep} & exec {host} become-uid {US} {sleep}");
    let execution = execute(&bash, ExecRequest::new(command))?;
    eventually("both are who they should be", || {
        let mut users: Vec<String> = sleepers(number).into_iter().filter_map(user).collect();
        users.sort_unstable();
        users == [THEM.to_string(), US.to_string()]
    })?;
    become_user(US)?;
    let began = Instant::now();
    ensure(execution.kill(), || "the kill was not the first".to_owned())?;
    let result = execution.result()?;
    fact("kill-ms", began.elapsed().as_millis());
    equal("the end", (result.exit_code, result.signal), (None, Some(libc::SIGTERM)))?;
    fact("survivors", result.survivors);
    let left = sleepers(number);
    equal("who sleeps on", left.len(), 1)?;
    let began = Instant::now();
    fact("disposal-survivors", service.dispose().survivors);
    fact("dispose-ms", began.elapsed().as_millis());
    fact("left", left.first().copied().unwrap_or_default());
    Ok(())
}

/// Whom the process `pid` acts as.
fn user(pid: i32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status_field(&status, "Uid")?.split_ascii_whitespace().nth(1)?.to_owned())
}
