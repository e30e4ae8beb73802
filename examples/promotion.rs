//! A command that outruns its deadline is kept: what began in the foreground goes on as a background job.

use shell_executor::{BashExecutor, Config, Error, ExecRequest, OnExpiry, ShellExecutor, SubprocessService};
use std::io::Write;
use std::time::Duration;

fn main() -> Result<(), Error> {
    let service = SubprocessService::new();
    let bash = BashExecutor::new(&service, Config::default())?;

    // The command waits for a line, so it is certain to be running when its deadline passes.
    let request = ExecRequest::new("echo working; read word; echo \"got $word\"; exit 5")
        .timeout(Duration::from_secs(1))
        .on_expiry(OnExpiry::Offer)
        .stdin_piped();
    let execution = bash.execute(bash.resolve(request)?);

    // Blocks until the command has printed something.
    execution.wait_output(None);
    // Blocks until the deadline has passed, or the command has ended before it.
    match execution.promotion() {
        Some(offer) => println!("past its deadline; kept: {}", offer.accept()),
        None => println!("ended in time"),
    }
    print!("so far: {}", execution.read_output().delta);

    // The same handle, the same output, the same input: nothing was restarted.
    if let Some(mut stdin) = execution.take_stdin() {
        // A command that has ended meanwhile reads nothing, which is no failure of ours.
        let _ = stdin.write_all(b"news\n");
    }
    let result = execution.result()?;
    print!("later: {}", execution.read_output().delta);
    println!("exit code {:?}, timed out: {}", result.exit_code, result.timed_out);
    Ok(())
}
