//! The scrub: which inherited variables a command must not see.

use super::{CASE_COUNTS, folded};
use std::ffi::OsStr;

/// Adjusts which of the host's variables are kept from commands.
///
/// Left out without being asked are names shaped like credentials (`GH_TOKEN`, `PGPASSWORD`,
/// `AWS_SECRET_ACCESS_KEY`), values that are a URL with a password in it
/// (`DATABASE_URL=postgres://user:secret@host/db`), the managed namespace (`DSH_…`), and what would make a
/// shell run code before the command (`BASH_ENV`, `ENV`, `SHELLOPTS`, `BASHOPTS`, `PROMPT_COMMAND`,
/// `BASH_FUNC_…`). Only what the host has inherited is scrubbed: an entry that a request sets explicitly
/// always reaches the command.
///
/// The rule goes by the pieces of a name, not by any part of it, so `TOKENIZERS_PARALLELISM`, `KEYBOARD` and
/// `COMPASS_DIR` stay. It does not see a secret under an innocent name, nor inside a value other than such a
/// URL; [`also`](Scrub::also) is for those.
///
/// ```
/// let mut scrub = shell_executor::Scrub::default();
/// scrub.also.push("ACME_LICENCE".into());
/// scrub.exempt.push("CI_JOB_TOKEN".into());
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Scrub {
    /// Whole names, in any case, that are credentials as well.
    pub also: Vec<String>,
    /// Whole names, in any case, that are no credentials whatever they look like or hold. A name in both
    /// lists is exempt. Names of the managed namespace and names that run code are left out all the same.
    pub exempt: Vec<String>,
}

impl Scrub {
    /// Whether this inherited variable is left out.
    pub(crate) fn takes(&self, name: &OsStr, value: &OsStr) -> bool {
        if is_managed(name) || runs_code(name) {
            return true;
        }
        (is_credential(name, value) || listed(&self.also, name)) && !listed(&self.exempt, name)
    }
}

/// Whether the name is in the namespace of the facts that only the host may state.
pub(crate) fn is_managed(name: &OsStr) -> bool {
    name.as_encoded_bytes().get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"DSH_"))
}

/// Whether a shell that finds this name runs or changes something before its command. To a shell on Unix
/// `env` is not `ENV`, and hosts do have a variable of that name.
pub(crate) fn runs_code(name: &OsStr) -> bool {
    const NAMES: [&[u8]; 5] = [b"BASH_ENV", b"ENV", b"SHELLOPTS", b"BASHOPTS", b"PROMPT_COMMAND"];
    const EXPORTED_FUNCTION: &[u8] = b"BASH_FUNC_";
    let name = name.as_encoded_bytes();
    let same = |a: &[u8], b: &[u8]| if CASE_COUNTS { a == b } else { a.eq_ignore_ascii_case(b) };
    NAMES.iter().any(|known| same(name, known))
        || name.get(..EXPORTED_FUNCTION.len()).is_some_and(|start| same(start, EXPORTED_FUNCTION))
}

/// Whether the variable is shaped like a credential, by its name or by its value.
pub(crate) fn is_credential(name: &OsStr, value: &OsStr) -> bool {
    names_a_credential(name.as_encoded_bytes()) || is_url_with_password(value.as_encoded_bytes())
}

/// Words that make a credential of a piece that ends in them: `PGPASSWORD`, `authToken`.
const ENDINGS: [&[u8]; 13] = [
    b"PASSWORD",
    b"PASSWD",
    b"PASSPHRASE",
    b"SECRET",
    b"SECRETS",
    b"TOKEN",
    b"TOKENS",
    b"CREDENTIAL",
    b"CREDENTIALS",
    b"APIKEY",
    b"APIKEYS",
    b"ACCESSKEY",
    b"PRIVATEKEY",
];
/// Words that do so only as a whole piece, because other words end in them: `MONKEY`.
const WHOLE: [&[u8]; 2] = [b"KEY", b"KEYS"];
/// Words that do so only beside another piece: alone, `PWD` is where the shell is.
const BESIDE_ANOTHER: [&[u8]; 2] = [b"PWD", b"PAT"];

