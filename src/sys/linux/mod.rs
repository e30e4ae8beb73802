//! What only Linux has: process descriptors, and the process table under `/proc`.

mod pidfd;
mod processes;

pub(crate) use pidfd::PidFd;
pub(in crate::sys) use pidfd::Told;
pub(crate) use processes::ProcessTable;
