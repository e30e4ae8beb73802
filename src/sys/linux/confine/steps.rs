//! The child half of confining: system calls in a fixed order, no allocation, no lock, no panic.
//!
//! It runs between `clone` and `execve`, in the host's memory; see `spawn/child.rs` for what that allows.

use super::{Confinement, MOST_WRITABLE, Namespaces, Place, Scratch};
use crate::sys::Step;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

// Of the kernel's `uapi/linux/mount.h`, `openat2.h` and `fcntl.h`.
const OPEN_TREE_CLONE: libc::c_uint = 1;
const OPEN_TREE_CLOEXEC: libc::c_uint = libc::O_CLOEXEC as libc::c_uint;
const AT_EMPTY_PATH: libc::c_uint = 0x1000;
const AT_RECURSIVE: libc::c_uint = 0x8000;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 0x04;
const MOVE_MOUNT_T_EMPTY_PATH: libc::c_uint = 0x40;
const MOUNT_ATTR_RDONLY: u64 = 0x01;
const MOUNT_ATTR_NODEV: u64 = 0x04;
const RESOLVE_NO_SYMLINKS: u64 = 0x04;

/// The capabilities that would lead out again: through mounts, handles, raw devices, the kernel's own memory, other
/// processes. Of the kernel's `uapi/linux/capability.h`.
const KEYS: [u32; 13] = [
    2,  // DAC_READ_SEARCH: opening by handle, past every mount
    16, // SYS_MODULE
    17, // SYS_RAWIO
    19, // SYS_PTRACE
    20, // SYS_PACCT: has the kernel write to a file
    21, // SYS_ADMIN: mounting and remounting
    22, // SYS_BOOT
    27, // MKNOD
    32, // MAC_OVERRIDE
    33, // MAC_ADMIN
    38, // PERFMON
    39, // BPF
    40, // CHECKPOINT_RESTORE
];

/// A step that failed: its errno stands, and for a writable directory its place in the list.
pub(in crate::sys) type Failed = (Step, usize);

struct MountAttr {
    set: u64,
    propagation: u64,
}

impl Confinement {
    /// The first wall. Comes before the working directory is entered, so that it is one behind the wall.
    pub(in crate::sys) fn enter(&self) -> Result<(), Failed> {
        if self.namespaces == Namespaces::None {
            return Ok(());
        }
        if self.namespaces == Namespaces::UserAndMount && !self.map_ourselves() {
            return Err((Step::Identity, 0));
        }
        // Nothing that is mounted outside from now on appears here, and the other way round.
        let private = MountAttr { set: 0, propagation: libc::MS_PRIVATE };
        if !set_attributes(libc::AT_FDCWD, c"/", AT_RECURSIVE, &private) {
            return Err((Step::ReadOnly, 0));
        }
        // Copies of the writable trees, taken before they become read-only, so that each mount in them keeps what it was.
        let mut trees = [(-1, -1); MOST_WRITABLE];
        for (index, (writable, place)) in self.writable.iter().zip(&mut trees).enumerate() {
            *place = writable.copy(AT_RECURSIVE, MOUNT_ATTR_NODEV).ok_or((Step::Writable, index))?;
        }
        let read_only = MountAttr { set: MOUNT_ATTR_RDONLY, propagation: 0 };
        if !set_attributes(libc::AT_FDCWD, c"/", AT_RECURSIVE, &read_only) {
            return Err((Step::ReadOnly, 0));
        }
        for (index, &(tree, place)) in trees.iter().take(self.writable.len()).enumerate() {
            if !move_mount(tree, place) {
                return Err((Step::Writable, index));
            }
        }
        if let Some(private) = &self.private {
            // Looked for now, so that it is taken from the trees that were moved: what lies on it lies on the copy.
            let copy = private.copy(0, MOUNT_ATTR_RDONLY);
            if !copy.is_some_and(|(tree, place)| move_mount(tree, place)) {
                return Err((Step::Writable, self.writable.len()));
            }
        }
        if let Some(scratch) = &self.scratch {
            if !scratch.mount(self) {
                return Err((Step::Scratch, 0));
            }
        }
        self.terminals_of_its_own();
        Ok(())
    }

    /// The second wall, which also keeps the first from being taken down.
    pub(in crate::sys) fn seal(&self) -> Result<(), Failed> {
        if !give_up_keys() || !set(libc::PR_SET_NO_NEW_PRIVS, 1) {
            return Err((Step::Privileges, 0));
        }
        if self.ruleset.restrict_self() { Ok(()) } else { Err((Step::Ruleset, 0)) }
    }

    /// Makes this user and group the ones of the new user namespace. A group can be mapped by its owner only once he may no
    /// longer drop groups (user_namespaces(7)).
    fn map_ourselves(&self) -> bool {
        // Missing before Linux 3.19, where nothing has to be forbidden.
        write(c"/proc/self/setgroups", c"deny")
            && write(c"/proc/self/uid_map", &self.maps[0])
            && write(c"/proc/self/gid_map", &self.maps[1])
    }

    /// A `/dev/pts` with no terminal of the host's in it, so that whoever makes one can use it. Where there is no such
    /// directory, or it cannot be had, there are no terminals to be made; nothing else depends on it.
    fn terminals_of_its_own(&self) {
        let kind = c"devpts".as_ptr();
        let options = c"newinstance,ptmxmode=0666,mode=0620";
        let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
        // SAFETY: the texts end in NUL.
        if unsafe { libc::mount(kind, c"/dev/pts".as_ptr(), kind, flags, options.as_ptr().cast()) } == 0 {
            let terminals = open_directory(c"/dev/pts");
            if terminals >= 0 {
                self.ruleset.add_device(terminals);
            }
        }
    }
}

