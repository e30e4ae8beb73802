//! Reading: what has left the ring comes from the spill file, and only what neither has is lost.

use super::shared::{Claim, Output, OutputStream};
use super::spill::SpillView;
use super::text;
use crate::result::{CollectedOutput, OutputRead, ProcessRead};
use std::path::PathBuf;

/// A piece of a stream as bytes.
#[derive(Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) next_offset: u64,
    /// Bytes before these are gone for good; these are then the whole retained tail.
    pub(crate) lossy: bool,
}

/// Completes a claim without the lock: the spill file fills the gap before the tail, if it still can.
fn complete(claim: Claim) -> Bytes {
    let Claim { from, start, end, tail, spill } = claim;
    if from == start {
        return Bytes { bytes: tail, next_offset: end, lossy: false };
    }
    match spill.map(|spill| spill.read(from, start)) {
        Some(Ok(mut bytes)) => {
            bytes.extend_from_slice(&tail);
            Bytes { bytes, next_offset: end, lossy: false }
        }
        _ => Bytes { bytes: tail, next_offset: end, lossy: true },
    }
}

fn as_text(piece: Bytes) -> String {
    text::whole(&piece.bytes, piece.lossy)
}

/// The path of the claimed stream's file, if it stands. Asked without the lock: it looks at the file system.
fn standing(claim: &Claim) -> Option<PathBuf> {
    claim.spill.as_ref().and_then(SpillView::standing)
}

/// The stream's text from `offset` on. Consumes nothing.
pub(crate) fn read_text(output: &Output, channel: OutputStream, offset: u64) -> OutputRead {
    let claim = output.lock().of(channel).claim(offset, true);
    let spill_path = standing(&claim);
    let piece = complete(claim);
    OutputRead { next_offset: piece.next_offset, lossy: piece.lossy, text: as_text(piece), spill_path }
}

/// The stream's bytes from `offset` on. Consumes nothing.
pub(crate) fn read_bytes(output: &Output, channel: OutputStream, offset: u64) -> Bytes {
    let claim = output.lock().of(channel).claim(offset, false);
    complete(claim)
}

/// What is new on one stream since the last consuming read, as bytes. A note is none of the command's, and waits for a read
/// of text.
pub(crate) fn consume_bytes(output: &Output, stream: OutputStream) -> Bytes {
    let claim = {
        let mut streams = output.lock();
        streams.note_is_news = false;
        streams.of_mut(stream).take(false)
    };
    complete(claim)
}

/// What is new on both streams since the last consuming read, as one text.
pub(crate) fn consume(output: &Output) -> ProcessRead {
    // Claimed together, so that two threads that read at once share the output out and repeat nothing.
    let (stdout, stderr, note) = {
        let mut streams = output.lock();
        streams.note_is_news = false;
        (streams.stdout.take(true), streams.stderr.take(true), streams.note.take())
    };
    let (stdout_spill_path, stderr_spill_path) = (standing(&stdout), standing(&stderr));
    let (stdout, stderr) = (complete(stdout), complete(stderr));
    let lossy = stdout.lossy || stderr.lossy;
    let mut errors = as_text(stderr);
    errors.extend(note);
    let delta = section(as_text(stdout), &errors);
    ProcessRead { delta, lossy, stdout_spill_path, stderr_spill_path }
}

/// Stdout's text, and stderr's below a marker line, if there is any.
fn section(mut stdout: String, stderr: &str) -> String {
    if !stderr.is_empty() {
        if !stdout.is_empty() && !stdout.ends_with('\n') {
            stdout.push('\n');
        }
        stdout.push_str("[stderr]\n");
        stdout.push_str(stderr);
    }
    stdout
}

