//! The Unix floor: descriptors, waiting, signals and starting a process, over `libc`.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod entry;
mod exit;
pub(crate) mod facts;
pub(super) mod fd;
mod fs;
mod leader;
mod pipe;
mod poll;
mod signal;
mod spawn;
mod thread;
mod wait;
mod wake;

#[cfg(target_os = "linux")]
use super::linux::Told;
#[cfg(target_os = "linux")]
pub(crate) use super::linux::{
    Boundary, Confinement, LandlockRights, Namespaces, PidFd, ProcessTable, is_root, landlock_abi,
};
#[cfg(not(target_os = "linux"))]
use elsewhere::Told;
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Confinement, PidFd, ProcessTable};
pub(crate) use entry::ProcessEntry;
pub(crate) use exit::{at_exit, process_id};
pub(crate) use fd::{above_standard_streams, duplicate_std, open_null, read_spare, write_nonblocking};
pub(crate) use fs::{
    Dir, FileId, close, file_id, id_at, is_executable, open_regular, private_permissions, split_os_str,
    unlink_if_same,
};
pub(crate) use leader::Leader;
pub(crate) use pipe::{Pipe, grow as grow_pipe, input_pipe, output_pipe};
pub(crate) use poll::{Interest, PollSet};
pub(crate) use signal::{SIGCONT, SIGKILL, SIGTERM, is_ignored, signal_name};
#[cfg(target_os = "linux")]
pub(crate) use spawn::is_shortage;
pub(crate) use spawn::{Command, Gate, SpawnFailure, Stdio, Step, argument_limits, spawn};
pub(crate) use thread::spawn_thread;
pub(crate) use wait::{Exit, ResourceUse, Waited};
pub(crate) use wake::Wake;
