//! What only Linux has: process descriptors, and the process table under `/proc`.

mod pidfd;
mod processes;

pub(crate) use pidfd::PidFd;
pub(crate) use processes::{ProcessEntry, ProcessTable};
