//! Views: text and bytes as a pointer and a length, on their way in and as borrowed on their way out.

use super::error::Failure;
use std::ffi::OsString;
use std::path::PathBuf;

/// Bytes that belong to somebody else: a pointer and a length. Nothing stands behind the last one, no NUL either.
///
/// Given to a function, they are copied before it returns; `data` may be null when `len` is 0. Got from a function, they
/// live as long as that function says, and `data` is never null. Text is UTF-8 where a function says so; names of files,
/// commands and values of the environment are any bytes on Unix, and UTF-8 on Windows.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct shx_view {
    /// The first byte.
    pub data: *const std::ffi::c_char,
    /// How many there are.
    pub len: usize,
}

impl shx_view {
    /// A view for C of what an object holds. It says nothing of lifetimes, as C does not; each function's text does.
    pub(super) fn of(bytes: impl AsRef<[u8]>) -> shx_view {
        let bytes = bytes.as_ref();
        // What is empty need not stand anywhere; C gets a place that does.
        let data = if bytes.is_empty() { c"".as_ptr() } else { bytes.as_ptr().cast() };
        shx_view { data, len: bytes.len() }
    }

    /// The bytes that C has passed.
    pub(super) fn bytes<'call>(self, name: &'static str) -> Result<&'call [u8], Failure> {
        if self.len == 0 {
            return Ok(&[]);
        }
        if self.data.is_null() {
            return Err(Failure::Argument(name, format!("is null, of {} bytes", self.len).into()));
        }
        // No object is larger, so it is not a length.
        if isize::try_from(self.len).is_err() {
            return Err(Failure::Argument(name, format!("has a length of {}", self.len).into()));
        }
        // SAFETY: not null, and of a length that an object can have; that so many bytes can be read there, and stay
        // unchanged during the call, is what the header asks of every view that is passed.
        Ok(unsafe { std::slice::from_raw_parts(self.data.cast(), self.len) })
    }

    pub(super) fn text<'call>(self, name: &'static str) -> Result<&'call str, Failure> {
        std::str::from_utf8(self.bytes(name)?).map_err(|_| Failure::Argument(name, "is not UTF-8".into()))
    }

    pub(super) fn os_string(self, name: &'static str) -> Result<OsString, Failure> {
        #[cfg(unix)]
        let text = std::os::unix::ffi::OsStringExt::from_vec(self.bytes(name)?.to_vec());
        #[cfg(not(unix))]
        let text = self.text(name)?.into();
        Ok(text)
    }

    pub(super) fn path(self, name: &'static str) -> Result<PathBuf, Failure> {
        self.os_string(name).map(PathBuf::from)
    }
}

/// An array of views that C has passed.
pub(super) fn words<'call>(
    words: *const shx_view,
    count: usize,
    name: &'static str,
) -> Result<&'call [shx_view], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if words.is_null() {
        return Err(Failure::Argument(name, format!("is null, of {count} texts").into()));
    }
    if isize::try_from(count.saturating_mul(size_of::<shx_view>())).is_err() {
        return Err(Failure::Argument(name, format!("has a count of {count}").into()));
    }
    // SAFETY: not null, and of a size that an object can have; that so many views can be read there, and stay unchanged
    // during the call, is what the header asks of every array that is passed.
    Ok(unsafe { std::slice::from_raw_parts(words, count) })
}
