//! The block: the variables of a command, composed of layers of which a later one wins.

use super::{Scrub, compare_names, scrub};
use std::ffi::{OsStr, OsString};

/// One thing a request asks of the command's environment.
///
/// It outranks everything inherited, the scrub, and the library's own settings (`TERM=dumb`, `PAGER=cat`, …).
/// Of several entries with one name the last counts.
///
/// An ordinary entry may use a name of the managed namespace (`DSH_…`), since an explicit entry always
/// outranks the scrub; where the request's managed environment has that name too, the managed value stands,
/// whether the entry sets the name or removes it.
///
/// ```
/// use shell_executor::EnvEntry;
///
/// let entries = [EnvEntry::set("RUST_LOG", "debug"), EnvEntry::remove("DISPLAY")];
/// assert_eq!(entries[1].name(), "DISPLAY");
/// ```
///
/// # Platform behaviour
///
/// Names and values are any bytes but NUL on Unix, UTF-8 or not, and Unicode on Windows, where names
/// differing only in case are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvEntry {
    /// The variable has this value. An empty one is a value.
    Set(OsString, OsString),
    /// There is no such variable, even if the host or the library would provide one. Nothing happens if
    /// neither does.
    Remove(OsString),
}

impl EnvEntry {
    /// Gives the variable a value.
    pub fn set(name: impl Into<OsString>, value: impl Into<OsString>) -> EnvEntry {
        EnvEntry::Set(name.into(), value.into())
    }

    /// Takes the variable away.
    pub fn remove(name: impl Into<OsString>) -> EnvEntry {
        EnvEntry::Remove(name.into())
    }

    /// The variable's name.
    pub fn name(&self) -> &OsStr {
        match self {
            EnvEntry::Set(name, _) | EnvEntry::Remove(name) => name,
        }
    }
}

/// Nobody sits at the command: no colour, no paging, and no prompt that would wait for its deadline. The
/// editor fails instead of succeeding, because one that changes nothing and says so would accept a rebase
/// plan unread.
const TERMINAL: [(&str, &str); 9] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// The environment of one command.
pub(crate) struct Block {
    /// Each name once, in the order of names, which Windows asks for and which makes two runs alike.
    pub(crate) entries: Vec<(OsString, OsString)>,
    /// The inherited names that the scrub left out, sorted, each once. One that a later layer set again is
    /// still among them: the host's value did not reach the command.
    pub(crate) removed: Vec<OsString>,
}

impl Block {
    /// Lays over one another, the later winning: what is inherited less what the scrub takes, the settings
    /// for a command without a terminal, the caller's entries, the managed ones. Of one name in one layer,
    /// the last wins.
    pub(crate) fn compose(
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
        scrub: &Scrub,
        env: &[EnvEntry],
        managed: &[(OsString, OsString)],
    ) -> Block {
        // All layers in one list, a removal being an entry without a value. Of equal names a stable sort
        // keeps the order of the layers, so the last one decides.
        let mut layers: Vec<(OsString, Option<OsString>)> = Vec::new();
        let mut removed = Vec::new();
        for (name, value) in inherited {
            // A broken host may hand down a name twice; taken away as a removal, a secret does not uncover
            // the other.
            let kept = if scrub.takes(&name, &value) {
                removed.push(name.clone());
                None
            } else {
                Some(value)
            };
            layers.push((name, kept));
        }
        layers.extend(TERMINAL.map(|(name, value)| (name.into(), Some(value.into()))));
        layers.extend(env.iter().cloned().map(|entry| match entry {
            EnvEntry::Set(name, value) => (name, Some(value)),
            EnvEntry::Remove(name) => (name, None),
        }));
        layers.extend(managed.iter().cloned().map(|(name, value)| (name, Some(value))));

        layers.sort_by(|(a, _), (b, _)| compare_names(a, b));
        layers.dedup_by(|later, kept| {
            let same = compare_names(&later.0, &kept.0).is_eq();
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        removed.sort();
        removed.dedup();
        let entries = layers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        Block { entries, removed }
    }
}

/// Why this cannot be the name of a variable, in words to follow the name of the field.
pub(crate) fn check_name(name: &OsStr) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("is empty");
    }
    if name.as_encoded_bytes().contains(&b'=') {
        return Err("contains '='");
    }
    check_value(name)
}

/// Why this cannot be the value of a variable.
pub(crate) fn check_value(value: &OsStr) -> Result<(), &'static str> {
    if value.as_encoded_bytes().contains(&0) { Err("contains a NUL byte") } else { Ok(()) }
}

