//! The trial of a backend: a shell under it writes where it may, and where it may not.

use super::provider::{Rules, SandboxPlan};
use super::verdict::Verdict;
use super::way::Way;
use super::{SandboxInfo, SandboxMode};
use crate::error::{Error, SpawnError};
use crate::output::PrivateFolder;
use crate::process::{Cause, Disposition, Launch, Preparation, SpawnSpec, Surroundings};
use std::ffi::OsString;
use std::io;
use std::time::Duration;

/// A backend that has not come back by then hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes to a file in the writable directory, then to one beside it, to a device, and in the scratch directory if there is
/// one. No special built-in, because a shell may end at the failed redirection of one.
const SCRIPT: &str = "\
true >\"$1/file\" || exit 11
if (true >\"$2/file\") 2>/dev/null; then exit 12; fi
true >/dev/null || exit 13
[ -z \"$3\" ] || true >\"$3/file\" || exit 14
exit 10";

/// Why a backend does not confine here.
#[derive(Debug)]
pub(super) struct Unfit {
    pub(super) reason: String,
    /// Whether it may be another time: what has kept it from an answer may pass.
    pub(super) may_pass: bool,
}

impl Unfit {
    pub(super) fn lasting(reason: impl Into<String>) -> Unfit {
        Unfit { reason: reason.into(), may_pass: false }
    }
}

/// `Ok(Err(…))` when the backend does not confine here.
///
/// # Errors
///
/// When nothing was found out: the service is disposed of, or has no resources.
pub(super) fn run(
    way: &Way,
    scratch_bytes: u64,
    surroundings: &Surroundings<'_>,
) -> Result<Result<(), Unfit>, Error> {
    let no_place = |error: io::Error| SpawnError::resources("no place to try a sandbox in", &error);
    let folder = PrivateFolder::create(surroundings.dir, "probe-").map_err(no_place)?;
    let make = |name: &str| -> io::Result<std::path::PathBuf> {
        let path = folder.path().join(name);
        std::fs::create_dir(&path)?;
        path.canonicalize()
    };
    let (inside, beside) = (make("inside").map_err(no_place)?, make("beside").map_err(no_place)?);
    let scratch = if way.has_scratch() { Some(make("scratch").map_err(no_place)?) } else { None };
    let rules = Rules {
        mode: SandboxMode::ReadOnly,
        writable: vec![inside.clone()],
        private: None,
        scratch: scratch.clone().map(|path| (path, scratch_bytes)),
    };
    let argv: Vec<OsString> = vec![
        "/bin/sh".into(),
        "-c".into(),
        SCRIPT.into(),
        "sh".into(),
        inside.into(),
        beside.into(),
        scratch.map_or_else(OsString::new, Into::into),
    ];
    let collect = Disposition::Collect { max_bytes: 4096, spill_max_bytes: None };
    let env = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    let mut spec = SpawnSpec::new(argv, "/", env, collect, Duration::ZERO);
    spec.timeout = Some(PATIENCE);
    let trial = Trial { way: way.clone(), rules };
    match surroundings.trials.run(spec, Box::new(trial)) {
        Ok(result) if result.timed_out => {
            let reason = format!("a trial of it was not over after {} s", PATIENCE.as_secs());
            Ok(Err(Unfit { reason, may_pass: true }))
        }
        Ok(result) if result.cause == Some(Cause::Disposal) => Err(Error::Disposed),
        Ok(result) => Ok(match result.exit_code {
            Some(10) => Ok(()),
            Some(11) => Err(Unfit::lasting("a command in it cannot write where it may")),
            Some(12) => Err(Unfit::lasting("a command in it can write where it may not")),
            Some(13) => Err(Unfit::lasting("a command in it cannot write to /dev/null")),
            Some(14) => Err(Unfit::lasting("a command in it cannot write to its scratch directory")),
            Some(code) => {
                let said = said(&result.stderr.text);
                Err(Unfit::lasting(format!("a trial of it ended with exit code {code}{said}")))
            }
            None => {
                let reason = format!("a trial of it was killed{}", said(&result.stderr.text));
                Err(Unfit { reason, may_pass: true })
            }
        }),
        Err(Error::SandboxUnavailable { reason, .. }) => Ok(Err(Unfit::lasting(reason))),
        Err(error @ Error::Spawn(_)) if is_final(&error) => Ok(Err(Unfit::lasting(error.to_string()))),
        Err(error) => Err(error),
    }
}

/// A missing shell stays missing; a shortage does not.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::Spawn(failure) if failure.stage() != crate::error::SpawnStage::Resources)
}

fn said(stderr: &str) -> String {
    stderr.trim().lines().last().map_or_else(String::new, |line| format!(": {line}"))
}

struct Trial {
    way: Way,
    rules: Rules,
}

impl Preparation for Trial {
    fn sandbox(&self) -> Option<SandboxInfo> {
        Some(SandboxInfo::new(self.rules.mode))
    }

    fn prepare(self: Box<Self>, launch: &mut Launch, surroundings: &Surroundings<'_>) -> Result<(), Error> {
        let mut plan = SandboxPlan::new(launch, surroundings);
        let confined = self.way.confine(&self.rules, &mut plan)?;
        let verdict = Verdict::new(self.rules.mode, plan.is_runner(), confined);
        launch.confiner = Some(Box::new(verdict));
        Ok(())
    }
}
