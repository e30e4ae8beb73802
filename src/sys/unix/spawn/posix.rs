//! Starting by `posix_spawn`: the portable way, and the one left where a filter refuses `clone`.

use super::{Command, Gate, SpawnFailure, Spawned, Stdio, Step, is_empty, leader_of};
use crate::sys::unix::signal::resettable;
use std::ffi::{CStr, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

unsafe extern "C" {
    // glibc 2.29, musl 1.1.24, macOS 10.15; the C bindings in use do not name it everywhere.
    fn posix_spawn_file_actions_addchdir_np(
        actions: *mut libc::posix_spawn_file_actions_t,
        path: *const libc::c_char,
    ) -> libc::c_int;
}

/// The gate is passed by the parent here, right before the call: the child runs no code of ours.
pub(super) fn spawn(command: &Command, stdio: &Stdio, gate: &Gate) -> Result<Spawned, SpawnFailure> {
    let process = |error| SpawnFailure::at(Step::Process, error);
    let attributes = Attributes::new().map_err(process)?;
    let mut actions = Actions::new().map_err(process)?;
    actions.fill(command, stdio).map_err(process)?;
    if !gate.pass() {
        return Err(SpawnFailure::cancelled());
    }
    let mut failure = SpawnFailure::at(Step::Exec, io::Error::from_raw_os_error(libc::ENOENT));
    for (index, path) in command.candidates.iter().enumerate() {
        let mut pid: libc::pid_t = 0;
        // SAFETY: path and arrays end as the call wants, attributes and actions are initialised; all outlive the call,
        // which does not write through the pointers it takes as `*mut`.
        let refused = unsafe {
            libc::posix_spawn(
                &raw mut pid,
                path.as_ptr(),
                &raw const actions.0,
                &raw const attributes.0,
                command.argv.as_ptr().cast(),
                command.envp.as_ptr().cast(),
            )
        };
        let error = io::Error::from_raw_os_error(refused);
        match refused {
            0 => return Ok(Spawned { leader: leader_of(pid, None) }),
            libc::ENOENT | libc::ENOTDIR if failure.error.raw_os_error() == Some(libc::EACCES) => {}
            libc::ENOENT | libc::ENOTDIR => {
                failure = SpawnFailure { step: Step::Exec, error, candidate: index }
            }
            libc::EACCES => failure = SpawnFailure { step: Step::Exec, error, candidate: index },
            libc::EAGAIN | libc::ENOMEM | libc::ENOSYS | libc::EPERM => return Err(process(error)),
            _ => {
                failure = SpawnFailure { step: Step::Exec, error, candidate: index };
                break;
            }
        }
    }
    // The call has one errno for all its steps: a workdir that cannot be entered must not look like a missing program.
    match enterable(&command.workdir) {
        Err(error) => Err(SpawnFailure::at(Step::Workdir, error)),
        Ok(()) => Err(failure),
    }
}

fn enterable(workdir: &CStr) -> io::Result<()> {
    if is_empty(workdir) {
        return Ok(());
    }
    let text = Path::new(OsStr::from_bytes(workdir.to_bytes()));
    if !std::fs::metadata(text)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    // SAFETY: the text ends in NUL and outlives the call.
    super::super::fd::check(unsafe { libc::access(workdir.as_ptr(), libc::X_OK) }).map(drop)
}

/// The errno that this family of calls returns instead of setting it.
fn returned(errno: libc::c_int) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    /// A new session, default signals, an empty mask.
    fn new() -> io::Result<Attributes> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: initialises what it is given.
        returned(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialised by the call above.
        let mut attributes = Attributes(unsafe { raw.assume_init() });
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: initialises the set.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: initialised by the call above.
        let mut set = unsafe { set.assume_init() };
        // SAFETY: both are initialised.
        returned(unsafe { libc::posix_spawnattr_setsigmask(&raw mut attributes.0, &raw const set) })?;
        for signal in resettable() {
            add(&mut set, signal);
        }
        // SAFETY: both are initialised.
        returned(unsafe { libc::posix_spawnattr_setsigdefault(&raw mut attributes.0, &raw const set) })?;
        // SAFETY: initialised; the flags are the system's own.
        returned(unsafe { libc::posix_spawnattr_setflags(&raw mut attributes.0, flags()) })?;
        Ok(attributes)
    }
}

/// Adds a signal to the set; on Linux past the C library, which refuses the two signals that it keeps for itself, and
/// would leave them ignored in the child.
fn add(set: &mut libc::sigset_t, signal: libc::c_int) {
    #[cfg(target_os = "linux")]
    {
        const BITS: usize = libc::c_ulong::BITS as usize;
        let place = signal as usize - 1;
        // SAFETY: the set is an array of such words, of 128 bits at least, and a signal is at most 64.
        let word =
            unsafe { &mut *std::ptr::from_mut(set).cast::<libc::c_ulong>().wrapping_add(place / BITS) };
        *word |= 1 << (place % BITS);
    }
    #[cfg(not(target_os = "linux"))]
    // SAFETY: the set is initialised; a number the system does not have is refused.
    unsafe {
        libc::sigaddset(set, signal)
    };
}

fn flags() -> libc::c_short {
    let common = libc::POSIX_SPAWN_SETSIGDEF as libc::c_short | libc::POSIX_SPAWN_SETSIGMASK as libc::c_short;
    #[cfg(target_vendor = "apple")]
    // SETSID and CLOEXEC_DEFAULT of spawn.h: every descriptor is close-on-exec except what the actions name.
    return common | 0x0400 | 0x4000;
    #[cfg(not(target_vendor = "apple"))]
    return common | 0x80;
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised, and not used again.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> io::Result<Actions> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: initialises what it is given.
        returned(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialised by the call above.
        Ok(Actions(unsafe { raw.assume_init() }))
    }

    fn fill(&mut self, command: &Command, stdio: &Stdio) -> io::Result<()> {
        if !is_empty(&command.workdir) {
            let workdir = command.workdir.as_ptr();
            // SAFETY: initialised, and the text ends in NUL; the call copies it.
            returned(unsafe { posix_spawn_file_actions_addchdir_np(&raw mut self.0, workdir) })?;
        }
        for (target, source) in (0..).zip(stdio.raw()) {
            // SAFETY: initialised.
            returned(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.0, source, target) })?;
        }
        if let Some(kept) = command.kept() {
            // Onto itself: the one way to say that it is not closed by exec.
            // SAFETY: initialised.
            returned(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.0, kept, kept) })?;
        }
        for fd in inheritable() {
            // SAFETY: initialised. Closing a number that was closed meanwhile is no error.
            returned(unsafe { libc::posix_spawn_file_actions_addclose(&raw mut self.0, fd) })?;
        }
        Ok(())
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised, and not used again.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

/// The host's descriptors above 2 that have no close-on-exec flag now. One that another thread makes after this look is
/// inherited: the price of this path.
fn inheritable() -> Vec<RawFd> {
    if cfg!(target_vendor = "apple") {
        return Vec::new();
    }
    let Ok(listed) = std::fs::read_dir("/dev/fd") else { return Vec::new() };
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|&fd: &RawFd| {
            // SAFETY: F_GETFD takes no pointer; a number that is not open gives -1.
            fd > 2 && unsafe { libc::fcntl(fd, libc::F_GETFD) } == 0
        })
        .collect()
}
