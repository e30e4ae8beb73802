//! Hosts with descriptors they have forgotten to mark, and hosts that stand nowhere.

use crate::battery::{LIST_DESCRIPTORS, Leaky};
use crate::commands::{Scratch, bash, bash_with, execute, run};
use crate::expect::{Outcome, ensure, equal, eventually};
use crate::kernels::become_kernel;
use crate::look::{self, unique};
use shell_executor::{Error, ExecRequest, ShellExecutor, SpawnStage, SubprocessService};
use std::fs::File;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};

/// T1, case 41: a command that lives on holds neither the host's lock nor its port.
pub(crate) fn leaked_lock(kernel: &str) -> Outcome {
    if !become_kernel(kernel)? {
        return Ok(());
    }
    let scratch = Scratch::new()?;
    let path = scratch.path().join("lock");
    let lock = File::create(&path)?;
    ensure(flock(&lock), || "the lock is not free".to_owned())?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    for fd in [lock.as_raw_fd(), listener.as_raw_fd()] {
        make_inheritable(fd)?;
    }
    let _leaky = Leaky::open()?;
    let service = SubprocessService::new();
    let number = unique();
    let command = format!("{LIST_DESCRIPTORS}; sleep {number} & exec sleep {number}");
    let execution = execute(&bash(&service)?, ExecRequest::new(command))?;
    // The background command says nothing of its own: it is there when both sleep.
    eventually("both sleep", || look::sleepers(&number).len() == 2)?;
    let observed = execution.observed().ok_or("no readers")?;
    eventually("the list is read", || observed.stdout.total_bytes() >= 6)?;
    equal("the descriptors", execution.read_output().delta.as_str(), "0\n1\n2\n")?;
    drop((lock, listener));
    ensure(flock(&File::open(&path)?), || "the command holds the lock".to_owned())?;
    ensure(TcpListener::bind(address).is_ok(), || format!("the command holds {address}"))?;
    equal("those who still sleep", look::sleepers(&number).len(), 2)?;
    service.dispose();
    look::gone(&number)
}

fn flock(file: &File) -> bool {
    // SAFETY: flock takes no pointer, and the file is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

fn make_inheritable(fd: RawFd) -> Outcome {
    // SAFETY: F_SETFD takes an integer, and the descriptor is open.
    ensure(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } == 0, || "F_SETFD".to_owned())
}

/// T1: the directory the host stands in is gone.
pub(crate) fn deleted_workdir() -> Outcome {
    let scratch = Scratch::new()?;
    let gone = scratch.path().join("gone");
    std::fs::create_dir(&gone)?;
    std::env::set_current_dir(&gone)?;
    std::fs::remove_dir(&gone)?;
    let service = SubprocessService::new();
    let elsewhere = scratch.path().canonicalize()?;
    let here = bash_with(&service, |config| config.workdir = None)?;
    let result = run(&here, ExecRequest::new("pwd").workdir(&elsewhere))?;
    equal("where it ran", result.stdout.text, format!("{}\n", elsewhere.display()))?;
    // The config's own directory is as good.
    equal("the code", run(&bash(&service)?, ExecRequest::new("exit 7"))?.exit_code, Some(7))?;
    for request in [ExecRequest::new("pwd"), ExecRequest::new("pwd").workdir("below")] {
        let Err(Error::Spawn(failure)) = here.resolve(request) else {
            return Err("a workdir was made out of nothing".into());
        };
        equal("the stage", failure.stage(), SpawnStage::Workdir)?;
        equal("errno", failure.raw_os_error(), Some(libc::ENOENT))?;
        ensure(failure.path().is_some(), || format!("{failure:?} has no path"))?;
        ensure(failure.to_string().contains("current directory"), || format!("{failure} does not name it"))?;
    }
    service.dispose();
    Ok(())
}

/// Prints the numbers of this process's descriptors, without help of `/proc`.
pub(crate) fn list() -> Outcome {
    (0..5_000).filter(|&number| look::is_open(number)).for_each(|number| println!("{number}"));
    Ok(())
}
