//! Floor 0, the platform: what the kernel offers, under one set of names, speaking `io::Result`.
//!
//! Nothing here imports another module of the crate, and (with `capi`) nothing else may be `unsafe`: these files are the
//! whole audit list. A facility is tried, and left on the errno that means "not here"; no version number is ever compared.
#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod unix;

#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(not(unix))]
compile_error!("shell-executor has no platform floor for this system yet: Unix only");
