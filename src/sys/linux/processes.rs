//! The process table as `/proc` shows it: who is whose child, in which session, with what in the environment.

use crate::sys::unix::ProcessEntry;
use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The readings of one look at the table.
#[derive(Debug)]
pub(crate) struct ProcessTable {
    entries: Vec<ProcessEntry>,
}

impl ProcessTable {
    /// Whether there is a table to read here.
    pub(crate) fn is_there() -> bool {
        check_mount().is_ok()
    }

    /// Reads the table. A process that ends meanwhile is simply missing; one that starts meanwhile may be.
    ///
    /// # Errors
    ///
    /// `Unsupported` where `/proc` is not mounted, or belongs to another pid namespace: its numbers would be other
    /// processes' here. Any other error is of the moment, such as no descriptor to spare.
    pub(crate) fn read() -> io::Result<ProcessTable> {
        check_mount()?;
        let mut entries = Vec::new();
        for name in fs::read_dir("/proc")? {
            let Some(pid) = name?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            entries.extend(ProcessTable::look(pid)?);
        }
        Ok(ProcessTable { entries })
    }

    /// Reads what has started after `pid` did, `age` ago; all descendants of it are among that, and threads may be. `None`
    /// when it is not certain which numbers that is, or there are too many of them: then the whole table is to be read.
    pub(crate) fn read_since(pid: i32, age: Duration) -> io::Result<Option<ProcessTable>> {
        check_mount()?;
        let Some(numbers) = Numbers::since(pid, age) else { return Ok(None) };
        let mut entries = Vec::new();
        for number in numbers.list() {
            entries.extend(ProcessTable::look(number)?);
        }
        Ok(Some(ProcessTable { entries }))
    }

    pub(crate) fn entries(&self) -> &[ProcessEntry] {
        &self.entries
    }

    /// One process as it stands now, or `None` if there is none with this number.
    pub(crate) fn look(pid: i32) -> io::Result<Option<ProcessEntry>> {
        // One line of 52 fields, the longest of 20 digits, and a name of 64 bytes at most.
        let mut line = [0; 1536];
        let read = read_once(&format!("/proc/{pid}/stat"), &mut line)?;
        Ok(read.and_then(|length| parse(pid, &line[..length])))
    }

    /// Whether the number is that of a thread that is not its process's first: such a one is no process of its own.
    pub(crate) fn is_thread(pid: i32) -> io::Result<bool> {
        // The field is one of the first lines; the name before it has 64 bytes at most.
        let mut start = [0; 512];
        let Some(length) = read_once(&format!("/proc/{pid}/status"), &mut start)? else { return Ok(false) };
        let text = String::from_utf8_lossy(&start[..length]);
        let process = text.lines().find_map(|line| line.strip_prefix("Tgid:")).map(str::trim);
        Ok(process.is_some_and(|process| process != pid.to_string()))
    }

    /// Whether the environment the process was started with has `text` in the variable `name`. `false` where it may not be
    /// read.
    pub(crate) fn environment_contains(entry: &ProcessEntry, name: &str, text: &str) -> io::Result<bool> {
        let process = format!("/proc/{}", entry.pid);
        if !entry.headless {
            return place_contains(&process, name, text);
        }
        // The ended first thread has no environment to show; the others have the process's.
        let Ok(threads) = fs::read_dir(format!("{process}/task")) else { return Ok(false) };
        for thread in threads {
            let thread = thread?.file_name();
            if thread.to_str() != Some(entry.pid.to_string().as_str()) {
                let place = format!("{process}/task/{}", thread.to_string_lossy());
                return place_contains(&place, name, text);
            }
        }
        Ok(false)
    }
}