impl Place {
    /// The place itself, closed by exec. `None` when it is not what it was, or cannot be had.
    fn open(&self) -> Option<RawFd> {
        let how = [(libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as u64, 0, RESOLVE_NO_SYMLINKS];
        let size = size_of_val(&how);
        // SAFETY: the path ends in NUL, and the three words are the kernel's `struct open_how`.
        let place = unsafe {
            libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, self.path.as_ptr(), how.as_ptr(), size)
        };
        let place = RawFd::try_from(place).ok().filter(|&fd| fd >= 0)?;
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: `status` is writable.
        if unsafe { libc::fstat(place, status.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: the call has initialised it.
        let status = unsafe { status.assume_init() };
        if (status.st_dev, status.st_ino) != (self.device, self.inode) {
            set_errno(libc::ESTALE);
            return None;
        }
        Some(place)
    }

    /// A copy of the mount that stands there, or (`AT_RECURSIVE`) of the tree of mounts, with these attributes besides its
    /// own; and the place itself.
    fn copy(&self, depth: libc::c_uint, attributes: u64) -> Option<(RawFd, RawFd)> {
        let place = self.open()?;
        let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | depth;
        // SAFETY: the path is empty and ends in NUL; the rest are integers.
        let tree = unsafe { libc::syscall(libc::SYS_open_tree, place, c"".as_ptr(), flags) };
        let tree = RawFd::try_from(tree).ok().filter(|&fd| fd >= 0)?;
        let attr = MountAttr { set: attributes, propagation: 0 };
        set_attributes(tree, c"", AT_EMPTY_PATH | depth, &attr).then_some((tree, place))
    }
}

impl Scratch {
    /// Entered first, so that it is mounted on what was opened and on nothing that has taken its place; the working
    /// directory is entered afterwards.
    fn mount(&self, confinement: &Confinement) -> bool {
        let Some(place) = self.place.open() else { return false };
        // SAFETY: takes an integer.
        if unsafe { libc::fchdir(place) } != 0 {
            return false;
        }
        let kind = c"tmpfs".as_ptr();
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        // SAFETY: the texts end in NUL.
        if unsafe { libc::mount(kind, c".".as_ptr(), kind, flags, self.options.as_ptr().cast()) } != 0 {
            return false;
        }
        let root = open_directory(&self.place.path);
        root >= 0 && confinement.ruleset.add_beneath(root)
    }
}

/// Takes away, from what this task has and could ever get, the capabilities that lead out. A user without any has none to
/// give up.
fn give_up_keys() -> bool {
    // Version 3 of the kernel's structures: two words each of effective, permitted and inheritable ones.
    const VERSION: u32 = 0x2008_0522;
    let mut header = [VERSION, 0];
    let mut sets = [[0_u32; 3]; 2];
    // SAFETY: header and sets are as the kernel has them.
    if unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) } != 0 {
        return false;
    }
    for key in KEYS {
        for set in &mut sets[key as usize / 32] {
            *set &= !(1 << (key % 32));
        }
        // Fails for who may not, and for one that this kernel does not know. With `no_new_privs` no program gives more than
        // was there.
        set(libc::PR_CAPBSET_DROP, key.into());
    }
    header = [VERSION, 0];
    // SAFETY: header and sets are as the kernel has them.
    unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()) == 0 }
}

fn set(option: libc::c_int, value: libc::c_ulong) -> bool {
    let none: libc::c_ulong = 0;
    // SAFETY: integers only, of the width that the kernel reads.
    unsafe { libc::prctl(option, value, none, none, none) == 0 }
}

fn set_attributes(place: RawFd, path: &CStr, flags: libc::c_uint, attr: &MountAttr) -> bool {
    // The kernel's `struct mount_attr`: set, clear, propagation, user namespace.
    let words = [attr.set, 0, attr.propagation, 0];
    let size = size_of_val(&words);
    // SAFETY: the path ends in NUL, and the words are readable for their size.
    unsafe { libc::syscall(libc::SYS_mount_setattr, place, path.as_ptr(), flags, words.as_ptr(), size) == 0 }
}

fn move_mount(tree: RawFd, place: RawFd) -> bool {
    let (empty, flags) = (c"".as_ptr(), MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    // SAFETY: the paths are empty and end in NUL; the rest are integers.
    unsafe { libc::syscall(libc::SYS_move_mount, tree, empty, place, empty, flags) == 0 }
}

/// -1 when there is none. Closed by exec.
fn open_directory(path: &CStr) -> RawFd {
    // SAFETY: the path ends in NUL.
    unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) }
}

fn write(path: &CStr, text: &CStr) -> bool {
    // SAFETY: the path ends in NUL.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return false;
    }
    let bytes = text.to_bytes();
    // SAFETY: the bytes are readable for their length. The kernel takes a map whole or not at all.
    let written = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
    let errno = errno();
    // A file that is open for writing keeps its mount from becoming read-only (EBUSY).
    // SAFETY: the descriptor was made above, and is not used again.
    unsafe { libc::close(file) };
    set_errno(errno);
    usize::try_from(written) == Ok(bytes.len())
}

fn errno() -> libc::c_int {
    // SAFETY: takes nothing.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the place is the standing thread's, which does not use it now.
    unsafe { *place }
}

fn set_errno(errno: libc::c_int) {
    // SAFETY: takes nothing.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the place is the standing thread's, which does not use it now.
    unsafe { *place = errno };
}