fn names_a_credential(name: &[u8]) -> bool {
    let pieces = || name.split(|byte| !byte.is_ascii_alphanumeric()).filter(|piece| !piece.is_empty());
    let several = pieces().nth(1).is_some();
    pieces().any(|piece| {
        let is = |word: &&[u8]| piece.eq_ignore_ascii_case(word);
        ENDINGS.iter().any(|ending| ends_in(piece, ending))
            || WHOLE.iter().any(is)
            || several && BESIDE_ANOTHER.iter().any(is)
    })
}

fn ends_in(piece: &[u8], ending: &[u8]) -> bool {
    piece.len() >= ending.len() && piece[piece.len() - ending.len()..].eq_ignore_ascii_case(ending)
}

/// `scheme://user:password@…`, where the user may be empty and the password may not. A password may hold an
/// `@`, so the last one before the path ends it.
fn is_url_with_password(value: &[u8]) -> bool {
    let in_scheme = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
    let scheme = value.iter().take_while(in_scheme).count();
    if !value.first().is_some_and(u8::is_ascii_alphabetic) {
        return false;
    }
    let Some(rest) = value[scheme..].strip_prefix(b"://") else { return false };
    let authority = rest.split(|byte| b"/?#".contains(byte)).next().unwrap_or_default();
    let Some(at) = authority.iter().rposition(|&byte| byte == b'@') else { return false };
    let colon = authority[..at].iter().position(|&byte| byte == b':');
    colon.is_some_and(|colon| colon + 1 < at)
}

fn listed(names: &[String], name: &OsStr) -> bool {
    names.iter().any(|known| folded(OsStr::new(known)).eq(folded(name)))
}

#[cfg(test)]
mod tests {
    use super::{Scrub, is_credential, is_managed, runs_code};
    use proptest::prelude::*;
    use std::ffi::OsStr;

    fn credential(name: &str, value: &str) -> bool {
        is_credential(OsStr::new(name), OsStr::new(value))
    }

    fn takes(scrub: &Scrub, name: &str) -> bool {
        scrub.takes(OsStr::new(name), OsStr::new("value"))
    }

    // V2, case 83
    #[test]
    fn names_shaped_like_credentials_go() {
        let named = "GH_TOKEN PGPASSWORD MYSQL_PWD AWS_ACCESS_KEY_ID FOO_API_KEY AWS_SECRET_ACCESS_KEY";
        let endings = "PASSWORD A_PASSWD PASSPHRASE SECRET MY_SECRETS TOKEN A_TOKENS CREDENTIAL \
            GOOGLE_APPLICATION_CREDENTIALS OPENAI_APIKEY APIKEYS AWSACCESSKEY SSHPRIVATEKEY ROOTPASSWORD";
        let pieces = "KEY KEYS SECRET_X DEPLOY_KEYS SSH_KEY_PATH GITHUB_PAT PAT_GITHUB DB_PWD \
            npm_config__authToken npm_config_//registry/:_authToken service.api-key A1_KEY";
        for name in [named, endings, pieces].iter().flat_map(|names| names.split_whitespace()) {
            for name in [name, &name.to_ascii_lowercase(), &name.to_ascii_uppercase()] {
                assert!(credential(name, ""), "{name} must go");
            }
        }
    }

    // V2, case 84
    #[test]
    fn names_that_only_resemble_credentials_stay() {
        let named =
            "PWD OLDPWD PATH KEYBOARD TOKENIZERS_PARALLELISM COMPASS_DIR SSH_AUTH_SOCK HOME BYPASS_CACHE";
        let locale = "LANG LC_ALL LC_CTYPE LANGUAGE http_proxy HTTPS_PROXY no_proxy ALL_PROXY";
        let near = "MONKEY TURKEYS KEYMAP KEY2 PAT PATTERN COMPAT_MODE MY_PATH MY_OLDPWD SECRETARY TOKENIZE \
            MYTOKEN2 PASSWORDLESS PASS GIT_ASKPASS SSH_ASKPASS PGPASSFILE ACCESSKEYS CREDENTIALED";
        for name in [named, locale, near].iter().flat_map(|names| names.split_whitespace()) {
            for name in [name, &name.to_ascii_lowercase(), &name.to_ascii_uppercase()] {
                assert!(!credential(name, "value"), "{name} must stay");
            }
        }
    }

