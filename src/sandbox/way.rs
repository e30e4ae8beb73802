//! The ways in which a backend can confine here: the one place that says which of them a system has.

use super::SandboxBackend;
use super::provider::{Confined, Rules, SandboxPlan};
#[cfg(target_os = "macos")]
use super::seatbelt;
#[cfg(target_os = "linux")]
use super::{bwrap, native};
use crate::error::Error;
#[cfg(target_os = "linux")]
use crate::sys::{self, Namespaces};
use std::path::Path;

/// One way to confine, ready to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// What the child does itself.
    #[cfg(target_os = "linux")]
    Walls(Namespaces),
    #[cfg(target_os = "linux")]
    Bwrap(std::path::PathBuf),
    #[cfg(target_os = "macos")]
    Seatbelt,
}

impl Way {
    /// The ways of a backend, the best first; or why it has none here.
    /// `bwrap` is where the host says that bubblewrap stands, if it does.
    pub(super) fn of(backend: SandboxBackend, bwrap: Option<&Path>) -> Result<Vec<Way>, String> {
        let _ = bwrap;
        match backend {
            // With the privilege for it no user namespace is needed; a root without it, in a container, may have one.
            #[cfg(target_os = "linux")]
            SandboxBackend::Native if sys::is_root() => {
                Ok(vec![Way::Walls(Namespaces::Mount), Way::Walls(Namespaces::UserAndMount)])
            }
            #[cfg(target_os = "linux")]
            SandboxBackend::Native => Ok(vec![Way::Walls(Namespaces::UserAndMount)]),
            #[cfg(target_os = "linux")]
            SandboxBackend::Landlock => Ok(vec![Way::Walls(Namespaces::None)]),
            #[cfg(target_os = "linux")]
            SandboxBackend::Bwrap => match bwrap {
                Some(program) => Ok(vec![Way::Bwrap(program.to_owned())]),
                None => {
                    bwrap::find().map(|program| vec![Way::Bwrap(program)]).map_err(|no| bwrap::missing(&no))
                }
            },
            #[cfg(target_os = "macos")]
            SandboxBackend::Seatbelt => Ok(vec![Way::Seatbelt]),
            #[allow(unreachable_patterns, reason = "which backends are left depends on the system")]
            _ => Err(format!("there is no {} on this system", backend.as_str())),
        }
    }

    /// File effects that a backend does not stop.
    pub(super) fn ungoverned(backend: SandboxBackend) -> Vec<&'static str> {
        match backend {
            #[cfg(target_os = "linux")]
            SandboxBackend::Landlock => native::ungoverned().unwrap_or_default(),
            #[cfg(target_os = "linux")]
            SandboxBackend::Bwrap => bwrap::ungoverned(),
            SandboxBackend::Seatbelt => vec!["unknown: it has never been run on a Mac"],
            _ => Vec::new(),
        }
    }

    /// Whether it can give a command a file system in memory.
    pub(super) fn has_scratch(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Way::Walls(namespaces) => *namespaces != Namespaces::None,
            #[cfg(target_os = "linux")]
            Way::Bwrap(_) => true,
            #[cfg(target_os = "macos")]
            Way::Seatbelt => false,
            #[cfg(not(any(target_os = "linux", target_os = "macos")))]
            _ => false,
        }
    }

    pub(super) fn confine(&self, rules: &Rules, plan: &mut SandboxPlan<'_>) -> Result<Confined, Error> {
        match self {
            #[cfg(target_os = "linux")]
            Way::Walls(namespaces) => native::confine(*namespaces, rules, plan),
            #[cfg(target_os = "linux")]
            Way::Bwrap(program) => bwrap::confine(program, rules, plan),
            #[cfg(target_os = "macos")]
            Way::Seatbelt => Ok(seatbelt::confine(rules, plan)),
            #[cfg(not(any(target_os = "linux", target_os = "macos")))]
            _ => Err(rules.unavailable(format!("nothing to run {:?} under", plan.argv()))),
        }
    }
}
