//! What a Unix without Linux's process descriptors and `/proc` answers under the same names: that it has none.

use super::ProcessEntry;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A process descriptor; there are none here, so no value of this type exists.
#[derive(Debug)]
pub(crate) enum PidFd {}

/// What a process descriptor tells of a process that has been reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "nobody tells here")]
pub(in crate::sys) enum Told {
    Status(i32),
    NotYet,
    Never,
}

impl PidFd {
    pub(crate) fn open(_pid: i32) -> io::Result<PidFd> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(crate) fn is_shortage(_error: &io::Error) -> bool {
        false
    }

    pub(crate) fn is_no_process(_error: &io::Error) -> bool {
        false
    }

    pub(crate) fn signal(&self, _signal: i32) -> io::Result<()> {
        match *self {}
    }

    pub(in crate::sys) fn signal_group(&self, _signal: i32) -> io::Result<()> {
        match *self {}
    }

    pub(in crate::sys) fn status_after_reap(&self) -> Told {
        match *self {}
    }

    pub(crate) fn kill_raw(_raw: i32) {}
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

/// What a child puts round itself; there is nothing here, so no value of this type exists.
#[derive(Debug)]
pub(crate) enum Confinement {}

/// The process table, which is not read here: a range is its process group.
#[derive(Debug)]
pub(crate) enum ProcessTable {}

impl ProcessTable {
    pub(crate) fn is_there() -> bool {
        false
    }

    pub(crate) fn read() -> io::Result<ProcessTable> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(crate) fn read_since(_pid: i32, _age: Duration) -> io::Result<Option<ProcessTable>> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(crate) fn entries(&self) -> &[ProcessEntry] {
        match *self {}
    }

    pub(crate) fn look(_pid: i32) -> io::Result<Option<ProcessEntry>> {
        Ok(None)
    }

    pub(crate) fn is_thread(_pid: i32) -> io::Result<bool> {
        Ok(false)
    }

    pub(crate) fn environment_contains(_entry: &ProcessEntry, _name: &str, _text: &str) -> io::Result<bool> {
        Ok(false)
    }
}