/// Why this cannot be the name of a managed variable.
pub(crate) fn check_managed_name(name: &OsStr) -> Result<(), &'static str> {
    check_name(name)?;
    let own = name.as_encoded_bytes().strip_prefix(b"DSH_").unwrap_or_default();
    let allowed = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    if own.first().is_some_and(u8::is_ascii_uppercase) && own.iter().all(allowed) {
        return Ok(());
    }
    if scrub::is_managed(name) {
        Err("is not 'DSH_' and then a capital letter and capitals, digits or '_'")
    } else {
        Err("is outside the managed namespace 'DSH_'")
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Block, EnvEntry, Scrub, TERMINAL, check_managed_name, check_name, check_value, compare_names,
    };
    use proptest::prelude::*;
    use std::ffi::{OsStr, OsString};

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn get<'a>(block: &'a Block, name: &str) -> Option<&'a str> {
        let mut found = block.entries.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.to_str().expect("the tests' values are text"));
        assert!(found.next().is_none(), "{name} is there twice");
        value
    }

    fn compose(inherited: &[(&str, &str)], env: &[EnvEntry], managed: &[(&str, &str)]) -> Block {
        Block::compose(pairs(inherited), &Scrub::default(), env, &pairs(managed))
    }

    // V1
    #[test]
    fn each_layer_outranks_the_one_before() {
        let host = [("TERM", "xterm"), ("PAGER", "less"), ("A", "host"), ("HOME", "/h")];
        let env = [EnvEntry::set("PAGER", "more"), EnvEntry::set("A", "env"), EnvEntry::set("DSH_A", "env")];
        let block = compose(&host, &env, &[("DSH_A", "managed")]);
        assert_eq!(get(&block, "HOME"), Some("/h"));
        assert_eq!(get(&block, "TERM"), Some("dumb"));
        assert_eq!(get(&block, "PAGER"), Some("more"));
        assert_eq!(get(&block, "A"), Some("env"));
        assert_eq!(get(&block, "DSH_A"), Some("managed"));
        assert!(block.removed.is_empty());
    }

    // V1, case 54
    #[test]
    fn a_command_finds_no_terminal_pager_or_editor() {
        let host = [("EDITOR", "vi"), ("VISUAL", "code"), ("GIT_EDITOR", "vi"), ("GIT_TERMINAL_PROMPT", "1")];
        let expected = [
            ("EDITOR", "false"),
            ("GIT_EDITOR", "false"),
            ("GIT_PAGER", "cat"),
            ("GIT_SEQUENCE_EDITOR", "false"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("NO_COLOR", "1"),
            ("PAGER", "cat"),
            ("TERM", "dumb"),
            ("VISUAL", "false"),
        ];
        assert_eq!(compose(&host, &[], &[]).entries, pairs(&expected));
    }

    // V3
    #[test]
    fn an_explicit_value_outranks_the_settings_and_a_removal_takes_them_away() {
        for (name, _) in TERMINAL {
            assert_eq!(get(&compose(&[], &[EnvEntry::set(name, "mine")], &[]), name), Some("mine"));
            assert_eq!(get(&compose(&[(name, "host")], &[EnvEntry::remove(name)], &[]), name), None);
        }
    }

    // V2, case 83
    #[test]
    fn the_names_removed_are_told_and_never_the_values() {
        let host = [
            ("gh_token", "hush"),
            ("HOME", "/h"),
            ("DSH_OLD", "hush"),
            ("BASH_ENV", "hush"),
            ("AWS_SECRET_ACCESS_KEY", "hush"),
            ("DATABASE_URL", "postgres://u:hush@h/d"),
            ("BASH_FUNC_ls%%", "() { hush; }"),
        ];
        let block = compose(&host, &[], &[]);
        let expected =
            ["AWS_SECRET_ACCESS_KEY", "BASH_ENV", "BASH_FUNC_ls%%", "DATABASE_URL", "DSH_OLD", "gh_token"];
        assert_eq!(block.removed, expected);
        assert!(!format!("{:?}", block.entries).contains("hush"));
        assert_eq!(block.entries.len(), TERMINAL.len() + 1);
    }

    // V3, case 83
    #[test]
    fn an_explicit_entry_outranks_the_scrub() {
        let env =
            [EnvEntry::set("GH_TOKEN", "mine"), EnvEntry::set("BASH_ENV", "x"), EnvEntry::set("DSH_X", "y")];
        let block = compose(&[("GH_TOKEN", "host"), ("DSH_X", "stale")], &env, &[]);
        assert_eq!(get(&block, "GH_TOKEN"), Some("mine"));
        assert_eq!(get(&block, "BASH_ENV"), Some("x"));
        assert_eq!(get(&block, "DSH_X"), Some("y"));
        assert_eq!(block.removed, ["DSH_X", "GH_TOKEN"], "the host's values did not get through");
    }

    // V1
    #[test]
    fn an_ordinary_entry_displaces_no_managed_one() {
        for entry in [EnvEntry::set("DSH_SHELL", "0"), EnvEntry::remove("DSH_SHELL")] {
            let block = compose(&[("DSH_SHELL", "stale")], &[entry], &[("DSH_SHELL", "1")]);
            assert_eq!(get(&block, "DSH_SHELL"), Some("1"));
        }
    }

    // V3
    #[test]
    fn a_removal_takes_an_inherited_name_and_is_not_the_scrubs_doing() {
        let block =
            compose(&[("DISPLAY", ":0")], &[EnvEntry::remove("DISPLAY"), EnvEntry::remove("NONE")], &[]);
        assert_eq!(get(&block, "DISPLAY"), None);
        assert!(block.removed.is_empty());
    }

    // V3
    #[test]
    fn of_one_name_in_one_layer_the_last_counts() {
        let env = [
            EnvEntry::set("A", "1"),
            EnvEntry::remove("A"),
            EnvEntry::set("B", "1"),
            EnvEntry::set("B", "2"),
        ];
        let block = compose(&[("C", "1"), ("C", "2")], &env, &[("DSH_D", "1"), ("DSH_D", "2")]);
        let values = ["A", "B", "C", "DSH_D"].map(|name| get(&block, name));
        assert_eq!(values, [None, Some("2"), Some("2"), Some("2")]);
    }

    // V2
    #[test]
    fn a_name_inherited_twice_with_a_secret_is_not_uncovered() {
        let block = compose(&[("A", "first"), ("A", "http://u:p@h"), ("T_KEY", ""), ("T_KEY", "")], &[], &[]);
        assert_eq!(get(&block, "A"), None);
        assert_eq!(block.removed, ["A", "T_KEY"]);
    }

    // V5
    #[test]
    fn one_name_in_two_cases_is_one_variable_on_windows_only() {
        let block = compose(&[("Path", "host")], &[EnvEntry::set("PATH", "mine")], &[]);
        assert_eq!(get(&block, "PATH"), Some("mine"));
        assert_eq!(get(&block, "Path"), if cfg!(windows) { None } else { Some("host") });
    }

    // V5
    #[test]
    fn empty_values_and_odd_names_pass_through() {
        let block =
            compose(&[("EMPTY", ""), ("=C:", "C:\\x"), ("größe", "ü")], &[EnvEntry::set("E", "")], &[]);
        assert_eq!(
            ["EMPTY", "=C:", "größe", "E"].map(|name| get(&block, name)),
            [Some(""), Some("C:\\x"), Some("ü"), Some("")]
        );
    }

    // R4
    #[test]
    fn names_and_values_are_checked() {
        assert_eq!(check_name(OsStr::new("")), Err("is empty"));
        assert_eq!(check_name(OsStr::new("A=B")), Err("contains '='"));
        assert_eq!(check_name(OsStr::new("=")), Err("contains '='"));
        assert_eq!(check_name(OsStr::new("A\0")), Err("contains a NUL byte"));
        assert_eq!(check_value(OsStr::new("v\0w")), Err("contains a NUL byte"));
        for name in ["A", "a b", "größe", "1", "%"] {
            assert_eq!(check_name(OsStr::new(name)), Ok(()), "{name}");
        }
        assert_eq!((check_value(OsStr::new("")), check_value(OsStr::new("a=b"))), (Ok(()), Ok(())));
    }

    // V4
    #[test]
    fn managed_names_are_checked() {
        for name in ["DSH_A", "DSH_SESSION_ID", "DSH_A1_", "DSH_DSH_A"] {
            assert_eq!(check_managed_name(OsStr::new(name)), Ok(()), "{name}");
        }
        for name in
            ["DSH_", "DSH_1", "DSH__A", "DSH_a", "DSH_Aa", "dsh_A", "Dsh_A", "DSH_A-B", "DSH_É", "DSH_A "]
        {
            let reason = check_managed_name(OsStr::new(name)).expect_err(name);
            assert!(reason.starts_with("is not 'DSH_'"), "{name}: {reason}");
        }
        for name in ["A", "DSH", "XDSH_A", "PATH"] {
            let reason = check_managed_name(OsStr::new(name)).expect_err(name);
            assert!(reason.starts_with("is outside"), "{name}: {reason}");
        }
        assert_eq!(check_managed_name(OsStr::new("")), Err("is empty"));
        assert_eq!(check_managed_name(OsStr::new("DSH_A=B")), Err("contains '='"));
        assert_eq!(check_managed_name(OsStr::new("DSH_A\0")), Err("contains a NUL byte"));
    }

    /// The layers applied one by one to a list searched from the front.
    fn compose_naive(
        inherited: &[(OsString, OsString)],
        scrub: &Scrub,
        env: &[EnvEntry],
        managed: &[(OsString, OsString)],
    ) -> Vec<(OsString, OsString)> {
        fn apply(list: &mut Vec<(OsString, OsString)>, name: &OsStr, value: Option<&OsStr>) {
            list.retain(|(known, _)| compare_names(known, name).is_ne());
            if let Some(value) = value {
                list.push((name.into(), value.into()));
            }
        }
        let mut list = Vec::new();
        for (name, value) in inherited {
            let kept = !scrub.takes(name, value);
            apply(&mut list, name, kept.then_some(value));
        }
        for (name, value) in TERMINAL {
            apply(&mut list, OsStr::new(name), Some(OsStr::new(value)));
        }
        for entry in env {
            match entry {
                EnvEntry::Set(name, value) => apply(&mut list, name, Some(value)),
                EnvEntry::Remove(name) => apply(&mut list, name, None),
            }
        }
        for (name, value) in managed {
            apply(&mut list, name, Some(value));
        }
        list
    }

    fn name() -> impl Strategy<Value = OsString> {
        let names = ["A", "a", "B", "TERM", "PAGER", "X_KEY", "DSH_A", "dsh_a", "DSH_B", "ENV", "É", "PWD"];
        prop::sample::select(names.map(OsString::from).to_vec())
    }

    fn value() -> impl Strategy<Value = OsString> {
        prop_oneof!["[a-z]{0,3}", Just(String::from("x://u:p@h"))].prop_map(OsString::from)
    }

    fn entry() -> impl Strategy<Value = EnvEntry> {
        prop_oneof![
            (name(), value()).prop_map(|(name, value)| EnvEntry::Set(name, value)),
            name().prop_map(EnvEntry::Remove),
        ]
    }

    proptest! {
        // V1, V3
        #[test]
        fn the_layers_agree_with_the_slow_way(
            inherited in prop::collection::vec((name(), value()), 0..12),
            env in prop::collection::vec(entry(), 0..8),
            managed in prop::collection::vec((name(), value()), 0..4),
            also in prop::collection::vec(Just(String::from("b")), 0..2),
            exempt in prop::collection::vec(Just(String::from("x_key")), 0..2),
        ) {
            let scrub = Scrub { also, exempt };
            let block = Block::compose(inherited.clone(), &scrub, &env, &managed);
            let mut expected = compose_naive(&inherited, &scrub, &env, &managed);
            expected.sort_by(|(a, _), (b, _)| compare_names(a, b));
            prop_assert_eq!(block.entries, expected);

            let taken = |name: &OsString| inherited.iter().any(|(n, v)| n == name && scrub.takes(n, v));
            prop_assert!(block.removed.iter().all(taken));
            prop_assert!(inherited.iter().all(|(n, v)| !scrub.takes(n, v) || block.removed.contains(n)));
            prop_assert!(block.removed.is_sorted_by(|a, b| a < b));
        }
    }

    // V5
    #[cfg(unix)]
    #[test]
    fn bytes_that_are_not_utf8_pass_through() {
        use std::os::unix::ffi::OsStringExt;
        let bytes = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let odd = (bytes(b"N\xff\x80"), bytes(b"v\xe2\x82"));
        let token = (bytes(b"\xff_TOKEN"), bytes(b"\xff"));
        let url = (bytes(b"U\xff"), bytes(b"http://\xff:\xff@h"));
        let block = Block::compose([odd.clone(), token.clone(), url.clone()], &Scrub::default(), &[], &[]);
        assert!(block.entries.contains(&odd));
        assert_eq!(block.removed, [url.0, token.0]);

        let env = [EnvEntry::Set(bytes(b"N\xff\x81"), odd.1.clone()), EnvEntry::Remove(odd.0.clone())];
        let block = Block::compose([odd.clone()], &Scrub::default(), &env, &[]);
        assert!(
            block.entries.contains(&(bytes(b"N\xff\x81"), odd.1.clone())) && !block.entries.contains(&odd)
        );
        assert_eq!((check_name(&odd.0), check_value(&odd.1)), (Ok(()), Ok(())));
    }
}
