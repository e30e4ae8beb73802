//! The managed environment: who may give what, and what a command gets.

use proptest::prelude::*;
use shell_executor::{
    EnvCall, EnvContributor, EnvRegistration, EnvRegistry, EnvSnapshot, EnvVariable, Error, ExecRequest,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, Weak, mpsc};
use std::thread;
use std::time::Duration;

type Given = Result<Vec<(String, OsString)>, Box<dyn std::error::Error + Send + Sync>>;

/// A contributor whose answer is a closure.
struct Part<F> {
    name: String,
    variables: Vec<EnvVariable>,
    collect: F,
}

impl<F: Fn(&EnvCall) -> Given + Send + Sync> EnvContributor for Part<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn variables(&self) -> Vec<EnvVariable> {
        self.variables.clone()
    }

    fn collect(&self, call: &EnvCall) -> Given {
        (self.collect)(call)
    }
}

fn part<F>(name: &str, keys: &[&str], collect: F) -> Arc<Part<F>>
where
    F: Fn(&EnvCall) -> Given + Send + Sync,
{
    let variables = keys.iter().map(|key| EnvVariable::new(*key, format!("what {key} tells"))).collect();
    Arc::new(Part { name: name.to_owned(), variables, collect })
}

/// One that gives these values whenever it is asked.
fn fixed(name: &str, values: &[(&str, &str)]) -> Arc<dyn EnvContributor> {
    let keys: Vec<&str> = values.iter().map(|(key, _)| *key).collect();
    let values = owned(values);
    part(name, &keys, move |_| Ok(values.clone()))
}

fn owned(values: &[(&str, &str)]) -> Vec<(String, OsString)> {
    values.iter().map(|(key, value)| ((*key).to_owned(), value.into())).collect()
}

fn registry() -> EnvRegistry {
    EnvRegistry::new("/home/host")
}

fn collect(registry: &EnvRegistry) -> Result<EnvSnapshot, Error> {
    registry.collect(&EnvCall::new())
}

/// `NAME=value`, in the order of the snapshot.
fn shown(snapshot: &EnvSnapshot) -> Vec<String> {
    snapshot.iter().map(|(name, value)| format!("{name}={}", value.to_str().expect("text"))).collect()
}

#[track_caller]
fn refusal(registry: &EnvRegistry, contributor: Arc<dyn EnvContributor>) -> String {
    let error = registry.register(contributor).expect_err("it must be refused");
    assert_eq!(error.code(), "INVALID_REQUEST");
    error.to_string()
}

// M1
#[test]
fn the_built_in_variables_are_always_there_and_the_session_when_there_is_one() {
    let registry = registry();
    assert_eq!(shown(&collect(&registry).unwrap()), ["DSH_HOME=/home/host", "DSH_SHELL=1"]);
    let snapshot = registry.collect(&EnvCall::new().session("s1")).unwrap();
    assert_eq!(shown(&snapshot), ["DSH_HOME=/home/host", "DSH_SESSION_ID=s1", "DSH_SHELL=1"]);
}

// M1
#[test]
fn a_snapshot_has_every_contribution_by_name_and_what_has_no_value_is_absent() {
    let registry = registry();
    let _one = registry.register(fixed("one", &[("DSH_Z", "z"), ("DSH_A", "")])).unwrap();
    let answer = |call: &EnvCall| {
        let workdir = call.workdir.clone().map(|dir| ("DSH_DIR".to_owned(), dir.into()));
        let command = call.command.clone().map(|command| ("DSH_COMMAND".to_owned(), command));
        Ok(workdir.into_iter().chain(command).collect())
    };
    let _two = registry.register(part("two", &["DSH_DIR", "DSH_COMMAND"], answer)).unwrap();
    let snapshot = registry.collect(&EnvCall::new().workdir("/w")).unwrap();
    let expected = ["DSH_A=", "DSH_DIR=/w", "DSH_HOME=/home/host", "DSH_SHELL=1", "DSH_Z=z"];
    assert_eq!(shown(&snapshot), expected);
    assert_eq!(snapshot.iter().len(), 5);
    assert_eq!(snapshot.get("DSH_DIR").unwrap(), "/w");
    assert!(snapshot.get("DSH_COMMAND").is_none());
    let snapshot = registry.collect(&EnvCall::new().command("make")).unwrap();
    assert_eq!(snapshot.get("DSH_COMMAND").unwrap(), "make");
}

