//! The child half: system calls in a fixed order, no allocation, no lock, no panic, and one report if a step fails.
//!
//! It runs in the host's memory, on its own stack, while the starting thread stands still; other threads of the host go
//! on. So it writes nothing but its stack, the gate, and (as every system call does) the standing thread's errno.

use super::{Command, Gate, Step, is_empty};
use crate::sys::Confinement;
use crate::sys::unix::signal::resettable;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// All that the child reads, prepared by the parent.
pub(super) struct Setup<'a> {
    command: &'a Command,
    stdio: [RawFd; 3],
    gate: &'a Gate,
    report: RawFd,
    /// Where the kernel leaves the number of the child's process descriptor, before the child runs.
    pidfd: AtomicI32,
    /// Set by the child: what it writes is seen by the parent.
    shared: AtomicBool,
}

impl<'a> Setup<'a> {
    pub(super) fn new(command: &'a Command, stdio: [RawFd; 3], gate: &'a Gate, report: RawFd) -> Setup<'a> {
        Setup { command, stdio, gate, report, pidfd: AtomicI32::new(-1), shared: AtomicBool::new(false) }
    }

    pub(super) fn pidfd_place(&self) -> *mut libc::c_int {
        self.pidfd.as_ptr()
    }

    /// Whether the child has run in this memory, as the kernel promises.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::SeqCst)
    }

    /// The descriptor of a child that has run in a copy of this memory, and so could not hand it on.
    pub(super) fn take_pidfd_unless_shared(&self) -> Option<OwnedFd> {
        let raw = self.pidfd.swap(-1, Ordering::SeqCst);
        // SAFETY: `clone` has succeeded, so the number is that of a descriptor made for this call; the child in its own
        // memory has given it to nobody.
        (raw >= 0 && !self.is_shared()).then(|| unsafe { OwnedFd::from_raw_fd(raw) })
    }
}

/// What failed, as it goes through the pipe.
pub(super) struct Report {
    pub(super) step: Step,
    pub(super) errno: i32,
    pub(super) candidate: usize,
}

impl Report {
    pub(super) const SIZE: usize = 12;

    const STEPS: [Step; 12] = [
        Step::Session,
        Step::Identity,
        Step::ReadOnly,
        Step::Writable,
        Step::Scratch,
        Step::Workdir,
        Step::Streams,
        Step::Privileges,
        Step::Ruleset,
        Step::Descriptors,
        Step::Exec,
        Step::Cancelled,
    ];

