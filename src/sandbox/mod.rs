//! What confines a command, and what the facts of a run say about it. This version has the vocabulary only: a request
//! that asks for confinement is refused, never run unconfined.

mod mode;
mod policy;

pub use mode::{Enforcement, SandboxInfo, SandboxMode};
pub use policy::SandboxPolicy;