// M1, R1
#[test]
fn a_snapshot_goes_into_a_request_and_does_not_change() {
    let registry = registry();
    let registration = registry.register(fixed("one", &[("DSH_A", "a")])).unwrap();
    let snapshot = collect(&registry).unwrap();
    drop(registration);
    let expected: Vec<(OsString, OsString)> =
        [("DSH_A", "a"), ("DSH_HOME", "/home/host"), ("DSH_SHELL", "1")]
            .map(|(name, value)| (name.into(), value.into()))
            .into();
    let request = ExecRequest::new("true").managed_env("DSH_X", "x").managed_snapshot(&snapshot);
    assert_eq!(request.managed_env[1..], expected);
    assert_eq!(Vec::from(snapshot), expected);
}

// M1
#[test]
fn the_list_has_owners_and_descriptions_and_resolves_nothing() {
    let registry = registry();
    let never = |_: &EnvCall| -> Given { panic!("must not be asked") };
    let _one = registry.register(part("one", &["DSH_Z", "DSH_A"], never)).unwrap();
    let _two = registry.register(part("two", &["DSH_M"], never)).unwrap();
    let list = registry.list();
    let owners: Vec<_> =
        list.iter().map(|entry| (entry.name.as_str(), entry.contributor.as_deref())).collect();
    let expected = [
        ("DSH_A", Some("one")),
        ("DSH_HOME", None),
        ("DSH_M", Some("two")),
        ("DSH_SESSION_ID", None),
        ("DSH_SHELL", None),
        ("DSH_Z", Some("one")),
    ];
    assert_eq!(owners, expected);
    assert_eq!(list[0].description, "what DSH_A tells");
    assert!(list.iter().all(|entry| !entry.description.is_empty()));
}

// M1
#[test]
fn a_contributor_needs_a_name_of_its_own() {
    let registry = registry();
    for blank in ["", " ", "\t\n"] {
        assert!(refusal(&registry, fixed(blank, &[])).ends_with("environment contributor has a blank name"));
    }
    let _one = registry.register(fixed("one", &[])).unwrap();
    let refused = refusal(&registry, fixed("one", &[("DSH_A", "")]));
    assert_eq!(refused, "invalid request: environment contributor \"one\" is already registered");
    assert_eq!(registry.list().len(), 3, "nothing of it was taken in");
}

// M1, V4
#[test]
fn a_refused_declaration_names_the_contributor_and_the_variable() {
    let registry = registry();
    let _owner = registry.register(fixed("owner", &[("DSH_OWNED", "")])).unwrap();
    let declares = |variables: &[EnvVariable]| {
        let collect = |_: &EnvCall| Ok(Vec::new());
        let variables = variables.to_vec();
        refusal(&registry, Arc::new(Part { name: "git".into(), variables, collect }))
    };
    let one = |key: &str| declares(&[EnvVariable::new(key, "said")]);
    let begins = "invalid request: environment contributor \"git\" declares ";
    for (message, rest) in [
        (one("PATH"), "\"PATH\", which is outside the managed namespace 'DSH_'"),
        (one(""), "\"\", which is empty"),
        (one("DSH_A=B"), "\"DSH_A=B\", which contains '='"),
        (one("DSH_\0"), "\"DSH_\\0\", which contains a NUL byte"),
        (
            one("DSH_a"),
            "\"DSH_a\", which is not 'DSH_' and then a capital letter and capitals, digits or '_'",
        ),
        (one("DSH_SHELL"), "DSH_SHELL, which is built in"),
        (one("DSH_HOME"), "DSH_HOME, which is built in"),
        (one("DSH_SESSION_ID"), "DSH_SESSION_ID, which is built in"),
        (one("DSH_OWNED"), "DSH_OWNED, which belongs to \"owner\""),
        (declares(&[EnvVariable::new("DSH_A", "\n")]), "DSH_A, which has no description"),
        (
            declares(&[
                EnvVariable::new("DSH_A", "a"),
                EnvVariable::new("DSH_B", "b"),
                EnvVariable::new("DSH_A", "a"),
            ]),
            "DSH_A, which it has declared already",
        ),
    ] {
        assert_eq!(message.strip_prefix(begins), Some(rest));
    }
    assert_eq!(registry.list().len(), 4);
}

