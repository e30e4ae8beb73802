//! The shell seam: a request is resolved to a fully explicit spec, and a spec is executed.

mod bash;
mod config;
mod execution;
mod local;
mod pwsh;
mod render;
mod request;
mod start;

pub use bash::BashExecutor;
pub use config::Config;
pub use execution::{Execution, ExecutionBackend};
pub use pwsh::PwshExecutor;
pub use render::{ExitStatus, ParsedOutput, parse_exit_status, render_read, render_result};
pub use request::{ExecRequest, ExecSpec, Stdin};

use crate::error::Error;
use crate::result::RunResult;
use crate::sandbox::SandboxMode;

/// Runs shell commands. What a host is written against, whichever provider it uses: local, confined or remote.
///
/// The split is the point of it. [`resolve`](ShellExecutor::resolve) is the only place where defaults and caps are applied,
/// so what will happen can be read, shown and approved before it does; [`execute`](ShellExecutor::execute) takes only what
/// was resolved and adds nothing. Foreground and background are not two ways to start a command but two ways to look at
/// the one [`Execution`].
pub trait ShellExecutor: Send + Sync {
    /// Applies defaults and caps.
    ///
    /// # Errors
    ///
    /// When a field has a value that nothing can be run with, the default working directory cannot be found out, or
    /// confinement is asked of an executor that does not confine. Nothing has been started.
    fn resolve(&self, request: ExecRequest) -> Result<ExecSpec, Error>;

    /// Starts the command, and returns its live handle at once. A failure to start is what the handle's result says.
    fn execute(&self, spec: ExecSpec) -> Execution;

    /// Runs the command to its end.
    ///
    /// # Errors
    ///
    /// Only when the command could not be started, or its status was lost.
    fn run(&self, spec: ExecSpec) -> Result<RunResult, Error> {
        self.execute(spec).result()
    }

    /// Starts the command and waits until its process exists.
    ///
    /// # Errors
    ///
    /// When the preparation failed or was cancelled before there was a process. A deadline that passes before is not an
    /// error: the handle's result says `timed_out`.
    fn start(&self, spec: ExecSpec) -> Result<Execution, Error> {
        let execution = self.execute(spec);
        execution.wait_started()?;
        Ok(execution)
    }

    /// The mode that commands are confined to unless their request says otherwise; `None` from an executor that does not
    /// confine.
    fn sandbox_mode(&self) -> Option<SandboxMode> {
        None
    }
}
