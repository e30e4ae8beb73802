//! A background job: start it, read what it prints as it comes, look at it from elsewhere, and stop it.

use shell_executor::{BashExecutor, Config, Error, ExecRequest, OnExpiry, ShellExecutor, SubprocessService};

fn main() -> Result<(), Error> {
    let service = SubprocessService::new();
    let bash = BashExecutor::new(&service, Config::default())?;

    // A background job has no deadline; it runs until it ends or is stopped.
    let command = "for i in 1 2 3; do echo line $i; done; echo careful >&2; exec sleep 1000";
    let job = bash.start(bash.resolve(ExecRequest::new(command).on_expiry(OnExpiry::None))?)?;
    println!("started as process {}", job.pid().unwrap_or_default());

    // Consuming reads: each gives what is new. Blocks until there is something, polls nothing.
    let mut seen = String::new();
    while !(seen.contains("line 3") && seen.contains("careful")) && job.wait_output(None) {
        let read = job.read_output();
        print!("{}", read.delta);
        seen.push_str(&read.delta);
    }

    // An independent reader starts wherever it likes, and takes nothing from the one above.
    if let Some(observed) = job.observed() {
        println!("from offset 7: {:?}", observed.stdout.read_from(7).text);
    }

    println!("stopped by this call: {}", job.kill());
    let result = job.result()?;
    println!("{}, {}", result.status.as_str(), result.signal_name().unwrap_or_default());
    Ok(())
}
