//! A host in a control group that has room for threads of the library, but for no process.

use crate::battery::failure;
use crate::commands::{argv, bash, run};
use crate::expect::{Outcome, equal, eventually, fact};
use crate::look::{Belongings, unique};
use shell_executor::{ExecRequest, SpawnStage, SubprocessService};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// T1, T11: `clone` is refused late, after the kernel has told the number of a process descriptor that it then takes back.
/// By that number nothing is closed: it may be another thread's by now.
pub(crate) fn process_refused(rounds: u32) -> Outcome {
    let group = match Group::enter() {
        Ok(group) => group,
        Err(reason) => {
            fact("skip", reason);
            return Ok(());
        }
    };
    let service = SubprocessService::new();
    let before = Belongings::at_rest()?;
    let stop = AtomicBool::new(false);
    let (opened, refused) = std::thread::scope(|scope| {
        let opener = scope.spawn(|| open_and_close(&stop));
        let refused = refuse(&group, &service, rounds);
        stop.store(true, Ordering::SeqCst);
        (opener.join(), refused)
    });
    let opened = opened.map_err(|_| "the opener panicked")?;
    fact("steps", refused?.join("|"));
    fact("opened", opened?);
    before.ensure_as_before()?;
    group.allow("max")?;
    equal("a run with room", run(&bash(&service)?, ExecRequest::new("exit 7"))?.exit_code, Some(7))?;
    equal("what the disposal could not stop", service.dispose().survivors, 0)?;
    group.leave()
}

/// Starts what cannot start. Gives the steps that were named.
fn refuse(group: &Group, service: &SubprocessService, rounds: u32) -> Outcome<Vec<String>> {
    let mut steps = Vec::new();
    // The threads that are there already; the opener may still be on its way.
    eventually("two threads are counted", || group.count().is_ok_and(|count| count == 2))?;
    // One more, which is the supervisor.
    group.allow("3")?;
    for _ in 0..rounds {
        let failure = failure(service.spawn(argv(["true"])).and_then(|process| process.result()))?;
        equal("the stage", failure.stage(), SpawnStage::Resources)?;
        equal("errno", failure.raw_os_error(), Some(libc::EAGAIN))?;
        let text = failure.to_string();
        let step = text.strip_prefix(r#"cannot start "true": "#).and_then(|rest| rest.split_once(": "));
        let (step, _) = step.ok_or_else(|| format!("{text:?} names no step"))?;
        if !steps.iter().any(|known| known == step) {
            steps.push(step.to_owned());
        }
        // Otherwise the next start might find no room for its supervisor.
        eventually("the supervisor is gone", || group.count().is_ok_and(|count| count == 2))?;
    }
    Ok(steps)
}

/// Opens, reads and closes, over and over. Says how often; an error as soon as the descriptor is not its own any more.
fn open_and_close(stop: &AtomicBool) -> Result<u64, String> {
    let mut rounds = 0;
    while !stop.load(Ordering::SeqCst) {
        // SAFETY: the path ends in NUL.
        let fd = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        told("open", fd >= 0)?;
        let mut byte = 0_u8;
        // SAFETY: the byte is writable.
        let got = unsafe { libc::read(fd, (&raw mut byte).cast(), 1) };
        told("read", got == 0)?;
        // SAFETY: the descriptor is this function's own, unless somebody has closed it.
        let closed = unsafe { libc::close(fd) };
        told("close", closed == 0)?;
        rounds += 1;
    }
    Ok(rounds)
}

fn told(call: &str, worked: bool) -> Result<(), String> {
    if worked { Ok(()) } else { Err(format!("{call} of the host's own: {}", io::Error::last_os_error())) }
}

/// A control group of this process's own, which leaves and removes it when dropped.
struct Group {
    home: PathBuf,
    path: PathBuf,
}

impl Group {
    /// Or why there is none.
    fn enter() -> Result<Group, String> {
        let ours = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let mut reason = "no control groups".to_owned();
        // One hierarchy for this alone (v1), or one for all (v2).
        for (mount, prefix) in [("/sys/fs/cgroup/pids", ":pids:"), ("/sys/fs/cgroup", "0::")] {
            let Some(home) = ours.lines().find_map(|line| line.split_once(prefix)) else { continue };
            let home = Path::new(mount).join(home.1.trim_start_matches('/'));
            let path = Path::new(mount).join(format!("test-host-{}-{}", std::process::id(), unique()));
            if let Err(error) = fs::create_dir(&path) {
                reason = format!("no control group can be made: {error}");
                continue;
            }
            let group = Group { home, path };
            if !group.path.join("pids.max").exists() {
                reason = "control groups do not count processes".to_owned();
                continue;
            }
            match join(&group.path) {
                Ok(()) => return Ok(group),
                Err(error) => reason = format!("the control group cannot be entered: {error}"),
            }
        }
        Err(reason)
    }

    /// How many threads are in it.
    fn count(&self) -> Outcome<usize> {
        Ok(fs::read_to_string(self.path.join("pids.current"))?.trim().parse()?)
    }

    fn allow(&self, threads: &str) -> Outcome {
        Ok(fs::write(self.path.join("pids.max"), threads)?)
    }

    fn leave(self) -> Outcome {
        join(&self.home)?;
        // The processes that were in it may still be on their way out.
        eventually("the control group is removed", || fs::remove_dir(&self.path).is_ok())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // After a failure only: there is nothing left to say about it.
        let _ = join(&self.home);
        let _ = fs::remove_dir(&self.path);
    }
}

fn join(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}