// M1
#[test]
fn dropping_a_registration_ends_its_own_and_no_other() {
    let registry = registry();
    let first = registry.register(fixed("one", &[("DSH_A", "first")])).unwrap();
    let other = registry.register(fixed("two", &[("DSH_B", "b")])).unwrap();
    drop(first);
    assert!(collect(&registry).unwrap().get("DSH_A").is_none());
    let second = registry.register(fixed("one", &[("DSH_A", "second")])).unwrap();
    assert_eq!(collect(&registry).unwrap().get("DSH_A").unwrap(), "second");
    drop(other);
    assert_eq!(collect(&registry).unwrap().get("DSH_A").unwrap(), "second");
    drop(second);
    assert_eq!(registry.list().len(), 3);
}

// M1
#[test]
fn a_registration_may_outlive_the_registry_and_a_clone_is_the_same_one() {
    let registry = registry();
    let clone = registry.clone();
    let registration = registry.register(fixed("one", &[("DSH_A", "a")])).unwrap();
    drop(registry);
    assert_eq!(collect(&clone).unwrap().get("DSH_A").unwrap(), "a");
    assert!(format!("{clone:?} {registration:?}").contains("one"));
    drop(clone);
    drop(registration);
}

// M1
#[test]
fn a_contributor_is_let_go_with_its_registration() {
    let registry = registry();
    let contributor = fixed("one", &[("DSH_A", "a")]);
    let watched: Weak<dyn EnvContributor> = Arc::downgrade(&contributor);
    let registration = registry.register(contributor).unwrap();
    assert!(watched.upgrade().is_some());
    drop(registration);
    assert!(watched.upgrade().is_none());
}

// M1, X2
#[test]
fn what_a_contributor_does_wrong_fails_the_collection_it_does_it_in_and_nothing_else() {
    let registry = registry();
    let _good = registry.register(fixed("good", &[("DSH_G", "g")])).unwrap();
    let answer = |call: &EnvCall| match call.session.as_deref() {
        Some("undeclared") => Ok(owned(&[("DSH_A", "a"), ("DSH_B", "b")])),
        Some("outside") => Ok(owned(&[("PATH", "/x")])),
        Some("foreign") => Ok(owned(&[("DSH_G", "mine")])),
        Some("built in") => Ok(owned(&[("DSH_SHELL", "0")])),
        Some("twice") => Ok(owned(&[("DSH_A", "a"), ("DSH_A", "a")])),
        Some("nul") => Ok(owned(&[("DSH_A", "a\0b")])),
        Some("error") => Err("no repository".into()),
        Some("panic") => panic!("on purpose"),
        Some("formatted") => panic!("on {}", "purpose"),
        Some("odd") => std::panic::panic_any(7),
        _ => Ok(owned(&[("DSH_A", "a")])),
    };
    let _bad = registry.register(part("bad", &["DSH_A"], answer)).unwrap();
    for (session, variable, rest) in [
        ("undeclared", Some("DSH_B"), "gives DSH_B, which it has not declared"),
        ("outside", Some("PATH"), "gives \"PATH\", which it has not declared"),
        ("foreign", Some("DSH_G"), "gives DSH_G, which it has not declared"),
        ("built in", Some("DSH_SHELL"), "gives DSH_SHELL, which it has not declared"),
        ("twice", Some("DSH_A"), "gives DSH_A twice"),
        ("nul", Some("DSH_A"), "gives DSH_A a value that contains a NUL byte"),
        ("error", None, "failed: no repository"),
        ("panic", None, "panicked: on purpose"),
        ("formatted", None, "panicked: on purpose"),
        ("odd", None, "panicked"),
    ] {
        let error = registry.collect(&EnvCall::new().session(session)).unwrap_err();
        assert_eq!(error.code(), "MANAGED_ENV");
        assert_eq!(error.to_string(), format!("environment contributor \"bad\" {rest}"));
        let Error::ManagedEnv { contributor, variable: named, .. } = error else { unreachable!() };
        assert_eq!((contributor.as_str(), named.as_deref()), ("bad", variable));
        let snapshot = registry.collect(&EnvCall::new().session("good")).unwrap();
        assert_eq!(snapshot.get("DSH_A").unwrap(), "a");
    }
}

