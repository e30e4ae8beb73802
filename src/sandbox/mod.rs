//! What confines a command, and what the facts of a run say about it.
//!
//! Values: `mode`, `policy`, `service` (which policy a call gets), `escalation`, `denial`. Mechanisms: `provider` (the
//! seam), `chain` with its `probe`, the backends `native`, `bwrap`, `seatbelt` and `runner`, and `verdict` (the end of a
//! run).

#[cfg(target_os = "linux")]
mod bwrap;
mod chain;
mod denial;
mod escalation;
mod mode;
#[cfg(target_os = "linux")]
mod native;
mod policy;
mod probe;
mod provider;
mod runner;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
mod service;
mod verdict;
mod way;

pub use chain::{SandboxBackend, SandboxChain, SandboxRung};
pub use escalation::{Approver, Escalation};
pub use mode::{Enforcement, SandboxInfo, SandboxMode};
pub use policy::SandboxPolicy;
pub use provider::{Confined, SandboxPlan, SandboxProvider};
pub use runner::SandboxRunner;
pub use service::SandboxPolicyService;

use crate::error::Error;
use crate::process::{Launch, Surroundings};

/// Has `provider` confine a launch by `policy`, whose root is canonical and whose mode confines.
pub(crate) fn confine(
    provider: &dyn SandboxProvider,
    policy: &SandboxPolicy,
    launch: &mut Launch,
    surroundings: &Surroundings<'_>,
) -> Result<(), Error> {
    // Once more, just before it counts: a policy can be changed by hand, and a root can be replaced by a link.
    let unavailable = |reason: String| Error::SandboxUnavailable { mode: policy.mode, reason };
    let now = policy.clone().canonical().map_err(|error| unavailable(error.to_string()))?;
    if now != *policy {
        let (then, now) = (&policy.workspace_root, now.workspace_root);
        return Err(unavailable(format!("the workspace_root {then:?} leads to {now:?}")));
    }
    let mut plan = SandboxPlan::new(launch, surroundings);
    let confined = provider.confine(policy, &mut plan)?;
    let verdict = verdict::Verdict::new(policy.mode, plan.is_runner(), confined);
    launch.confiner = Some(Box::new(verdict));
    Ok(())
}
