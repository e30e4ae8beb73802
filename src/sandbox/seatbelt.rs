//! The Seatbelt backend of macOS: `sandbox-exec` with a generated profile. Written from its documentation, and never run on
//! a Mac.
#![cfg_attr(not(target_os = "macos"), allow(dead_code, reason = "used on macOS, tested everywhere"))]

use super::Enforcement;
use super::provider::{Confined, Rules, SandboxPlan};
use std::ffi::OsString;
use std::path::Path;

/// Where the program stands on every Mac. Not looked up on `PATH`: another of this name would be no sandbox.
pub(super) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Reported as partial until somebody has seen it stop what it should.
pub(super) fn confine(rules: &Rules, plan: &mut SandboxPlan<'_>) -> Confined {
    plan.run_under(arguments(rules));
    Confined::by("seatbelt", Enforcement::Partial).denial("Operation not permitted")
}

/// Directories go in as parameters, so that no character of a path is one of the profile.
fn arguments(rules: &Rules) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec![PROGRAM.into(), "-p".into(), profile(rules.writable.len()).into()];
    for (index, path) in rules.writable.iter().enumerate() {
        argv.push("-D".into());
        argv.push(parameter(index, path));
    }
    argv.push("--".into());
    argv
}

fn parameter(index: usize, path: &Path) -> OsString {
    let mut text = OsString::from(format!("WRITABLE_{index}="));
    text.push(path);
    text
}

/// Everything is allowed but changing files, metadata included (`file-write*`), except below the parameters and on the
/// devices that change none. The last rule that matches decides.
fn profile(writable: usize) -> String {
    let mut text = String::from(
        "(version 1)\n\
         (allow default)\n\
         (deny file-write*)\n\
         (allow file-write-data file-ioctl\n  \
           (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/random\") (literal \"/dev/urandom\")\n  \
           (literal \"/dev/tty\") (literal \"/dev/ptmx\") (regex #\"^/dev/fd/\") (regex #\"^/dev/ttys[0-9]+$\"))\n",
    );
    for index in 0..writable {
        text.push_str(&format!("(allow file-write* (subpath (param \"WRITABLE_{index}\")))\n"));
    }
    if writable > 0 {
        text.push_str("(deny file-write-mknod)\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::SandboxMode;

    // S4
    #[test]
    fn the_policy_becomes_a_profile_with_parameters() {
        let mut rules =
            Rules { mode: SandboxMode::ReadOnly, writable: Vec::new(), private: None, scratch: None };
        let argv = arguments(&rules);
        assert_eq!((argv.len(), argv[0].to_str(), argv[3].to_str()), (4, Some(PROGRAM), Some("--")));
        let text = argv[2].to_str().unwrap();
        assert!(text.starts_with("(version 1)\n(allow default)\n(deny file-write*)\n"), "{text}");
        assert!(!text.contains("subpath"), "{text}");
        rules.writable = vec!["/w \"(x)".into(), "/private/tmp".into()];
        let argv = arguments(&rules);
        let text = argv[2].to_str().unwrap();
        assert!(text.contains("(allow file-write* (subpath (param \"WRITABLE_1\")))"), "{text}");
        assert!(!text.contains("/w"), "{text}");
        assert_eq!(argv[3..], ["-D", "WRITABLE_0=/w \"(x)", "-D", "WRITABLE_1=/private/tmp", "--"]);
        assert_eq!(text.matches('(').count(), text.matches(')').count());
    }
}