    // V2
    #[test]
    fn a_name_with_one_piece_and_separators_has_one_piece() {
        assert!(!credential("_PWD", "") && !credential("PWD_", "") && !credential("__PAT__", ""));
        assert!(credential("_KEY", "") && credential("A_PWD", ""));
        assert!(!credential("", "") && !credential("___", ""));
    }

    // V2, case 84
    #[test]
    fn a_url_with_a_password_goes_under_any_name() {
        let urls = [
            "postgres://u:p@h/d",
            "redis://:p@h",
            "http://u:p@ss@h:80/x",
            "http://a@b:c@h",
            "http://u::@h",
            "git+ssh://u:p@h",
            "x-1.y://u:p@",
            "HTTP://U:P@H?q#f",
        ];
        for url in urls {
            assert!(credential("DATABASE_URL", url), "{url}");
            assert!(credential("HTTP_PROXY", url), "{url}");
        }
    }

    // V2, case 84
    #[test]
    fn other_values_stay() {
        let values = [
            "http://proxy:3128",
            "http://u@h:80/",
            "http://u:@h/",
            "http://h:80/a@b",
            "http://h?u:p@h",
            "http://h#u:p@h",
            "u:p@h",
            "://u:p@h",
            "1x://u:p@h",
            "-x://u:p@h",
            "a b://u:p@h",
            "see http://u:p@h",
            "http:/u:p@h",
            "http:u:p@h",
            "http://",
            "",
        ];
        for value in values {
            assert!(!credential("HTTP_PROXY", value), "{value}");
        }
    }

    // V1
    #[test]
    fn the_managed_namespace_is_a_prefix_in_any_case() {
        for name in ["DSH_", "DSH_SHELL", "dsh_shell", "Dsh_x"] {
            assert!(is_managed(OsStr::new(name)), "{name}");
        }
        for name in ["DSH", "DSHX", "XDSH_A", "DS", "", "_DSH_A"] {
            assert!(!is_managed(OsStr::new(name)), "{name}");
        }
    }

