//! Signals to `shx` itself: Ctrl-C aborts the command, a termination takes everything along.

use shell_executor::{AbortToken, SubprocessService};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::process::exit;
use std::thread::Builder;

/// From now on the first SIGINT fires `abort`, and SIGTERM or SIGHUP disposes of `service` and then ends this process as
/// it would have. Whoever asks once more gets it at once: the library kills what runs when the process exits.
pub(crate) fn listen(service: &SubprocessService, abort: &AbortToken) -> io::Result<()> {
    let mut wanted = vec![SIGINT, SIGTERM];
    // `nohup shx run …` is to outlive its terminal.
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let mut signals = Signals::new(wanted)?;
    let (service, abort) = (service.clone(), abort.clone());
    let listener = move || {
        let (mut interrupted, mut disposing) = (false, false);
        for signal in signals.forever() {
            let again = disposing || (interrupted && signal == SIGINT);
            if again {
                exit(128 + signal);
            }
            if signal == SIGINT {
                interrupted = true;
                abort.fire();
            } else {
                disposing = true;
                dispose_and_die(&service, signal);
            }
        }
    };
    Builder::new().name("shx-signals".to_owned()).spawn(listener).map(drop)
}

/// On a thread of its own, so that the next signal is heard meanwhile.
fn dispose_and_die(service: &SubprocessService, signal: i32) {
    let service = service.clone();
    let dispose = move || {
        service.dispose();
        // It comes back only for signals that do not kill.
        let _ = emulate_default_handler(signal);
    };
    if Builder::new().spawn(dispose).is_err() {
        exit(128 + signal);
    }
}

/// Blocks for ever: the service has been disposed of by a signal, and the process ends with that.
pub(crate) fn wait_for_death() -> ! {
    loop {
        std::thread::park();
    }
}

/// Whether this process was started with `signal` ignored. `false` where the system does not tell.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}
