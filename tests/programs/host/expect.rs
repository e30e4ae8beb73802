//! How a scenario says what it saw, and that a promise was broken.

use std::error::Error;
use std::fmt::{Debug, Display};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// One fact for the test.
pub(crate) fn fact(key: &str, value: impl Display) {
    println!("{key}={value}");
}

pub(crate) fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(broken().into()) }
}

pub(crate) fn equal<T: PartialEq + Debug>(what: &str, got: T, wanted: T) -> Outcome {
    ensure(got == wanted, || format!("{what} is {got:?}, not {wanted:?}"))
}

/// Longer than anything takes on a loaded machine, shorter than the watchdog.
pub(crate) const PATIENCE: Duration = Duration::from_secs(25);

/// Looks until it holds: for what the kernel does in its own time.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) -> Outcome {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        ensure(Instant::now() < until, || format!("still not so: {what}"))?;
        sleep(Duration::from_millis(2));
    }
    Ok(())
}
