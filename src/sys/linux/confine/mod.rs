//! Confining a child to files it may change: all that allocates is prepared here, all that is done in the child is in
//! `steps`.
//!
//! Two walls, either of which forbids writing: a mount namespace in which everything but the writable directories is
//! read-only, and a Landlock domain over the same directories. The first also governs metadata, which Landlock does not;
//! the second also governs devices, and shuts the ways round the first: other processes' roots and descriptors under
//! `/proc`, tracing, mounting.

mod landlock;
mod steps;

pub(crate) use landlock::{LandlockRights, landlock_abi};

use crate::sys::unix::fd::{adopt, check};
use landlock::Ruleset;
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Which namespaces the child gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// None: the Landlock domain is all.
    None,
    /// A mount namespace, by this process's own privilege.
    Mount,
    /// A mount namespace in a user namespace with the same user and group, which any user may make where the system lets
    /// him.
    UserAndMount,
}

/// What a child is confined to.
#[derive(Debug)]
pub(crate) struct Boundary<'a> {
    pub(crate) namespaces: Namespaces,
    /// Which rights the Landlock domain governs.
    pub(crate) rights: LandlockRights,
    /// Directories in which everything may be changed but no device made or opened. Canonical, at most
    /// [`MOST_WRITABLE`], none within another.
    pub(crate) writable: &'a [PathBuf],
    /// A directory in one of them in which nothing may be changed. Only with a mount namespace.
    pub(crate) private: Option<&'a Path>,
    /// Where a private file system in memory is mounted, canonical, and how many bytes it holds. Only with a mount
    /// namespace.
    pub(crate) scratch: Option<(&'a Path, u64)>,
}

/// How many directories can be writable.
pub(crate) const MOST_WRITABLE: usize = 8;

/// What could not be prepared.
#[derive(Debug)]
pub(crate) struct NotConfined {
    pub(crate) what: String,
    pub(crate) error: io::Error,
}

/// The devices that may be written: what is written to them changes no file.
const SINKS: [&CStr; 7] = [
    c"/dev/null",
    c"/dev/zero",
    c"/dev/full",
    c"/dev/random",
    c"/dev/urandom",
    c"/dev/tty",
    // Makes a terminal in the instance that the child mounts for itself.
    c"/dev/ptmx",
];

/// A boundary, prepared for a child to put round itself.
#[derive(Debug)]
pub(crate) struct Confinement {
    namespaces: Namespaces,
    /// The maps of the user namespace: one user, one group.
    maps: [CString; 2],
    writable: Vec<Place>,
    private: Option<Place>,
    scratch: Option<Scratch>,
    ruleset: Ruleset,
}

/// A directory by a canonical path, and what stood there when it was looked at.
#[derive(Debug)]
struct Place {
    path: CString,
    device: libc::dev_t,
    inode: libc::ino_t,
}

#[derive(Debug)]
struct Scratch {
    place: Place,
    options: CString,
}

impl Place {
    fn of(path: &Path) -> io::Result<(Place, OwnedFd)> {
        let directory = open_strictly(path)?;
        let status = status(&directory)?;
        let path = CString::new(path.as_os_str().as_bytes())?;
        Ok((Place { path, device: status.st_dev, inode: status.st_ino }, directory))
    }
}

impl Confinement {
    pub(crate) fn prepare(boundary: &Boundary<'_>) -> Result<Confinement, NotConfined> {
        let no = |what: String| move |error: io::Error| NotConfined { what, error };
        if boundary.writable.len() > MOST_WRITABLE {
            let error = io::Error::from_raw_os_error(libc::E2BIG);
            return Err(no(format!("{} writable directories", boundary.writable.len()))(error));
        }
        let ruleset = Ruleset::new(boundary.rights).map_err(no("no Landlock ruleset".to_owned()))?;
        for sink in SINKS {
            // One that is missing, or is a terminal this process does not have, needs no rule.
            let Ok(device) = open_path(sink, libc::O_NOFOLLOW) else { continue };
            if is_character_device(&device) {
                ruleset.allow_device(device.as_fd()).map_err(no(format!("no rule for {sink:?}")))?;
            }
        }
        let mut writable = Vec::with_capacity(boundary.writable.len());
        for path in boundary.writable {
            let no = |error| no(format!("no rule for {path:?}"))(error);
            let (place, directory) = Place::of(path).map_err(no)?;
            ruleset.allow_beneath(directory.as_fd()).map_err(no)?;
            writable.push(place);
        }
        let private = match boundary.private {
            Some(path) => Some(Place::of(path).map_err(no(format!("{path:?} cannot be kept from it")))?.0),
            None => None,
        };
        let scratch = match boundary.scratch {
            Some((path, bytes)) => {
                let (place, _) = Place::of(path).map_err(no(format!("no scratch directory at {path:?}")))?;
                Some(Scratch { place, options: text(format!("size={bytes},mode=0700")) })
            }
            None => None,
        };
        // SAFETY: takes nothing.
        let user = unsafe { libc::geteuid() };
        // SAFETY: takes nothing.
        let group = unsafe { libc::getegid() };
        let maps = [text(format!("{user} {user} 1\n")), text(format!("{group} {group} 1\n"))];
        Ok(Confinement { namespaces: boundary.namespaces, maps, writable, private, scratch, ruleset })
    }

    /// What the child's namespaces ask of clone(2).
    pub(in crate::sys) fn clone_flags(&self) -> libc::c_int {
        match self.namespaces {
            Namespaces::None => 0,
            Namespaces::Mount => libc::CLONE_NEWNS,
            Namespaces::UserAndMount => libc::CLONE_NEWNS | libc::CLONE_NEWUSER,
        }
    }
}

/// Whether this process acts as root.
pub(crate) fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The text holds numbers and words of ours.
fn text(text: String) -> CString {
    CString::new(text).unwrap_or_default()
}

/// A descriptor that only names what stands at a path.
fn open_path(path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the path ends in NUL.
    let fd = check(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC | flags) })?;
    // SAFETY: the call has just made it.
    unsafe { adopt(fd) }
}

/// A descriptor that names the directory at a canonical path. No link is followed on the way to it: whoever may write in
/// one of its parents could otherwise lead it elsewhere.
fn open_strictly(path: &Path) -> io::Result<OwnedFd> {
    let mut here = open_path(c"/", libc::O_DIRECTORY)?;
    for component in path.components() {
        let name = match component {
            Component::RootDir => continue,
            Component::Normal(name) => CString::new(name.as_bytes())?,
            _ => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
        };
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the name ends in NUL, and the directory is open.
        let fd = check(unsafe { libc::openat(here.as_raw_fd(), name.as_ptr(), flags) })?;
        // SAFETY: the call has just made it.
        here = unsafe { adopt(fd) }?;
    }
    Ok(here)
}

fn status(fd: &OwnedFd) -> io::Result<libc::stat> {
    let mut status = MaybeUninit::uninit();
    // SAFETY: `status` is writable.
    check(unsafe { libc::fstat(fd.as_raw_fd(), status.as_mut_ptr()) })?;
    // SAFETY: the call has initialised it.
    Ok(unsafe { status.assume_init() })
}

fn is_character_device(fd: &OwnedFd) -> bool {
    status(fd).is_ok_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFCHR)
}
