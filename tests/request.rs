//! What a request becomes before anything runs: defaults, caps and refusals.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{
    BashExecutor, Cause, Config, Disposition, EnvEntry, Error, ExecRequest, Input, OnExpiry, ProcessStatus,
    SandboxMode, SandboxPolicy, ShellExecutor, SpawnSpec, Stdin, SubprocessService,
};
use std::ffi::OsString;
use std::time::Duration;
use support::{Bed, files_below, see};

/// The field that an error names.
#[track_caller]
fn field<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::InvalidRequest { field, .. }) => field.into_owned(),
        other => panic!("not an invalid request: {other:?}"),
    }
}

// R1, R2
#[test]
fn every_default_can_be_read_from_the_spec() {
    let service = SubprocessService::new();
    let bash = BashExecutor::new(&service, Config::default()).unwrap();
    let spec = bash.resolve(ExecRequest::new("true")).unwrap();
    assert_eq!(spec.command, "true");
    assert_eq!(spec.workdir, std::env::current_dir().unwrap());
    assert_eq!(spec.timeout, Duration::from_secs(120));
    assert_eq!(spec.on_expiry, OnExpiry::Kill);
    assert_eq!((spec.stdout_max_bytes, spec.stderr_max_bytes), (64_000, 64_000));
    assert_eq!(spec.spill_max_bytes, Some(64 * 1024 * 1024));
    assert_eq!(spec.grace, Duration::from_secs(3));
    assert_eq!(spec.drain_idle, Duration::from_millis(250));
    assert_eq!(spec.answer_window, Duration::from_secs(1));
    assert!(spec.abort.is_none() && spec.sandbox_policy.is_none() && !spec.backpressure);
    assert_eq!(spec.stdin, Stdin::Null);
    assert!(spec.environment.contains(&("TERM".into(), "dumb".into())));
    // The cap on a requested timeout is 600 s.
    let longest = bash.resolve(ExecRequest::new("true").timeout(Duration::from_secs(601))).unwrap();
    assert_eq!(longest.timeout, Duration::from_secs(600));
    assert_eq!(bash.sandbox_mode(), None);
}

// R2
#[test]
fn the_configs_workdir_is_the_default_and_the_base_of_a_relative_one() {
    let bed = Bed::new();
    std::fs::create_dir_all(bed.path("a/b")).unwrap();
    let bash = BashExecutor::new(&bed.service, {
        let mut config = Config::default();
        config.workdir = Some(bed.path("a"));
        config
    })
    .unwrap();
    let pwd = |request: ExecRequest| {
        let result = bash.run(bash.resolve(request).unwrap()).unwrap();
        result.stdout.text.trim_end().to_owned()
    };
    let real = |name: &str| std::fs::canonicalize(bed.path(name)).unwrap().display().to_string();
    assert_eq!(pwd(ExecRequest::new("pwd -P")), real("a"));
    assert_eq!(pwd(ExecRequest::new("pwd -P").workdir("b")), real("a/b"));
    assert_eq!(pwd(ExecRequest::new("pwd -P").workdir(bed.dir.path())), real("."));
    assert_eq!(bash.resolve(ExecRequest::new("true").workdir("b")).unwrap().workdir, bed.path("a/b"));
}

// R2
#[test]
fn execute_takes_the_spec_as_it_is_and_adds_nothing() {
    let bed = Bed::with(|config| {
        config.max_timeout = Duration::from_secs(200);
        config.output_max_bytes = 10;
    });
    let mut spec = bed.bash.resolve(ExecRequest::new("printf 0123456789; printf abcdef >&2; env")).unwrap();
    spec.timeout = Duration::from_secs(3600);
    spec.stdout_max_bytes = 1000;
    spec.stderr_max_bytes = 4;
    spec.spill_max_bytes = None;
    spec.environment = vec![("ONLY".into(), "this".into()), ("PATH".into(), "/usr/bin:/bin".into())];
    let result = bed.bash.run(spec).unwrap();
    assert_eq!(result.timeout, Some(Duration::from_secs(3600)), "the cap is not applied again");
    assert!(result.stdout.text.starts_with("0123456789") && !result.stdout.truncated);
    assert!(result.stdout.text.contains("ONLY=this\n"));
    assert!(!result.stdout.text.contains("TERM=dumb"), "no default comes back: {}", result.stdout.text);
    assert_eq!((result.stderr.text.as_str(), result.stderr.spill_path), ("cdef", None));
}

