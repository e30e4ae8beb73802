//! What only Linux has: process descriptors, the process table under `/proc`, and walls round a child.

mod confine;
mod pidfd;
mod processes;

pub(crate) use confine::{Boundary, Confinement, LandlockRights, Namespaces, is_root, landlock_abi};
pub(crate) use pidfd::PidFd;
pub(in crate::sys) use pidfd::Told;
pub(crate) use processes::ProcessTable;
