//! The names of numbers, as JSON, the command line and messages use them.

use super::boundary::*;
use super::error::*;
use super::policy::*;
use super::provider::*;
use super::result::*;
use std::ffi::{CStr, c_char};

fn name(name: &'static CStr) -> *const c_char {
    name.as_ptr()
}

/// The name of a status, such as `SPAWN`: what `shx_error_code` gives, and `OK`. Like all names it ends in a NUL and lives
/// as long as the program; a number that names nothing gives `unknown`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_status_name(status: shx_status) -> *const c_char {
    name(match status {
        SHX_STATUS_OK => c"OK",
        SHX_STATUS_INVALID_ARGUMENT => c"INVALID_ARGUMENT",
        SHX_STATUS_INVALID_REQUEST => c"INVALID_REQUEST",
        SHX_STATUS_SPAWN => c"SPAWN",
        SHX_STATUS_SANDBOX_UNAVAILABLE => c"SANDBOX_UNAVAILABLE",
        SHX_STATUS_NOT_APPROVED => c"NOT_APPROVED",
        SHX_STATUS_ABORTED => c"ABORTED",
        SHX_STATUS_DISPOSED => c"DISPOSED",
        SHX_STATUS_MANAGED_ENV => c"MANAGED_ENV",
        SHX_STATUS_STATUS_LOST => c"STATUS_LOST",
        SHX_STATUS_PANIC => c"PANIC",
        SHX_STATUS_OS => c"OS",
        _ => c"unknown",
    })
}

/// The name of a stage, such as `workdir`; `none` for `SHX_STAGE_NONE`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_stage_name(stage: shx_stage) -> *const c_char {
    name(match stage {
        SHX_STAGE_NONE => c"none",
        SHX_STAGE_WORKDIR => c"workdir",
        SHX_STAGE_SHELL => c"shell",
        SHX_STAGE_EXEC => c"exec",
        SHX_STAGE_RESOURCES => c"resources",
        _ => c"unknown",
    })
}

/// The name of a sandbox mode, such as `read-only`; `none` for `SHX_SANDBOX_MODE_NONE`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_mode_name(mode: shx_sandbox_mode) -> *const c_char {
    name(match mode {
        SHX_SANDBOX_MODE_NONE => c"none",
        SHX_SANDBOX_MODE_READ_ONLY => c"read-only",
        SHX_SANDBOX_MODE_WORKSPACE_WRITE => c"workspace-write",
        SHX_SANDBOX_MODE_DANGER_FULL_ACCESS => c"danger-full-access",
        _ => c"unknown",
    })
}

/// The name of how completely a mode is enforced: `none`, `full` or `partial`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_enforcement_name(enforcement: shx_enforcement) -> *const c_char {
    name(match enforcement {
        SHX_ENFORCEMENT_NONE => c"none",
        SHX_ENFORCEMENT_FULL => c"full",
        SHX_ENFORCEMENT_PARTIAL => c"partial",
        _ => c"unknown",
    })
}

/// The name of where an execution stands: `running`, `completed` or `killed`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_process_status_name(status: shx_process_status) -> *const c_char {
    name(match status {
        SHX_PROCESS_STATUS_RUNNING => c"running",
        SHX_PROCESS_STATUS_COMPLETED => c"completed",
        SHX_PROCESS_STATUS_KILLED => c"killed",
        _ => c"unknown",
    })
}

/// The name of a cause, such as `timeout`; `none` for `SHX_CAUSE_NONE`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_cause_name(cause: shx_cause) -> *const c_char {
    name(match cause {
        SHX_CAUSE_NONE => c"none",
        SHX_CAUSE_EXIT => c"exit",
        SHX_CAUSE_TIMEOUT => c"timeout",
        SHX_CAUSE_ABORT => c"abort",
        SHX_CAUSE_KILL => c"kill",
        SHX_CAUSE_DISPOSAL => c"disposal",
        _ => c"unknown",
    })
}

/// The name of a containment: `process-group` or `session`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_containment_name(containment: shx_containment) -> *const c_char {
    name(match containment {
        SHX_CONTAINMENT_PROCESS_GROUP => c"process-group",
        SHX_CONTAINMENT_SESSION => c"session",
        _ => c"unknown",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Containment, Enforcement, ProcessStatus, SandboxMode};

    fn text(name: *const c_char) -> &'static str {
        // SAFETY: a name ends in a NUL and lives for ever.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap()
    }

    // F3: one idea has one name
    #[test]
    fn names_are_those_of_the_library() {
        for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite, SandboxMode::DangerFullAccess] {
            assert_eq!(text(shx_sandbox_mode_name(number_of(Some(mode)))), mode.as_str());
        }
        for enforcement in [Enforcement::Full, Enforcement::Partial] {
            assert_eq!(
                text(shx_enforcement_name(enforcement_number(Some(enforcement)))),
                enforcement.as_str()
            );
        }
        for status in [ProcessStatus::Running, ProcessStatus::Completed, ProcessStatus::Killed] {
            assert_eq!(text(shx_process_status_name(status_number(status))), status.as_str());
        }
        for containment in [Containment::ProcessGroup, Containment::Session] {
            assert_eq!(text(shx_containment_name(containment_number(containment))), containment.as_str());
        }
        for cause in [Cause::Exit, Cause::Timeout, Cause::Abort, Cause::Kill, Cause::Disposal] {
            assert_eq!(text(shx_cause_name(cause_number(Some(cause)))), cause.as_str());
        }
        for failure in [crate::Error::Aborted, crate::Error::Disposed, crate::Error::StatusLost] {
            let code = failure.code();
            assert_eq!(text(shx_status_name(Failure::from(failure).status())), code);
        }
        assert_eq!(text(shx_status_name(-1)), "unknown");
    }
}
