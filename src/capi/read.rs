//! What was read of a live execution.

use super::boundary::*;
use super::view::shx_view;
use crate::{OutputRead, ProcessRead};
use std::path::Path;

pub(super) fn path_view(path: Option<&Path>) -> shx_view {
    shx_view::of(path.map_or(&[][..], |path| path.as_os_str().as_encoded_bytes()))
}

/// One consuming read of both streams. It never changes; its views live as long as it.
pub struct shx_process_read(pub(super) ProcessRead);

/// What is new: stdout, then, if there is any, a line `[stderr]` and stderr. UTF-8. Empty for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_process_read_delta(read: Option<&shx_process_read>) -> shx_view {
    shx_view::of(read.map_or("", |read| &read.0.delta))
}

/// Whether unread bytes are gone for good.
#[unsafe(no_mangle)]
pub extern "C" fn shx_process_read_lossy(read: Option<&shx_process_read>) -> bool {
    read.is_some_and(|read| read.0.lossy)
}

/// The file with all of stdout, if stdout overflowed and the file stands there; else empty.
#[unsafe(no_mangle)]
pub extern "C" fn shx_process_read_stdout_spill_path(read: Option<&shx_process_read>) -> shx_view {
    path_view(read.and_then(|read| read.0.stdout_spill_path.as_deref()))
}

/// The same of stderr.
#[unsafe(no_mangle)]
pub extern "C" fn shx_process_read_stderr_spill_path(read: Option<&shx_process_read>) -> shx_view {
    path_view(read.and_then(|read| read.0.stderr_spill_path.as_deref()))
}

/// Frees it. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_process_read_free(read: Option<Box<shx_process_read>>) {
    free(read);
}

/// One read of one stream. It never changes; its views live as long as it.
pub struct shx_output_read {
    pub(super) bytes: Vec<u8>,
    pub(super) next_offset: u64,
    pub(super) lossy: bool,
    pub(super) read: Option<OutputRead>,
}

impl From<OutputRead> for shx_output_read {
    fn from(mut read: OutputRead) -> shx_output_read {
        let bytes = std::mem::take(&mut read.text).into_bytes();
        shx_output_read { bytes, next_offset: read.next_offset, lossy: read.lossy, read: Some(read) }
    }
}

/// The text (UTF-8) or the bytes that were read. Empty for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_output_read_view(read: Option<&shx_output_read>) -> shx_view {
    shx_view::of(read.map_or(&[][..], |read| &read.bytes))
}

/// The offset, in bytes of the stream, to read from next. 0 for null and for a consuming read.
#[unsafe(no_mangle)]
pub extern "C" fn shx_output_read_next_offset(read: Option<&shx_output_read>) -> u64 {
    read.map_or(0, |read| read.next_offset)
}

/// Whether bytes before these are gone for good; these are then the whole retained tail.
#[unsafe(no_mangle)]
pub extern "C" fn shx_output_read_lossy(read: Option<&shx_output_read>) -> bool {
    read.is_some_and(|read| read.lossy)
}

/// The file with the complete stream, if it stands there; else empty. Only of a read of text from an offset.
#[unsafe(no_mangle)]
pub extern "C" fn shx_output_read_spill_path(read: Option<&shx_output_read>) -> shx_view {
    path_view(read.and_then(|read| read.read.as_ref()).and_then(|read| read.spill_path.as_deref()))
}

/// Frees it. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_output_read_free(read: Option<Box<shx_output_read>>) {
    free(read);
}
