//! The bubblewrap backend: the installed `bwrap`, with the same policy as arguments.

use super::Enforcement;
use super::native::READ_ONLY;
use super::provider::{Confined, Rules, SandboxPlan};
use super::verdict::Evidence;
use crate::error::{Error, SpawnError, reason};
use crate::sys::{self, Pipe};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Where the program stands. Not looked up on `PATH`: a directory of that may be one that a confined command can write, and
/// the next command would be run by what it has put there.
pub(super) fn find() -> std::io::Result<PathBuf> {
    SandboxPlan::find_in(OsStr::new("bwrap"), OsString::from(INSTALLED))
}

/// Where programs of the system stand, which only its owner can write: on the usual systems, and on NixOS.
const INSTALLED: &str =
    "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/run/wrappers/bin:/run/current-system/sw/bin";

/// Its devices are the host's, on mounts of their own that bubblewrap cannot make read-only without closing them as devices.
/// So whoever owns them can change their modes.
pub(super) fn enforcement() -> Enforcement {
    if sys::is_root() { Enforcement::Partial } else { Enforcement::Full }
}

/// What is not governed, in words.
pub(super) fn ungoverned() -> Vec<&'static str> {
    match enforcement() {
        Enforcement::Full => Vec::new(),
        Enforcement::Partial => vec!["modes, owners and times of devices such as /dev/null"],
    }
}

/// In a pid namespace of its own, because another process's root under `/proc` leads round every mount. Not with
/// `--die-with-parent`: what a command leaves running would go with the runner, and no other backend does that.
pub(super) fn confine(program: &Path, rules: &Rules, plan: &mut SandboxPlan<'_>) -> Result<Confined, Error> {
    let Pipe { ours, theirs } = sys::output_pipe(true)
        .map_err(|error| SpawnError::resources("cannot start bwrap: no pipe for its status", &error))?;
    let argv = arguments(program, rules, plan.workdir(), theirs.as_raw_fd(), sys::is_root());
    plan.run_under(argv);
    plan.launch.kept = Some(theirs);
    if let Some((path, _)) = &rules.scratch {
        plan.set_env("TMPDIR", path);
    }
    let mut confined = Confined::by("bwrap", enforcement()).denial(READ_ONLY);
    confined.evidence = Evidence::Status(File::from(ours));
    Ok(confined)
}

/// Later mounts lie on earlier ones, so the order is: everything read-only, devices and processes of its own, what may be
/// written, and last what was only needed to mount these read-only as well.
fn arguments(program: &Path, rules: &Rules, workdir: &Path, status: i32, is_root: bool) -> Vec<OsString> {
    let mut argv = vec![program.as_os_str().to_owned()];
    let mut add = |words: &[&OsStr]| argv.extend(words.iter().map(|&word| word.to_owned()));
    let word = OsStr::new;
    add(&[
        word("--ro-bind"),
        word("/"),
        word("/"),
        word("--dev"),
        word("/dev"),
        word("--proc"),
        word("/proc"),
    ]);
    for path in &rules.writable {
        add(&[word("--bind"), path.as_os_str(), path.as_os_str()]);
    }
    if let Some(path) = &rules.private {
        add(&[word("--ro-bind"), path.as_os_str(), path.as_os_str()]);
    }
    if let Some((path, bytes)) = &rules.scratch {
        let size = bytes.to_string();
        add(&[word("--perms"), word("0700"), word("--size"), word(&size)]);
        add(&[word("--tmpfs"), path.as_os_str()]);
    }
    add(&[word("--remount-ro"), word("/dev"), word("--remount-ro"), word("/proc")]);
    add(&[word("--unshare-pid"), word("--new-session"), word("--chdir"), workdir.as_os_str()]);
    if is_root {
        // What would lead out again, for one who has it. Others have none in there.
        for name in KEYS {
            add(&[word("--cap-drop"), word(name)]);
        }
    }
    let status = status.to_string();
    add(&[word("--json-status-fd"), word(&status), word("--")]);
    argv
}

/// The capabilities that the native backend takes away as well, without those that an older libcap does not know by name
/// (`PERFMON`, `BPF`, `CHECKPOINT_RESTORE`): none of them changes a file.
const KEYS: [&str; 10] = [
    "CAP_DAC_READ_SEARCH",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_MKNOD",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
];

/// A bubblewrap that is not there, in words.
pub(super) fn missing(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no bwrap in {INSTALLED}"),
        _ => format!("the installed bwrap cannot be used: {}", reason(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::SandboxMode;

    fn text(rules: &Rules, is_root: bool) -> String {
        let argv = arguments(Path::new("/usr/bin/bwrap"), rules, Path::new("/w/sub"), 9, is_root);
        argv.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    // S4, S9
    #[test]
    fn the_policy_becomes_arguments() {
        let mut rules = Rules {
            mode: SandboxMode::WorkspaceWrite,
            writable: vec!["/w".into()],
            private: None,
            scratch: None,
        };
        assert_eq!(
            text(&rules, false),
            "/usr/bin/bwrap --ro-bind / / --dev /dev --proc /proc --bind /w /w --remount-ro /dev --remount-ro /proc \
             --unshare-pid --new-session --chdir /w/sub --json-status-fd 9 --"
        );
        rules.private = Some("/w/p".into());
        assert!(text(&rules, false).contains("--bind /w /w --ro-bind /w/p /w/p --remount-ro"));
        rules.private = None;
        rules.writable.clear();
        rules.scratch = Some(("/t/s".into(), 1024));
        assert!(text(&rules, false).contains("/proc --perms 0700 --size 1024 --tmpfs /t/s --remount-ro"));
        assert!(text(&rules, true).contains("--cap-drop CAP_SYS_ADMIN"));
    }
}
