//! What confines: the chain of backends, or a runner of the host's choice.

use super::boundary::*;
use super::error::{Failure, shx_error};
use super::service::shx_service;
use super::view::shx_view;
use crate::{Enforcement, SandboxBackend, SandboxChain, SandboxProvider, SandboxRung, SandboxRunner};
use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

/// A way to confine commands.
pub type shx_sandbox_backend = i32;

/// Namespaces and a Landlock domain, by the spawn itself (Linux). Full.
pub const SHX_SANDBOX_BACKEND_NATIVE: shx_sandbox_backend = 0;
/// The installed bubblewrap (Linux). Full.
pub const SHX_SANDBOX_BACKEND_BWRAP: shx_sandbox_backend = 1;
/// A Landlock domain alone (Linux). Partial.
pub const SHX_SANDBOX_BACKEND_LANDLOCK: shx_sandbox_backend = 2;
/// `sandbox-exec` (macOS). Reported as partial.
pub const SHX_SANDBOX_BACKEND_SEATBELT: shx_sandbox_backend = 3;

/// How completely a mode is enforced.
pub type shx_enforcement = i32;

/// Not confined, or not known yet.
pub const SHX_ENFORCEMENT_NONE: shx_enforcement = 0;
/// Every effect on files that the mode forbids is stopped.
pub const SHX_ENFORCEMENT_FULL: shx_enforcement = 1;
/// Some are not.
pub const SHX_ENFORCEMENT_PARTIAL: shx_enforcement = 2;

pub(super) fn enforcement_number(enforcement: Option<Enforcement>) -> shx_enforcement {
    match enforcement {
        None => SHX_ENFORCEMENT_NONE,
        Some(Enforcement::Full) => SHX_ENFORCEMENT_FULL,
        Some(Enforcement::Partial) => SHX_ENFORCEMENT_PARTIAL,
    }
}

fn enforcement_of(number: shx_enforcement) -> Result<Enforcement, Failure> {
    match number {
        SHX_ENFORCEMENT_FULL => Ok(Enforcement::Full),
        SHX_ENFORCEMENT_PARTIAL => Ok(Enforcement::Partial),
        _ => Err(Failure::Argument("enforcement", format!("is {number}, which is none").into())),
    }
}

/// What confines the commands of an executor. It is set up first and used then: a change is not seen by executors that
/// have it already, and makes a chain try its backends again.
pub struct shx_sandbox_provider(Mutex<Kind>);

enum Kind {
    Chain(SandboxChain),
    Runner(SandboxRunner),
}

impl shx_sandbox_provider {
    pub(super) fn provider(&self) -> Arc<dyn SandboxProvider> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Kind::Chain(chain) => Arc::new(chain.clone()),
            Kind::Runner(runner) => Arc::new(runner.clone()),
        }
    }

    fn chain(&self) -> Result<SandboxChain, Failure> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Kind::Chain(chain) => Ok(chain.clone()),
            Kind::Runner(_) => Err(Failure::Argument("provider", "is a runner, not a chain".into())),
        }
    }

    fn change_chain(&self, change: impl FnOnce(SandboxChain) -> SandboxChain) -> Result<(), Failure> {
        let chain = change(self.chain()?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Kind::Chain(chain);
        Ok(())
    }

    fn change_runner(&self, change: impl FnOnce(SandboxRunner) -> SandboxRunner) -> Result<(), Failure> {
        let mut kind = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Kind::Runner(runner) = &*kind else {
            return Err(Failure::Argument("provider", "is a chain, not a runner".into()));
        };
        *kind = Kind::Runner(change(runner.clone()));
        Ok(())
    }
}

/// The chain of this system's backends: the first that works confines. Each is tried once, when it is first needed. Free it
/// with `shx_sandbox_provider_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_chain_new() -> *mut shx_sandbox_provider {
    quietly(std::ptr::null_mut(), || {
        into_raw(shx_sandbox_provider(Mutex::new(Kind::Chain(SandboxChain::new()))))
    })
}

