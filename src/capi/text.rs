//! Text that a function has made for its caller, who frees it.

use super::boundary::*;
use super::view::shx_view;

/// Text or bytes that belong to the caller. They never change.
pub struct shx_text(pub(super) Vec<u8>);

/// The bytes. Empty for null. Lives as long as the object.
#[unsafe(no_mangle)]
pub extern "C" fn shx_text_view(text: Option<&shx_text>) -> shx_view {
    shx_view::of(text.map_or(&[][..], |text| &text.0))
}

/// Frees the text. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_text_free(text: Option<Box<shx_text>>) {
    free(text);
}
