//! The native backends: walls that the child puts round itself between `clone` and `execve`, with no program to help.

use super::Enforcement;
use super::provider::{Confined, Rules, SandboxPlan};
use crate::error::{Error, SpawnError, reason};
use crate::sys::{self, Boundary, Confinement, LandlockRights, Namespaces};

/// What is said behind a read-only mount (`EROFS`), whatever the spelling of the program that passes it on.
pub(super) const READ_ONLY: &str = "read-only file system";

/// Namespaces and Landlock, or Landlock alone.
pub(super) fn confine(
    namespaces: Namespaces,
    rules: &Rules,
    plan: &mut SandboxPlan<'_>,
) -> Result<Confined, Error> {
    let alone = namespaces == Namespaces::None;
    let backend = if alone { "landlock" } else { "native" };
    let abi = sys::landlock_abi().map_err(|error| {
        rules.unavailable(format!("{backend}: the kernel has no Landlock: {}", reason(&error)))
    })?;
    let scratch = rules.scratch.as_ref().filter(|_| !alone);
    let boundary = Boundary {
        namespaces,
        rights: LandlockRights::of(abi),
        writable: &rules.writable,
        private: rules.private.as_deref().filter(|_| !alone),
        scratch: scratch.map(|(path, bytes)| (path.as_path(), *bytes)),
    };
    let confinement =
        Confinement::prepare(&boundary).map_err(|failed| match sys::is_shortage(&failed.error) {
            true => {
                SpawnError::resources(&format!("cannot confine by {backend}: {}", failed.what), &failed.error)
                    .into()
            }
            false => rules.unavailable(format!("{backend}: {}: {}", failed.what, reason(&failed.error))),
        })?;
    plan.launch.confinement = Some(confinement);
    plan.launch.writable.clone_from(&rules.writable);
    if let Some((path, _)) = scratch {
        plan.set_env("TMPDIR", path);
    }
    Ok(if alone {
        // Its own text, "Permission denied", is that of any missing permission: no evidence.
        Confined::by(backend, Enforcement::Partial)
    } else {
        Confined::by(backend, Enforcement::Full).denial(READ_ONLY)
    })
}

/// What Landlock alone does not govern, in words. `None` without Landlock.
pub(super) fn ungoverned() -> Option<Vec<&'static str>> {
    Some(ungoverned_by(LandlockRights::of(sys::landlock_abi().ok()?)))
}

fn ungoverned_by(rights: LandlockRights) -> Vec<&'static str> {
    let mut open = vec!["modes, owners, times and extended attributes of files"];
    if !rights.governs_truncation() {
        open.push("truncating a file by its path");
    }
    if !rights.governs_devices() {
        open.push("commands to devices");
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4, case 92
    #[test]
    fn what_an_interface_lacks_is_listed() {
        let open = |abi| ungoverned_by(LandlockRights::of(abi)).len();
        assert_eq!((open(1), open(2), open(3), open(4), open(5), open(7)), (3, 3, 2, 2, 1, 1));
    }
}
