//! Old kernels and strict containers, by what they refuse.

use crate::battery;
use crate::commands::{bash, bash_with, execute, run, run_past_its_deadline, this_program};
use crate::expect::{Outcome, PATIENCE, ensure, equal, eventually, fact};
use crate::filter::{self, Rule, When};
use crate::look::unique;
use shell_executor::{Containment, Error, ExecRequest, SubprocessService};
use std::ffi::CStr;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The rules that make this kernel look like another; `None` for a name nobody knows.
fn rules(kernel: &str) -> Option<Vec<Rule>> {
    use libc::{EINVAL, ENOSYS, ENOTTY, EPERM};
    let always = |call, errno| Rule::refuse(call, When::Always, errno);
    let pidfd_flag = libc::CLONE_PIDFD.unsigned_abs();
    let no_pidfd = |errno, flag_errno| {
        vec![
            always(libc::SYS_pidfd_open, errno),
            always(libc::SYS_pidfd_send_signal, errno),
            Rule::refuse(libc::SYS_clone, When::Any(0, pidfd_flag), flag_errno),
        ]
    };
    let no_vfork = Rule::refuse(libc::SYS_clone, When::Any(0, libc::CLONE_VFORK.unsigned_abs()), EPERM);
    // As the profile of a container has it.
    let namespaces = || {
        let flags = (libc::CLONE_NEWUSER | libc::CLONE_NEWNS).unsigned_abs();
        vec![
            Rule::refuse(libc::SYS_clone, When::Any(0, flags), EPERM),
            Rule::refuse(libc::SYS_unshare, When::Any(0, flags), EPERM),
        ]
    };
    Some(match kernel {
        "this" => Vec::new(),
        "no-close-range" => vec![always(libc::SYS_close_range, ENOSYS)],
        "close-range-forbidden" => vec![always(libc::SYS_close_range, EPERM)],
        // Linux 5.9 and 5.10; CLOSE_RANGE_CLOEXEC is 4.
        "close-range-closes-only" => vec![Rule::refuse(libc::SYS_close_range, When::Any(2, 4), EINVAL)],
        // Before Linux 5.3.
        "no-pidfd" => no_pidfd(ENOSYS, EINVAL),
        "pidfd-forbidden" => no_pidfd(EPERM, EPERM),
        // A container profile from before these calls lets `clone` through with any flag, and knows none of them.
        "pidfd-without-calls" => {
            vec![always(libc::SYS_pidfd_open, EPERM), always(libc::SYS_pidfd_send_signal, EPERM)]
        }
        "pidfd-signal-forbidden" => vec![always(libc::SYS_pidfd_send_signal, EPERM)],
        "pidfd-signal-unknown" => vec![always(libc::SYS_pidfd_send_signal, ENOSYS)],
        // Before Linux 6.9.
        "no-group-signal" => vec![Rule::refuse(libc::SYS_pidfd_send_signal, When::Any(3, u32::MAX), EINVAL)],
        // Before Linux 6.15; PIDFD_GET_INFO.
        "no-exit-info" => vec![Rule::refuse(libc::SYS_ioctl, When::Is(1, 0xC040_FF0B), ENOTTY)],
        // `posix_spawn` goes by `clone3` then. A shell forks by `clone` itself, and goes on doing so.
        "no-clone" => vec![no_vfork],
        "no-clone-no-pidfd" => {
            vec![no_vfork, always(libc::SYS_pidfd_open, ENOSYS), always(libc::SYS_pidfd_send_signal, ENOSYS)]
        }
        "no-clone3" => vec![always(libc::SYS_clone3, ENOSYS)],
        // Linux 5.1 at the earliest: all of it at once.
        "old" => {
            let mut rules = no_pidfd(ENOSYS, EINVAL);
            rules.push(always(libc::SYS_close_range, ENOSYS));
            rules.push(always(libc::SYS_clone3, ENOSYS));
            rules
        }
        // Before Linux 5.13, and where it is switched off.
        "no-landlock" => vec![always(libc::SYS_landlock_create_ruleset, ENOSYS)],
        "landlock-off" => vec![always(libc::SYS_landlock_create_ruleset, libc::EOPNOTSUPP)],
        // Before Linux 5.12.
        "no-mount-setattr" => vec![always(libc::SYS_mount_setattr, ENOSYS)],
        "no-namespaces" => namespaces(),
        "no-sandbox" => {
            let mut rules = namespaces();
            rules.push(always(libc::SYS_landlock_create_ruleset, ENOSYS));
            rules
        }
        // Processes, but not threads, have run out.
        "no-more-processes" => vec![Rule::refuse(
            libc::SYS_clone,
            When::Nothing(0, libc::CLONE_THREAD.unsigned_abs()),
            libc::EAGAIN,
        )],
        _ => return None,
    })
}

