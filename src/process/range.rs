//! The range: the leader and everything it started, found by session, ancestry and marker, signalled by identity.

use super::table;
use crate::result::Containment;
use crate::sys::{self, Leader, PidFd, ProcessEntry, ProcessTable};
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What a look at the range has found, the leader not counted.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// How many processes are alive.
    pub(crate) count: usize,
    /// How many of them are on their way out, and can do nothing any more.
    pub(crate) leaving: usize,
    /// Some of them, each readable when it has ended. When all of these have, another look finds the rest.
    pub(crate) watched: Vec<PidFd>,
    /// Whether one of them could not be named by a descriptor, so that it was neither signalled nor can be watched.
    pub(crate) unnamed: bool,
    /// Which they are: the number and the start.
    ids: Vec<(i32, u64)>,
}

/// The environment variable that marks every process of a range. In a host that runs in a range itself, the value holds
/// that range's mark as well, so that an outer range still finds what an inner one has started.
pub(super) const MARKER: &str = "SHELL_EXECUTOR_RANGE";

/// How many are watched at a time. Each takes a descriptor of the host's.
const MOST_WATCHED: usize = 64;

/// Why nobody can say who is in the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// There is no process table here: the leader's group is the range.
    NoTable,
    /// The table could not be read this time: no descriptor or memory to spare.
    NotNow,
}

/// What one execution started.
///
/// The leader stays unreaped for as long as members are looked for by the number of its session: an unreaped process
/// keeps its number, so nobody else's session can have it.
#[derive(Debug)]
pub(crate) struct Range {
    leader: Arc<Leader>,
    /// The leader waits for the command, beside it: what asks politely is not for him.
    spare_leader: bool,
    /// The marker's text, unique to this range; every descendant that kept its environment carries it.
    marker: String,
    started: Instant,
    /// When the leader started, in the table's clock. No descendant is older.
    born: OnceLock<u64>,
}

/// The leaders of all ranges of this process whose numbers are pinned. Whoever is in the session of one belongs to that
/// range, so that no other has to read its environment: with a thousand ranges that would be a million files.
static LEADERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn leaders() -> MutexGuard<'static, BTreeSet<i32>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Range {
    fn drop(&mut self) {
        leaders().remove(&self.leader.pid());
    }
}

impl Range {
    pub(crate) fn new(leader: Leader, marker: String, started: Instant, spare_leader: bool) -> Range {
        leaders().insert(leader.pid());
        Range { leader: Arc::new(leader), spare_leader, marker, started, born: OnceLock::new() }
    }

    pub(crate) fn leader(&self) -> &Arc<Leader> {
        &self.leader
    }

    /// Gives the leader's number back.
    pub(crate) fn reap(&self) {
        // Before it can be another process's.
        leaders().remove(&self.leader.pid());
        self.leader.reap();
    }

    /// The living processes of the range.
    pub(crate) fn members(&self) -> Result<Members, Unseen> {
        self.find().map(|found| self.visit(&found, &[], false))
    }

    /// Sends each of `signals` to every process of the range, once, and gives the members it went to.
    ///
    /// The look comes first: once the leader is dead, what it had started is nobody's child any more, and one that left the
    /// session and cleared its environment cannot be found again.
    ///
    /// # Errors
    ///
    /// When it was not seen who is in the range. The leader's group has been signalled all the same.
    pub(crate) fn strike(&self, signals: &[i32]) -> Result<Members, Unseen> {
        let found = self.find();
        let has_members = found.as_ref().is_ok_and(|found| !found.is_empty());
        let spared = self.spare_leader && has_members && !signals.contains(&sys::SIGKILL);
        for &signal in signals.iter().filter(|_| !spared) {
            // ESRCH: the group is empty. EPERM: all of it belongs to somebody else; whoever is left is counted later.
            let _ = self.leader.signal_group(signal);
        }
        found.map(|found| self.visit(&found, signals, spared))
    }

    /// Takes hold of those found, one after the other, and signals each: a range of any size needs few free descriptors.
    /// `spared`: the leader's group has not been signalled as such.
    fn visit(&self, found: &[ProcessEntry], signals: &[i32], spared: bool) -> Members {
        let mut members = Members::default();
        for entry in found {
            let mut identified = self.identify(entry);
            while identified.is_err() && !members.watched.is_empty() {
                // Those that are held take the descriptors that this one needs, for a moment.
                members.watched.truncate(members.watched.len() / 2);
                identified = self.identify(entry);
            }
            let named = match identified {
                Ok(Named::Gone) => continue,
                Ok(Named::By(pidfd, group)) => Some((pidfd, group)),
                Ok(Named::ByNumberOnly) | Err(_) => None,
            };
            members.count += 1;
            members.leaving += usize::from(entry.leaving);
            members.ids.push((entry.pid, entry.start));
            members.unnamed |= named.is_none();
            let Some((pidfd, group)) = named else { continue };
            for &signal in signals {
                // The group has had its own already, and a second polite one could be one too many.
                if spared || group != self.leader.pid() || signal == sys::SIGKILL {
                    // ESRCH: it has ended. EPERM: it became another user's; it is counted as a survivor in the end.
                    let _ = pidfd.signal(signal);
                }
            }
            if members.watched.len() < MOST_WATCHED {
                members.watched.push(pidfd);
            }
        }
        members
    }

