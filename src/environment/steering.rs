//! Variables by which whoever sets them decides what code a program runs before its own.

use std::ffi::OsStr;

/// Of the dynamic loader and of the C library, which ignores these itself in a set-user-id program; of the shell; and of the
/// interpreters that a runner is likely to be written for.
const NAMES: [&str; 34] = [
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "LOCALDOMAIN",
    "LOCPATH",
    "NIS_PATH",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "RUBYLIB",
    "RUBYOPT",
    "SHELLOPTS",
    "TZDIR",
    "ZDOTDIR",
];

/// The same, as beginnings of names.
const BEGINNINGS: [&str; 5] = ["BASH_FUNC_", "DYLD_", "LD_", "LUA_INIT", "MALLOC_"];

/// Whether a program that is started with such a variable may run code of somebody's choice.
pub(crate) fn steers(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    NAMES.iter().any(|known| known.as_bytes() == name)
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S3
    #[test]
    fn what_chooses_code_is_known_by_its_name() {
        for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "BASH_FUNC_ls%%", "PATH", "GLIBC_TUNABLES"]
        {
            assert!(steers(OsStr::new(name)), "{name}");
        }
        for name in ["HOME", "TMPDIR", "LANG", "OLD_PATH", "MANPATH", "ld_preload", "SHELL_EXECUTOR_RANGE"] {
            assert!(!steers(OsStr::new(name)), "{name}");
        }
    }
}