// R3
#[test]
fn a_zero_in_a_request_names_its_field() {
    let bed = Bed::new();
    let touch = |change: fn(ExecRequest) -> ExecRequest| {
        field(bed.bash.resolve(change(bed.request("touch $D/made"))))
    };
    assert_eq!(touch(|request| request.timeout(Duration::ZERO)), "timeout");
    assert_eq!(touch(|request| request.stdout_max_bytes(0)), "stdout_max_bytes");
    // A spec that was changed by hand is looked at once more before anything is started.
    let mut by_hand = bed.bash.resolve(bed.request("touch $D/made")).unwrap();
    by_hand.timeout = Duration::ZERO;
    assert_eq!(field(bed.bash.run(by_hand)), "timeout");
    let mut by_hand = bed.bash.resolve(bed.request("touch $D/made")).unwrap();
    by_hand.stderr_max_bytes = 0;
    assert!(field(bed.bash.run(by_hand)).contains("stderr"));
    assert_eq!(files_below(bed.dir.path()), [] as [std::path::PathBuf; 0], "nothing was spawned");
}

// R3
#[test]
fn a_zero_in_a_config_names_its_field() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        field(BashExecutor::new(&SubprocessService::new(), config))
    };
    assert_eq!(refused(|config| config.default_timeout = Duration::ZERO), "default_timeout");
    assert_eq!(refused(|config| config.max_timeout = Duration::ZERO), "max_timeout");
    assert_eq!(refused(|config| config.output_max_bytes = 0), "output_max_bytes");
    assert_eq!(refused(|config| config.spill_max_bytes = Some(0)), "spill_max_bytes");
}

// R3
#[test]
fn a_default_above_its_own_cap_is_refused() {
    let mut config = Config::default();
    config.default_timeout = Duration::from_secs(11);
    config.max_timeout = Duration::from_secs(10);
    assert_eq!(field(BashExecutor::new(&SubprocessService::new(), config)), "default_timeout");
    let mut equal = Config::default();
    equal.default_timeout = Duration::from_secs(10);
    equal.max_timeout = Duration::from_secs(10);
    assert!(BashExecutor::new(&SubprocessService::new(), equal).is_ok());
}

// R3
#[test]
fn a_clamped_timeout_is_reported_as_what_it_became() {
    let bed = Bed::with(|config| {
        config.default_timeout = Duration::from_secs(7);
        config.max_timeout = Duration::from_secs(9);
    });
    let effective = |request: ExecRequest| bed.run(request).timeout;
    assert_eq!(effective(ExecRequest::new("true")), Some(Duration::from_secs(7)));
    assert_eq!(
        effective(ExecRequest::new("true").timeout(Duration::from_secs(8))),
        Some(Duration::from_secs(8))
    );
    assert_eq!(
        effective(ExecRequest::new("true").timeout(Duration::from_secs(600))),
        Some(Duration::from_secs(9))
    );
    assert_eq!(effective(ExecRequest::new("true").on_expiry(OnExpiry::None)), None, "there is no deadline");
}

// R4, case 57
#[test]
fn a_nul_byte_names_its_field_and_nothing_is_spawned() {
    let bed = Bed::new();
    let refused = |request: ExecRequest| field(bed.bash.resolve(request.env("D", bed.dir.path())));
    assert_eq!(refused(ExecRequest::new("touch $D/made\0; rm x")), "command");
    assert_eq!(refused(ExecRequest::new("touch $D/made").workdir("/tmp\0x")), "workdir");
    assert_eq!(refused(ExecRequest::new("touch $D/made").env("K", "v\0w")), "env K");
    assert!(refused(ExecRequest::new("touch $D/made").env("K\0L", "v")).starts_with("env K"));
    assert!(refused(ExecRequest::new("touch $D/made").env_remove("K\0")).starts_with("env K"));
    assert_eq!(refused(ExecRequest::new("touch $D/made").managed_env("DSH_K", "v\0w")), "managed_env DSH_K");
    // The same bytes in a spec changed by hand reach no process either.
    let spoil: [fn(&mut shell_executor::ExecSpec); 4] = [
        |spec| spec.command = "touch $D/made\0".into(),
        |spec| spec.workdir = "/tmp\0x".into(),
        |spec| spec.environment.push(("K".into(), "v\0w".into())),
        |spec| spec.environment.push(("K\0".into(), "v".into())),
    ];
    for spoil in spoil {
        let mut spec = bed.bash.resolve(bed.request("touch $D/made")).unwrap();
        spoil(&mut spec);
        field(bed.bash.run(spec));
    }
    assert!(files_below(bed.dir.path()).is_empty(), "nothing was spawned");
}

