//! The view of a stream's bytes as text that never splits a character.

/// The longest part of a character that is not yet one: three bytes of a character of four.
const LONGEST_UNFINISHED: usize = 3;

/// The bytes as text, with what is not UTF-8 as U+FFFD. `cut` says that bytes before these were dropped: then
/// the rest of a character that began among them is left out.
pub(crate) fn whole(bytes: &[u8], cut: bool) -> String {
    let skipped = if cut { rest_of_a_character(bytes) } else { 0 };
    String::from_utf8_lossy(&bytes[skipped..]).into_owned()
}

/// The length of the part that can be turned into text now. What follows it, at most three bytes, is the
/// beginning of a character whose end has not been read yet; the caller keeps it for the next read, or at the
/// end of the stream gives it to [`whole`], which makes one U+FFFD of it.
///
/// A sequence that no further byte can make valid is not waited for. The text of the parts, joined, is the
/// text of the whole, because a lead byte always begins something new, valid or not.
pub(crate) fn complete_len(bytes: &[u8]) -> usize {
    let window = bytes.len().saturating_sub(LONGEST_UNFINISHED);
    let Some(lead) = bytes[window..].iter().rposition(|&byte| !is_continuation(byte)) else {
        return bytes.len();
    };
    let lead = window + lead;
    match std::str::from_utf8(&bytes[lead..]) {
        // What is unfinished begins with a lead byte, and this is the last one there is.
        Err(error) if error.error_len().is_none() => lead,
        _ => bytes.len(),
    }
}