/// Whether the environment shown at a place of `/proc` has `text` in the variable `name`.
///
/// A process that changes its program has none to show, from the moment the new memory is its own until the kernel has
/// written down where in it the environment lies; and a file that was opened before breaks off there, after any of its
/// reads. So what does not hold the text counts only if all of it was read while it lay in one and the same place. A
/// process can be halted in between for as long as others have the processor: it is asked again, and neither a count nor a
/// short time alone may take it for one without the text.
fn place_contains(place: &str, name: &str, text: &str) -> io::Result<bool> {
    const TRIES: u32 = 400;
    const BOUND: Duration = Duration::from_secs(2);
    const LONGEST_PAUSE: Duration = Duration::from_millis(5);
    /// How often it is asked again at once.
    const AT_ONCE: u32 = 8;
    /// How often one that never shows as much as it has is asked for the rest.
    const INCOMPLETE: u32 = 20;
    let began = Instant::now();
    let mut pause = Duration::from_micros(50);
    let mut tried = 0;
    // One that waits for a dead disk in between stays there, and then nobody can say whose it is.
    while tried < TRIES || began.elapsed() < BOUND {
        let before = environment_of(place)?;
        let mut block = Vec::new();
        let read = File::open(format!("{place}/environ")).and_then(|mut file| file.read_to_end(&mut block));
        if gone_is_none(read)?.is_none() {
            return Ok(false);
        }
        if let Some(value) = value_in(&block, name) {
            return Ok(value.windows(text.len().max(1)).any(|window| window == text.as_bytes()));
        }
        match environment_of(place)? {
            Environment::Never => return Ok(false),
            Environment::At(start, end) if before == Environment::At(start, end) => {
                let complete = usize::try_from(end.saturating_sub(start)) == Ok(block.len());
                if complete || tried >= INCOMPLETE {
                    return Ok(false);
                }
            }
            Environment::At(..) | Environment::NotYet => {}
        }
        tried += 1;
        if tried <= AT_ONCE {
            continue;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(false)
}

/// The value of a variable, if all of it is there.
fn value_in<'a>(block: &'a [u8], name: &str) -> Option<&'a [u8]> {
    // What follows the last NUL has been cut off.
    let whole = &block[..=block.iter().rposition(|&byte| byte == 0)?];
    let mut entries = whole.split(|&byte| byte == 0);
    entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// Where a process has its environment. Programs that follow each other in one process have it in different places, where
/// addresses are random, as they are by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Environment {
    /// From one address to another, which are equal for one of no length.
    At(u64, u64),
    /// The process is on its way through `execve`, or out of its memory.
    NotYet,
    /// It has ended, or may not be looked at.
    Never,
}

fn environment_of(place: &str) -> io::Result<Environment> {
    let mut line = [0; 1536];
    let read = read_once(&format!("{place}/stat"), &mut line)?;
    Ok(read.map_or(Environment::Never, |length| parse_environment(&line[..length])))
}

/// The state, field 3, and `env_start` and `env_end`, fields 50 and 51, of proc_pid_stat(5). The end is zero in a process
/// without memory of its own, in one between two programs, and in one that may not be looked at.
fn parse_environment(text: &[u8]) -> Environment {
    let rest = text.iter().rposition(|&byte| byte == b')').and_then(|close| text.get(close + 1..));
    let Some(Ok(rest)) = rest.map(std::str::from_utf8) else { return Environment::Never };
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next();
    let (start, end) = (fields.nth(46), fields.next());
    let number = |field: Option<&str>| field?.parse::<u64>().ok();
    match (state, number(start), number(end)) {
        (None | Some("Z" | "X" | "x"), ..) | (_, None, _) | (.., None) => Environment::Never,
        (.., Some(0)) => Environment::NotYet,
        (_, Some(start), Some(end)) => Environment::At(start, end),
    }
}

