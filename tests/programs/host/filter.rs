//! System-call filters that stand in for old kernels and strict containers: real refusals by the real kernel.

use std::io;
use std::mem::offset_of;
use std::os::fd::{FromRawFd, OwnedFd};

/// What the filter looks at in one argument; its low 32 bits, which hold all that matters here.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    Always,
    /// Argument number, and a mask of which a bit is set.
    Any(u32, u32),
    /// Argument number, and a mask of which no bit is set.
    Nothing(u32, u32),
    /// Argument number, and its value.
    Is(u32, u32),
}

/// A refusal of one system call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    call: libc::c_long,
    when: When,
    action: u32,
}

impl Rule {
    pub(crate) fn refuse(call: libc::c_long, when: When, errno: i32) -> Rule {
        Rule { call, when, action: libc::SECCOMP_RET_ERRNO | errno.unsigned_abs() }
    }

    /// The call waits until whoever holds the listener answers.
    fn notify(call: libc::c_long) -> Rule {
        Rule { call, when: When::Always, action: libc::SECCOMP_RET_USER_NOTIF }
    }
}

/// Lays the rules on every thread of this process, and on all that it starts. For good.
pub(crate) fn install(rules: &[Rule]) -> io::Result<()> {
    load(rules, libc::SECCOMP_FILTER_FLAG_TSYNC).map(drop)
}

/// Has `call` hang in the calling thread, in threads that it starts from now on, and in their children.
pub(crate) fn hang(call: libc::c_long) -> io::Result<OwnedFd> {
    let raw = load(&[Rule::notify(call)], libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?;
    // SAFETY: the kernel has just made the number, as the result of the flag.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The architecture a call is made for, `AUDIT_ARCH_…` of the kernel's `uapi/linux/audit.h`.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

fn load(rules: &[Rule], flags: libc::c_ulong) -> io::Result<i32> {
    if ARCHITECTURE == 0 {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    let mut program = program(rules);
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: integers only.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the structure points to `length` instructions, and both outlive the call, which copies them.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, std::ptr::from_ref(&filter))
    };
    let made = i32::try_from(result).unwrap_or(-1);
    if made < 0 {
        Err(io::Error::last_os_error())
    } else if made > 0 && flags == libc::SECCOMP_FILTER_FLAG_TSYNC {
        Err(io::Error::other(format!("thread {made} cannot take the filter")))
    } else {
        Ok(made)
    }
}

fn program(rules: &[Rule]) -> Vec<libc::sock_filter> {
    let load = |offset: usize| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset as u32);
    let jump =
        |test: u32, value: u32, yes: u8, no: u8| step(libc::BPF_JMP | test | libc::BPF_K, yes, no, value);
    let give = |action: u32| step(libc::BPF_RET | libc::BPF_K, 0, 0, action);
    let allow = || give(libc::SECCOMP_RET_ALLOW);
    let mut program =
        vec![load(offset_of!(libc::seccomp_data, arch)), jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0), allow()];
    for rule in rules {
        program.push(load(offset_of!(libc::seccomp_data, nr)));
        let argument = |number: u32| load(offset_of!(libc::seccomp_data, args) + 8 * number as usize);
        let call = rule.call as u32;
        match rule.when {
            When::Always => program.extend([jump(libc::BPF_JEQ, call, 0, 1), give(rule.action)]),
            When::Any(number, mask) => program.extend([
                jump(libc::BPF_JEQ, call, 0, 3),
                argument(number),
                jump(libc::BPF_JSET, mask, 0, 1),
                give(rule.action),
            ]),
            When::Nothing(number, mask) => program.extend([
                jump(libc::BPF_JEQ, call, 0, 3),
                argument(number),
                jump(libc::BPF_JSET, mask, 1, 0),
                give(rule.action),
            ]),
            When::Is(number, value) => program.extend([
                jump(libc::BPF_JEQ, call, 0, 3),
                argument(number),
                jump(libc::BPF_JEQ, value, 0, 1),
                give(rule.action),
            ]),
        }
    }
    program.push(allow());
    program
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}
