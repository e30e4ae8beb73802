//! scaffold
mod abort;
mod environment;
mod error;
mod output;
mod process;
mod result;
mod sandbox;
mod shell;
mod sync;
mod sys;

pub use abort::AbortToken;
pub use environment::{EnvEntry, Scrub};
pub use error::{Error, SpawnError, SpawnStage};
pub use process::*;
pub use result::*;
pub use sandbox::{Enforcement, SandboxInfo, SandboxMode, SandboxPolicy};
pub use shell::*;
