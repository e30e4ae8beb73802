//! Starting by `clone` of the vfork kind, with a stack of its own for the child.

use super::child::{self, Report, Setup};
use super::{Command, Gate, SpawnFailure, Spawned, Stdio, Step, leader_of};
use crate::sys::unix::fd::{check, retry, set_nonblocking};
use crate::sys::unix::pipe::raw_pipe;
use crate::sys::{Confinement, Interest, Leader, PidFd, PollSet};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The child half needs under 2 KiB in a release build and under 5 in a debug build.
const STACK: usize = 24 * 1024;

/// The child's stack lies inside this thread's: the thread stands still until the child has left it. A frame of its own
/// means that the child cannot touch the locals of the frame that waits.
#[repr(C, align(16))]
struct Stack(MaybeUninit<[u8; STACK]>);

pub(super) fn spawn(
    command: &Command,
    stdio: &Stdio,
    gate: &Gate,
    with_pidfd: bool,
) -> Result<Spawned, SpawnFailure> {
    let (reports, report) = raw_pipe().map_err(|error| SpawnFailure::at(Step::Report, error))?;
    set_nonblocking(reports.as_fd()).map_err(|error| SpawnFailure::at(Step::Report, error))?;
    let setup = Setup::new(command, stdio.raw(), gate, report.as_raw_fd());
    let mut stack = Stack(MaybeUninit::uninit());
    // SAFETY: one past the end of the array, which stays alive to the end of this function.
    let top = unsafe { stack.0.as_mut_ptr().cast::<u8>().add(STACK) };
    let flags =
        libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD | if with_pidfd { libc::CLONE_PIDFD } else { 0 };
    let flags = flags | command.confinement.as_ref().map_or(0, Confinement::clone_flags);
    let argument = (&raw const setup).cast_mut().cast();
    // SAFETY: the child runs `child::main` on a stack nobody else uses, reads `setup`, which outlives it here because
    // CLONE_VFORK holds this thread until the child has called execve or _exit, and makes system calls only. Every signal
    // is blocked except two that the C library sends to threads of the host only, so no handler runs in the shared memory.
    // The kernel writes one int to the place in `setup`.
    let cloned = check(unsafe { libc::clone(child::main, top.cast(), flags, argument, setup.pidfd_place()) });
    // On failure the place may hold the number of a descriptor that the kernel has taken back: it is the child that hands
    // the number on, so without a child there is none.
    let pid = cloned.map_err(|error| SpawnFailure::at(Step::Process, error))?;
    // A kernel before 5.2 ignores the flag and leaves no descriptor.
    let pidfd = gate.take_in_flight().or_else(|| setup.take_pidfd_unless_shared());
    drop(report);
    let leader = leader_of(pid, pidfd.and_then(|fd| PidFd::from_clone(fd).ok()));
    let failed = match read_report(&reports, &leader, setup.is_shared()) {
        Ok(None) => return Ok(Spawned { leader }),
        Ok(Some(failed)) => failed,
        Err(error) => {
            // It cannot be told whether the command runs; then it must not.
            let _ = leader.signal_group(libc::SIGKILL);
            SpawnFailure::at(Step::Report, error)
        }
    };
    // The child ends right after its report. A status that somebody else has taken is as good as one taken here.
    let _ = crate::sys::unix::wait::wait_noreap(pid);
    leader.reap();
    Err(failed)
}

/// What the child said before it ended; `None` when it got through `execve`.
///
/// The report is there before `clone` returns, so nothing is waited for: the end of the pipe would not come for as long as
/// a process that the host forked meanwhile has a copy of its other end. Only where the kernel's promise is emulated, with
/// a copy of the memory as some debuggers do, is the pipe's end the sign.
fn read_report(reports: &OwnedFd, leader: &Leader, ordered: bool) -> io::Result<Option<SpawnFailure>> {
    let mut bytes = [0_u8; Report::SIZE];
    let mut ended = false;
    loop {
        // SAFETY: the array is writable for its length. One write of the child, far below a pipe's atomic size, is one
        // read.
        let got =
            retry(|| unsafe { libc::read(reports.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) });
        match got {
            Ok(got) if got < Report::SIZE => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if ordered || ended => return Ok(None),
            Err(_) => {
                // One that is killed before its first instruction leaves no sign in the memory, and none in the pipe.
                let mut set = PollSet::default();
                set.add(reports.as_fd(), Interest::Readable);
                let leader = leader.pidfd().map(|pidfd| set.add(pidfd, Interest::Readable));
                set.wait(None)?;
                ended = leader.is_some_and(|slot| set.ready(slot));
            }
        }
    }
    let report = Report::from_bytes(bytes);
    let error = io::Error::from_raw_os_error(report.errno);
    Ok(Some(SpawnFailure { step: report.step, error, candidate: report.candidate }))
}
