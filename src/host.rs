//! Host facts: what this machine offers to a library that runs commands, as `shx doctor` shows it.

use crate::error;
use crate::process::candidates;
use crate::result::Containment;
use crate::sys;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What this machine offers, as this user sees it.
///
/// A snapshot for people and their reports. Nothing in the library decides by it: each facility is tried where it is
/// needed.
///
/// ```
/// use shell_executor::HostFacts;
///
/// let facts = HostFacts::probe();
/// let bash = facts.shells.iter().find(|shell| shell.name == "bash");
/// assert!(bash.is_some_and(|bash| bash.path.is_some()));
/// println!("pidfd_open: {}", facts.kernel.pidfd_open);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostFacts {
    /// Shells, found or not: `bash` and `pwsh`, which executors run, and `sh`.
    pub shells: Vec<HostProgram>,
    /// The programs that sandbox backends use, found or not: `bwrap`.
    pub sandbox_programs: Vec<HostProgram>,
    /// By which means what a command starts is held together.
    pub containment: Containment,
    /// Why by these.
    pub containment_reason: String,
    /// Facilities of the kernel.
    pub kernel: KernelFacts,
    /// What this process may use.
    pub limits: HostLimits,
    /// The temp directory, where private directories for spill files are made by default.
    pub temp_dir: PathBuf,
    /// Whether a private directory can be made in it.
    pub private_temp: Facility,
}

/// A program that was looked for on this process's `PATH`, in its absolute directories.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostProgram {
    /// Its name.
    pub name: &'static str,
    /// Where it was found first; `None` for nowhere.
    pub path: Option<PathBuf>,
}

/// Whether something can be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Facility {
    /// It was tried, and it works.
    Available,
    /// It was tried, and it does not.
    Unavailable {
        /// What the system said.
        reason: String,
    },
}

/// Facilities of the kernel, each tried: behind a filter one can be missing that the kernel has. Elsewhere than on Linux
/// all are unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelFacts {
    /// Naming a process by a descriptor (since Linux 5.3). Without it, a range's processes are named by their numbers.
    pub pidfd_open: Facility,
    /// Signalling a process group through the descriptor of its leader (since Linux 6.9).
    pub pidfd_group_signal: Facility,
    /// Asking a descriptor how a process ended that somebody else has reaped (since Linux 6.15). Without it, such a status
    /// is lost.
    pub pidfd_exit_info: Facility,
    /// Making a process by clone3(2) (since Linux 5.3).
    pub clone3: Facility,
    /// Closing all descriptors at one stroke (since Linux 5.9).
    pub close_range: Facility,
    /// The version of Landlock's interface (since Linux 5.13); `None` without Landlock.
    pub landlock_abi: Option<u32>,
    /// Making a user namespace as this user. What may be done in it is another question.
    pub user_namespaces: Facility,
}

/// One limit, in pieces of what it limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostLimit {
    /// What is in force; `None` for no limit.
    pub soft: Option<u64>,
    /// How far this process may raise it; `None` for no limit.
    pub hard: Option<u64>,
}

/// What this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostLimits {
    /// Open descriptors: each live execution takes about five. `None` where the system does not tell.
    pub open_files: Option<HostLimit>,
    /// Processes and threads of this user. `None` where the system does not tell.
    pub processes: Option<HostLimit>,
    /// Bytes of one argument or variable, its NUL included; `None` where only all together are limited.
    pub one_argument: Option<u64>,
    /// Bytes of all arguments and variables together; `None` where the system does not tell.
    pub all_arguments: Option<u64>,
    /// Pages of memory in this user's pipes above which new pipes are small; `None` where the system does not tell, 0 for
    /// no limit.
    pub user_pipe_pages_soft: Option<u64>,
}

impl HostFacts {
    /// Looks and tries. It takes some milliseconds, starts two processes that end at once, makes one directory that it
    /// removes, and leaves nothing.
    ///
    /// What cannot be found out is told as missing: this never fails.
    #[must_use]
    pub fn probe() -> HostFacts {
        let (containment, containment_reason) = containment();
        let temp_dir = std::env::temp_dir();
        HostFacts {
            shells: ["bash", "sh", "pwsh"].map(HostProgram::find).into(),
            sandbox_programs: vec![HostProgram::find("bwrap")],
            containment,
            containment_reason,
            kernel: KernelFacts::probe(),
            limits: HostLimits::ask(),
            private_temp: private_directory(&temp_dir).into(),
            temp_dir,
        }
    }
}

