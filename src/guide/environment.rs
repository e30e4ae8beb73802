//! The environment: what a command is told, and what is kept from it.
//!
//! # In which order it is made
//!
//! 1. The host's environment at the time of `resolve`, or
//!    [`Config::inherited_env`](crate::Config::inherited_env) instead.
//! 2. Without what looks like a credential, the managed namespace `DSH_*` in any case, and what would run code before
//!    the command: `BASH_ENV`, `ENV`, `SHELLOPTS`, `BASHOPTS`, `PROMPT_COMMAND` and exported functions.
//! 3. With what keeps programs from waiting for a person: `NO_COLOR=1`, `TERM=dumb`, and pagers and editors that end at
//!    once.
//! 4. The request's [`env`](crate::ExecRequest::env), which always wins over what is above: a name it sets is set,
//!    credential or not, and a name it removes is not there.
//! 5. The request's [`managed_env`](crate::ExecRequest::managed_env), with names in the managed namespace only. An
//!    ordinary entry can therefore never pass for a fact of the host's.
//! 6. The range's marker, `SHELL_EXECUTOR_RANGE`.
//!
//! The outcome of all but the last is [`ExecSpec::environment`](crate::ExecSpec::environment): it can be read before
//! anything runs. Names and values are bytes on Unix, and go through as they are.
//!
//! # What looks like a credential
//!
//! A name is split at everything but letters and digits. It goes when, without regard to case, a piece ends in
//! `PASSWORD`, `PASSWD`, `PASSPHRASE`, `SECRET`, `TOKEN`, `CREDENTIAL`, `APIKEY` (each with or without a plural S),
//! `ACCESSKEY` or `PRIVATEKEY`, or is `KEY` or `KEYS`; or, in a name of several pieces, `PWD` or `PAT`. So does a
//! variable whose value is a URL with a password in it, whatever its name. [`Scrub`](crate::Scrub) adds names and exempts
//! them.
//!
//! ```
//! # use shell_executor::{BashExecutor, Config, ExecRequest, ShellExecutor, SubprocessService};
//! # let service = SubprocessService::new();
//! let mut config = Config::default();
//! config.inherited_env = Some(
//!     [("PATH", "/usr/bin:/bin"), ("GH_TOKEN", "x"), ("DATABASE_URL", "postgres://u:p@db/x"), ("KEYBOARD", "us")]
//!         .map(|(name, value)| (name.into(), value.into()))
//!         .to_vec(),
//! );
//! let bash = BashExecutor::new(&service, config)?;
//! let spec = bash.resolve(ExecRequest::new("printenv KEYBOARD"))?;
//! assert_eq!(spec.scrubbed, ["DATABASE_URL", "GH_TOKEN"]); // the names, never the values
//! assert_eq!(bash.run(spec)?.stdout.text, "us\n");
//! # Ok::<(), shell_executor::Error>(())
//! ```
//!
//! This keeps secrets out of what commands inherit, log and pass on. It does not hide them from a command that goes
//! looking: of a host of the same user, `/proc/<pid>/environ` can be read. A host that must prevent that makes itself
//! undumpable (`PR_SET_DUMPABLE`, prctl(2)).
//!
//! # Facts of the host
//!
//! A host that wants its commands to know things (the session, the branch, where its socket is) gives each part that
//! knows something a name in an [`EnvRegistry`](crate::EnvRegistry). A part declares its variables with a description when it
//! registers; nobody else can then have them. Before an execution the host
//! [collects](crate::EnvRegistry::collect) a snapshot, in which `DSH_SHELL`, `DSH_HOME` and, within a session,
//! `DSH_SESSION_ID` always are, and puts it into the request with
//! [`managed_snapshot`](crate::ExecRequest::managed_snapshot). A part that fails, panics or gives what it has not declared fails
//! that one collection, with its name in the error.
