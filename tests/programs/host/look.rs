//! What a process can see of itself and its children: descriptors, threads, processes, signal masks.

use crate::expect::{Outcome, PATIENCE, ensure, eventually};
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The numbers of the open descriptors.
pub(crate) fn descriptors() -> Vec<i32> {
    let Ok(listed) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let numbers: Vec<i32> =
        listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    // The listing's own descriptor is closed by now.
    let mut open: Vec<i32> = numbers.into_iter().filter(|&number| is_open(number)).collect();
    open.sort_unstable();
    open
}

pub(crate) fn is_open(number: i32) -> bool {
    // SAFETY: F_GETFD takes no pointer; a number that is not open gives -1.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

/// The names of the live threads.
pub(crate) fn threads() -> Vec<String> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(|task| Some(name(task.ok()?)?.trim().to_owned())).collect()
}

/// The field `key` of each thread's status whose name begins with `prefix`, with the name.
pub(crate) fn thread_status(prefix: &str, key: &str) -> Vec<(String, String)> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    statuses
        .filter_map(|status| Some((status_field(&status, "Name")?, status_field(&status, key)?)))
        .filter(|(name, _)| name.starts_with(prefix))
        .collect()
}

/// One line of `/proc/PID/status`.
pub(crate) fn status_field(status: &str, key: &str) -> Option<String> {
    let line = status.lines().find(|line| line.split(':').next() == Some(key))?;
    Some(line.split(':').nth(1)?.trim().to_owned())
}

/// The children of this process, zombies included, each with its state.
pub(crate) fn children() -> Vec<(i32, char)> {
    let us = std::process::id().to_string();
    let stat = |pid: i32| -> Option<(i32, char)> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        (fields.next()? == us).then_some((pid, state))
    };
    processes().into_iter().filter_map(stat).collect()
}

/// The processes whose program is called `sleep`, with the last argument `number`. A zombie is none.
pub(crate) fn sleepers(number: &str) -> Vec<i32> {
    let sleeps = |pid: &i32| {
        let line = command_line(*pid);
        let arguments: Vec<&[u8]> = line.split(|&byte| byte == 0).filter(|piece| !piece.is_empty()).collect();
        let program = arguments.first().and_then(|first| first.rsplit(|&byte| byte == b'/').next());
        program == Some(b"sleep".as_slice()) && arguments.last() == Some(&number.as_bytes())
    };
    processes().into_iter().filter(sleeps).collect()
}

/// The arguments of a process, each with a NUL after it; empty for a zombie. One on its way through `execve` has none
/// either, though it has memory: it is asked again.
fn command_line(pid: i32) -> Vec<u8> {
    let has_memory =
        || fs::read_to_string(format!("/proc/{pid}/statm")).is_ok_and(|pages| !pages.starts_with("0 "));
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if !line.is_empty() || !has_memory() {
            return line;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Vec::new()
}

fn processes() -> Vec<i32> {
    let Ok(listed) = fs::read_dir("/proc") else { return Vec::new() };
    listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

pub(crate) fn gone(number: &str) -> Outcome {
    eventually(&format!("no `sleep {number}` is left"), || sleepers(number).is_empty())
}

/// A number of seconds that no other process on this machine sleeps.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}", 1_000 + u64::from(std::process::id()) * 1_000 + u64::from(next))
}

/// What a service may not leave behind in its host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Belongings {
    descriptors: Vec<i32>,
    threads: usize,
    children: Vec<i32>,
}

impl Belongings {
    pub(crate) fn now() -> Belongings {
        let children = children().into_iter().map(|(pid, _)| pid).collect();
        Belongings { descriptors: descriptors(), threads: threads().len(), children }
    }

    /// After the supervisors that have settled their runs are gone: the deadline thread stays.
    pub(crate) fn at_rest() -> Outcome<Belongings> {
        eventually("no supervisor is left", || threads().iter().all(|name| name != "shx-run"))?;
        Ok(Belongings::now())
    }

    /// A joined thread, and a reaped child, leave `/proc` a moment later.
    pub(crate) fn ensure_as_before(&self) -> Outcome {
        let mut now = Belongings::now();
        let waited = eventually("as before", || {
            now = Belongings::now();
            now == *self
        });
        ensure(waited.is_ok(), || {
            format!("left behind: before {self:?}, now {now:?}, {:?}, {:?}", threads(), children())
        })
    }
}
