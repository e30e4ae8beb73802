//! Hosts that have closed some of their standard streams, as daemons do.

use crate::commands::{Scratch, bash, bash_with, execute, run};
use crate::expect::{Outcome, ensure, equal, eventually, fact};
use crate::kernels::become_kernel;
use crate::look::is_open;
use shell_executor::{ExecRequest, ServiceConfig, SubprocessService};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// T1: all eight combinations, one after the other.
pub(crate) fn closed_streams(kernel: &str) -> Outcome {
    if !become_kernel(kernel)? {
        return Ok(());
    }
    for combination in 0..8_u32 {
        let closed: Vec<i32> = (0..3).filter(|number| combination & (1 << number) != 0).collect();
        // While they are closed nothing can be printed: what went wrong is told afterwards.
        without(&closed, || one_combination(&closed))
            .map_err(|error| format!("{closed:?} closed: {error}"))?;
    }
    fact("combinations", 8);
    Ok(())
}

fn one_combination(closed: &[i32]) -> Outcome {
    let none_taken = || closed.iter().all(|&number| !is_open(number));
    let scratch = Scratch::new()?;
    let mut config = ServiceConfig::default();
    config.spill_root = scratch.path().to_path_buf();
    let service = SubprocessService::with_config(config);
    let executor = bash(&service)?;

    let request = ExecRequest::new("cat; echo out; echo err >&2").stdin("in\n");
    let result = run(&executor, request)?;
    equal("stdout", result.stdout.text.as_str(), "in\nout\n")?;
    equal("stderr", result.stderr.text.as_str(), "err\n")?;
    equal("the code", result.exit_code, Some(0))?;

    // A live run that has all kinds of descriptors: three pipes, and a spill file.
    let spilling = bash_with(&service, |config| config.output_max_bytes = 1_000)?;
    let command = "head -c 5000 /dev/zero; echo begun >&2; cat; echo out";
    let execution = execute(&spilling, ExecRequest::new(command).stdin_piped())?;
    let mut stdin = execution.take_stdin().ok_or("no stdin")?;
    let observed = execution.observed().ok_or("no readers")?;
    eventually("the spill file stands", || observed.stdout.read_from(0).spill_path.is_some())?;
    eventually("begun", || observed.stderr.total_bytes() == 6)?;
    eventually("no descriptor of the library has a place of a standard stream", none_taken)?;

    // What the host opens now gets such a place, and keeps it to itself.
    let mut own =
        std::fs::File::options().read(true).write(true).create_new(true).open(scratch.path().join("own"))?;
    if let Some(&lowest) = closed.first() {
        equal("the place of the host's own file", own.as_raw_fd(), lowest)?;
    }
    print_everywhere(closed, b"of the host\n");
    stdin.write_all(b"in\n")?;
    drop(stdin);
    let result = execution.result()?;
    equal("all of stdout", result.stdout.total_bytes, 5_000 + 3 + 4)?;
    ensure(result.stdout.text.ends_with("\0in\nout\n"), || format!("{:?}", result.stdout.text))?;
    equal("stderr", result.stderr.text.as_str(), "begun\n")?;
    let mut text = String::new();
    own.seek(SeekFrom::Start(0))?;
    own.read_to_string(&mut text)?;
    let wanted = if closed.is_empty() { "" } else { "of the host\n" };
    equal("what is in the host's own file", text.as_str(), wanted)?;
    drop(own);
    service.dispose();
    ensure(none_taken(), || "a place of a standard stream is taken".to_owned())
}

/// The same for the descriptors of `dispose_on_signals`.
pub(crate) fn with_signal_guard() -> Outcome {
    let closed = [0, 1, 2];
    without(&closed, || {
        let service = SubprocessService::new();
        let guard = service.dispose_on_signals()?;
        let taken: Vec<i32> = closed.into_iter().filter(|&number| is_open(number)).collect();
        drop(guard);
        service.dispose();
        equal("the places of standard streams that are taken", taken, Vec::new())
    })
}

/// Prints as a host would that does not know what it has closed: an error is no matter.
fn print_everywhere(closed: &[i32], text: &[u8]) {
    for &number in closed {
        // SAFETY: the text is readable for its length; a number that is not open gives EBADF.
        unsafe { libc::write(number, text.as_ptr().cast(), text.len()) };
    }
}

/// Plays `scene` with these streams closed, and puts them back.
fn without(closed: &[i32], scene: impl FnOnce() -> Outcome) -> Outcome {
    let mut kept = Vec::new();
    for &number in closed {
        // SAFETY: F_DUPFD_CLOEXEC takes no pointer.
        let raw = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 100) };
        ensure(raw >= 100, || format!("no copy of {number}"))?;
        // SAFETY: the call above made the number.
        kept.push((number, unsafe { OwnedFd::from_raw_fd(raw) }));
    }
    for &number in closed {
        // SAFETY: nobody owns the number as a value; the standard library's handles of it bear an error.
        unsafe { libc::close(number) };
    }
    let outcome = scene();
    for (number, copy) in kept {
        // SAFETY: both are numbers; the copy is open.
        unsafe { libc::dup2(copy.as_raw_fd(), number) };
    }
    outcome
}
