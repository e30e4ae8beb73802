//! Starting a process: everything that allocates here first, then one way down that only makes system calls.
//!
//! On Linux the way is `clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD)` with a stack of its own: it costs the same in a host
//! of any size, gives the process descriptor before the child runs, and lets the child pass the [`Gate`] right before
//! `execve`. Where `clone` with these flags is refused, and on other systems, it is `posix_spawn`.

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod clone;
mod gate;
mod limits;
mod posix;

pub(crate) use gate::Gate;
pub(crate) use limits::argument_limits;

use super::{Confinement, Leader, PidFd};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The child's three standard streams, each a descriptor above 2.
#[derive(Debug)]
pub(crate) struct Stdio {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl Stdio {
    fn raw(&self) -> [RawFd; 3] {
        [self.stdin.as_raw_fd(), self.stdout.as_raw_fd(), self.stderr.as_raw_fd()]
    }
}

/// What to start, in the form the kernel takes it.
#[derive(Debug)]
pub(crate) struct Command {
    /// Absolute paths, tried in order as execvp(3) does.
    candidates: Vec<CString>,
    argv: CStrings,
    envp: CStrings,
    workdir: CString,
    /// What the child puts round itself before it executes.
    confinement: Option<Confinement>,
    /// A descriptor that the child keeps, under its number here.
    kept: Option<OwnedFd>,
}

impl Command {
    /// # Errors
    ///
    /// `InvalidInput` when a text holds a NUL byte.
    pub(crate) fn new(
        candidates: &[PathBuf],
        argv: &[OsString],
        environment: &[(OsString, OsString)],
        workdir: &Path,
    ) -> io::Result<Command> {
        let candidates =
            candidates.iter().map(|path| c_string(path.as_os_str())).collect::<io::Result<Vec<_>>>()?;
        let argv = argv.iter().map(|argument| c_string(argument)).collect::<io::Result<Vec<_>>>()?;
        let mut block = Vec::with_capacity(environment.len());
        for (name, value) in environment {
            let mut entry = Vec::with_capacity(name.len() + value.len() + 2);
            entry.extend_from_slice(name.as_bytes());
            entry.push(b'=');
            entry.extend_from_slice(value.as_bytes());
            block.push(CString::new(entry)?);
        }
        let workdir = c_string(workdir.as_os_str())?;
        let (argv, envp) = (CStrings::new(argv), CStrings::new(block));
        Ok(Command { candidates, argv, envp, workdir, confinement: None, kept: None })
    }

    /// The same, confined. It is started behind these walls or not at all.
    pub(crate) fn confined_by(self, confinement: Option<Confinement>) -> Command {
        Command { confinement, ..self }
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.confinement.is_some()
    }

    /// The same, with a descriptor besides the standard streams, under the number it has here.
    pub(crate) fn keeping(self, kept: Option<OwnedFd>) -> Command {
        Command { kept, ..self }
    }

    fn kept(&self) -> Option<RawFd> {
        self.kept.as_ref().map(OwnedFd::as_raw_fd)
    }

    /// The bytes of the longest single argument or variable, and of all of them, their NULs included.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let lengths =
            || self.argv.texts.iter().chain(&self.envp.texts).map(|text| text.as_bytes_with_nul().len());
        (lengths().max().unwrap_or(0), lengths().sum())
    }