/// How many bytes at the front can only be the rest of a character. More than three are not: a fourth
/// continuation byte in a row was invalid wherever the stream was cut, so it shows.
fn rest_of_a_character(bytes: &[u8]) -> usize {
    bytes.iter().take(LONGEST_UNFINISHED).take_while(|&&byte| is_continuation(byte)).count()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::{complete_len, whole};
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::sync::OnceLock;

    /// Every proper beginning of every character.
    fn beginnings() -> &'static HashSet<Vec<u8>> {
        static BEGINNINGS: OnceLock<HashSet<Vec<u8>>> = OnceLock::new();
        BEGINNINGS.get_or_init(|| {
            let mut all = HashSet::new();
            // The last byte of a character is never part of a beginning, and takes each of its 64 values.
            for character in ('\u{80}'..=char::MAX).step_by(64) {
                let mut buffer = [0; 4];
                let encoded = character.encode_utf8(&mut buffer).as_bytes();
                all.extend((1..encoded.len()).map(|length| encoded[..length].to_vec()));
            }
            all
        })
    }

    /// `complete_len` by looking up.
    fn complete_len_naive(bytes: &[u8]) -> usize {
        let unfinished = (1..=3).filter(|&length| length <= bytes.len());
        let mut lengths = unfinished.filter(|&length| beginnings().contains(&bytes[bytes.len() - length..]));
        bytes.len() - lengths.next().unwrap_or(0)
    }

    /// Bytes among which characters, parts of them and nonsense are all common.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            any::<char>().prop_map(|character| character.to_string().into_bytes()),
            (any::<char>(), 1usize..4).prop_map(|(character, length)| {
                let encoded = character.to_string().into_bytes();
                encoded[..length.min(encoded.len())].to_vec()
            }),
            prop::sample::select(vec![
                0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0xff
            ])
            .prop_map(|byte| vec![byte]),
            any::<u8>().prop_map(|byte| vec![byte]),
        ];
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    // O4
    #[test]
    fn an_unfinished_character_waits() {
        for waiting in ["\u{20ac}", "\u{1f600}", "\u{e9}", "\u{800}", "\u{10ffff}", "\u{d7ff}"] {
            let encoded = waiting.as_bytes();
            for length in 1..encoded.len() {
                let bytes = [b"a", &encoded[..length]].concat();
                assert_eq!(complete_len(&bytes), 1, "{bytes:x?}");
                assert_eq!(complete_len(&encoded[..length]), 0, "{bytes:x?}");
            }
            assert_eq!(complete_len(encoded), encoded.len());
        }
    }

    // O4
    #[test]
    fn what_can_never_become_a_character_does_not_wait() {
        let hopeless: [&[u8]; 10] = [
            b"\xe2\x28", // a letter where a continuation must be
            b"\xc0",     // lead bytes that no character has
            b"\xf5",
            b"\xff",
            b"\x80", // continuations of nothing
            b"\x80\x80\x80\x80",
            b"\xe0\x80",     // longer than needed
            b"\xed\xa0",     // a surrogate
            b"\xf4\x90",     // beyond the last character
            b"\xe2\x82\xff", // a lead byte does not continue another
        ];
        for bytes in hopeless {
            assert_eq!(complete_len(bytes), bytes.len(), "{bytes:x?}");
        }
        assert_eq!(complete_len(b"\xe2\x82\xe2"), 2, "the first can no longer be finished, the second can");
        assert_eq!(complete_len(b""), 0);
    }

    // O4
    #[test]
    fn unfinished_at_the_end_is_one_replacement() {
        for bytes in [&b"\xe2"[..], b"\xe2\x82", b"\xf0\x9f\x98"] {
            assert_eq!(whole(bytes, false), "\u{fffd}");
        }
    }

    // O4
    #[test]
    fn a_cut_tail_begins_at_the_next_character() {
        let smile = "\u{1f600}".as_bytes();
        for dropped in 1..4 {
            let tail = [&smile[dropped..], b"ok"].concat();
            assert_eq!(whole(&tail, true), "ok");
            assert_ne!(whole(&tail, false), "ok", "only a cut explains them");
        }
        assert_eq!(whole(smile, true), "\u{1f600}");
        assert_eq!(whole(b"\x80\x80\x80", true), "");
    }

    // O4
    #[test]
    fn a_cut_tail_loses_only_continuations_and_at_most_three() {
        assert_eq!(whole(b"\x80\x80\x80\x80x", true), "\u{fffd}x");
        assert_eq!(whole(b"\xffx", true), "\u{fffd}x");
        assert_eq!(whole(b"x\x80", true), "x\u{fffd}");
        assert_eq!(whole(b"\x80\xe2\x82", true), "\u{fffd}");
    }

    // O4
    #[test]
    fn every_pair_of_bytes_agrees_with_the_table() {
        for first in 0..=255 {
            assert_eq!(complete_len(&[first]), complete_len_naive(&[first]), "{first:x}");
            for second in 0..=255 {
                let bytes = [first, second];
                assert_eq!(complete_len(&bytes), complete_len_naive(&bytes), "{bytes:x?}");
            }
        }
    }

    proptest! {
        // O4
        #[test]
        fn waits_for_exactly_the_beginnings_of_characters(bytes in bytes()) {
            prop_assert_eq!(complete_len(&bytes), complete_len_naive(&bytes));
        }

        // O4: reads joined are the whole, however the bytes came.
        #[test]
        fn reads_joined_are_the_whole(bytes in bytes(), cuts in prop::collection::vec(0usize..50, 0..8)) {
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            ends.sort();
            let mut joined = String::new();
            let mut delivered = 0;
            for end in ends {
                let fresh = &bytes[delivered..end];
                let complete = complete_len(fresh);
                prop_assert!(fresh.len() - complete <= 3);
                joined.push_str(&whole(&fresh[..complete], false));
                delivered += complete;
            }
            joined.push_str(&whole(&bytes[delivered..], false));
            prop_assert_eq!(joined, String::from_utf8_lossy(&bytes));
        }

        // O4: of valid text, a tail is the text from the first whole character on.
        #[test]
        fn a_cut_tail_of_valid_text_is_a_suffix_of_it(text in any::<String>(), dropped in 0usize..40) {
            let dropped = dropped.min(text.len());
            let next = (dropped..=text.len()).find(|&index| text.is_char_boundary(index));
            let expected = &text[next.expect("the end is a boundary")..];
            prop_assert_eq!(whole(&text.as_bytes()[dropped..], true), expected);
        }
    }
}