impl HostProgram {
    fn find(name: &'static str) -> HostProgram {
        let search =
            std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
        let found = candidates(OsStr::new(name), search).into_iter();
        HostProgram { name, path: found.into_iter().find(|path| sys::is_executable(path).is_ok()) }
    }
}

impl KernelFacts {
    fn probe() -> KernelFacts {
        KernelFacts {
            pidfd_open: sys::facts::pidfd_open().into(),
            pidfd_group_signal: sys::facts::pidfd_group_signal().into(),
            pidfd_exit_info: sys::facts::pidfd_exit_info().into(),
            clone3: sys::facts::clone3().into(),
            close_range: sys::facts::close_range().into(),
            landlock_abi: sys::facts::landlock_abi().ok(),
            user_namespaces: sys::facts::user_namespace().into(),
        }
    }
}

impl HostLimits {
    fn ask() -> HostLimits {
        let limit =
            |limit: io::Result<sys::facts::Limit>| limit.ok().map(|(soft, hard)| HostLimit { soft, hard });
        let bytes = |bytes: Option<usize>| bytes.and_then(|bytes| u64::try_from(bytes).ok());
        let (one, all) = sys::argument_limits();
        HostLimits {
            open_files: limit(sys::facts::open_files_limit()),
            processes: limit(sys::facts::processes_limit()),
            one_argument: bytes(one),
            all_arguments: bytes(all),
            user_pipe_pages_soft: sys::facts::user_pipe_pages_soft(),
        }
    }
}

impl Facility {
    /// Whether it can be used.
    #[must_use]
    pub fn is_available(&self) -> bool {
        *self == Facility::Available
    }
}

impl fmt::Display for Facility {
    /// `yes`, or `no` and the reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Facility::Available => f.write_str("yes"),
            Facility::Unavailable { reason } => write!(f, "no ({reason})"),
        }
    }
}

impl From<io::Result<()>> for Facility {
    fn from(tried: io::Result<()>) -> Facility {
        match tried {
            Ok(()) => Facility::Available,
            Err(error) => Facility::Unavailable { reason: error::reason(&error) },
        }
    }
}

fn containment() -> (Containment, String) {
    match sys::ProcessTable::read() {
        Ok(_) => (Containment::Session, "the process table can be read".to_owned()),
        Err(error) => (
            Containment::ProcessGroup,
            format!("the process table cannot be read: {}", error::reason(&error)),
        ),
    }
}

/// Makes a private directory as the service does, and removes it.
fn private_directory(root: &Path) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix("shell-executor.probe-").permissions(sys::private_permissions());
    let made = made.tempdir_in(root)?;
    if !sys::Dir::open(made.path())?.is_private()? {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    made.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    // L5
    #[test]
    fn a_probe_leaves_no_descriptor_and_no_child() {
        // Other tests of this process open descriptors too, so the numbers are compared as often as it takes to find one
        // moment of quiet. Children are counted by the thread that made them.
        let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let quiet = (0..1000).any(|_| {
            let before = open();
            let _ = HostFacts::probe();
            open() == before
        });
        assert!(quiet);
        let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        assert_eq!(children, "");
    }

    // L5
    #[test]
    fn what_is_missing_says_why() {
        let missing = Facility::from(Err(io::Error::from_raw_os_error(38)));
        assert!(!missing.is_available());
        assert_eq!(missing.to_string(), "no (function not implemented)");
        assert_eq!(Facility::from(Ok(())).to_string(), "yes");
        let nowhere = private_directory(Path::new("/nonexistent"));
        assert!(!Facility::from(nowhere).is_available());
    }

    // L5
    #[test]
    fn a_shell_is_found_and_a_phantom_is_not() {
        let shell = HostProgram::find("sh").path;
        assert!(shell.is_some_and(|path| path.is_absolute()));
        assert_eq!(HostProgram::find("no-such-program-anywhere").path, None);
    }
}