// R4
#[test]
fn an_impossible_name_of_a_variable_names_its_field() {
    let bed = Bed::new();
    let refused = |request: ExecRequest| field(bed.bash.resolve(request));
    assert_eq!(refused(ExecRequest::new("true").env("", "v")), "env ");
    assert_eq!(refused(ExecRequest::new("true").env("A=B", "v")), "env A=B");
    assert_eq!(refused(ExecRequest::new("true").env_remove("A=B")), "env A=B");
    assert_eq!(refused(ExecRequest::new("true").managed_env("", "v")), "managed_env ");
    assert_eq!(EnvEntry::set("A", "B").name(), "A");
}

// R4, E9
#[test]
fn an_order_by_argv_is_refused_for_the_same_reasons() {
    let bed = Bed::new();
    let refused = |change: fn(&mut SpawnSpec)| {
        let mut spec = bed.spawn_sh("touch $D/made");
        change(&mut spec);
        field(bed.service.spawn(spec))
    };
    assert_eq!(refused(|spec| spec.argv.clear()), "argv");
    assert_eq!(refused(|spec| spec.argv[0] = OsString::new()), "argv");
    assert_eq!(refused(|spec| spec.argv.push("a\0b".into())), "argv");
    assert_eq!(refused(|spec| spec.cwd = "/tmp\0x".into()), "cwd");
    assert_eq!(refused(|spec| spec.cwd = "tmp".into()), "cwd");
    assert_eq!(refused(|spec| spec.env.push(("A=".into(), "v".into()))), "env A=");
    assert_eq!(refused(|spec| spec.timeout = Some(Duration::ZERO)), "timeout");
    assert!(
        refused(|spec| spec.stdout = Disposition::Collect { max_bytes: 0, spill_max_bytes: None })
            .starts_with("stdout")
    );
    assert!(
        refused(|spec| spec.stderr = Disposition::Collect { max_bytes: 9, spill_max_bytes: Some(0) })
            .starts_with("stderr")
    );
    assert!(refused(|spec| spec.stdout = Disposition::Relay { max_bytes: 0 }).starts_with("stdout"));
    assert!(files_below(bed.dir.path()).is_empty(), "nothing was spawned");
}

// R5, case 61
#[test]
fn a_huge_timeout_never_fires_early() {
    let bed = Bed::with(|config| config.max_timeout = Duration::MAX);
    let huge = [
        Duration::from_millis(u64::MAX),
        Duration::from_millis(i64::MAX.unsigned_abs()),
        Duration::from_millis(1 << 31),
        Duration::from_millis((1 << 32) + 1),
        Duration::from_secs(u64::MAX),
        Duration::MAX,
    ];
    for timeout in huge {
        for on_expiry in [OnExpiry::Kill, OnExpiry::Offer] {
            let result = bed.run(ExecRequest::new("echo ok").timeout(timeout).on_expiry(on_expiry));
            assert_eq!(
                (result.stdout.text.as_str(), result.cause),
                ("ok\n", Some(Cause::Exit)),
                "{timeout:?}"
            );
            assert_eq!(result.timeout, Some(timeout));
        }
    }
}