    /// Kills the range without waiting for anybody, looking again until a look finds nobody new: what a dying parent had
    /// started meanwhile is found by the next one.
    pub(crate) fn kill_at_once(&self) {
        /// Against a tree that starts processes faster than they can be named. The group itself dies at one stroke.
        const LOOKS: usize = 50;
        let mut killed = HashSet::new();
        for _ in 0..LOOKS {
            let members = match self.strike(&[sys::SIGKILL]) {
                Ok(members) => members,
                Err(Unseen::NoTable) => return,
                // A descriptor may be free in a moment.
                Err(Unseen::NotNow) => {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
            };
            let before = killed.len();
            killed.extend(members.ids);
            if killed.len() == before {
                return;
            }
        }
    }

    /// By which means members are found here.
    pub(crate) fn containment() -> Containment {
        static TABLE: OnceLock<bool> = OnceLock::new();
        if *TABLE.get_or_init(ProcessTable::is_there) {
            Containment::Session
        } else {
            Containment::ProcessGroup
        }
    }

    fn find(&self) -> Result<Vec<ProcessEntry>, Unseen> {
        self.search().map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => Unseen::NoTable,
            _ => Unseen::NotNow,
        })
    }

    fn search(&self) -> io::Result<Vec<ProcessEntry>> {
        let leader = self.leader.pid();
        // Of a short-lived process the few latest numbers; otherwise the whole table, which others may be reading as well.
        let table = match ProcessTable::read_since(leader, self.started.elapsed())? {
            Some(table) => Arc::new(table),
            None => table::look()?,
        };
        // Only while it is ours do its number, and those of its group and session, mean anything.
        let pinned = self.leader.is_pinned();
        if !pinned {
            leaders().remove(&leader);
        }
        if pinned {
            if let Some(entry) = table.entries().iter().find(|entry| entry.pid == leader) {
                self.born.get_or_init(|| entry.start);
            }
        }
        let others: BTreeSet<i32> = leaders().iter().copied().filter(|&other| other != leader).collect();
        let born = self.born.get().copied().unwrap_or(0);
        let candidates: Vec<&ProcessEntry> = table
            .entries()
            .iter()
            .filter(|entry| !entry.zombie && !entry.kernel && entry.start >= born && entry.pid != leader)
            .collect();
        let mut known: HashSet<i32> = HashSet::new();
        for entry in &candidates {
            let by_number = pinned && (entry.session == leader || entry.group == leader);
            if !by_number && others.contains(&entry.session) {
                continue;
            }
            if by_number || ProcessTable::environment_contains(entry, MARKER, &self.marker)? {
                known.insert(entry.pid);
            }
        }
        // Whoever was started by a member is one, whatever it did to its session and environment.
        loop {
            let before = known.len();
            for entry in &candidates {
                if known.contains(&entry.parent) || (pinned && entry.parent == leader) {
                    known.insert(entry.pid);
                }
            }
            if known.len() == before {
                break;
            }
        }
        Ok(candidates.into_iter().filter(|entry| known.contains(&entry.pid)).copied().collect())
    }

    /// Takes hold of the process that was found, if it is still the one with that number.
    fn identify(&self, found: &ProcessEntry) -> io::Result<Named> {
        // The descriptor first, the comparison after it: what it names is then what was compared.
        let pidfd = match PidFd::open(found.pid) {
            Ok(pidfd) => Some(pidfd),
            Err(error) if PidFd::is_no_process(&error) => return Ok(Named::Gone),
            Err(error) if PidFd::is_shortage(&error) => return Err(error),
            // Without descriptors nothing else tells a thread, which a look at the latest numbers finds too.
            Err(_) if ProcessTable::is_thread(found.pid)? => return Ok(Named::Gone),
            Err(_) => None,
        };
        let now = ProcessTable::look(found.pid)?.filter(|now| now.start == found.start && !now.zombie);
        Ok(match (now, pidfd) {
            (None, _) => Named::Gone,
            (Some(now), Some(pidfd)) => Named::By(pidfd, now.group),
            (Some(_), None) => Named::ByNumberOnly,
        })
    }
}

/// How a process that was found can be spoken of.
enum Named {
    /// It has ended, or is no process.
    Gone,
    /// By its descriptor; and the group it is in.
    By(PidFd, i32),
    /// The kernel has no descriptors, or none is free: it cannot be signalled safely.
    ByNumberOnly,
}
