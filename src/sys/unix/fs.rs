//! Files that nobody else may plant, swap or read: exclusive creation below a held directory, and identities to compare.

use super::fd::{adopt, check};
use std::ffi::{CString, OsStr};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

/// Which file it is, whatever its name: the device and the inode, and, since a removed file's inode is soon another's, the
/// time of its making where the file system keeps one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
    made: Option<SystemTime>,
}

impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> FileId {
        FileId { device: metadata.dev(), inode: metadata.ino(), made: metadata.created().ok() }
    }
}

/// A directory held open, so that what is done in it is done in it and nowhere else.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

impl Dir {
    /// Opens a directory that is one itself, not a symbolic link to one.
    pub(crate) fn open(path: &Path) -> io::Result<Dir> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        Ok(Dir(super::fd::lift(file.into())?))
    }

    /// Whether it belongs to the user this process acts as, and nobody else can write it.
    pub(crate) fn is_private(&self) -> io::Result<bool> {
        // SAFETY: geteuid takes nothing and cannot fail.
        let us = unsafe { libc::geteuid() };
        let metadata = self.metadata()?;
        Ok(metadata.uid() == us && metadata.mode() & 0o022 == 0)
    }

    /// Whether it still stands at `path`.
    pub(crate) fn stands_at(&self, path: &Path) -> io::Result<bool> {
        Ok(FileId::from(&std::fs::symlink_metadata(path)?) == FileId::from(&self.metadata()?))
    }

    fn metadata(&self) -> io::Result<Metadata> {
        File::from(self.0.try_clone()?).metadata()
    }

    /// Takes the exclusive lock on the directory if it is free. It is held until every copy of the descriptor is closed,
    /// which the kernel does for a process that dies.
    pub(crate) fn try_lock(&self) -> io::Result<bool> {
        // SAFETY: flock takes no pointer, and the descriptor is open.
        match check(unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates the file `name` in it: mode 0600 whatever the umask, and an error if anything, a dangling symbolic link
    /// included, has that name already.
    pub(crate) fn create(&self, name: &OsStr) -> io::Result<File> {
        let name = CString::new(name.as_bytes())?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let mode: libc::c_uint = 0o600;
        // SAFETY: `name` ends in NUL and lives through the call; the directory is open.
        let raw = check(unsafe { libc::openat(self.0.as_raw_fd(), name.as_ptr(), flags, mode) })?;
        // SAFETY: the call above made the number.
        Ok(File::from(unsafe { adopt(raw) }?))
    }
}

impl Dir {
    /// Makes the directory `name` in it, of mode 0700 less the umask, and an error if anything has that name already.
    pub(crate) fn make_directory(&self, name: &OsStr) -> io::Result<()> {
        let name = CString::new(name.as_bytes())?;
        // SAFETY: `name` ends in NUL and lives through the call; the directory is open.
        check(unsafe { libc::mkdirat(self.0.as_raw_fd(), name.as_ptr(), 0o700) }).map(drop)
    }

    /// Whether `name` in it is a directory itself, not a symbolic link to one.
    pub(crate) fn has_directory(&self, name: &OsStr) -> io::Result<bool> {
        let name = CString::new(name.as_bytes())?;
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: `name` ends in NUL and lives through the call; the directory is open.
        match check(unsafe { libc::openat(self.0.as_raw_fd(), name.as_ptr(), flags) }) {
            // SAFETY: the call above made the number.
            Ok(raw) => unsafe { adopt(raw) }.map(|_| true),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Opens an existing regular file for reading, never through a symbolic link, never blocking on a FIFO put in its place.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::from(io::ErrorKind::InvalidInput)) }
}

/// The identity of an open file.
pub(crate) fn file_id(file: &File) -> io::Result<FileId> {
    Ok(FileId::from(&file.metadata()?))
}

/// The identity and size of the regular file that stands at `path` itself, a link not followed.
pub(crate) fn id_at(path: &Path) -> io::Result<(FileId, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    if metadata.is_file() {
        Ok((FileId::from(&metadata), metadata.len()))
    } else {
        Err(io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Removes `path` if it still is the file `id`; what somebody else put in its place is left alone.
pub(crate) fn unlink_if_same(path: &Path, id: FileId) -> io::Result<()> {
    if id_at(path)?.0 == id {
        std::fs::remove_file(path)
    } else {
        Err(io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Splits a text at a byte. On Unix any byte will do.
pub(crate) fn split_os_str(text: &OsStr, at: usize) -> (&OsStr, &OsStr) {
    let (before, after) = text.as_bytes().split_at(at);
    (OsStr::from_bytes(before), OsStr::from_bytes(after))
}

/// The permissions of a directory that only its owner may enter.
pub(crate) fn private_permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o700)
}

/// Closes a file where a late write error can be seen: on a copy, since only the first close of a network file reports it.
pub(crate) fn close(file: &File) -> io::Result<()> {
    let copy = OwnedFd::from(file.try_clone()?);
    let raw = std::os::fd::IntoRawFd::into_raw_fd(copy);
    // SAFETY: the number was ours alone, and is not used again.
    check(unsafe { libc::close(raw) }).map(drop)
}

/// Whether `path` is a file that this process may execute.
///
/// # Errors
///
/// The errno that says why not: ENOENT, ENOTDIR, EACCES (a directory counts as that).
pub(crate) fn is_executable(path: &Path) -> io::Result<()> {
    let text = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `text` ends in NUL and lives through the call.
    check(unsafe { libc::access(text.as_ptr(), libc::X_OK) })?;
    if std::fs::metadata(path)?.is_file() { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EACCES)) }
}
