//! The abort token.

use super::boundary::*;
use super::error::shx_error;
use crate::AbortToken;
use std::mem::MaybeUninit;

/// Cuts executions short from outside. Clones are the same token.
pub struct shx_abort_token(pub(super) AbortToken);

/// A token that has not been fired. Free it with `shx_abort_token_free`. Null only if memory has run out in a way that can
/// be caught.
#[unsafe(no_mangle)]
pub extern "C" fn shx_abort_token_new() -> *mut shx_abort_token {
    quietly(std::ptr::null_mut(), || into_raw(shx_abort_token(AbortToken::new())))
}

/// Another handle of the same token, to be freed by itself; null for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_abort_token_clone(token: Option<&shx_abort_token>) -> *mut shx_abort_token {
    quietly(std::ptr::null_mut(), || {
        token.map_or(std::ptr::null_mut(), |token| into_raw(shx_abort_token(token.0.clone())))
    })
}

/// Fires it: every execution it was given to is cut short, and what is executed with it from now on is not started.
/// `first` (may be null) is set to whether this call did it. Returns as soon as all have been told; it does not wait for
/// them to end.
#[unsafe(no_mangle)]
pub extern "C" fn shx_abort_token_fire(
    token: Option<&shx_abort_token>,
    first: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let fired = given(token, "token")?.0.fire();
        tell(first, Some(fired));
        Ok(())
    })
}

/// Whether it has been fired; false for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_abort_token_is_fired(token: Option<&shx_abort_token>) -> bool {
    quietly(false, || token.is_some_and(|token| token.0.is_fired()))
}

/// Frees the handle. The executions it was given to keep what it stands for. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_abort_token_free(token: Option<Box<shx_abort_token>>) {
    free(token);
}