/// Tries only these `count` backends, in this order.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_chain_set_backends(
    provider: Option<&shx_sandbox_provider>,
    backends: *const shx_sandbox_backend,
    count: usize,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let provider = given(provider, "provider")?;
        if count > SandboxBackend::ALL.len().max(16) {
            return Err(Failure::Argument(
                "count",
                format!("is {count}, more than there are backends").into(),
            ));
        }
        let mut chosen = Vec::with_capacity(count);
        if count > 0 {
            if backends.is_null() {
                return Err(Failure::Argument("backends", "is null".into()));
            }
            // SAFETY: not null, and few; that so many numbers can be read there is what the header asks of the caller.
            for &number in unsafe { std::slice::from_raw_parts(backends, count) } {
                chosen.push(match number {
                    SHX_SANDBOX_BACKEND_NATIVE => SandboxBackend::Native,
                    SHX_SANDBOX_BACKEND_BWRAP => SandboxBackend::Bwrap,
                    SHX_SANDBOX_BACKEND_LANDLOCK => SandboxBackend::Landlock,
                    SHX_SANDBOX_BACKEND_SEATBELT => SandboxBackend::Seatbelt,
                    _ => {
                        let reason = format!("has {number}, which is no backend").into();
                        return Err(Failure::Argument("backends", reason));
                    }
                });
            }
        }
        provider.change_chain(|chain| chain.backends(chosen))
    })
}

/// Whether a backend that stops only part of what a mode forbids is refused. Default: no.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_chain_set_require_full(
    provider: Option<&shx_sandbox_provider>,
    require: bool,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || given(provider, "provider")?.change_chain(|chain| chain.require_full(require)))
}

/// How much the scratch directory of `SHX_SANDBOX_MODE_READ_ONLY` holds, in bytes of memory. Default: 64 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_chain_set_scratch_max_bytes(
    provider: Option<&shx_sandbox_provider>,
    bytes: u64,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || given(provider, "provider")?.change_chain(|chain| chain.scratch_max_bytes(bytes)))
}

/// The directory that `SHX_SANDBOX_MODE_WORKSPACE_WRITE` opens besides the workspace. Default: the host's temp directory.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_chain_set_temp_dir(
    provider: Option<&shx_sandbox_provider>,
    directory: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let directory = directory.path("directory")?;
        given(provider, "provider")?.change_chain(|chain| chain.temp_dir(directory))
    })
}

/// Where bubblewrap stands, for a host that has its own. Default: where systems install it.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_chain_set_bwrap(
    provider: Option<&shx_sandbox_provider>,
    program: shx_view,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let program = program.path("program")?;
        given(provider, "provider")?.change_chain(|chain| chain.bwrap(program))
    })
}

/// What became of each backend of a chain.
pub struct shx_sandbox_rungs(Vec<(SandboxRung, String)>);

/// What became of each backend of the chain `provider` here. Those that have not been tried are tried now, in `service`.
/// Free it with `shx_sandbox_rungs_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_service_sandbox_rungs(
    service: Option<&shx_service>,
    provider: Option<&shx_sandbox_provider>,
    rungs: Option<&mut MaybeUninit<*mut shx_sandbox_rungs>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (service, provider) = (given(service, "service")?, given(provider, "provider")?);
        let out = given(rungs, "rungs")?;
        let rungs = service.0.sandbox_rungs(&provider.chain()?)?;
        let rungs = rungs.into_iter().map(|rung| {
            let ungoverned = rung.ungoverned.join("; ");
            (rung, ungoverned)
        });
        give(out, shx_sandbox_rungs(rungs.collect()));
        Ok(())
    })
}

/// How many backends there are; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_rungs_count(rungs: Option<&shx_sandbox_rungs>) -> usize {
    rungs.map_or(0, |rungs| rungs.0.len())
}

fn rung(rungs: Option<&shx_sandbox_rungs>, index: usize) -> Option<&(SandboxRung, String)> {
    rungs?.0.get(index)
}

