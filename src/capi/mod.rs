//! The C interface: every object of the public Rust interface, and nothing beyond it.
//!
//! What holds for all functions stands once, in the head of the header (`cbindgen.toml`), and in three files here:
//! `boundary` (what happens to null, panics and errors), `view` (text and bytes on their way in), `text` (on their way
//! out). The others have one object each.
//!
//! A parameter that C may pass null for is an `Option` of a reference or of a box, which has the form of a pointer
//! (the "nullable pointer optimization" of the Rust reference). So the bodies are safe code: that a pointer which is not
//! null points to a live object of its type, and that an object is not freed while it is used, is the one thing that C
//! has to keep, and that nobody here could check.
//!
//! Enumerations are numbers with names: C may pass any number, which is answered with a status.

// The names are C's, and what C does not name is nobody's.
#![allow(non_camel_case_types)]
// Exporting a name is unsafe because it might be another's; all of these begin with `shx_`.
#![allow(unsafe_code)]
// No reader of Rust documentation sees them, but cbindgen takes public items only.
#![allow(unreachable_pub)]

#[cfg(panic = "abort")]
compile_error!("the C interface turns panics into a status: build with panic=unwind");

mod abort;
mod approval;
mod boundary;
mod config;
mod environment;
mod error;
mod execution;
mod executor;
mod names;
mod offer;
mod policy;
mod provider;
mod read;
mod render;
mod request;
mod result;
mod service;
mod spawn;
mod spec;
mod text;
mod version;
mod view;