// R5
#[test]
fn every_other_time_saturates_too() {
    // Longer than the clock can express, and yet not the longest.
    let long = Duration::from_secs(u64::MAX / 2);
    let bed = Bed::with(|config| {
        config.grace = long;
        config.drain_idle = Duration::MAX;
        config.answer_window = Duration::MAX;
        config.max_timeout = Duration::MAX;
    });
    let request = bed.request("echo ready; read x").stdin_piped().timeout(Duration::MAX);
    let execution = bed.start(request);
    assert!(execution.wait_output(Some(Duration::MAX)));
    assert_eq!(execution.read_output().delta, "ready\n");
    assert!(execution.kill());
    assert_eq!(execution.wait_timeout(Duration::MAX), Some(ProcessStatus::Killed));
    assert!(execution.wait_range(Some(Duration::MAX)));
    // A held stream is drained for as long, and no longer than it is held.
    let gate = bed.gate("gate");
    let held = bed.begin("{ read x <$D/gate; echo late; } & echo early");
    see(&held, "early");
    gate.open();
    assert_eq!(held.result().unwrap().stdout.text, "early\nlate\n");
    // An offer stays open for as long.
    let gate = bed.gate("second");
    let offered = bed.request("read x <$D/second").timeout(Duration::from_secs(1));
    let execution = bed.start(offered.on_expiry(OnExpiry::Offer));
    assert!(execution.promotion().expect("the deadline passes").accept());
    gate.open();
    assert_eq!(execution.result().unwrap().exit_code, Some(0));
}

// R5, X2
#[test]
fn a_service_with_an_endless_grace_can_be_disposed_of() {
    let bed = Bed::with(|config| config.grace = Duration::MAX);
    let execution = bed.begin("echo ready; read x <$D/nothing || sleep 300");
    see(&execution, "ready");
    assert_eq!(bed.service.dispose().stopped, 1);
    assert_eq!(execution.result().unwrap().cause, Some(Cause::Disposal));
}

// R6
#[test]
fn the_budget_of_one_execution_is_stdouts_alone() {
    let bed = Bed::with(|config| config.output_max_bytes = 100);
    let command = "printf '%0150d' 0; printf '%0150d' 0 >&2";
    let plain = bed.run(ExecRequest::new(command));
    assert_eq!((plain.stdout.text.len(), plain.stderr.text.len()), (100, 100));
    let raised = bed.run(ExecRequest::new(command).stdout_max_bytes(150));
    assert!(!raised.stdout.truncated && raised.stdout.spill_path.is_none());
    assert_eq!((raised.stdout.text.len(), raised.stderr.text.len()), (150, 100));
    assert!(raised.stderr.truncated);
    let lowered = bed.run(ExecRequest::new(command).stdout_max_bytes(7));
    assert_eq!((lowered.stdout.text.as_str(), lowered.stderr.text.len()), ("0000000", 100));
    // In the background it is the same.
    let background = bed.start(ExecRequest::new(command).stdout_max_bytes(150));
    background.wait();
    let observed = background.observed().unwrap();
    assert_eq!(observed.stdout.read_from(0).text.len(), 150);
    assert_eq!(background.result().unwrap().stderr.text.len(), 100);
    let next = bed.run(ExecRequest::new(command));
    assert_eq!(next.stdout.text.len(), 100, "it was for that one execution");
}

// R1, S3
#[test]
fn confinement_is_refused_by_an_executor_that_does_not_confine() {
    let bed = Bed::new();
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let policy = SandboxPolicy::new(mode, bed.dir.path());
        match bed.bash.resolve(bed.request("touch $D/made").sandbox_policy(policy)) {
            Err(Error::SandboxUnavailable { mode: named, .. }) => assert_eq!(named, mode),
            other => panic!("{other:?}"),
        }
    }
    assert!(files_below(bed.dir.path()).is_empty());
    let full = SandboxPolicy::new(SandboxMode::DangerFullAccess, bed.dir.path());
    assert_eq!(bed.run(ExecRequest::new("true").sandbox_policy(full)).exit_code, Some(0));
}

// R1
#[test]
fn the_order_by_argv_starts_from_explicit_terms() {
    let bed = Bed::new();
    let spec = bed.spawn_spec(["true"]);
    assert_eq!((spec.timeout, spec.on_expiry, &spec.stdin), (None, OnExpiry::Kill, &Input::Null));
    assert!(spec.abort.is_none() && spec.scrubbed.is_empty());
}
