//! Output: the tail in a ring, the whole stream in a private file, and readers that see both as one.

mod collector;
mod observe;
mod ring;
mod shared;
mod spill;
pub(crate) mod text;

pub(crate) use collector::Collector;
pub(crate) use observe::{Bytes, collected, consume, consume_bytes, read_bytes, read_text};
pub use shared::OutputStream;
pub(crate) use shared::{Output, wait_on};
pub(crate) use spill::{PrivateFile, PrivateFolder, SpillDir};