/// The name of a backend, such as `native`; empty past the last. Lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_rungs_name(rungs: Option<&shx_sandbox_rungs>, index: usize) -> shx_view {
    shx_view::of(rung(rungs, index).map_or("", |(rung, _)| rung.backend.as_str()))
}

/// Whether commands are confined by it: it is the first that works.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_rungs_is_chosen(rungs: Option<&shx_sandbox_rungs>, index: usize) -> bool {
    rung(rungs, index).is_some_and(|(rung, _)| rung.chosen)
}

/// Why it cannot be used; empty for one that works. Lives as long as the object.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_rungs_unavailable(rungs: Option<&shx_sandbox_rungs>, index: usize) -> shx_view {
    shx_view::of(rung(rungs, index).and_then(|(rung, _)| rung.unavailable.as_deref()).unwrap_or_default())
}

/// The effects on files that it does not stop, in words; empty for one that stops all. Lives as long as the object.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_rungs_ungoverned(rungs: Option<&shx_sandbox_rungs>, index: usize) -> shx_view {
    shx_view::of(rung(rungs, index).map_or("", |(_, ungoverned)| ungoverned))
}

/// Frees it. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_rungs_free(rungs: Option<Box<shx_sandbox_rungs>>) {
    free(rungs);
}

/// A runner: a program that confines what it is given to run, by its `count` words. The first is a name to look up on this
/// process's `PATH`, or an absolute path. In the words, `{mode}`, `{workspace_root}` and `{temp_dir}` stand for what they
/// say. The shell and its arguments follow them. How complete the confinement is, the host says by `enforcement`. Free it
/// with `shx_sandbox_provider_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_runner_new(
    words: *const shx_view,
    count: usize,
    enforcement: shx_enforcement,
    provider: Option<&mut MaybeUninit<*mut shx_sandbox_provider>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let out = given(provider, "provider")?;
        let argv = super::view::words(words, count, "words")?;
        let argv: Result<Vec<OsString>, Failure> = argv.iter().map(|word| word.os_string("words")).collect();
        let runner = SandboxRunner::new(argv?, enforcement_of(enforcement)?)?;
        give(out, shx_sandbox_provider(Mutex::new(Kind::Runner(runner))));
        Ok(())
    })
}

/// The `count` exit codes by which a runner says that it has failed and the command has not run.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_runner_set_failure_exit_codes(
    provider: Option<&shx_sandbox_provider>,
    codes: *const i32,
    count: usize,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let provider = given(provider, "provider")?;
        if count > 256 || (count > 0 && codes.is_null()) {
            return Err(Failure::Argument("codes", format!("are {count}, or null").into()));
        }
        let codes = match count {
            0 => &[][..],
            // SAFETY: not null, and few; that so many numbers can be read there is what the header asks of the caller.
            _ => unsafe { std::slice::from_raw_parts(codes, count) },
        };
        provider.change_runner(|runner| runner.failure_exit_codes(codes.iter().copied()))
    })
}

/// The `count` texts (UTF-8) that a runner prints on stderr when it has failed. Case is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_runner_set_failure_signatures(
    provider: Option<&shx_sandbox_provider>,
    texts: *const shx_view,
    count: usize,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (provider, texts) = (given(provider, "provider")?, strings(texts, count)?);
        provider.change_runner(|runner| runner.failure_signatures(texts))
    })
}

/// The `count` texts (UTF-8) that a failing command's stderr has when the runner has denied it something. Case is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_runner_set_denial_signatures(
    provider: Option<&shx_sandbox_provider>,
    texts: *const shx_view,
    count: usize,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let (provider, texts) = (given(provider, "provider")?, strings(texts, count)?);
        provider.change_runner(|runner| runner.denial_signatures(texts))
    })
}

fn strings(texts: *const shx_view, count: usize) -> Result<Vec<String>, Failure> {
    let views = super::view::words(texts, count, "texts")?;
    views.iter().map(|view| view.text("texts").map(str::to_owned)).collect()
}

/// Frees a provider. Executors that have it keep it. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_sandbox_provider_free(provider: Option<Box<shx_sandbox_provider>>) {
    free(provider);
}
