//! Escalation: a wider mode for one call, if a callback of the host's grants it.

use super::boundary::*;
use super::error::shx_error;
use super::policy::{mode_of, number_of, shx_sandbox_mode};
use super::spec::shx_spec;
use super::view::shx_view;
use crate::{Approver, Escalation};
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// What an approver is asked to grant. It exists while the callback runs; its views live as long.
pub struct shx_escalation(Escalation);

/// The command.
#[unsafe(no_mangle)]
pub extern "C" fn shx_escalation_command(escalation: Option<&shx_escalation>) -> shx_view {
    shx_view::of(escalation.map_or(&[][..], |asked| asked.0.command.as_encoded_bytes()))
}

/// Where it runs.
#[unsafe(no_mangle)]
pub extern "C" fn shx_escalation_workdir(escalation: Option<&shx_escalation>) -> shx_view {
    shx_view::of(escalation.map_or(&[][..], |asked| asked.0.workdir.as_os_str().as_encoded_bytes()))
}

/// The mode that it would run in.
#[unsafe(no_mangle)]
pub extern "C" fn shx_escalation_current_mode(escalation: Option<&shx_escalation>) -> shx_sandbox_mode {
    number_of(escalation.map(|asked| asked.0.current.mode))
}

/// The mode that is asked for, strictly wider.
#[unsafe(no_mangle)]
pub extern "C" fn shx_escalation_requested_mode(escalation: Option<&shx_escalation>) -> shx_sandbox_mode {
    number_of(escalation.map(|asked| asked.0.requested))
}

/// The workspace root of the policy, which a grant leaves as it is.
#[unsafe(no_mangle)]
pub extern "C" fn shx_escalation_workspace_root(escalation: Option<&shx_escalation>) -> shx_view {
    let root = escalation.map(|asked| asked.0.current.workspace_root.as_os_str().as_encoded_bytes());
    shx_view::of(root.unwrap_or_default())
}

/// Why, in the words of whoever asks (UTF-8).
#[unsafe(no_mangle)]
pub extern "C" fn shx_escalation_justification(escalation: Option<&shx_escalation>) -> shx_view {
    shx_view::of(escalation.map_or("", |asked| &asked.0.justification))
}

/// Grants an escalation (true), or does not. Called once, on the thread that called `shx_spec_escalate`, before that returns;
/// it may block, and may call anything. Must return: neither `longjmp` nor an exception may leave it.
pub type shx_approve_fn =
    Option<extern "C" fn(user: *mut c_void, escalation: Option<&shx_escalation>) -> bool>;

/// A callback, and what it is called with.
struct Callback {
    call: extern "C" fn(user: *mut c_void, escalation: Option<&shx_escalation>) -> bool,
    user: *mut c_void,
}

// SAFETY: the pointer is only ever handed to the callback, which is called on the thread that brought it.
unsafe impl Send for Callback {}
// SAFETY: as above; there is one thread.
unsafe impl Sync for Callback {}

impl Approver for Callback {
    fn approve(&self, escalation: &Escalation) -> bool {
        (self.call)(self.user, Some(&shx_escalation(escalation.clone())))
    }
}

/// The same call in the wider `mode`, if `approve` grants that very call now. Nothing but the mode changes. The
/// `justification` is UTF-8 and not blank; `user` is passed to the callback and not kept. `escalated` is set to a spec of
/// its own, to be freed with `shx_spec_free`.
///
/// `SHX_STATUS_INVALID_REQUEST` when the call is not confined, the mode is not strictly wider, or the root is none for it;
/// `SHX_STATUS_NOT_APPROVED` when it was not granted.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_escalate(
    spec: Option<&shx_spec>,
    mode: shx_sandbox_mode,
    justification: shx_view,
    approve: shx_approve_fn,
    user: *mut c_void,
    escalated: Option<&mut MaybeUninit<*mut shx_spec>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (spec, out) = (given(spec, "spec")?, given(escalated, "escalated")?);
        let callback = Callback { call: given(approve, "approve")?, user };
        let justification = justification.text("justification")?;
        give(out, shx_spec(spec.0.clone().escalate(mode_of(mode, "mode")?, justification, &callback)?));
        Ok(())
    })
}
