//! A host with very many processes, at once and one after the other.

use crate::commands::{argv, find};
use crate::expect::{Outcome, ensure, equal, eventually, fact};
use crate::limits::{limit, set_limit};
use crate::look::{self, Belongings, unique};
use shell_executor::{Disposition, ProcessStatus, SpawnSpec, Subprocess, SubprocessService};
use std::collections::HashSet;
use std::time::Instant;

/// Raises what may be raised. A reason when it is not enough for `count` live executions.
fn room_for(count: usize) -> Outcome<Option<String>> {
    let descriptors = limit(libc::RLIMIT_NOFILE)?;
    set_limit(libc::RLIMIT_NOFILE, descriptors.rlim_max)?;
    // Two pipes, a process descriptor and a wake-up each, and some for looking.
    let wanted = libc::rlim_t::try_from(count * 5 + 100)?;
    if descriptors.rlim_max < wanted {
        return Ok(Some(format!(
            "{} descriptors are not enough for {count} executions",
            descriptors.rlim_max
        )));
    }
    let processes = limit(libc::RLIMIT_NPROC)?.rlim_cur;
    if processes < libc::rlim_t::try_from(count * 3)? {
        return Ok(Some(format!("{processes} processes are not enough for {count} executions")));
    }
    Ok(None)
}

/// T9, T11: `count` live executions, each with its own process, and then none.
pub(crate) fn live(count: usize) -> Outcome {
    if let Some(reason) = room_for(count)? {
        fact("skip", reason);
        return Ok(());
    }
    let sleep = find("sleep")?;
    let number = unique();
    let before = Belongings::now();
    let began = Instant::now();
    let service = SubprocessService::new();
    let spec = |number: &str| argv([&sleep.to_string_lossy(), number]);
    let processes =
        (0..count).map(|_| service.spawn(spec(&number))).collect::<Result<Vec<Subprocess>, _>>()?;
    fact("started-ms", began.elapsed().as_millis());
    let ids: HashSet<i32> = processes.iter().filter_map(Subprocess::pid).collect();
    equal("the processes that were told", ids.len(), count)?;
    let asleep: HashSet<i32> = look::sleepers(&number).into_iter().collect();
    ensure(asleep == ids, || format!("{} sleep, {} were told", asleep.len(), ids.len()))?;
    let running = processes.iter().filter(|process| process.status() == ProcessStatus::Running).count();
    equal("the running ones", running, count)?;
    let threads = look::threads().len();
    ensure((count..count + 8).contains(&threads), || format!("{threads} threads"))?;
    fact("threads", threads);
    let descriptors = look::descriptors().len();
    fact("descriptors", descriptors);

    let began = Instant::now();
    let disposal = service.dispose();
    fact("disposed-ms", began.elapsed().as_millis());
    equal("the stopped and the surviving", (disposal.stopped, disposal.survivors), (count, 0))?;
    for process in &processes {
        let result = process.result()?;
        equal("the end", (result.exit_code, result.signal), (None, Some(libc::SIGTERM)))?;
    }
    equal("who sleeps on", look::sleepers(&number), Vec::new())?;
    before.ensure_as_before()
}

/// T11: `count` short ones from four threads.
pub(crate) fn short_ones(count: usize) -> Outcome {
    const THREADS: usize = 4;
    let program = find("true")?;
    let before = Belongings::now();
    let service = SubprocessService::new();
    let began = Instant::now();
    let discard = Disposition::Collect { max_bytes: 64, spill_max_bytes: None };
    let one = || {
        let mut spec: SpawnSpec = argv([&program.to_string_lossy()]);
        spec.stdout = discard;
        spec.stderr = discard;
        service.spawn(spec)?.result()
    };
    let failed = std::thread::scope(|scope| {
        let run = || (0..count / THREADS).filter(|_| !one().is_ok_and(|result| result.success())).count();
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(count)).sum::<usize>()
    });
    fact("milliseconds", began.elapsed().as_millis());
    equal("the failed ones", failed, 0)?;
    eventually("no child is left before the disposal", || look::children().is_empty())?;
    equal("what the disposal could not stop", service.dispose().survivors, 0)?;
    before.ensure_as_before()
}
