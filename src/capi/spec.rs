//! The spec: a request with all its terms explicit, to be read before it is executed.

use super::boundary::*;
use super::policy::{number_of, shx_sandbox_mode};
use super::request::{on_expiry_number, shx_on_expiry};
use super::view::shx_view;
use crate::{ExecSpec, SandboxPolicy, Stdin};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::time::Duration;

/// What a command reads.
pub type shx_stdin = i32;

/// `/dev/null`.
pub const SHX_STDIN_NULL: shx_stdin = 0;
/// Bytes that were given.
pub const SHX_STDIN_BYTES: shx_stdin = 1;
/// A pipe.
pub const SHX_STDIN_PIPE: shx_stdin = 2;

/// A command with all its terms explicit. It never changes; made by `shx_executor_resolve` and `shx_spec_escalate`.
/// The views that its functions give live as long as it.
pub struct shx_spec(pub(super) ExecSpec);

/// Another spec of the same terms, to be freed by itself; null for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_clone(spec: Option<&shx_spec>) -> *mut shx_spec {
    quietly(std::ptr::null_mut(), || {
        spec.map_or(std::ptr::null_mut(), |spec| into_raw(shx_spec(spec.0.clone())))
    })
}

/// Frees a spec. What was executed with it goes on. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_free(spec: Option<Box<shx_spec>>) {
    free(spec);
}

fn view(spec: Option<&shx_spec>, of: impl FnOnce(&ExecSpec) -> &OsStr) -> shx_view {
    shx_view::of(spec.map_or(&[][..], |spec| of(&spec.0).as_encoded_bytes()))
}

/// Milliseconds, rounded up, so that no time becomes none; as many as there are for a longer one.
pub(super) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// The command. Empty for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_command(spec: Option<&shx_spec>) -> shx_view {
    view(spec, |spec| &spec.command)
}

/// Where it runs, absolute. Empty for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_workdir(spec: Option<&shx_spec>) -> shx_view {
    view(spec, |spec| spec.workdir.as_os_str())
}

/// How long it may run, in milliseconds, after default and cap. Without effect under `SHX_ON_EXPIRY_NONE`. 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_timeout_ms(spec: Option<&shx_spec>) -> u64 {
    spec.map_or(0, |spec| ms(spec.0.timeout))
}

/// What the deadline does. `SHX_ON_EXPIRY_KILL` for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_on_expiry(spec: Option<&shx_spec>) -> shx_on_expiry {
    spec.map_or(0, |spec| on_expiry_number(spec.0.on_expiry))
}

/// How many of stdout's last bytes are kept in memory. 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_stdout_max_bytes(spec: Option<&shx_spec>) -> usize {
    spec.map_or(0, |spec| spec.0.stdout_max_bytes)
}

/// How many of stderr's last bytes are kept in memory. 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_stderr_max_bytes(spec: Option<&shx_spec>) -> usize {
    spec.map_or(0, |spec| spec.0.stderr_max_bytes)
}

/// How large the spill file of one stream may become, in bytes; 0 for no file.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_spill_max_bytes(spec: Option<&shx_spec>) -> u64 {
    spec.and_then(|spec| spec.0.spill_max_bytes).unwrap_or(0)
}

/// From the polite signal to the forceful one, in milliseconds. 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_grace_ms(spec: Option<&shx_spec>) -> u64 {
    spec.map_or(0, |spec| ms(spec.0.grace))
}

/// How long a held stream must be quiet to be given up, in milliseconds. 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_drain_idle_ms(spec: Option<&shx_spec>) -> u64 {
    spec.map_or(0, |spec| ms(spec.0.drain_idle))
}

/// How long an offer to keep the command stays open, in milliseconds. 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_answer_window_ms(spec: Option<&shx_spec>) -> u64 {
    spec.map_or(0, |spec| ms(spec.0.answer_window))
}

/// Whether an abort token can cut it short.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_has_abort(spec: Option<&shx_spec>) -> bool {
    spec.is_some_and(|spec| spec.0.abort.is_some())
}

/// What it reads. `SHX_STDIN_NULL` for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_stdin(spec: Option<&shx_spec>) -> shx_stdin {
    match spec.map(|spec| &spec.0.stdin) {
        Some(Stdin::Bytes(_)) => SHX_STDIN_BYTES,
        Some(Stdin::Pipe) => SHX_STDIN_PIPE,
        Some(Stdin::Null) | None => SHX_STDIN_NULL,
    }
}

/// The bytes that it reads; empty for another kind of input.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_stdin_bytes(spec: Option<&shx_spec>) -> shx_view {
    shx_view::of(match spec.map(|spec| &spec.0.stdin) {
        Some(Stdin::Bytes(bytes)) => &bytes[..],
        _ => &[],
    })
}

/// How many variables its environment has: all of them, but for the marker of its range.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_env_count(spec: Option<&shx_spec>) -> usize {
    spec.map_or(0, |spec| spec.0.environment.len())
}

/// Sets `name` and `value` (either may be null) to those of a variable. `false`, and nothing set, past the last.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_env_at(
    spec: Option<&shx_spec>,
    index: usize,
    name: Option<&mut MaybeUninit<shx_view>>,
    value: Option<&mut MaybeUninit<shx_view>>,
) -> bool {
    let entry = spec.and_then(|spec| spec.0.environment.get(index));
    tell(name, entry.map(|(name, _)| shx_view::of(name.as_encoded_bytes())));
    tell(value, entry.map(|(_, value)| shx_view::of(value.as_encoded_bytes())))
}

/// How many names the scrub has kept from its environment.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_scrubbed_count(spec: Option<&shx_spec>) -> usize {
    spec.map_or(0, |spec| spec.0.scrubbed.len())
}

/// A name that the scrub has kept from its environment, in their order; empty past the last.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_scrubbed_at(spec: Option<&shx_spec>, index: usize) -> shx_view {
    let name = spec.and_then(|spec| spec.0.scrubbed.get(index));
    shx_view::of(name.map_or(&[][..], |name| name.as_encoded_bytes()))
}

fn policy(spec: Option<&shx_spec>) -> Option<&SandboxPolicy> {
    spec?.0.sandbox_policy.as_ref()
}

/// The mode that it is confined to; `SHX_SANDBOX_MODE_NONE` without confinement.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_sandbox_mode(spec: Option<&shx_spec>) -> shx_sandbox_mode {
    number_of(policy(spec).map(|policy| policy.mode))
}

/// The workspace that its confinement speaks of; empty without confinement.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_workspace_root(spec: Option<&shx_spec>) -> shx_view {
    shx_view::of(policy(spec).map_or(&[][..], |policy| policy.workspace_root.as_os_str().as_encoded_bytes()))
}

/// The session of its sandbox policy; empty without one.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_sandbox_session(spec: Option<&shx_spec>) -> shx_view {
    shx_view::of(policy(spec).and_then(|policy| policy.session.as_deref()).unwrap_or_default())
}

/// Whether the command waits while its output is not read.
#[unsafe(no_mangle)]
pub extern "C" fn shx_spec_backpressure(spec: Option<&shx_spec>) -> bool {
    spec.is_some_and(|spec| spec.0.backpressure)
}
