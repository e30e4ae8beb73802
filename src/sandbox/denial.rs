//! Whether a sandbox has denied something, from what is left of a run: conservatively.

/// Whether a run that ended with `exit_code` was denied something: it failed by itself, and its stderr has one of the
/// backend's own texts. Case is ignored; `texts` are in lower case.
///
/// A denial that the command hid (a redirected stderr, a pipeline that ended in success) is not seen.
pub(super) fn is_denied(exit_code: Option<i32>, stderr: &[u8], texts: &[String]) -> bool {
    let failed = exit_code.is_some_and(|code| code != 0);
    failed && texts.iter().any(|text| contains(stderr, text))
}

/// Whether `text`, in any case of its ASCII letters, stands somewhere in `bytes`. An empty text stands nowhere.
pub(super) fn contains(bytes: &[u8], text: &str) -> bool {
    !text.is_empty() && bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S7, case 88
    #[test]
    fn only_a_failure_with_the_backends_own_text_is_a_denial() {
        let denied =
            |code, stderr: &str| is_denied(code, stderr.as_bytes(), &["read-only file system".to_owned()]);
        assert!(denied(Some(1), "touch: cannot touch '/etc/x': Read-only file system\n"));
        assert!(denied(Some(2), "EROFS: read-only file system, open '/etc/x'"));
        assert!(!denied(Some(0), "touch: cannot touch '/etc/x': Read-only file system\n"));
        assert!(!denied(None, "Read-only file system"), "a signal has ended it");
        assert!(!denied(Some(1), "sandbox: permission denied\n"));
        assert!(!denied(Some(1), "cat: /etc/shadow: Permission denied\n"));
        assert!(!is_denied(Some(1), b"anything", &[String::new()]));
        assert!(!is_denied(Some(1), b"anything", &[]));
    }
}
