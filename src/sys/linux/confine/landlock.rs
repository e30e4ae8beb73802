//! Landlock: the rights to change files that this kernel's interface knows, and a ruleset that grants them beneath a place.

use crate::sys::unix::fd::{adopt, check};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

// Of the kernel's `uapi/linux/landlock.h`.
const CREATE_RULESET_VERSION: libc::c_uint = 1;
const RULE_PATH_BENEATH: libc::c_int = 1;
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

/// Which version of Landlock's interface the kernel speaks (since Linux 5.13).
///
/// # Errors
///
/// `ENOSYS` from an older kernel, `EOPNOTSUPP` from one that has it switched off.
pub(crate) fn landlock_abi() -> io::Result<u32> {
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the call takes a null structure of no bytes, and makes no ruleset.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, CREATE_RULESET_VERSION) };
    let version = check(i32::try_from(version).unwrap_or(-1))?;
    u32::try_from(version).map_err(io::Error::other)
}

/// The rights to change files, as one version of the interface knows them. Reading and executing are never restricted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LandlockRights {
    /// What is forbidden everywhere unless a rule grants it.
    handled: u64,
}

impl LandlockRights {
    pub(crate) fn of(abi: u32) -> LandlockRights {
        let mut handled = WRITE_FILE
            | REMOVE_DIR
            | REMOVE_FILE
            | MAKE_CHAR
            | MAKE_DIR
            | MAKE_REG
            | MAKE_SOCK
            | MAKE_FIFO
            | MAKE_BLOCK
            | MAKE_SYM;
        // Without it, linking and renaming from one directory into another is forbidden everywhere.
        if abi >= 2 {
            handled |= REFER;
        }
        if abi >= 3 {
            handled |= TRUNCATE;
        }
        if abi >= 5 {
            handled |= IOCTL_DEV;
        }
        LandlockRights { handled }
    }

    /// Whether truncating by path is governed, which changes a file without opening it for writing (since Linux 6.2).
    pub(crate) fn governs_truncation(self) -> bool {
        self.handled & TRUNCATE != 0
    }

    /// Whether commands to devices are governed (since Linux 6.10).
    pub(crate) fn governs_devices(self) -> bool {
        self.handled & IOCTL_DEV != 0
    }

    /// What a writable directory grants: everything but making device nodes and commanding devices.
    fn beneath_directory(self) -> u64 {
        self.handled & !(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
    }

    /// What a device grants, or a directory of devices.
    fn of_device(self) -> u64 {
        self.handled & (WRITE_FILE | TRUNCATE | IOCTL_DEV)
    }
}

/// A set of rules, in force for whoever restricts himself by it.
#[derive(Debug)]
pub(super) struct Ruleset {
    fd: OwnedFd,
    rights: LandlockRights,
}

/// The kernel's `struct landlock_path_beneath_attr`, which is packed.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

impl Ruleset {
    pub(super) fn new(rights: LandlockRights) -> io::Result<Ruleset> {
        // The structure's first version: one word, the file rights. Later fields are absent, and so not restricted.
        let attr = rights.handled;
        // SAFETY: the word is readable for its size.
        let fd = unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attr, size_of_val(&attr), 0)
        };
        let fd = check(i32::try_from(fd).unwrap_or(-1))?;
        // SAFETY: the call has just made it, close-on-exec.
        Ok(Ruleset { fd: unsafe { adopt(fd) }?, rights })
    }

    pub(super) fn allow_beneath(&self, directory: BorrowedFd<'_>) -> io::Result<()> {
        self.allow(self.rights.beneath_directory(), directory.as_raw_fd())
    }

    pub(super) fn allow_device(&self, device: BorrowedFd<'_>) -> io::Result<()> {
        self.allow(self.rights.of_device(), device.as_raw_fd())
    }

    fn allow(&self, rights: u64, place: RawFd) -> io::Result<()> {
        if self.add(rights, place) { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// For the child half: one system call, whose errno stays.
    pub(super) fn add_beneath(&self, directory: RawFd) -> bool {
        self.add(self.rights.beneath_directory(), directory)
    }

    /// For the child half.
    pub(super) fn add_device(&self, device: RawFd) -> bool {
        self.add(self.rights.of_device(), device)
    }

    fn add(&self, allowed: u64, parent: RawFd) -> bool {
        let rule = PathBeneath { allowed, parent };
        let ruleset = self.fd.as_raw_fd();
        // SAFETY: the structure is as the kernel has it, and readable; a wrong descriptor is refused.
        unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &raw const rule, 0) == 0
        }
    }

    /// For the child half: from now on the rules hold for this task and whatever it starts. Needs `no_new_privs`.
    pub(super) fn restrict_self(&self) -> bool {
        // SAFETY: integers only.
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.fd.as_raw_fd(), 0) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4, case 92
    #[test]
    fn an_older_interface_governs_less() {
        let governed = |abi| {
            let rights = LandlockRights::of(abi);
            (rights.governs_truncation(), rights.governs_devices())
        };
        assert_eq!(governed(1), (false, false));
        assert_eq!(governed(2), (false, false));
        assert_eq!(governed(3), (true, false));
        assert_eq!(governed(4), (true, false));
        assert_eq!(governed(5), (true, true));
        assert_eq!(governed(99), (true, true));
    }

    // S1: a device node would be a way to the disk behind it
    #[test]
    fn a_writable_directory_grants_no_device_nodes() {
        let rights = LandlockRights::of(5);
        assert_eq!(rights.beneath_directory() & (MAKE_CHAR | MAKE_BLOCK), 0);
        assert_eq!(rights.handled & (MAKE_CHAR | MAKE_BLOCK), MAKE_CHAR | MAKE_BLOCK);
        assert_eq!(rights.of_device() & !(WRITE_FILE | TRUNCATE | IOCTL_DEV), 0);
    }
}