    /// The path that a report about candidate `index` speaks of.
    pub(crate) fn candidate(&self, index: usize) -> Option<PathBuf> {
        let path = self.candidates.get(index)?;
        Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// Texts, and the null-ended array of pointers to them that `execve` takes.
#[derive(Debug)]
struct CStrings {
    texts: Vec<CString>,
    /// Points into `texts`, whose buffers do not move with it; the last is null.
    pointers: Vec<*const libc::c_char>,
}

impl CStrings {
    fn new(texts: Vec<CString>) -> CStrings {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        CStrings { texts, pointers }
    }

    fn as_ptr(&self) -> *const *const libc::c_char {
        self.pointers.as_ptr()
    }
}

// SAFETY: the pointers go to heap buffers that the same value owns and never changes, so they are valid in any thread.
unsafe impl Send for CStrings {}

/// Where a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "posix_spawn does not say at which step it failed")
)]
pub(crate) enum Step {
    /// The pipe for the child's own report.
    Report,
    /// Making the process.
    Process,
    Session,
    Workdir,
    /// Being the same user in a namespace of its own.
    Identity,
    /// Making the file system read-only.
    ReadOnly,
    /// Keeping a directory writable; which one, the candidate says.
    Writable,
    /// A file system in memory.
    Scratch,
    /// Giving up what leads round a wall.
    Privileges,
    /// The Landlock domain.
    Ruleset,
    /// Putting the streams on 0, 1 and 2.
    Streams,
    /// Keeping all other descriptors from the command.
    Descriptors,
    Exec,
    /// The gate was cancelled: nothing failed, and nothing was started.
    Cancelled,
}

/// Why nothing runs. No child is left behind.
#[derive(Debug)]
pub(crate) struct SpawnFailure {
    pub(crate) step: Step,
    pub(crate) error: io::Error,
    /// Which candidate path the exec step speaks of.
    pub(crate) candidate: usize,
}

impl SpawnFailure {
    fn at(step: Step, error: io::Error) -> SpawnFailure {
        SpawnFailure { step, error, candidate: 0 }
    }

    fn cancelled() -> SpawnFailure {
        SpawnFailure::at(Step::Cancelled, io::Error::from_raw_os_error(libc::ECANCELED))
    }

    /// Descriptors, processes or memory ran out.
    pub(crate) fn is_shortage(&self) -> bool {
        is_shortage(&self.error)
    }

    /// The system does not know of this, or does not allow it: a filter, a limit of namespaces, a policy.
    pub(crate) fn is_refusal(&self) -> bool {
        is_refusal(&self.error) || matches!(self.error.raw_os_error(), Some(libc::ENOSPC | libc::EUSERS))
    }

    /// There is no such program.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
    }

    /// Arguments and environment are longer than the system takes.
    pub(crate) fn is_too_long(&self) -> bool {
        self.error.raw_os_error() == Some(libc::E2BIG)
    }
}

/// A child that has passed `execve`.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) leader: Leader,
}

/// Starts `command` as the leader of a new session, with default signals, an empty mask, and `stdio` (and what it keeps)
/// as its only descriptors. The calling thread has all signals blocked. Blocks until the child has passed `execve` or failed; another
/// thread can end that by [`Gate::cancel`] and [`Gate::kill`].
pub(crate) fn spawn(command: &Command, stdio: &Stdio, gate: &Gate) -> Result<Spawned, SpawnFailure> {
    if gate.is_cancelled() {
        return Err(SpawnFailure::cancelled());
    }
    #[cfg(target_os = "linux")]
    for with_pidfd in [true, false] {
        match clone::spawn(command, stdio, gate, with_pidfd) {
            Err(failure) if failure.step == Step::Process && is_refusal(&failure.error) => {
                if command.confinement.is_some() && !with_pidfd {
                    return Err(failure);
                }
            }
            done => return done,
        }
    }
    if command.confinement.is_some() {
        // This way runs no step of ours in the child.
        return Err(SpawnFailure::at(Step::Process, io::Error::from_raw_os_error(libc::ENOSYS)));
    }
    posix::spawn(command, stdio, gate)
}

/// Descriptors, processes or memory ran out: of the moment, and of the whole process or machine.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN))
}

/// The errnos of "not here": an unknown call or flag, or a filter that forbids it.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL))
}

/// The child with number `pid`, by descriptor where the kernel has them.
fn leader_of(pid: libc::pid_t, pidfd: Option<PidFd>) -> Leader {
    // Not reaped yet, so the number is the child's; without descriptors (ENOSYS, EPERM, no descriptor free) numbers do.
    Leader::new(pid, pidfd.or_else(|| PidFd::open(pid).ok()))
}

/// Whether the text is empty: the workdir that stays where the host is.
fn is_empty(text: &CStr) -> bool {
    text.to_bytes().is_empty()
}
