//! A host whose kernel or container refuses what a sandbox backend is made of.

use crate::commands::{Scratch, bash, run};
use crate::expect::{Outcome, ensure, equal, fact};
use crate::kernels::become_kernel;
use shell_executor::{
    BashExecutor, Config, ExecRequest, SandboxChain, SandboxMode, SandboxPolicy, SubprocessService,
};
use std::sync::Arc;

/// S3, S4, cases 91, 92: the next backend, or a typed error; never an unconfined run. Tells each backend's state.
pub(crate) fn play(kernel: &str) -> Outcome {
    if !become_kernel(kernel)? {
        return Ok(());
    }
    let scratch = Scratch::new()?;
    let outside = scratch.path().join("outside");
    let service = SubprocessService::new();
    let chain = SandboxChain::new();
    let rungs = service.sandbox_rungs(&chain)?;
    for rung in &rungs {
        fact(rung.backend.as_str(), rung.unavailable.as_deref().unwrap_or("works"));
    }
    let policy = SandboxPolicy::new(SandboxMode::ReadOnly, scratch.path());
    let confined = BashExecutor::new(&service, Config::default())?.with_sandbox(Arc::new(chain), policy)?;
    let write = || ExecRequest::new("echo x >\"$O\"").env("O", &outside);
    match run(&confined, write()) {
        Ok(result) => {
            let used = rungs.iter().find(|rung| rung.chosen).map(|rung| rung.backend.as_str());
            let by = result.sandbox.and_then(|sandbox| sandbox.backend);
            equal("the backend", by.as_deref(), used)?;
            ensure(result.exit_code == Some(1), || format!("it ended with {:?}", result.exit_code))?;
            fact("used", by.unwrap_or_default());
        }
        Err(error) => {
            equal("the error", error.code(), "SANDBOX_UNAVAILABLE")?;
            let named = |rung: &&str| error.to_string().contains(&format!("{rung}: "));
            ensure(["native", "bwrap", "landlock"].iter().all(named), || format!("not all named: {error}"))?;
            fact("used", "none");
        }
    }
    ensure(!outside.exists(), || "it has run unconfined".to_owned())?;
    equal("an unconfined run", run(&bash(&service)?, write())?.exit_code, Some(0))?;
    ensure(outside.exists(), || "it has not run".to_owned())?;
    equal("what the disposal could not stop", service.dispose().survivors, 0)
}
