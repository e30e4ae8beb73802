//! The environment a command starts with, decided as a value before anything is started.
//!
//! A command should see the host's environment, because that is what its user set up; but not the host's
//! secrets, not facts about an earlier execution, not code that would run before it, and no invitation to
//! open a pager or an editor. `scrub` decides which inherited names are left out. `block` lays what is left,
//! the library's own settings and the caller's over one another. Neither reads the real environment: the
//! caller passes it in, so that one reading of it serves a whole execution and tests need no process.
//!
//! Names and values are bytes that are looked at and never changed.

mod block;
mod contribution;
mod contributor;
mod registry;
mod scrub;
mod steering;

pub use block::EnvEntry;
pub(crate) use block::{Block, check_managed_name, check_name, check_value};
pub use contributor::{EnvCall, EnvContributor, EnvVariable};
pub use registry::{EnvDeclaration, EnvRegistration, EnvRegistry, EnvSnapshot};
pub use scrub::Scrub;
pub(crate) use steering::steers;

use std::cmp::Ordering;
use std::ffi::OsStr;

/// Whether `Path` and `PATH` are two variables. The only thing about platforms that this floor has to know.
const CASE_COUNTS: bool = !cfg!(windows);

/// The order of names in which equal means: the same variable.
fn compare_names(a: &OsStr, b: &OsStr) -> Ordering {
    if CASE_COUNTS { a.cmp(b) } else { folded(a).cmp(folded(b)) }
}

/// A name without its case, for comparing: as capitals, letter by letter, which is how Windows compares. So a
/// letter whose capital is several stays, and one outside ASCII never becomes one inside. What is not UTF-8
/// is kept apart from every character.
fn folded(name: &OsStr) -> impl Iterator<Item = u32> + '_ {
    const BEYOND_EVERY_CHARACTER: u32 = 0x11_0000;
    name.as_encoded_bytes().utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(|character| capital(character).into());
        valid.chain(chunk.invalid().iter().map(|&byte| BEYOND_EVERY_CHARACTER + u32::from(byte)))
    })
}

fn capital(character: char) -> char {
    let mut capitals = character.to_uppercase();
    match (capitals.next(), capitals.next()) {
        (Some(one), None) if character.is_ascii() || !one.is_ascii() => one,
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::{CASE_COUNTS, compare_names, folded};
    use std::ffi::OsStr;

    fn same_but_for_case(a: &str, b: &str) -> bool {
        folded(OsStr::new(a)).eq(folded(OsStr::new(b)))
    }

    // V5
    #[test]
    fn case_counts_except_on_windows() {
        assert_eq!(compare_names(OsStr::new("Path"), OsStr::new("PATH")).is_ne(), CASE_COUNTS);
        assert!(compare_names(OsStr::new("PATH"), OsStr::new("PATH")).is_eq());
        assert!(compare_names(OsStr::new("PATH"), OsStr::new("PATHS")).is_lt());
    }

    // V5
    #[test]
    fn folding_knows_letters_beyond_ascii_and_keeps_them_there() {
        assert!(same_but_for_case("Größe_x", "GRÖßE_X"));
        assert!(same_but_for_case("żółć", "ŻÓŁĆ"));
        assert!(!same_but_for_case("ß", "SS"));
        assert!(!same_but_for_case("ı", "I") && !same_but_for_case("ſ", "S"));
        assert!(!same_but_for_case("a-b", "a_b"));
    }
}
