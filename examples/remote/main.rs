//! Runs a command on another machine, through `ssh`: a provider of executions of one's own.
//!
//! ```text
//! remote HOST WORKDIR COMMAND
//! ```
//!
//! `SSH` in the environment names another program to use. The two modules are all that a provider has to be: `executor`
//! says what can be asked for, `session` is one command and every view of it. Neither uses the local service.

mod executor;
mod session;

use executor::SshExecutor;
use shell_executor::{ExecRequest, ShellExecutor, render_result};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [host, workdir, command] = words.as_slice() else {
        eprintln!("usage: remote HOST WORKDIR COMMAND");
        return ExitCode::from(2);
    };
    let ssh = std::env::var_os("SSH").unwrap_or_else(|| "ssh".into());
    let executor = SshExecutor::new(ssh, host, workdir);
    let result = executor.resolve(ExecRequest::new(command)).and_then(|spec| executor.run(spec));
    match result {
        Ok(result) => println!("{}", render_result(&result)),
        Err(error) => {
            eprintln!("remote: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
