//! Pages on how things work together: what one method's documentation is too short for.
//!
//! | page | answers |
//! |---|---|
//! | [`output`] | what is kept, where the rest goes, and which of the ways to read loses nothing |
//! | [`deadlines`] | who ends a command, which of several wins, and how a late command is kept |
//! | [`range`] | what a kill reaches, what survives a command, and when it dies |
//! | [`environment`] | what a command is told, and what is kept from it |
//! | [`sandbox`] | what confinement stops, how it is known to hold, and how to widen it |
//!
//! There is nothing in these modules but text.

pub mod deadlines;
pub mod environment;
pub mod output;
pub mod range;
pub mod sandbox;
