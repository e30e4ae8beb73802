//! The one place that names the synchronisation primitives of what is model-checked: `loom`'s under `cfg(loom)`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU8, Ordering};
