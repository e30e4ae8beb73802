//! Hosts that run out: of descriptors, of threads, of processes, of address space.

use crate::battery::failure;
use crate::commands::{bash, execute, run};
use crate::expect::{Outcome, ensure, equal, fact};
use crate::kernels::become_kernel;
use crate::look::{self, Belongings, is_open};
use crate::users::{become_user, can_become};
use shell_executor::{BashExecutor, Containment, Error, ExecRequest, SpawnStage, SubprocessService};
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::time::Duration;

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// The limit in force, and the highest it may be set to.
pub(crate) fn limit(resource: Resource) -> Outcome<libc::rlimit> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the structure is writable.
    let result = unsafe { libc::getrlimit(resource, limit.as_mut_ptr()) };
    ensure(result == 0, || "getrlimit".to_owned())?;
    // SAFETY: the call has initialised it.
    Ok(unsafe { limit.assume_init() })
}

pub(crate) fn set_limit(resource: Resource, soft: libc::rlim_t) -> Outcome {
    let limit = libc::rlimit { rlim_cur: soft, ..limit(resource)? };
    // SAFETY: the structure is initialised.
    let result = unsafe { libc::setrlimit(resource, &raw const limit) };
    ensure(result == 0, || format!("setrlimit to {soft}: {}", std::io::Error::last_os_error()))
}

/// The limit under which exactly `free` more descriptors can be opened.
fn limit_with_room_for(free: usize) -> Outcome<libc::rlim_t> {
    let last = (0..).filter(|&number| !is_open(number)).nth(free).ok_or("no number")?;
    Ok(libc::rlim_t::try_from(last)?)
}

/// T11, case 44: every step of a start fails once for want of a descriptor.
pub(crate) fn no_descriptors() -> Outcome {
    let full = limit(libc::RLIMIT_NOFILE)?.rlim_cur;
    let service = SubprocessService::new();
    let bash = bash(&service)?;
    // The deadline thread stays for the life of a service.
    run(&bash, ExecRequest::new("true"))?;
    let before = Belongings::at_rest()?;
    let mut steps = BTreeSet::new();
    let mut enough = None;
    for free in 0..=14 {
        let request = bash_request(&bash)?;
        set_limit(libc::RLIMIT_NOFILE, limit_with_room_for(free)?)?;
        let outcome = request();
        set_limit(libc::RLIMIT_NOFILE, full)?;
        match outcome {
            Ok(result) => {
                equal("the code", result.exit_code, Some(0))?;
                equal("stdout", result.stdout.text.as_str(), "in\n")?;
                equal("the containment", result.containment, Containment::Session)?;
                enough.get_or_insert(free);
            }
            failed => {
                ensure(enough.is_none(), || format!("{free} were not enough, {enough:?} were"))?;
                let failure = failure(failed)?;
                equal("the stage", failure.stage(), SpawnStage::Resources)?;
                equal("errno", failure.raw_os_error(), Some(libc::EMFILE))?;
                let text = failure.to_string();
                let step =
                    text.strip_prefix(r#"cannot start "bash": "#).and_then(|rest| rest.split_once(": "));
                let (step, _) = step.ok_or_else(|| format!("{text:?} names no step"))?;
                steps.insert(step.to_owned());
            }
        }
        equal("a run with room", run(&bash, ExecRequest::new("exit 7"))?.exit_code, Some(7))?;
        // It has closed everything of its own when the next room is measured.
        before.ensure_as_before().map_err(|error| format!("with room for {free}: {error}"))?;
    }
    fact("enough", enough.ok_or("14 were not enough")?);
    fact("steps", steps.into_iter().collect::<Vec<_>>().join("|"));
    service.dispose();
    Ok(())
}

type Attempt<'a> = Box<dyn FnOnce() -> Result<shell_executor::RunResult, Error> + 'a>;

/// A run with all pipes there are, resolved beforehand.
fn bash_request(bash: &BashExecutor) -> Outcome<Attempt<'_>> {
    use shell_executor::ShellExecutor;
    let spec = bash.resolve(ExecRequest::new("exec cat").stdin("in\n"))?;
    Ok(Box::new(move || bash.run(spec)))
}