// M1, R4
#[test]
fn a_home_or_session_that_cannot_be_a_value_is_an_invalid_request() {
    let error = registry().collect(&EnvCall::new().session("a\0b")).unwrap_err();
    assert_eq!(error.to_string(), "invalid request: session contains a NUL byte");
    let error = collect(&EnvRegistry::new("/a\0b")).unwrap_err();
    assert_eq!(error.to_string(), "invalid request: home contains a NUL byte");
}

struct Explosive(&'static str);

impl EnvContributor for Explosive {
    fn name(&self) -> &str {
        if self.0 == "name" { panic!("boom") } else { "explosive" }
    }

    fn variables(&self) -> Vec<EnvVariable> {
        panic!("boom")
    }

    fn collect(&self, _call: &EnvCall) -> Given {
        Ok(Vec::new())
    }
}

// X2
#[test]
fn a_panic_while_declaring_refuses_the_contributor() {
    let registry = registry();
    let message = refusal(&registry, Arc::new(Explosive("name")));
    assert!(message.ends_with("environment contributor without a name panicked: boom"), "{message}");
    let message = refusal(&registry, Arc::new(Explosive("variables")));
    assert!(message.ends_with("environment contributor \"explosive\" panicked: boom"), "{message}");
    assert!(collect(&registry).is_ok());
}

/// Runs `work`, which must not hang.
fn promptly(work: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let thread = thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    let outcome = finished.recv_timeout(Duration::from_secs(30));
    assert!(!matches!(outcome, Err(mpsc::RecvTimeoutError::Timeout)), "it hangs");
    thread.join().expect("it panicked");
}

// M1, T12: no lock is held while a contributor is called
#[test]
fn a_contributor_may_use_the_registry_while_it_is_called() {
    promptly(|| {
        let registry = registry();
        let own: Arc<Mutex<Option<EnvRegistration>>> = Arc::default();
        let inside = AtomicBool::new(false);
        let answer = {
            let (registry, own) = (registry.clone(), Arc::clone(&own));
            move |call: &EnvCall| {
                if inside.swap(true, Ordering::SeqCst) {
                    return Ok(Vec::new());
                }
                let guest = registry.register(fixed("guest", &[("DSH_GUEST", "g")]))?;
                assert_eq!(registry.list().len(), 5);
                assert!(registry.collect(call)?.get("DSH_GUEST").is_some());
                drop(guest);
                // Its own registration too.
                drop(own.lock().unwrap().take());
                Ok(owned(&[("DSH_A", "a")]))
            }
        };
        let registration = registry.register(part("host", &["DSH_A"], answer)).unwrap();
        *own.lock().unwrap() = Some(registration);
        assert_eq!(shown(&collect(&registry).unwrap())[0], "DSH_A=a");
        assert_eq!(registry.list().len(), 3);
    });
}

/// One that uses the registry when it is dropped.
struct Parting(EnvRegistry);

impl EnvContributor for Parting {
    fn name(&self) -> &str {
        "parting"
    }

    fn variables(&self) -> Vec<EnvVariable> {
        vec![EnvVariable::new("DSH_P", "p")]
    }

    fn collect(&self, _call: &EnvCall) -> Given {
        Ok(Vec::new())
    }
}

impl Drop for Parting {
    fn drop(&mut self) {
        let _ = self.0.list();
    }
}

// M1, T12: nor while one is dropped
#[test]
fn a_contributor_may_use_the_registry_while_it_is_dropped() {
    promptly(|| {
        let registry = registry();
        let registration = registry.register(Arc::new(Parting(registry.clone()))).unwrap();
        assert!(registry.register(Arc::new(Parting(registry.clone()))).is_err());
        drop(registration);
        assert_eq!(registry.list().len(), 3);
    });
}

// M1
#[test]
fn a_blocked_contributor_blocks_only_who_waits_for_it() {
    promptly(|| {
        let registry = registry();
        let (enter, entered) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let answer = move |call: &EnvCall| {
            if call.session.is_some() {
                enter.send(()).unwrap();
                gate.lock().unwrap().recv().unwrap();
            }
            Ok(owned(&[("DSH_A", "a")]))
        };
        let registration = registry.register(part("slow", &["DSH_A"], answer)).unwrap();
        let waiting = {
            let registry = registry.clone();
            thread::spawn(move || registry.collect(&EnvCall::new().session("s")).unwrap())
        };
        entered.recv().unwrap();
        assert!(collect(&registry).is_ok());
        drop(registration);
        assert!(collect(&registry).unwrap().get("DSH_A").is_none());
        open.send(()).unwrap();
        assert_eq!(waiting.join().unwrap().get("DSH_A").unwrap(), "a", "it was registered when it was asked");
    });
}

// M1
#[test]
fn of_many_that_want_one_variable_at_once_one_gets_it() {
    const THREADS: usize = 8;
    for _ in 0..50 {
        let registry = registry();
        let (barrier, won) = (Barrier::new(THREADS), AtomicUsize::new(0));
        thread::scope(|scope| {
            for at in 0..THREADS {
                let (registry, barrier, won) = (&registry, &barrier, &won);
                scope.spawn(move || {
                    barrier.wait();
                    let registration = registry.register(fixed(&format!("part {at}"), &[("DSH_A", "a")]));
                    won.fetch_add(usize::from(registration.is_ok()), Ordering::SeqCst);
                    collect(registry).unwrap();
                    barrier.wait();
                });
            }
        });
        assert_eq!(won.load(Ordering::SeqCst), 1);
        assert_eq!(registry.list().len(), 3);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Register(usize, Vec<usize>),
    Drop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..4_usize, prop::collection::vec(0..5_usize, 0..3)).prop_map(|(name, keys)| Step::Register(name, keys)),
        1 => (0..8_usize).prop_map(Step::Drop),
    ];
    prop::collection::vec(step, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // M1: against a map from names to keys
    #[test]
    fn ownership_agrees_with_a_map(steps in steps()) {
        let registry = registry();
        let mut known: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut registrations: Vec<(usize, EnvRegistration)> = Vec::new();
        for step in steps {
            match step {
                Step::Register(name, keys) => {
                    let values: Vec<String> = keys.iter().map(|key| format!("DSH_K{key}")).collect();
                    let values: Vec<(&str, &str)> = values.iter().map(|key| (key.as_str(), "v")).collect();
                    let registered = registry.register(fixed(&format!("n{name}"), &values));
                    let twice = keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key));
                    let taken = known.values().flatten().any(|owned| keys.contains(owned));
                    let allowed = !twice && !taken && !known.contains_key(&name);
                    prop_assert_eq!(registered.is_ok(), allowed);
                    if let Ok(registration) = registered {
                        known.insert(name, keys);
                        registrations.push((name, registration));
                    }
                }
                Step::Drop(at) if at < registrations.len() => {
                    let (name, _registration) = registrations.remove(at);
                    known.remove(&name);
                }
                Step::Drop(_) => {}
            }
            let mut expected: Vec<String> = known.values().flatten().map(|key| format!("DSH_K{key}=v")).collect();
            expected.extend(["DSH_HOME=/home/host", "DSH_SHELL=1"].map(str::to_owned));
            expected.sort();
            prop_assert_eq!(shown(&collect(&registry).unwrap()), expected);
            prop_assert_eq!(registry.list().len(), known.values().flatten().count() + 3);
        }
    }
}

// M1, V1: the whole way
#[cfg(target_os = "linux")]
#[test]
fn a_command_gets_the_snapshot_and_nothing_stale() {
    use shell_executor::{BashExecutor, Config, ShellExecutor, SubprocessService};
    let service = SubprocessService::new();
    let mut config = Config::default();
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    config.inherited_env = Some(vec![
        ("PATH".into(), path),
        ("DSH_SESSION_ID".into(), "stale".into()),
        ("DSH_SHELL".into(), "stale".into()),
    ]);
    let bash = BashExecutor::new(&service, config).unwrap();
    let registry = registry();
    let _one = registry.register(fixed("one", &[("DSH_A", "a b")])).unwrap();
    let request = ExecRequest::new("env | grep ^DSH_ | sort").env("DSH_A", "displaced");
    let request = request.managed_snapshot(&collect(&registry).unwrap());
    let result = bash.run(bash.resolve(request).unwrap()).unwrap();
    assert_eq!(result.stdout.text, "DSH_A=a b\nDSH_HOME=/home/host\nDSH_SHELL=1\n");
}