/// The stream as a result has it.
pub(crate) fn collected(output: &Output, channel: OutputStream) -> CollectedOutput {
    let (bytes, total_bytes, spill, spill_error) = {
        let streams = output.lock();
        let stream = streams.of(channel);
        let bytes = stream.ring.copy_from(0);
        (bytes, stream.ring.total(), stream.spill.clone(), stream.spill_error.clone())
    };
    let mut collected = CollectedOutput::new(bytes, total_bytes);
    collected.spill_path = spill.and_then(|spill| spill.standing());
    collected.spill_error = spill_error;
    collected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Collector, SpillDir};

    fn output_of(chunks: &[&[u8]], limit: usize, cap: Option<u64>, dir: &SpillDir) -> Output {
        let output = Output::new(limit, limit);
        let mut collector = Collector::new(OutputStream::Stdout, limit, cap);
        for chunk in chunks {
            collector.take(&output, dir, chunk);
        }
        collector.finish(&output);
        output
    }

    fn dir() -> (tempfile::TempDir, SpillDir) {
        let root = tempfile::tempdir().unwrap();
        let dir = SpillDir::new(root.path().to_owned(), false);
        (root, dir)
    }

    // O10
    #[test]
    fn a_marker_line_stands_between_the_streams() {
        assert_eq!(section("a".into(), ""), "a");
        assert_eq!(section("a\n".into(), "e"), "a\n[stderr]\ne");
        assert_eq!(section("a".into(), "e\n"), "a\n[stderr]\ne\n");
        assert_eq!(section(String::new(), "e"), "[stderr]\ne");
    }

    // O3, O5, O8
    #[test]
    fn the_file_begins_with_the_first_dropped_byte_and_holds_all() {
        let (_root, dir) = dir();
        let exact = collected(&output_of(&[b"abcd"], 4, Some(100), &dir), OutputStream::Stdout);
        assert!(!exact.truncated && exact.spill_path.is_none());
        let over = collected(&output_of(&[b"ab", b"cd", b"e"], 4, Some(100), &dir), OutputStream::Stdout);
        assert!(over.truncated);
        assert_eq!((over.text.as_str(), over.total_bytes), ("bcde", 5));
        assert_eq!(std::fs::read(over.spill_path.unwrap()).unwrap(), b"abcde");
    }

    // O5
    #[test]
    fn past_the_cap_the_file_goes_and_is_never_named_again() {
        let (root, dir) = dir();
        let output = Output::new(2, 2);
        let mut collector = Collector::new(OutputStream::Stdout, 2, Some(5));
        collector.take(&output, &dir, b"abcd");
        let path = read_text(&output, OutputStream::Stdout, 0).spill_path.unwrap();
        collector.take(&output, &dir, b"ef");
        collector.take(&output, &dir, b"g");
        collector.finish(&output);
        let result = collected(&output, OutputStream::Stdout);
        assert_eq!((result.text.as_str(), result.total_bytes, result.spill_path), ("fg", 7, None));
        assert!(result.spill_error.unwrap().contains("cap of 5 bytes"));
        assert!(!path.exists());
        dir.dispose();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }

    // O7
    #[test]
    fn a_spill_that_fails_costs_the_path_only() {
        let dir = SpillDir::new("/nonexistent/root".into(), false);
        let result = collected(&output_of(&[b"abc", b"def"], 4, Some(100), &dir), OutputStream::Stdout);
        assert_eq!((result.text.as_str(), result.total_bytes, result.spill_path), ("cdef", 6, None));
        assert_eq!(result.spill_error.as_deref(), Some("no such file or directory"));
    }

    // O7: a cleaner that removes the directory costs the files in it, not those to come
    #[test]
    fn a_removed_directory_is_made_again() {
        let (root, dir) = dir();
        let first = collected(&output_of(&[b"abcdef"], 4, Some(100), &dir), OutputStream::Stdout);
        let first = first.spill_path.unwrap();
        std::fs::remove_dir_all(first.parent().unwrap()).unwrap();
        let second = collected(&output_of(&[b"ghijkl"], 4, Some(100), &dir), OutputStream::Stdout);
        assert_eq!(std::fs::read(second.spill_path.unwrap()).unwrap(), b"ghijkl");
        assert!(root.path().exists());
    }

    // O9
    #[test]
    fn an_offset_reader_goes_back_to_the_file_and_loses_only_what_neither_has() {
        let (_root, dir) = dir();
        let kept = output_of(&[b"abc", b"def"], 4, Some(100), &dir);
        let read = read_text(&kept, OutputStream::Stdout, 1);
        assert_eq!((read.text.as_str(), read.next_offset, read.lossy), ("bcdef", 6, false));
        assert!(read.spill_path.is_some());
        let lost = output_of(&[b"abc", b"def"], 4, None, &dir);
        let read = read_text(&lost, OutputStream::Stdout, 1);
        assert_eq!((read.text.as_str(), read.next_offset, read.lossy), ("cdef", 6, true));
        let read = read_text(&lost, OutputStream::Stdout, 3);
        assert_eq!((read.text.as_str(), read.lossy), ("def", false));
        assert_eq!(read_text(&lost, OutputStream::Stdout, 99).next_offset, 6);
    }

    // O8, case 82: a file exchanged by the command is neither named nor followed
    #[test]
    fn an_exchanged_file_is_not_followed() {
        let (root, dir) = dir();
        let output = output_of(&[b"abc", b"def"], 4, Some(100), &dir);
        let path = read_text(&output, OutputStream::Stdout, 0).spill_path.unwrap();
        let target = root.path().join("target");
        std::fs::write(&target, "secret").unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let read = read_text(&output, OutputStream::Stdout, 0);
        assert_eq!((read.text.as_str(), read.lossy, read.spill_path), ("cdef", true, None));
        assert_eq!(std::fs::read(&target).unwrap(), b"secret");
    }

    // O4, O10, case 74
    #[test]
    fn an_unfinished_character_waits_and_is_flushed_once() {
        let (_root, dir) = dir();
        let output = Output::new(64, 64);
        let mut collector = Collector::new(OutputStream::Stdout, 64, None);
        collector.take(&output, &dir, b"a\xe2");
        assert_eq!(consume(&output).delta, "a");
        assert!(!output.wait(None, Some(std::time::Instant::now())), "an unfinished character is no news");
        collector.take(&output, &dir, b"\x82\xac\xe2");
        assert_eq!(consume(&output).delta, "\u{20ac}");
        collector.finish(&output);
        assert!(output.wait(None, None), "at the end it is");
        assert_eq!(consume(&output).delta, "\u{fffd}");
        assert_eq!(consume(&output).delta, "");
        assert_eq!(collected(&output, OutputStream::Stdout).bytes(), b"a\xe2\x82\xac\xe2");
    }

    // O6
    #[test]
    fn files_are_private_whatever_the_umask() {
        use std::os::unix::fs::PermissionsExt;
        let (_root, dir) = dir();
        let output = output_of(&[b"abcdef"], 4, Some(100), &dir);
        let path = collected(&output, OutputStream::Stdout).spill_path.unwrap();
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    // O8: by proof that the owner is gone, never by age
    #[test]
    fn a_directory_is_swept_only_when_nobody_holds_it() {
        let (root, live) = dir();
        let output = output_of(&[b"abcdef"], 4, Some(100), &live);
        let path = collected(&output, OutputStream::Stdout).spill_path.unwrap();
        let dead = root.path().join("shell-executor-dead");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("stdout-x"), "x").unwrap();
        let kept = root.path().join("shell-executor.kept-1");
        std::fs::create_dir(&kept).unwrap();
        let link = root.path().join("shell-executor-link");
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        SpillDir::new(root.path().to_owned(), false).sweep();
        assert!(path.exists() && kept.exists() && link.exists() && !dead.exists());
    }
}