/// Makes this process run on `kernel`. `false`, with the reason told, where this one lets nobody do that.
pub(crate) fn become_kernel(kernel: &str) -> Outcome<bool> {
    let rules = rules(kernel).ok_or_else(|| format!("no such kernel: {kernel}"))?;
    if rules.is_empty() {
        return Ok(true);
    }
    if let Err(error) = filter::install(&rules) {
        fact("skip", format!("no system-call filter here: {error}"));
        return Ok(false);
    }
    Ok(true)
}

pub(crate) fn play(kernel: &str) -> Outcome {
    if !become_kernel(kernel)? {
        return Ok(());
    }
    match kernel {
        "no-exit-info" => lost_status(),
        _ => battery::play(),
    }
}

/// T3: an ignored SIGCHLD on a kernel that does not keep the status.
fn lost_status() -> Outcome {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let service = SubprocessService::new();
    let bash = bash(&service)?;
    for _ in 0..20 {
        let outcome = run(&bash, ExecRequest::new("exit 7"));
        ensure(outcome == Err(Error::StatusLost), || format!("not lost: {outcome:?}"))?;
    }
    let number = unique();
    let outcome = run_past_its_deadline(&bash, &format!("sleep {number} & sleep {number}"));
    ensure(outcome == Err(Error::StatusLost), || format!("not lost: {outcome:?}"))?;
    crate::look::gone(&number)?;
    service.dispose();
    Ok(())
}

/// Covers `/proc` in a mount namespace of this process: a range is the process group then, and what a command must not
/// have is every number that the limit allows. T1, T5.
pub(crate) fn without_proc() -> Outcome {
    // Found by way of /proc.
    let program = this_program()?;
    if let Err(error) = cover_proc() {
        fact("skip", format!("/proc cannot be covered here: {error}"));
        return Ok(());
    }
    ensure(!Path::new("/proc/self").exists(), || "there is still a /proc".to_owned())?;
    if !become_kernel("no-close-range")? {
        return Ok(());
    }
    let _leaky = battery::Leaky::open()?;
    let service = SubprocessService::new();
    let bash = bash_with(&service, |config| config.grace = Duration::from_secs(2))?;
    equal("the code", run(&bash, ExecRequest::new("exit 7"))?.exit_code, Some(7))?;
    let probe = format!("exec {program} descriptors");
    equal("the descriptors", run(&bash, ExecRequest::new(probe))?.stdout.text.as_str(), "0\n1\n2\n")?;

    let number = unique();
    let command = format!("(trap '' TERM; echo begun; sleep {number}) & sleep {number}");
    let execution = execute(&bash, ExecRequest::new(command))?;
    ensure(execution.wait_output(None), || "no output".to_owned())?;
    equal("the containment", execution.containment(), Containment::ProcessGroup)?;
    ensure(execution.kill(), || "the kill was not the first".to_owned())?;
    let result = execution.result()?;
    equal("the end", (result.exit_code, result.signal), (None, Some(libc::SIGTERM)))?;
    ensure(execution.wait_range(Some(PATIENCE)), || "the range is not over".to_owned())?;
    // Without /proc the kernel itself is asked whether the group has a member; a zombie is one until it is reaped.
    let group = execution.pid().ok_or("no pid")?;
    eventually("the group is empty", || {
        // SAFETY: integers only; signal 0 only asks.
        unsafe { libc::kill(-group, 0) < 0 }
    })?;
    service.dispose();
    Ok(())
}

fn cover_proc() -> io::Result<()> {
    let call = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: geteuid takes nothing.
    let user = unsafe { libc::geteuid() };
    let spaces = libc::CLONE_NEWNS | if user == 0 { 0 } else { libc::CLONE_NEWUSER };
    // SAFETY: integers only.
    call(unsafe { libc::unshare(spaces) })?;
    if user != 0 {
        std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    }
    let none: *const libc::c_char = std::ptr::null();
    let (root, proc, kind): (&CStr, &CStr, &CStr) = (c"/", c"/proc", c"tmpfs");
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: texts that end in NUL, or null where the call takes none.
    call(unsafe { libc::mount(none, root.as_ptr(), none, private, std::ptr::null()) })?;
    // SAFETY: likewise.
    call(unsafe { libc::mount(kind.as_ptr(), proc.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) })
}