/// T5: a fact about the machine does not depend on the moment it is first asked in.
pub(crate) fn containment_without_descriptors() -> Outcome {
    let full = limit(libc::RLIMIT_NOFILE)?.rlim_cur;
    let service = SubprocessService::new();
    let bash = bash(&service)?;
    set_limit(libc::RLIMIT_NOFILE, limit_with_room_for(0)?)?;
    let execution = execute(&bash, ExecRequest::new("true"));
    let asked = execution.as_ref().map(|execution| execution.containment());
    set_limit(libc::RLIMIT_NOFILE, full)?;
    fact("asked", format!("{asked:?}"));
    let later = run(&bash, ExecRequest::new("true"))?.containment;
    equal("the containment later", later, Containment::Session)
}

/// T11: threads, then processes, run out for the user whom this process becomes; whom root cannot become is played by an
/// ordinary user, who can only be sure to have no thread left.
pub(crate) fn no_processes() -> Outcome {
    // Of a number that no other process has, so that the count is this process's own.
    let somebody = 60_000 + std::process::id() % 5_000;
    let root = crate::users::is_root();
    if root {
        if !can_become(somebody) {
            fact("skip", "there is no other user here");
            return Ok(());
        }
        become_user(somebody)?;
    }
    let full = limit(libc::RLIMIT_NPROC)?.rlim_cur;
    let service = SubprocessService::new();
    let bash = bash(&service)?;
    let mut steps = Vec::new();
    // One more thread or process is allowed each time: the deadline thread, the supervisor, the process.
    let limits = if root { 1..=4 } else { 0..=0 };
    for limit in limits {
        let descriptors = look::descriptors();
        set_limit(libc::RLIMIT_NPROC, limit)?;
        let outcome = run(&bash, ExecRequest::new("exit 7"));
        set_limit(libc::RLIMIT_NPROC, full)?;
        match outcome {
            Ok(result) => {
                equal("the code", result.exit_code, Some(7))?;
                steps.push("none".to_owned());
            }
            failed => steps.push(shortage(failed)?),
        }
        crate::expect::eventually("descriptors as before", || look::descriptors() == descriptors)?;
        crate::expect::eventually("no more threads than the deadline's", || {
            look::threads().iter().all(|thread| thread != "shx-run") && look::threads().len() <= 2
        })?;
        equal("the children", look::children(), Vec::new())?;
    }
    equal("a run with room", run(&bash, ExecRequest::new("exit 7"))?.exit_code, Some(7))?;
    fact("root", root);
    fact("steps", steps.join("|"));
    service.dispose();
    Ok(())
}

/// The step that a typed error for `EAGAIN` names.
fn shortage(failed: Result<shell_executor::RunResult, Error>) -> Outcome<String> {
    let failure = failure(failed)?;
    equal("the stage", failure.stage(), SpawnStage::Resources)?;
    equal("errno", failure.raw_os_error(), Some(libc::EAGAIN))?;
    let text = failure.to_string();
    let step = text.strip_prefix(r#"cannot start "bash": "#).and_then(|rest| rest.split_once(": "));
    let (step, _) = step.ok_or_else(|| format!("{text:?} names no step"))?;
    Ok(step.to_owned())
}

/// T11: the same for the process alone, for every user.
pub(crate) fn no_fork() -> Outcome {
    if !become_kernel("no-more-processes")? {
        return Ok(());
    }
    let service = SubprocessService::new();
    let bash = bash(&service)?;
    let first = run(&bash, ExecRequest::new("true"));
    fact("step", shortage(first)?);
    let before = Belongings::at_rest()?;
    for _ in 0..20 {
        shortage(run(&bash, ExecRequest::new("true")))?;
    }
    before.ensure_as_before()?;
    service.dispose();
    Ok(())
}

/// T1, case 43: a large host, with an address space that has no room for a second one of it.
pub(crate) fn large(mebibytes: usize) -> Outcome {
    let memory = touched(mebibytes << 20)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let size = look::status_field(&status, "VmSize").ok_or("no VmSize")?;
    let kibibytes: libc::rlim_t = size.split(' ').next().unwrap_or_default().parse()?;
    let half = libc::rlim_t::try_from(mebibytes << 19)?;
    set_limit(libc::RLIMIT_AS, kibibytes * 1024 + half)?;
    let service = SubprocessService::new();
    let bash = bash(&service)?;
    for _ in 0..20 {
        let result = run(&bash, ExecRequest::new("exit 7").timeout(Duration::from_secs(20)))?;
        equal("the code", result.exit_code, Some(7))?;
    }
    service.dispose();
    fact("resident", memory.iter().step_by(4096).filter(|&&byte| byte == 1).count() * 4096);
    Ok(())
}

fn touched(bytes: usize) -> Outcome<Vec<u8>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes)?;
    memory.resize(bytes, 1);
    Ok(memory)
}
