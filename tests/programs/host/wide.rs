//! Ranges with more members than their host has descriptors to spare.

use crate::commands::{bash_with, execute, this_program};
use crate::expect::{Outcome, PATIENCE, ensure, equal, eventually, fact};
use crate::limits::{limit, set_limit};
use crate::look::{sleepers, unique};
use shell_executor::{ExecRequest, Execution, SubprocessService};
use std::fs::File;
use std::time::{Duration, Instant};

const MEMBERS: usize = 100;
/// Fewer than the members, enough for the service.
const DESCRIPTORS: libc::rlim_t = 64;
const GRACE: Duration = Duration::from_secs(20);

/// A range whose members are each in a session of their own, in a host that has fewer descriptors than members.
struct Wide {
    service: SubprocessService,
    execution: Execution,
    number: String,
    full: libc::rlim_t,
}

impl Wide {
    fn start() -> Outcome<Wide> {
        let full = limit(libc::RLIMIT_NOFILE)?.rlim_cur;
        set_limit(libc::RLIMIT_NOFILE, DESCRIPTORS)?;
        let service = SubprocessService::new();
        let bash = bash_with(&service, |config| config.grace = GRACE)?;
        let (host, number) = (this_program()?, unique());
        let command =
            format!("for ((i = 0; i < {MEMBERS}; i++)); do {host} own-session sleep {number} & done; wait");
        let execution = execute(&bash, ExecRequest::new(command))?;
        execution.wait_started()?;
        let wide = Wide { service, execution, number, full };
        eventually("all sleep", || sleepers(&wide.number).len() == MEMBERS)?;
        Ok(wide)
    }

    /// Who is left, with descriptors to look for them.
    fn left(&self) -> Outcome<Vec<i32>> {
        set_limit(libc::RLIMIT_NOFILE, self.full)?;
        Ok(sleepers(&self.number))
    }
}

impl Drop for Wide {
    fn drop(&mut self) {
        for pid in self.left().unwrap_or_default() {
            // SAFETY: integers only. Nothing else on this machine sleeps for that long.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// All descriptors that are free but a few.
fn hoard(free: usize) -> Outcome<Vec<File>> {
    let mut hoard = Vec::new();
    loop {
        match File::open("/dev/null") {
            Ok(file) => hoard.push(file),
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => break,
            Err(error) => return Err(error.into()),
        }
    }
    ensure(hoard.len() >= free, || format!("only {} descriptors were free", hoard.len()))?;
    hoard.truncate(hoard.len() - free);
    Ok(hoard)
}

/// T5, T9, T11: everybody is reached, whatever their number.
pub(crate) fn larger_than_descriptors() -> Outcome {
    let wide = Wide::start()?;
    let began = Instant::now();
    ensure(wide.execution.kill(), || "the kill was not the first".to_owned())?;
    let result = wide.execution.result()?;
    fact("kill-ms", began.elapsed().as_millis());
    equal("who is left", wide.left()?, Vec::new())?;
    equal("the survivors", result.survivors, 0)?;
    equal("the end", (result.exit_code, result.signal), (None, Some(libc::SIGTERM)))?;
    ensure(wide.execution.wait_range(Some(PATIENCE)), || "the range is not over".to_owned())?;
    equal("what the disposal could not stop", wide.service.dispose().survivors, 0)
}

/// T5, T9, T11: with next to no descriptor at the moment of the stop some may be out of reach, but nobody says they are
/// gone.
pub(crate) fn few_descriptors_free(how: &str, free: usize) -> Outcome {
    let wide = Wide::start()?;
    let hoard = hoard(free)?;
    let began = Instant::now();
    let told = match how {
        "kill" => {
            ensure(wide.execution.kill(), || "the kill was not the first".to_owned())?;
            wide.execution.result()?.survivors
        }
        "dispose" => wide.service.dispose().survivors,
        _ => return Err(format!("no such way: {how}").into()),
    };
    let took = began.elapsed();
    // Asked before the look: whoever is gone then was gone.
    let over = wide.execution.wait_range(Some(Duration::ZERO));
    let left = wide.left()?.len();
    fact("stop-ms", took.as_millis());
    fact("told", told);
    fact("left", left);
    ensure(left == 0 || told >= 1, || format!("{left} are left, none was told"))?;
    ensure(left == 0 || !over, || format!("the range is over with {left} left"))?;
    drop(hoard);
    if how == "kill" {
        // It may come while the kill is giving up, and then does not try again.
        let told = wide.service.dispose().survivors;
        let over = wide.execution.wait_range(Some(Duration::ZERO));
        let left = sleepers(&wide.number).len();
        fact("told-by-disposal", told);
        ensure(left == 0 || told >= 1, || format!("{left} are left, the disposal tells none"))?;
        ensure(left == 0 || !over, || format!("after the disposal the range is over with {left} left"))?;
    }
    Ok(())
}
