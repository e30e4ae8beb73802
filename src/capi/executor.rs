//! The executor: requests become specs, specs become executions.

use super::boundary::*;
use super::config::shx_config;
use super::error::{Failure, shx_error};
use super::execution::shx_execution;
use super::policy::{number_of, shx_sandbox_mode, shx_sandbox_policy};
use super::provider::shx_sandbox_provider;
use super::request::shx_request;
use super::result::shx_result;
use super::service::shx_service;
use super::spec::shx_spec;
use crate::{BashExecutor, Config, PwshExecutor, SandboxPolicy, SandboxProvider, ShellExecutor};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Runs shell commands. It can be used from any thread.
pub struct shx_executor(Box<dyn ShellExecutor>);

/// An executor that runs each command by a fresh `bash -c`, in `service`. `config` may be null for the defaults.
/// `provider` and `policy` come together, or are both null: then commands are not confined. Otherwise each is confined by
/// `provider`, under its request's policy or else under `policy`. Copies are taken of all of them. Free it with
/// `shx_executor_free`. Whether there is a shell, and whether anything can confine, is seen when a command is executed.
#[unsafe(no_mangle)]
pub extern "C" fn shx_bash_executor_new(
    service: Option<&shx_service>,
    config: Option<&shx_config>,
    provider: Option<&shx_sandbox_provider>,
    policy: Option<&shx_sandbox_policy>,
    executor: Option<&mut MaybeUninit<*mut shx_executor>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (service, out) = (given(service, "service")?, given(executor, "executor")?);
        let sandbox = sandbox(provider, policy)?;
        let mut bash = BashExecutor::new(&service.0, copy(config))?;
        if let Some((provider, policy)) = sandbox {
            bash = bash.with_sandbox(provider, policy)?;
        }
        give(out, shx_executor(Box::new(bash)));
        Ok(())
    })
}

/// The same by PowerShell: `pwsh`, else `powershell`, unless `config` names another shell. How the exit code of a command
/// comes about stands in the documentation of `PwshExecutor`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_pwsh_executor_new(
    service: Option<&shx_service>,
    config: Option<&shx_config>,
    provider: Option<&shx_sandbox_provider>,
    policy: Option<&shx_sandbox_policy>,
    executor: Option<&mut MaybeUninit<*mut shx_executor>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (service, out) = (given(service, "service")?, given(executor, "executor")?);
        let sandbox = sandbox(provider, policy)?;
        let mut pwsh = PwshExecutor::new(&service.0, copy(config))?;
        if let Some((provider, policy)) = sandbox {
            pwsh = pwsh.with_sandbox(provider, policy)?;
        }
        give(out, shx_executor(Box::new(pwsh)));
        Ok(())
    })
}

fn copy(config: Option<&shx_config>) -> Config {
    config.map(|config| config.lock().clone()).unwrap_or_default()
}

/// What confines, and by which policy.
type Sandbox = (Arc<dyn SandboxProvider>, SandboxPolicy);

fn sandbox(
    provider: Option<&shx_sandbox_provider>,
    policy: Option<&shx_sandbox_policy>,
) -> Result<Option<Sandbox>, Failure> {
    match (provider, policy) {
        (None, None) => Ok(None),
        (Some(provider), Some(policy)) => Ok(Some((provider.provider(), policy.0.clone()))),
        (None, Some(_)) => Err(Failure::Argument("provider", "is null, with a policy".into())),
        (Some(_), None) => Err(Failure::Argument("policy", "is null, with a provider".into())),
    }
}

/// The mode that commands are confined to unless their request says otherwise; `SHX_SANDBOX_MODE_NONE` from an executor
/// that does not confine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_executor_sandbox_mode(executor: Option<&shx_executor>) -> shx_sandbox_mode {
    quietly(number_of(None), || number_of(executor.and_then(|executor| executor.0.sandbox_mode())))
}

/// Applies defaults and caps: `spec` is set to what will be run, which can be read before it is. Nothing is started. Free
/// it with `shx_spec_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_executor_resolve(
    executor: Option<&shx_executor>,
    request: Option<&shx_request>,
    spec: Option<&mut MaybeUninit<*mut shx_spec>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (executor, request, out) =
            (given(executor, "executor")?, given(request, "request")?, given(spec, "spec")?);
        let request = request.lock().clone();
        give(out, shx_spec(executor.0.resolve(request)?));
        Ok(())
    })
}

/// Starts the command, and gives its live handle at once. A failure to start is what `shx_execution_result` gives. Free
/// the handle with `shx_execution_free`; that stops nothing.
#[unsafe(no_mangle)]
pub extern "C" fn shx_executor_execute(
    executor: Option<&shx_executor>,
    spec: Option<&shx_spec>,
    execution: Option<&mut MaybeUninit<*mut shx_execution>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (executor, spec) = (given(executor, "executor")?, given(spec, "spec")?);
        let out = given(execution, "execution")?;
        give(out, shx_execution::of(executor.0.execute(spec.0.clone())));
        Ok(())
    })
}

/// The same, waiting until the process exists: a failure to start is an error, and there is no handle. A deadline that
/// passes before is not an error; the handle's result says `timed_out`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_executor_start(
    executor: Option<&shx_executor>,
    spec: Option<&shx_spec>,
    execution: Option<&mut MaybeUninit<*mut shx_execution>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (executor, spec) = (given(executor, "executor")?, given(spec, "spec")?);
        let out = given(execution, "execution")?;
        give(out, shx_execution::of(executor.0.start(spec.0.clone())?));
        Ok(())
    })
}

/// Runs the command to its end. A command that fails, times out or is aborted has a result, not an error. Free the result
/// with `shx_result_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_executor_run(
    executor: Option<&shx_executor>,
    spec: Option<&shx_spec>,
    result: Option<&mut MaybeUninit<*mut shx_result>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (executor, spec) = (given(executor, "executor")?, given(spec, "spec")?);
        let out = given(result, "result")?;
        give(out, shx_result::of(executor.0.run(spec.0.clone())?));
        Ok(())
    })
}

/// Frees an executor. Its commands go on: they belong to the service. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_executor_free(executor: Option<Box<shx_executor>>) {
    free(executor);
}
