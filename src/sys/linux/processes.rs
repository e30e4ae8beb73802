//! The process table as `/proc` shows it: who is whose child, in which session, with what in the environment.

use std::fs::{self, File};
use std::io::{self, Read};
use std::time::Duration;

/// One process, as of one reading of its `stat` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// When it started, in clock ticks since boot. With the pid it names a process for good: a reused number has another.
    pub(crate) start: u64,
    /// Ended, and waiting to be reaped: it can do nothing any more.
    pub(crate) zombie: bool,
}

/// The readings of one look at the table.
#[derive(Debug)]
pub(crate) struct ProcessTable {
    entries: Vec<ProcessEntry>,
}

impl ProcessTable {
    /// Reads the whole table. A process that ends meanwhile is simply missing; one that starts meanwhile may be.
    ///
    /// # Errors
    ///
    /// `Unsupported` where `/proc` is not mounted, or belongs to another pid namespace: its numbers would be other
    /// processes' here. Any other error is of the moment, such as no descriptor to spare.
    pub(crate) fn read() -> io::Result<ProcessTable> {
        let us = fs::read_link("/proc/self");
        if !us.is_ok_and(|us| us.as_os_str() == std::process::id().to_string().as_str()) {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let mut entries = Vec::new();
        let mut text = Vec::new();
        for name in fs::read_dir("/proc")? {
            let Some(pid) = name?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            entries.extend(read_entry(pid, &mut text)?);
        }
        Ok(ProcessTable { entries })
    }

    pub(crate) fn entries(&self) -> &[ProcessEntry] {
        &self.entries
    }

    /// One process as it stands now, or `None` if there is none with this number.
    pub(crate) fn look(pid: i32) -> io::Result<Option<ProcessEntry>> {
        read_entry(pid, &mut Vec::new())
    }

    /// Whether the environment the process was started with contains `text`. `false` where it may not be read.
    pub(crate) fn environment_contains(pid: i32, text: &[u8]) -> io::Result<bool> {
        let mut block = Vec::new();
        let read = read_to_end(&format!("/proc/{pid}/environ"), &mut block)?;
        Ok(read && !text.is_empty() && block.windows(text.len()).any(|window| window == text))
    }
}

fn read_entry(pid: i32, text: &mut Vec<u8>) -> io::Result<Option<ProcessEntry>> {
    text.clear();
    let read = read_to_end(&format!("/proc/{pid}/stat"), text)?;
    Ok(if read { parse(pid, text) } else { None })
}

/// Reads a file of a process. `false` when the process is gone, or not ours to look at.
fn read_to_end(path: &str, into: &mut Vec<u8>) -> io::Result<bool> {
    match File::open(path).and_then(|mut file| file.read_to_end(into)) {
        Ok(_) => Ok(true),
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::ENOENT | libc::ESRCH | libc::EACCES | libc::EPERM)
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// One line of proc_pid_stat(5). The name in parentheses may itself hold spaces and parentheses: fields are counted from
/// the last one.
fn parse(pid: i32, text: &[u8]) -> Option<ProcessEntry> {
    let close = text.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    // From tty_nr, field 7, to starttime, field 22.
    let start = fields.nth(15)?.parse().ok()?;
    Some(ProcessEntry { pid, parent, group, session, start, zombie: matches!(state, "Z" | "X" | "x") })
}

/// Whether it is certain that no process at all has started since `pid` did, `age` ago: then `pid` has no descendants.
/// `false` is "look at the table".
///
/// Numbers are handed out in a cycle, and `/proc/loadavg` ends in the last one: if it is `pid`'s and the cycle cannot have
/// come round, nothing was started. How often it can have come round is bounded by how fast a kernel can create tasks.
pub(crate) fn nobody_since(pid: i32, age: Duration) -> bool {
    /// Tasks one processor can create in a second, with room to spare: the best seen is below 100,000.
    const TASKS_PER_SECOND: f64 = 500_000.0;
    let last = || -> Option<(i32, f64)> {
        let load = fs::read_to_string("/proc/loadavg").ok()?;
        let last = load.split_ascii_whitespace().nth(4)?.parse().ok()?;
        let most: f64 = fs::read_to_string("/proc/sys/kernel/pid_max").ok()?.trim().parse().ok()?;
        Some((last, most))
    };
    let processors = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
    last().is_some_and(|(last, most)| last == pid && age.as_secs_f64() * TASKS_PER_SECOND * processors < most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_moves_no_field() {
        let line = b"7 (a) b) (c 1 2) S 3 4 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0\n";
        let entry = parse(7, line).unwrap();
        let expected =
            ProcessEntry { pid: 7, parent: 3, group: 4, session: 5, start: 987_654, zombie: false };
        assert_eq!(entry, expected);
        assert!(parse(7, b"7 (x) Z 3 4 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 1 0 0\n").unwrap().zombie);
        assert_eq!(parse(7, b"7 (x) S 3"), None);
        assert_eq!(parse(7, b""), None);
    }

    #[test]
    fn the_table_holds_this_process_under_its_parent() {
        let table = ProcessTable::read().unwrap();
        let us = i32::try_from(std::process::id()).unwrap();
        let entry = table.entries().iter().find(|entry| entry.pid == us).unwrap();
        assert_eq!(entry.parent, i32::try_from(std::os::unix::process::parent_id()).unwrap());
        assert!(!entry.zombie);
        assert_eq!(ProcessTable::look(us).unwrap(), Some(*entry));
    }
}
