//! Sandbox policies: a mode and the root it speaks of, and which a call gets.

use super::boundary::*;
use super::error::{Failure, shx_error};
use super::view::shx_view;
use crate::{SandboxMode, SandboxPolicy, SandboxPolicyService};
use std::mem::MaybeUninit;

/// Which effects on files a command may have.
pub type shx_sandbox_mode = i32;

/// No mode: an executor or a command that is not confined.
pub const SHX_SANDBOX_MODE_NONE: shx_sandbox_mode = -1;
/// Writes only to sinks such as `/dev/null`.
pub const SHX_SANDBOX_MODE_READ_ONLY: shx_sandbox_mode = 0;
/// The workspace root and the temp directory as well.
pub const SHX_SANDBOX_MODE_WORKSPACE_WRITE: shx_sandbox_mode = 1;
/// No confinement.
pub const SHX_SANDBOX_MODE_DANGER_FULL_ACCESS: shx_sandbox_mode = 2;

pub(super) fn mode_of(number: shx_sandbox_mode, name: &'static str) -> Result<SandboxMode, Failure> {
    match number {
        SHX_SANDBOX_MODE_READ_ONLY => Ok(SandboxMode::ReadOnly),
        SHX_SANDBOX_MODE_WORKSPACE_WRITE => Ok(SandboxMode::WorkspaceWrite),
        SHX_SANDBOX_MODE_DANGER_FULL_ACCESS => Ok(SandboxMode::DangerFullAccess),
        _ => Err(Failure::Argument(name, format!("is {number}, which is no sandbox mode").into())),
    }
}

pub(super) fn number_of(mode: Option<SandboxMode>) -> shx_sandbox_mode {
    match mode {
        None => SHX_SANDBOX_MODE_NONE,
        Some(SandboxMode::ReadOnly) => SHX_SANDBOX_MODE_READ_ONLY,
        Some(SandboxMode::WorkspaceWrite) => SHX_SANDBOX_MODE_WORKSPACE_WRITE,
        Some(SandboxMode::DangerFullAccess) => SHX_SANDBOX_MODE_DANGER_FULL_ACCESS,
    }
}

/// What one command may do to files. It never changes.
pub struct shx_sandbox_policy(pub(super) SandboxPolicy);

/// A policy of `mode` over the directory `workspace_root`. `session` (UTF-8) is whose session the call belongs to; it
/// changes nothing by itself, and may be empty. Free it with `shx_sandbox_policy_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_policy_new(
    mode: shx_sandbox_mode,
    workspace_root: shx_view,
    session: shx_view,
    policy: Option<&mut MaybeUninit<*mut shx_sandbox_policy>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let out = given(policy, "policy")?;
        let mut policy = SandboxPolicy::new(mode_of(mode, "mode")?, workspace_root.path("workspace_root")?);
        policy.session = Some(session.text("session")?.to_owned()).filter(|session| !session.is_empty());
        give(out, shx_sandbox_policy(policy));
        Ok(())
    })
}

/// Its mode; `SHX_SANDBOX_MODE_NONE` for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_policy_mode(policy: Option<&shx_sandbox_policy>) -> shx_sandbox_mode {
    number_of(policy.map(|policy| policy.0.mode))
}

/// Its root, as it was given or resolved. Empty for null. Lives as long as the policy.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_policy_workspace_root(policy: Option<&shx_sandbox_policy>) -> shx_view {
    shx_view::of(policy.map_or(&[][..], |policy| policy.0.workspace_root.as_os_str().as_encoded_bytes()))
}

/// Its session; empty without one. Lives as long as the policy.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_policy_session(policy: Option<&shx_sandbox_policy>) -> shx_view {
    shx_view::of(policy.and_then(|policy| policy.0.session.as_deref()).unwrap_or_default())
}

/// Frees a policy. What was given it keeps a copy. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_policy_free(policy: Option<Box<shx_sandbox_policy>>) {
    free(policy);
}

/// Decides the policy of each call by its session. It can be used from any thread.
pub struct shx_policy_service(SandboxPolicyService);

/// A service whose calls get `default_mode` over `root` unless something else is set. Free it with
/// `shx_policy_service_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_policy_service_new(
    default_mode: shx_sandbox_mode,
    root: shx_view,
    policies: Option<&mut MaybeUninit<*mut shx_policy_service>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let out = given(policies, "policies")?;
        let policies = SandboxPolicyService::new(mode_of(default_mode, "default_mode")?, root.path("root")?);
        give(out, shx_policy_service(policies));
        Ok(())
    })
}

/// Sets the mode of the calls of `session` (UTF-8); `SHX_SANDBOX_MODE_NONE` gives them the default again.
#[unsafe(no_mangle)]
pub extern "C" fn shx_policy_service_set_session_mode(
    policies: Option<&shx_policy_service>,
    session: shx_view,
    mode: shx_sandbox_mode,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (policies, session) = (&given(policies, "policies")?.0, session.text("session")?);
        match mode {
            SHX_SANDBOX_MODE_NONE => policies.clear_session_mode(session),
            mode => policies.set_session_mode(session, mode_of(mode, "mode")?),
        }
        Ok(())
    })
}

/// Sets the directory that the calls of `session` (UTF-8) work in.
#[unsafe(no_mangle)]
pub extern "C" fn shx_policy_service_set_session_root(
    policies: Option<&shx_policy_service>,
    session: shx_view,
    root: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let root = root.path("root")?;
        given(policies, "policies")?.0.set_session_root(session.text("session")?, root);
        Ok(())
    })
}

/// Forgets all that was set for `session` (UTF-8). Nothing set is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_policy_service_forget_session(
    policies: Option<&shx_policy_service>,
    session: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        given(policies, "policies")?.0.forget_session(session.text("session")?);
        Ok(())
    })
}

/// The policy of one call: `approved`, if it is not `SHX_SANDBOX_MODE_NONE`, else the mode of `session` (UTF-8, empty for
/// none), else the default; over the session's directory, else the configured root. Free it with `shx_sandbox_policy_free`.
/// A directory that is missing is `SHX_STATUS_INVALID_REQUEST`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_policy_service_resolve(
    policies: Option<&shx_policy_service>,
    session: shx_view,
    approved: shx_sandbox_mode,
    policy: Option<&mut MaybeUninit<*mut shx_sandbox_policy>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (policies, out) = (given(policies, "policies")?, given(policy, "policy")?);
        let session = Some(session.text("session")?).filter(|session| !session.is_empty());
        let approved = match approved {
            SHX_SANDBOX_MODE_NONE => None,
            mode => Some(mode_of(mode, "approved")?),
        };
        give(out, shx_sandbox_policy(policies.0.resolve(session, approved)?));
        Ok(())
    })
}

/// Frees the service. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_policy_service_free(policies: Option<Box<shx_policy_service>>) {
    free(policies);
}
