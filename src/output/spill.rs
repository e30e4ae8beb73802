//! Spill files: private, complete or absent, and gone with the service or with the host that made them.

use super::OutputStream;
use crate::sys::{self, Dir, FileId};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Directories with this name are swept once their owner is gone.
const PREFIX: &str = "shell-executor-";
/// Directories with this name are the user's to keep.
const KEPT_PREFIX: &str = "shell-executor.kept-";

/// The mount point among the files.
const SCRATCH: &str = "scratch";

/// Where a service puts its files: one directory under a root, made when the first file needs it.
#[derive(Debug)]
pub(crate) struct SpillDir {
    root: PathBuf,
    keep: bool,
    /// Guards the handle only. No file operation happens under it.
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    NotMade,
    Made(Arc<PrivateDir>),
    Disposed,
}

impl SpillDir {
    pub(crate) fn new(root: PathBuf, keep: bool) -> SpillDir {
        SpillDir { root, keep, state: Mutex::new(State::NotMade) }
    }

    /// Creates a file in the directory, and the directory if there is none, or none any more.
    fn create(&self, label: &str) -> io::Result<(File, PathBuf)> {
        self.again_if_gone(|dir| dir.create(label))
    }

    /// Makes something in the directory, in a new one if a cleaner has removed the old: the service may outlive that.
    fn again_if_gone<T>(&self, make: impl Fn(&PrivateDir) -> io::Result<T>) -> io::Result<T> {
        match make(&*self.dir()?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut state = self.lock();
                if matches!(*state, State::Made(_)) {
                    *state = State::NotMade;
                }
                drop(state);
                make(&*self.dir()?)
            }
            done => done,
        }
    }

    /// An empty directory for mounting something on, canonical: always the same, since each mount is in a namespace of its
    /// own. It is made when it is missing.
    pub(crate) fn mount_point(&self) -> io::Result<PathBuf> {
        let make = |dir: &PrivateDir| -> io::Result<PathBuf> {
            let path = dir.where_it_stands()?;
            match dir.held.make_directory(OsStr::new(SCRATCH)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            // Somebody may have put a link in its place, to have it mounted elsewhere.
            if !dir.held.has_directory(OsStr::new(SCRATCH))? {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            }
            Ok(path.join(SCRATCH))
        };
        self.again_if_gone(make)
    }

    /// The directory itself, canonical, made if there is none.
    pub(crate) fn path(&self) -> io::Result<PathBuf> {
        self.again_if_gone(PrivateDir::where_it_stands)
    }

    fn dir(&self) -> io::Result<Arc<PrivateDir>> {
        match &*self.lock() {
            State::Made(dir) => return Ok(Arc::clone(dir)),
            State::Disposed => return Err(io::Error::other("the service has been disposed of")),
            State::NotMade => {}
        }
        let made = PrivateDir::make(&self.root, if self.keep { KEPT_PREFIX } else { PREFIX })?;
        let mut state = self.lock();
        let dir = match &*state {
            // Another stream was first: its directory serves both.
            State::Made(dir) => Some(Arc::clone(dir)),
            State::Disposed => None,
            State::NotMade => {
                let dir = Arc::new(made);
                *state = State::Made(Arc::clone(&dir));
                return Ok(dir);
            }
        };
        drop(state);
        made.remove();
        dir.ok_or_else(|| io::Error::other("the service has been disposed of"))
    }

    /// Removes the directory with all its files, unless they are to be kept. No file can be made afterwards.
    pub(crate) fn dispose(&self) {
        let state = std::mem::replace(&mut *self.lock(), State::Disposed);
        match state {
            State::Made(dir) if self.keep => {
                // Not a file of anybody's. Missing, if nothing was ever mounted.
                let _ = dir.where_it_stands().and_then(|path| fs::remove_dir(path.join(SCRATCH)));
            }
            State::Made(dir) => dir.remove(),
            State::NotMade | State::Disposed => {}
        }
    }

    /// Removes what hosts have left that died: directories of this user under the same root whose lock nobody holds.
    pub(crate) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.root) else { return };
        for entry in entries.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                // A directory that cannot be looked at or removed is left: somebody else's, or a later start's.
                let _ = sweep_one(&entry.path());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sweep_one(path: &Path) -> io::Result<()> {
    let dir = Dir::open(path)?;
    if dir.is_private()? && dir.try_lock()? {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

/// A directory of mode 0700 with a random name. Its lock, held for as long as this process lives, says that it is in use.
#[derive(Debug)]
struct PrivateDir {
    path: PathBuf,
    held: Dir,
}

impl PrivateDir {
    fn make(root: &Path, prefix: &str) -> io::Result<PrivateDir> {
        /// A sweeper can take a directory between its creation and its locking. Not often.
        const TRIES: usize = 32;
        for _ in 0..TRIES {
            let mut builder = tempfile::Builder::new();
            builder.prefix(prefix).rand_bytes(12).permissions(sys::private_permissions());
            let path = builder.tempdir_in(root)?.keep();
            let held = match Dir::open(&path) {
                Ok(held) => held,
                // Taken already, as above; or the root is gone, which the next attempt says.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if !held.is_private()? {
                // Somebody who may write the root has exchanged the directory.
                return Err(io::Error::from(io::ErrorKind::PermissionDenied));
            }
            if held.try_lock()? && held.stands_at(&path).unwrap_or(false) {
                return Ok(PrivateDir { path, held });
            }
        }
        Err(io::Error::other("the spill directory was removed as soon as it was made"))
    }

    /// A new file with a random name, created through the held directory: nobody can lead it elsewhere.
    fn create(&self, label: &str) -> io::Result<(File, PathBuf)> {
        let make = |path: &Path| self.held.create(path.file_name().unwrap_or_else(|| OsStr::new("")));
        let mut builder = tempfile::Builder::new();
        let named = builder.prefix(label).rand_bytes(12).make_in(&self.path, make)?;
        named.keep().map_err(|error| error.error)
    }

    /// The canonical path, if the directory still stands there.
    ///
    /// # Errors
    ///
    /// `NotFound` when it does not: removed, or moved away with something else in its place.
    fn where_it_stands(&self) -> io::Result<PathBuf> {
        let path = self.path.canonicalize()?;
        if self.held.stands_at(&path)? { Ok(path) } else { Err(io::Error::from(io::ErrorKind::NotFound)) }
    }

    fn remove(&self) {
        // Removed by somebody else, or not removable: nothing is lost but space, and a later start sweeps it.
        let _ = self.where_it_stands().and_then(fs::remove_dir_all);
    }
}

/// What readers know of a spill file.
#[derive(Debug, Clone)]
pub(crate) struct SpillView {
    path: Arc<Path>,
    id: FileId,
    written: u64,
}

impl SpillView {
    /// The path, if the file still stands there, whole: not removed, exchanged or cut.
    pub(super) fn standing(&self) -> Option<PathBuf> {
        let (id, size) = sys::id_at(&self.path).ok()?;
        (id == self.id && size >= self.written).then(|| self.path.to_path_buf())
    }

    /// The stream's bytes from `from` up to `to`.
    pub(super) fn read(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut file = sys::open_regular(&self.path)?;
        if sys::file_id(&file)? != self.id {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        file.seek(SeekFrom::Start(from))?;
        let length = usize::try_from(to - from).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// The writing side of one spill file. Dropped before [`finish`](Spill::finish), it removes the file.
#[derive(Debug)]
pub(super) struct Spill {
    file: File,
    path: Arc<Path>,
    id: FileId,
    written: u64,
    cap: u64,
    keep: bool,
}

impl Spill {
    pub(super) fn create(dir: &SpillDir, channel: OutputStream, cap: u64) -> io::Result<Spill> {
        let label = match channel {
            OutputStream::Stdout => "stdout-",
            OutputStream::Stderr => "stderr-",
        };
        let (file, path) = dir.create(label)?;
        let id = sys::file_id(&file)?;
        Ok(Spill { file, path: path.into(), id, written: 0, cap, keep: false })
    }

    pub(super) fn append(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.written += chunk.len() as u64;
        if self.written > self.cap {
            return Err(io::Error::other(format!(
                "the stream is longer than the spill cap of {} bytes",
                self.cap
            )));
        }
        self.file.write_all(chunk)
    }

    pub(super) fn view(&self) -> SpillView {
        SpillView { path: Arc::clone(&self.path), id: self.id, written: self.written }
    }

    /// The stream is over, and the file is all of it. A file system may say only now that there was no room.
    pub(super) fn finish(mut self) -> io::Result<()> {
        sys::close(&self.file)?;
        self.keep = true;
        Ok(())
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if !self.keep {
            // Only our own file; one that stands there instead is not ours to remove.
            let _ = sys::unlink_if_same(&self.path, self.id);
        }
    }
}

/// A file of this service with content that a command reads, removed when dropped.
#[derive(Debug)]
pub(crate) struct PrivateFile {
    path: PathBuf,
    id: FileId,
}

impl PrivateFile {
    pub(crate) fn create(dir: &SpillDir, label: &str, content: &[u8]) -> io::Result<PrivateFile> {
        let (mut file, path) = dir.create(label)?;
        let private = PrivateFile { path, id: sys::file_id(&file)? };
        file.write_all(content)?;
        Ok(private)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        let _ = sys::unlink_if_same(&self.path, self.id);
    }
}

/// A directory of this service, removed with all that is in it when dropped.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    pub(crate) fn create(dir: &SpillDir, label: &str) -> io::Result<PrivateFolder> {
        let make = |dir: &PrivateDir| {
            let here = dir.where_it_stands()?;
            let make =
                |path: &Path| dir.held.make_directory(path.file_name().unwrap_or_else(|| OsStr::new("")));
            let made = tempfile::Builder::new().prefix(label).rand_bytes(12).make_in(here, make)?;
            // It would be removed as a file.
            made.into_temp_path().keep().map_err(|error| error.error)
        };
        Ok(PrivateFolder { path: dir.again_if_gone(make)? })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What cannot be removed goes with the service's directory.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    // O6, S9: whoever may write in the root can move the directory away and leave a link; nothing is made behind that
    #[test]
    fn nothing_is_made_or_removed_behind_a_link() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let kept = elsewhere.path().join("kept");
        fs::create_dir_all(kept.join(SCRATCH)).unwrap();
        let dir = SpillDir::new(root.path().to_owned(), false);
        let first = dir.mount_point().unwrap();
        let private = first.parent().unwrap().to_owned();
        fs::remove_dir(&first).unwrap();
        std::os::unix::fs::symlink(&kept, &first).unwrap();
        let second = dir.mount_point().unwrap();
        assert_ne!(second, first, "a link is no mount point, so there is another directory");

        let private_now = second.parent().unwrap().to_owned();
        fs::rename(&private_now, root.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &private_now).unwrap();
        let third = dir.mount_point().unwrap();
        assert!(third.starts_with(root.path().canonicalize().unwrap()) && third != second);
        let folder = PrivateFolder::create(&dir, "probe-").unwrap();
        assert!(folder.path().starts_with(third.parent().unwrap()));
        let last = dir.path().unwrap();
        fs::rename(&last, root.path().join("moved-too")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &last).unwrap();
        drop(folder);
        dir.dispose();
        assert!(kept.join(SCRATCH).exists() && private.exists());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    }

    // O8: a sweeper can come between any two steps of making a directory, and never takes one that was made
    #[test]
    fn directories_are_made_while_others_sweep() {
        let root = tempfile::tempdir().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let sweeper = SpillDir::new(root.path().to_owned(), false);
                    while !over.load(Ordering::SeqCst) {
                        sweeper.sweep();
                    }
                });
            }
            let makers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..100).try_for_each(|_| {
                            let dir = SpillDir::new(root.path().to_owned(), false);
                            let folder = PrivateFolder::create(&dir, "probe-")?;
                            let stands = fs::create_dir(folder.path().join("inside"));
                            dir.dispose();
                            stands
                        })
                    })
                })
                .collect();
            let made: Vec<io::Result<()>> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
            over.store(true, Ordering::SeqCst);
            made.into_iter().for_each(|made| made.unwrap());
        });
    }
}
