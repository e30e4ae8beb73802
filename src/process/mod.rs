//! Processes: starting them, reading them, stopping all that they started, and saying once how they ended.
//!
//! # Threads
//!
//! - The **supervisor** of an execution (`shx-run`), one per live range, starts the process and then blocks in one `poll`
//!   on its streams, its end and its wake-up. It alone reads, signals, reaps and settles a process that has started.
//! - The **deadline thread** (`shx-deadline`), one per service, tells executions that something is due.
//! - A thread (`shx-trials`) tries the backends of a sandbox for whoever asks what became of them, and waits for it.
//! - Where the kernel has no process descriptors, a thread per execution (`shx-wait`) waits for the leader.
//!
//! All run with every signal blocked. The service joins them: an ending supervisor joins the one that ended before it, and
//! disposal joins the rest.
//!
//! # Locks
//!
//! | lock | guards | taken while holding |
//! |---|---|---|
//! | `Live::state` | outcome, promotion, the caller's pipe ends | nothing |
//! | `Live::control` | the wake-up and the range, while a supervisor has them | nothing |
//! | `Output` | the rings, cursors and the names of spill files | nothing |
//! | `Deadlines::table` | what is due when | nothing |
//! | `Deadlines::thread` | whether the thread runs; held while it is made, once | nothing |
//! | `Core::registry` | the live ranges and the threads to join | nothing |
//! | `exit::SERVICES` | whose ranges go with the host | nothing |
//! | `SpillDir::state` | the handle of the directory | nothing |
//! | `Gate::handover` | that a descriptor's number names what it named | nothing |
//! | `Leader::reaped` | that the leader's number is its own | nothing |
//! | `range::LEADERS` | which numbers lead a range | nothing |
//! | `table::LOOKS` | who looks at the process table, and what the last look has seen | nothing |
//! | `AbortToken` | its listeners | nothing |
//!
//! So no two are ever held at once, and none is held across a call that can block or that calls back. The first cause is
//! not under a lock at all: it is one compare-exchange (`cause`), and whoever wins it acts. Whether a promotion or an abort
//! comes first is decided under `Live::state`, where both look at the latch.

mod cause;
mod confiner;
mod deadline;
mod exit;
mod launch;
mod live;
mod promotion;
mod range;
mod reader;
mod service;
mod spec;
mod subprocess;
mod supervisor;
mod table;

pub(crate) use confiner::{Conclusion, Confiner, End};
pub(crate) use launch::{Launch, NO_SUCH_FILE, Preparation, Surroundings, candidates, is_bare_name};
pub(crate) use spec::{ANSWER_WINDOW, DRAIN_IDLE, LEAST_RELAY};

pub use cause::Cause;
pub use promotion::{OfferBackend, PromotionOffer};
pub use reader::{Observed, OutputReader, ReadAt};
pub(crate) use service::Entrance;
pub use service::{Disposal, ServiceConfig, SignalGuard, SubprocessService};
pub use spec::{Disposition, Input, OnExpiry, SpawnSpec};
pub use subprocess::{OutputBytes, Subprocess};