    fn to_bytes(&self) -> [u8; Report::SIZE] {
        let step = Report::STEPS.iter().position(|&step| step == self.step).unwrap_or(0);
        let mut bytes = [0; Report::SIZE];
        for (place, word) in [step as u32, self.errno as u32, self.candidate as u32].into_iter().enumerate() {
            bytes[place * 4..][..4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; Report::SIZE]) -> Report {
        let word = |place: usize| {
            u32::from_ne_bytes([bytes[place], bytes[place + 1], bytes[place + 2], bytes[place + 3]])
        };
        let step = Report::STEPS.get(word(0) as usize).copied().unwrap_or(Step::Exec);
        Report { step, errno: word(4) as i32, candidate: word(8) as usize }
    }
}

/// Where the child begins. Never returns to its caller: it becomes the command, or reports and ends.
pub(super) extern "C" fn main(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `argument` is the `Setup` of the thread that stands still for us.
    let setup = unsafe { &*argument.cast::<Setup<'_>>() };
    setup.shared.store(true, Ordering::SeqCst);
    // From here on a canceller can end us.
    setup.gate.announce(setup.pidfd.load(Ordering::SeqCst));
    let report = run(setup).to_bytes();
    // SAFETY: the array is readable for its length. A report that cannot be written leaves the child's end to speak.
    unsafe { libc::write(setup.report, report.as_ptr().cast(), report.len()) };
    // SAFETY: ends the child at once; nothing of the host's (buffers, exit hooks) is run.
    unsafe { libc::_exit(127) }
}

fn errno() -> i32 {
    // SAFETY: takes nothing.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the place is the standing thread's, which does not use it now.
    unsafe { *place }
}

fn failed(step: Step) -> Report {
    failed_at((step, 0))
}

fn failed_at((step, candidate): (Step, usize)) -> Report {
    Report { step, errno: errno(), candidate }
}

fn run(setup: &Setup<'_>) -> Report {
    // A session of its own: no controlling terminal, a group to signal, a number to find members by. It fails only for a
    // group leader, which a new process is not.
    // SAFETY: setsid takes nothing.
    if unsafe { libc::setsid() } < 0 {
        return failed(Step::Session);
    }
    if let Some(Err(failed)) = setup.command.confinement.as_ref().map(Confinement::enter) {
        return failed_at(failed);
    }
    // SAFETY: the text ends in NUL and outlives the call.
    if !is_empty(&setup.command.workdir) && unsafe { libc::chdir(setup.command.workdir.as_ptr()) } < 0 {
        return failed(Step::Workdir);
    }
    // All sources lie above 2, so no dup2 overwrites the source of the next, and each clears close-on-exec.
    for (target, &source) in (0..).zip(&setup.stdio) {
        // SAFETY: dup2 takes integers.
        if unsafe { libc::dup2(source, target) } < 0 {
            return failed(Step::Streams);
        }
    }
    if let Some(Err(failed)) = setup.command.confinement.as_ref().map(Confinement::seal) {
        return failed_at(failed);
    }
    let kept = setup.command.kept();
    if !close_the_rest_on_exec(setup.report, kept) || !kept.is_none_or(keep) {
        return failed(Step::Descriptors);
    }
    default_signals();
    if !setup.gate.pass() {
        return Report { step: Step::Cancelled, errno: libc::ECANCELED, candidate: 0 };
    }
    exec(setup.command)
}

/// Default dispositions first, the empty mask after them: in between, a signal of the terminal or of our own ladder would
/// run a handler of the host in the host's memory.
fn default_signals() {
    // The kernel's own call, because the C library's refuses the two signals that it keeps for itself. The kernel's
    // structure differs from system to system, but all of its zeroes are the default action everywhere.
    let default = [0_usize; 16];
    let none = std::ptr::null_mut::<libc::c_void>();
    for signal in resettable() {
        // SAFETY: `default` is larger than the structure; the table is the child's own copy (no CLONE_SIGHAND).
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, SIGSET_SIZE) };
    }
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set it is given.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the set is initialised.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
}

/// The size of the kernel's signal set, in bytes.
const SIGSET_SIZE: usize = if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 16 } else { 8 };

/// As execvp(3) walks `PATH`: a candidate that is missing or forbidden leads to the next, and "forbidden" is what is
/// reported in the end if one was. No shell is tried for a file of unknown format.
fn exec(command: &Command) -> Report {
    let mut report = Report { step: Step::Exec, errno: libc::ENOENT, candidate: 0 };
    for (index, path) in command.candidates.iter().enumerate() {
        // SAFETY: the path and both arrays end as execve wants, and outlive the call.
        unsafe { libc::execve(path.as_ptr(), command.argv.as_ptr(), command.envp.as_ptr()) };
        match errno() {
            _ if report.errno == libc::EACCES && is_missing(errno()) => {}
            missing if is_missing(missing) => {
                report = Report { step: Step::Exec, errno: missing, candidate: index }
            }
            libc::EACCES => report = Report { step: Step::Exec, errno: libc::EACCES, candidate: index },
            other => return Report { step: Step::Exec, errno: other, candidate: index },
        }
    }
    report
}

fn is_missing(errno: i32) -> bool {
    matches!(errno, libc::ENOENT | libc::ENOTDIR)
}

/// Since Linux 5.11, the flag of close_range(2) that marks instead of closing.
const CLOSE_RANGE_CLOEXEC: libc::c_uint = 1 << 2;