/// Whether `/proc` speaks of this process's own pid namespace. Looked at each time: it costs little, and mounts change.
fn check_mount() -> io::Result<()> {
    let us = fs::read_link("/proc/self");
    if us.is_ok_and(|us| us.as_os_str() == std::process::id().to_string().as_str()) {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

/// One read of a small file of `/proc`, which gives it whole. `None` when its process is gone, or not ours to look at.
fn read_once(path: &str, into: &mut [u8]) -> io::Result<Option<usize>> {
    gone_is_none(File::open(path).and_then(|mut file| file.read(into)))
}

fn gone_is_none(read: io::Result<usize>) -> io::Result<Option<usize>> {
    match read {
        Ok(length) => Ok(Some(length)),
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::ENOENT | libc::ESRCH | libc::EACCES | libc::EPERM)
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Of the kernel's sched.h.
const PF_KTHREAD: u32 = 0x0020_0000;
const PF_EXITING: u32 = 0x0000_0004;

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
    // Past tty_nr and tpgid, fields 7 and 8.
    let flags: u32 = fields.nth(2)?.parse().ok()?;
    // From minflt, field 10, to num_threads, field 20.
    let threads: u32 = fields.nth(10)?.parse().ok()?;
    // Past itrealvalue, field 21.
    let start = fields.nth(1)?.parse().ok()?;
    // A process whose first thread has ended says the same, and goes on with the others.
    let ended = matches!(state, "Z" | "X" | "x");
    let (zombie, headless) = (ended && threads <= 1, ended && threads > 1);
    let kernel = flags & PF_KTHREAD != 0;
    // Of the first thread only: the others may go on.
    let leaving = flags & PF_EXITING != 0 && threads <= 1;
    Some(ProcessEntry { pid, parent, group, session, start, zombie, leaving, headless, kernel })
}

/// The numbers handed out since a process got its own.
///
/// They are handed out in a cycle, and `/proc/loadavg` ends in the last one. So everything started later has one of the
/// numbers in between, unless the cycle has come round, which is ruled out by the time it takes to create that many tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    after: i32,
    last: i32,
    /// One more than the largest number there is.
    limit: i32,
}

impl Numbers {
    /// Tasks one processor can create in a second, with room to spare: the best seen is below 100,000.
    const PER_SECOND: f64 = 500_000.0;
    /// After the largest number the cycle goes on here (RESERVED_PIDS of the kernel's pid.h).
    const FIRST: i32 = 300;
    /// With more to look at than this, the whole table is the shorter list.
    const MOST: i32 = 512;

    /// `None` when the cycle may have come round, or there are too many to look at one by one.
    fn since(pid: i32, age: Duration) -> Option<Numbers> {
        let limit = number_in("/proc/sys/kernel/pid_max", 0)?;
        if age.as_secs_f64() * Numbers::PER_SECOND * f64::from(processors())
            >= f64::from(limit - Numbers::FIRST)
        {
            return None;
        }
        let numbers = Numbers { after: pid, last: number_in("/proc/loadavg", 4)?, limit };
        (numbers.count() <= Numbers::MOST).then_some(numbers)
    }

    fn count(self) -> i32 {
        let ahead = self.last - self.after;
        if ahead >= 0 { ahead } else { ahead + (self.limit - Numbers::FIRST) }
    }

    fn list(self) -> impl Iterator<Item = i32> {
        let wrapped = self.last < self.after;
        let end = if wrapped { self.limit - 1 } else { self.last };
        (self.after + 1..=end).chain(wrapped.then_some(Numbers::FIRST..=self.last).into_iter().flatten())
    }
}

/// How many processors the machine has at most, whatever share of them this process may use. It does not change.
fn processors() -> i32 {
    static PROCESSORS: OnceLock<i32> = OnceLock::new();
    *PROCESSORS.get_or_init(|| {
        // SAFETY: sysconf takes an integer.
        let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        i32::try_from(count).unwrap_or(i32::MAX).max(1)
    })
}

/// The number in a field of a file of one line.
fn number_in(path: &str, field: usize) -> Option<i32> {
    let mut line = [0; 128];
    let length = read_once(path, &mut line).ok()??;
    std::str::from_utf8(&line[..length]).ok()?.split_ascii_whitespace().nth(field)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_moves_no_field() {
        let line = b"7 (a) b) (c 1 2) S 3 4 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0\n";
        let entry = parse(7, line).unwrap();
        let expected = ProcessEntry {
            pid: 7,
            parent: 3,
            group: 4,
            session: 5,
            start: 987_654,
            zombie: false,
            leaving: false,
            headless: false,
            kernel: false,
        };
        assert_eq!(entry, expected);
        assert!(parse(7, b"7 (x) Z 3 4 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 1 0 0\n").unwrap().zombie);
        assert!(!parse(7, b"7 (x) Z 3 4 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 2 0 1 0 0\n").unwrap().zombie);
        assert!(parse(7, b"7 (x) Z 3 4 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 2 0 1 0 0\n").unwrap().headless);
        assert!(parse(7, b"7 (x) S 3 4 5 0 -1 2129984 1 2 3 4 5 6 7 8 20 0 2 0 1 0 0\n").unwrap().kernel);
        assert!(parse(7, b"7 (x) R 3 4 5 0 -1 4194308 1 2 3 4 5 6 7 8 20 0 1 0 1 0 0\n").unwrap().leaving);
        assert!(!parse(7, b"7 (x) R 3 4 5 0 -1 4194308 1 2 3 4 5 6 7 8 20 0 2 0 1 0 0\n").unwrap().leaving);
        assert_eq!(parse(7, b"7 (x) S 3"), None);
        assert_eq!(parse(7, b""), None);
    }

    // T5
    #[test]
    fn an_empty_environment_is_told_from_one_that_is_on_its_way() {
        let line = |state: &str, start: &str, end: &str| {
            let before: Vec<String> = (4..=49).map(|field| field.to_string()).collect();
            format!("7 (a) b) {state} {} {start} {end} 0\n", before.join(" "))
        };
        let told = |state, start, end| parse_environment(line(state, start, end).as_bytes());
        assert_eq!(told("R", "140729", "140729"), Environment::At(140_729, 140_729));
        assert_eq!(told("R", "140729", "140800"), Environment::At(140_729, 140_800));
        assert_eq!(told("R", "0", "0"), Environment::NotYet);
        assert_eq!(told("R", "140729", "0"), Environment::NotYet);
        assert_eq!(told("Z", "0", "0"), Environment::Never);
        assert_eq!(parse_environment(b"7 (x) R 3"), Environment::Never);
        assert_eq!(parse_environment(b""), Environment::Never);

        let mut child = std::process::Command::new("sleep").arg("60").env_clear().spawn().unwrap();
        let place = format!("/proc/{}", child.id());
        while environment_of(&place).unwrap() == Environment::NotYet {
            std::thread::yield_now();
        }
        assert!(matches!(environment_of(&place).unwrap(), Environment::At(start, end) if start == end));
        assert!(!place_contains(&place, "PATH", "").unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(environment_of(&place).unwrap(), Environment::Never);
        assert!(matches!(environment_of("/proc/self").unwrap(), Environment::At(start, end) if start < end));
        assert!(!place_contains("/proc/self", "NO_SUCH_VARIABLE", "").unwrap());
        assert!(!place_contains("/proc/self", "PATH", "/no such directory/").unwrap());
        assert!(place_contains("/proc/self", "PATH", "/").unwrap());
    }

    // T5
    #[test]
    fn a_value_counts_when_all_of_it_is_there() {
        assert_eq!(value_in(b"A=1\0AB=2\0", "A"), Some(&b"1"[..]));
        assert_eq!(value_in(b"AB=2\0A=\0", "A"), Some(&b""[..]));
        assert_eq!(value_in(b"B=A=1\0", "A"), None);
        assert_eq!(value_in(b"B=2\0A=1", "A"), None, "cut off");
        assert_eq!(value_in(b"", "A"), None);
    }

    #[test]
    fn a_thread_is_no_process() {
        let us = i32::try_from(std::process::id()).unwrap();
        assert!(!ProcessTable::is_thread(us).unwrap());
        // This test runs on a thread of its own.
        let here = std::fs::read_link("/proc/thread-self").unwrap();
        let thread = here.file_name().unwrap().to_str().unwrap().parse().unwrap();
        assert_eq!(ProcessTable::is_thread(thread).unwrap(), thread != us);
    }

    #[test]
    fn numbers_go_round() {
        let list = |after, last| Numbers { after, last, limit: 32768 }.list().collect::<Vec<_>>();
        assert_eq!(list(500, 503), [501, 502, 503]);
        assert_eq!(list(500, 500), [0; 0]);
        assert_eq!(list(32766, 301), [32767, 300, 301]);
        for (after, last) in [(500, 503), (500, 500), (32766, 301), (32767, 300), (400, 399)] {
            let numbers = Numbers { after, last, limit: 32768 };
            assert_eq!(usize::try_from(numbers.count()).unwrap(), numbers.list().count(), "{numbers:?}");
        }
    }

    #[test]
    fn what_started_since_holds_what_started_since() {
        let began = std::time::Instant::now();
        let mut first = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut second = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = |child: &std::process::Child| i32::try_from(child.id()).unwrap();
        let table = ProcessTable::read_since(pid(&first), began.elapsed()).unwrap();
        // On a machine busy enough the latest numbers are too many to look at.
        let table = table.unwrap_or_else(|| ProcessTable::read().unwrap());
        let found = table.entries().iter().any(|entry| entry.pid == pid(&second));
        for child in [&mut first, &mut second] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(found);
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