    // V1
    #[test]
    fn names_that_run_code_are_known() {
        for name in
            ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "BASH_FUNC_ls%%", "BASH_FUNC_"]
        {
            assert!(runs_code(OsStr::new(name)), "{name}");
        }
        for name in ["BASH", "BASH_FUNC", "ENVIRONMENT", "MY_ENV", "BASH_ENV2", "PROMPT", ""] {
            assert!(!runs_code(OsStr::new(name)), "{name}");
        }
        // V5
        assert_eq!(runs_code(OsStr::new("env")), cfg!(windows));
        assert_eq!(runs_code(OsStr::new("bash_func_ls%%")), cfg!(windows));
    }

    // V2
    #[test]
    fn lists_add_and_exempt_whole_names_in_any_case() {
        let scrub = Scrub { also: vec!["acme_licence".into()], exempt: vec!["Ci_Job_Token".into()] };
        assert!(takes(&scrub, "ACME_LICENCE") && takes(&scrub, "Acme_Licence"));
        assert!(!takes(&scrub, "ACME_LICENCE_FILE") && !takes(&scrub, "LICENCE"));
        assert!(!takes(&scrub, "CI_JOB_TOKEN") && !takes(&scrub, "ci_job_token"));
        assert!(takes(&scrub, "CI_JOB_TOKEN2_KEY") && takes(&scrub, "JOB_TOKEN"));
        assert!(!takes(&Scrub::default(), "ACME_LICENCE") && takes(&Scrub::default(), "CI_JOB_TOKEN"));
    }

    // V2
    #[test]
    fn an_exempt_name_may_hold_a_url_with_a_password() {
        let scrub = Scrub { exempt: vec!["HTTP_PROXY".into()], ..Scrub::default() };
        assert!(!scrub.takes(OsStr::new("http_proxy"), OsStr::new("http://u:p@h")));
        assert!(scrub.takes(OsStr::new("https_proxy"), OsStr::new("http://u:p@h")));
    }

    // V2
    #[test]
    fn exemption_is_stronger_than_addition() {
        let scrub = Scrub { also: vec!["A".into()], exempt: vec!["A".into()] };
        assert!(!takes(&scrub, "A"));
    }

    // V1
    #[test]
    fn exemption_readmits_neither_managed_names_nor_code() {
        let names = ["DSH_SHELL", "dsh_x", "BASH_ENV", "ENV", "BASH_FUNC_ls%%"];
        let scrub = Scrub { also: vec![], exempt: names.map(String::from).to_vec() };
        for name in names {
            assert!(takes(&scrub, name), "{name}");
        }
    }

    /// The name rule on words already split, written the long way.
    fn names_a_credential_naive(pieces: &[String]) -> bool {
        pieces.iter().any(|piece| {
            let piece = piece.to_uppercase();
            let plural = ["SECRET", "TOKEN", "CREDENTIAL", "APIKEY"];
            let single = ["PASSWORD", "PASSWD", "PASSPHRASE", "ACCESSKEY", "PRIVATEKEY"];
            plural.iter().any(|word| piece.ends_with(word) || piece.ends_with(&format!("{word}S")))
                || single.iter().any(|word| piece.ends_with(word))
                || ["KEY", "KEYS"].contains(&piece.as_str())
                || pieces.len() > 1 && ["PWD", "PAT"].contains(&piece.as_str())
        })
    }

    fn piece() -> impl Strategy<Value = String> {
        let word = "key|keys|pwd|pat|secrets?|tokens?|password|passwd|passphrase|credentials?|apikeys?|\
            accesskey|privatekey|KEY|Pwd|Token";
        prop_oneof![
            word,
            (word, "[a-z0-9]{0,2}").prop_map(|(word, end)| word + &end),
            ("[A-Z0-9]{0,2}", word).prop_map(|(start, word)| start + &word),
            "[a-zA-Z0-9]{1,4}",
        ]
    }

    proptest! {
        // V2
        #[test]
        fn names_agree_with_the_rule(
            pieces in prop::collection::vec(piece(), 1..4),
            separators in prop::collection::vec("[_./: -]{1,2}|\u{e9}", 4),
            edges in any::<(bool, bool)>(),
        ) {
            let mut name = if edges.0 { String::from("_") } else { String::new() };
            for (index, piece) in pieces.iter().enumerate() {
                if index > 0 {
                    name += &separators[index];
                }
                name += piece;
            }
            if edges.1 {
                name += "-";
            }
            prop_assert_eq!(credential(&name, ""), names_a_credential_naive(&pieces), "{}", name);
        }

        // V2
        #[test]
        fn urls_agree_with_the_rule(
            scheme in "[a-zA-Z][a-z0-9+.-]{0,3}",
            user in "[a-z@]{0,3}",
            password in prop::option::of("[a-z@:]{0,3}"),
            host in prop::option::of("[a-z:0-9]{0,4}"),
            rest in "|[/?#][a-z:@/]{0,4}",
        ) {
            let mut url = format!("{scheme}://{user}");
            if let Some(password) = &password {
                url = format!("{url}:{password}");
            }
            if let Some(host) = &host {
                url = format!("{url}@{host}");
            }
            url += &rest;
            // Without a host of its own, what follows the last `@` of the other parts is the host.
            let before = password.map_or(user.clone(), |password| format!("{user}:{password}"));
            let userinfo = match host {
                Some(_) => Some(&*before),
                None => before.rsplit_once('@').map(|(userinfo, _)| userinfo),
            };
            let password = userinfo.and_then(|info| info.split_once(':')).map(|(_, password)| password);
            let expected = password.is_some_and(|password| !password.is_empty());
            prop_assert_eq!(credential("URL", &url), expected, "{}", url);
        }
    }
}