/// Keeps every descriptor above 2 from the command, close-on-exec or not: the host may have forgotten the flag, and the
/// command would hold its port or lock.
fn close_the_rest_on_exec(report: RawFd, kept: Option<RawFd>) -> bool {
    close_range(3, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC)
        || close_around(report, kept.unwrap_or(report))
        || mark_listed()
        || mark_all()
}

fn close_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint) -> bool {
    // SAFETY: integers only; the descriptor table is the child's own copy (no CLONE_FILES).
    first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } == 0
}

/// Linux 5.9 and 5.10 close only: all but the report's own descriptor, which goes with exec, and one that is kept.
fn close_around(report: RawFd, kept: RawFd) -> bool {
    let (Ok(low), Ok(high)) =
        (libc::c_uint::try_from(report.min(kept)), libc::c_uint::try_from(report.max(kept)))
    else {
        return false;
    };
    close_range(3, low - 1, 0)
        && close_range(low + 1, high.saturating_sub(1), 0)
        && close_range(high + 1, libc::c_uint::MAX, 0)
}

/// Lets the command have it.
fn keep(fd: RawFd) -> bool {
    // SAFETY: F_SETFD takes an integer.
    unsafe { libc::fcntl(fd, libc::F_SETFD, 0) == 0 }
}

fn mark(fd: RawFd) {
    // SAFETY: F_SETFD takes an integer; a number that is not open gives EBADF.
    unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// Before Linux 5.9, or behind a filter that refuses the call: what `/proc/self/fd` lists.
fn mark_listed() -> bool {
    // SAFETY: the path ends in NUL.
    let dir = unsafe {
        libc::open(c"/proc/self/fd".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC)
    };
    if dir < 0 {
        return false;
    }
    let mut buffer = [0_u64; 256];
    loop {
        let room = size_of_val(&buffer);
        // SAFETY: the buffer is writable for its size, and aligned for the records.
        let got = unsafe { libc::syscall(libc::SYS_getdents64, dir, buffer.as_mut_ptr(), room) };
        let Ok(got) = usize::try_from(got) else { return false };
        if got == 0 {
            return true;
        }
        let mut at = 0;
        while at + 19 < got {
            // SAFETY: the kernel has filled `got` bytes, and `at` is below that.
            let record = unsafe { buffer.as_ptr().cast::<u8>().add(at) };
            // struct linux_dirent64: inode 8, offset 8, length 2, type 1, then the name.
            let (length, name) = (record.wrapping_add(16), record.wrapping_add(19));
            // SAFETY: the record's length lies at byte 16 of it.
            let length = unsafe { length.cast::<u16>().read_unaligned() };
            // SAFETY: the name begins at byte 19 and ends in NUL within the record.
            let name = unsafe { std::ffi::CStr::from_ptr(name.cast()) };
            if let Some(fd) = number(name.to_bytes()).filter(|&fd| fd > 2) {
                mark(fd);
            }
            at += usize::from(length);
        }
    }
}

fn number(digits: &[u8]) -> Option<RawFd> {
    let mut value: RawFd = 0;
    for &digit in digits {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit < 10)?;
        value = value.checked_mul(10)?.checked_add(digit.into())?;
    }
    (!digits.is_empty()).then_some(value)
}

/// Without `/proc`: every number the limit allows.
fn mark_all() -> bool {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: `limit` is writable.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call has initialised it.
    let limit = unsafe { limit.assume_init() };
    (3..RawFd::try_from(limit.rlim_cur).unwrap_or(RawFd::MAX)).for_each(mark);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_goes_through_the_pipe_and_back() {
        for step in Report::STEPS {
            let sent = Report { step, errno: 13, candidate: 4 };
            let received = Report::from_bytes(sent.to_bytes());
            assert_eq!((received.step, received.errno, received.candidate), (step, 13, 4));
        }
    }

    #[test]
    fn only_digits_are_a_descriptor() {
        assert_eq!(number(b"17"), Some(17));
        assert_eq!(number(b"."), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"99999999999"), None);
    }
}
