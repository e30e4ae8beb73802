//! What a command finds in its environment, and what it must not find.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{Error, RunResult, ShellExecutor};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, Instant};
use support::{Bed, SOON, script, skip};

/// A host whose environment is exactly this, and a `PATH`.
fn host(variables: &[(&str, &str)]) -> Bed {
    host_with(variables, |_| {})
}

fn host_with(variables: &[(&str, &str)], change: impl FnOnce(&mut shell_executor::Config)) -> Bed {
    Bed::with(|config| {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let mut inherited = vec![(OsString::from("PATH"), path)];
        inherited.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
        config.inherited_env = Some(inherited);
        change(config);
    })
}

/// What `env` prints, which the shell's own `_`, `PWD`, `OLDPWD` and `SHLVL` are part of.
fn variables(result: &RunResult) -> BTreeMap<String, String> {
    assert_eq!(result.exit_code, Some(0), "{}", result.stderr.text);
    let lines = result.stdout.text.lines().filter_map(|line| line.split_once('='));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn names(found: &[OsString]) -> Vec<&str> {
    found.iter().map(|name| name.to_str().unwrap()).collect()
}

// V1
#[test]
fn the_hosts_environment_comes_first_and_the_marker_last() {
    let bed = host(&[("HOME", "/h"), ("LANG", "C"), ("EMPTY", ""), ("TERM", "xterm"), ("NO_COLOR", "")]);
    let found = variables(&bed.sh("env"));
    let is = |name: &str, value: &str| assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
    is("HOME", "/h");
    is("LANG", "C");
    is("EMPTY", "");
    is("TERM", "dumb");
    is("NO_COLOR", "1");
    is("PAGER", "cat");
    is("GIT_PAGER", "cat");
    assert!(found.contains_key("SHELL_EXECUTOR_RANGE"));
    // No shell between, so that the order is ours.
    let spec = bed.bash.resolve(bed.request("exec env")).unwrap();
    let all = spec.environment.iter().map(|(name, _)| name.as_os_str()).collect::<Vec<&OsStr>>();
    assert!(!all.contains(&OsStr::new("SHELL_EXECUTOR_RANGE")), "it is the range's, not the spec's");
}

// V1
#[test]
fn every_range_has_a_marker_of_its_own() {
    let bed = Bed::new();
    let marker = || variables(&bed.sh("env"))["SHELL_EXECUTOR_RANGE"].clone();
    assert_ne!(marker(), marker());
    // A caller cannot take another's, or none.
    let forged = bed.run(bed.request("env").env("SHELL_EXECUTOR_RANGE", "forged"));
    assert_ne!(variables(&forged)["SHELL_EXECUTOR_RANGE"], "forged");
    let removed = bed.run(bed.request("env").env_remove("SHELL_EXECUTOR_RANGE"));
    assert!(variables(&removed).contains_key("SHELL_EXECUTOR_RANGE"));
}

// V1, case 53
#[test]
fn nothing_waits_for_a_key() {
    let bed = host(&[("PAGER", "less"), ("GIT_PAGER", "less"), ("TERM", "xterm-256color")]);
    let command = "printf %s \"$PAGER|$GIT_PAGER|$TERM\"";
    assert_eq!(bed.sh(command).stdout.text, "cat|cat|dumb");
    let explicit = bed.run(bed.request(command).env("PAGER", "more").env("TERM", "vt100"));
    assert_eq!(explicit.stdout.text, "more|cat|vt100");
}

// V1, case 54
#[test]
fn a_commit_without_a_message_fails_at_once() {
    let bed = host(&[("HOME", "/nonexistent"), ("GIT_CONFIG_GLOBAL", "/dev/null")]);
    if bed.sh("git --version").exit_code != Some(0) {
        skip!("no git");
    }
    let command = "cd $D && git init -q r && cd r && git config user.name n && git config user.email e@e && \
        git commit --allow-empty; echo rc=$?";
    let begun = Instant::now();
    let result = bed.run(bed.request(command).timeout(Duration::from_secs(60)));
    assert!(result.stdout.text.ends_with("rc=1\n"), "{} {}", result.stdout.text, result.stderr.text);
    assert!(!result.timed_out && begun.elapsed() < SOON);
    let found = variables(&bed.sh("env"));
    for name in ["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"] {
        assert_eq!(found[name], "false", "one that says yes would accept a rebase plan unread");
    }
    assert_eq!(found["GIT_TERMINAL_PROMPT"], "0");
}

// V1, case 59
#[test]
fn no_start_up_file_runs_before_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("startup");
    script(&file, "echo noise; exit 0\n");
    let path = file.to_str().unwrap();
    let bed = host(&[("BASH_ENV", path), ("ENV", path), ("PROMPT_COMMAND", "echo noise")]);
    let result = bed.sh("echo hi");
    assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("hi\n", ""));
    assert_eq!(names(&result.scrubbed), ["BASH_ENV", "ENV", "PROMPT_COMMAND"]);
    // That a shell would have run it is what makes this a test.
    let explicit = bed.run(bed.request("echo hi").env("BASH_ENV", path));
    assert_eq!(explicit.stdout.text, "noise\n", "an explicit entry is the caller's own doing");
}

// V1, case 59
#[test]
fn no_exported_function_replaces_a_command() {
    let bed = host(&[("BASH_FUNC_ls%%", "() { echo pwned; }")]);
    let result = bed.sh("ls /");
    assert!(!result.stdout.text.contains("pwned") && result.stdout.text.contains("proc\n"));
    assert_eq!(names(&result.scrubbed), ["BASH_FUNC_ls%%"]);
    let explicit = bed.run(bed.request("ls /").env("BASH_FUNC_ls%%", "() { echo pwned; }"));
    assert_eq!(explicit.stdout.text, "pwned\n");
}

// V1, case 59
#[test]
fn no_inherited_option_changes_the_shell() {
    let bed = host(&[("SHELLOPTS", "xtrace:errexit"), ("BASHOPTS", "nullglob")]);
    let result = bed.sh("false; echo /nonexistent/*");
    assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("/nonexistent/*\n", ""));
}

// V1, case 60
#[test]
fn no_profile_undoes_what_was_set() {
    let dir = tempfile::tempdir().unwrap();
    for name in [".bash_profile", ".bash_login", ".profile", ".bashrc"] {
        script(&dir.path().join(name), "echo noise; export PAGER=less\n");
    }
    let bed = host(&[("HOME", dir.path().to_str().unwrap())]);
    assert_eq!(bed.sh("echo $PAGER; shopt -q login_shell || echo no login").stdout.text, "cat\nno login\n");
}

// V1, case 60
#[test]
fn no_start_up_file_of_a_remote_shell_runs_either() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join(".bashrc"), "echo noise; export PAGER=less\n");
    let home = dir.path().to_str().unwrap();
    // What sshd gives to a program that it starts without a terminal.
    let bed = host(&[("HOME", home), ("SSH_CLIENT", "192.0.2.1 1 22"), ("SHLVL", "0")]);
    assert_eq!(bed.sh("echo $PAGER").stdout.text, "cat\n");
}

// V2, case 83
#[test]
fn the_hosts_secrets_do_not_reach_the_command() {
    let secrets = [
        "FOO_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "GH_TOKEN",
        "PGPASSWORD",
        "MYSQL_PWD",
        "gh_token",
        "Foo_Api_Key",
        "npm_config__authToken",
        "SERVICE_CREDENTIALS",
        "GITHUB_PAT",
        "DEPLOY_PRIVATEKEY",
        "X_PASSPHRASE",
    ];
    let host_has: Vec<(&str, &str)> = secrets.map(|name| (name, "hush-hush")).to_vec();
    let bed = host(&host_has);
    let result = bed.sh("env");
    assert!(!result.stdout.text.contains("hush-hush"), "{}", result.stdout.text);
    let mut expected = secrets.to_vec();
    expected.sort_unstable();
    assert_eq!(names(&result.scrubbed), expected);
    assert!(!format!("{result:?}").contains("hush-hush"), "names, never values");
    let execution = bed.begin("true");
    assert_eq!(names(&execution.scrubbed()), expected, "on the handle as well");
    let spec = bed.bash.resolve(bed.request("true")).unwrap();
    assert_eq!(names(&spec.scrubbed), expected, "and before anything runs");
    // V3: a caller's explicit entry passes through.
    let explicit = bed.run(bed.request("env").env("GH_TOKEN", "given"));
    assert_eq!(variables(&explicit)["GH_TOKEN"], "given");
    assert!(!explicit.stdout.text.contains("hush-hush"));
}

// V2, case 84
#[test]
fn what_only_resembles_a_secret_stays_and_a_url_with_a_password_goes() {
    let innocent = [
        ("BYPASS_CACHE", "1"),
        ("COMPASS_DIR", "/c"),
        ("TOKENIZERS_PARALLELISM", "true"),
        ("KEYBOARD", "us"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("LC_ALL", "C"),
        ("http_proxy", "http://proxy:3128"),
        ("MONKEY", "x"),
    ];
    let secret = [
        ("DATABASE_URL", "postgres://u:hush@h/d"),
        ("GOOGLE_CREDENTIALS", "hush"),
        ("ANY", "http://u:hush@h/"),
    ];
    let bed = host(&[innocent.as_slice(), secret.as_slice()].concat());
    let result = bed.sh("env");
    let found = variables(&result);
    for (name, value) in innocent {
        assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!result.stdout.text.contains("hush"));
    assert_eq!(names(&result.scrubbed), ["ANY", "DATABASE_URL", "GOOGLE_CREDENTIALS"]);
}

// V2
#[test]
fn the_config_adds_names_and_exempts_others() {
    let bed = host_with(
        &[("ACME_LICENCE", "hush"), ("CI_JOB_TOKEN", "public"), ("OTHER_TOKEN", "hush")],
        |config| {
            config.scrub.also = vec!["acme_licence".into()];
            config.scrub.exempt = vec!["CI_JOB_TOKEN".into()];
        },
    );
    let result = bed.sh("env");
    assert!(!result.stdout.text.contains("hush"));
    assert_eq!(variables(&result)["CI_JOB_TOKEN"], "public");
    assert_eq!(names(&result.scrubbed), ["ACME_LICENCE", "OTHER_TOKEN"]);
}

// V1
#[test]
fn no_managed_name_is_inherited_in_any_case() {
    let bed = host(&[("DSH_SHELL", "stale"), ("dsh_other", "stale"), ("DSHX", "kept")]);
    let found = variables(&bed.sh("env"));
    assert!(!found.values().any(|value| value == "stale"), "{found:?}");
    assert_eq!(found["DSHX"], "kept");
}

// V1
#[test]
fn an_ordinary_entry_never_displaces_a_managed_one() {
    let bed = host(&[("DSH_FACT", "stale")]);
    let fact = |request: shell_executor::ExecRequest| bed.run(request).stdout.text;
    let request = || bed.request("echo ${DSH_FACT-none}");
    assert_eq!(fact(request()), "none\n");
    assert_eq!(fact(request().managed_env("DSH_FACT", "managed")), "managed\n");
    assert_eq!(fact(request().managed_env("DSH_FACT", "managed").env("DSH_FACT", "mine")), "managed\n");
    assert_eq!(fact(request().managed_env("DSH_FACT", "managed").env_remove("DSH_FACT")), "managed\n");
    assert_eq!(fact(request().env("DSH_FACT", "mine")), "mine\n", "V3: explicit, and nobody manages it");
}

// V3
#[test]
fn an_explicit_removal_takes_an_inherited_name_away() {
    let bed = host(&[("DISPLAY", ":0"), ("KEEP", "1")]);
    let found = variables(&bed.run(bed.request("env").env_remove("DISPLAY").env_remove("PAGER")));
    assert!(!found.contains_key("DISPLAY") && !found.contains_key("PAGER"));
    assert_eq!(found["KEEP"], "1");
    let last = bed.run(bed.request("echo $A").env("A", "1").env_remove("A").env("A", "2"));
    assert_eq!(last.stdout.text, "2\n", "of several entries the last counts");
    assert_eq!(bed.run(bed.request("echo ${A-none}").env("A", "")).stdout.text, "\n", "empty is a value");
}

// V4
#[test]
fn a_managed_name_outside_the_namespace_is_refused() {
    let bed = Bed::new();
    for name in ["PATH", "DSH", "DSH_", "DSH_a", "dsh_A", "DSH_1", "XDSH_A", "DSH_A-B", "DSH__A"] {
        match bed.bash.resolve(bed.request("true").managed_env(name, "v")) {
            Err(Error::InvalidRequest { field, .. }) => assert_eq!(field, format!("managed_env {name}")),
            other => panic!("{name}: {other:?}"),
        }
    }
    for name in ["DSH_A", "DSH_SESSION_ID", "DSH_A1_"] {
        assert!(bed.bash.resolve(bed.request("true").managed_env(name, "v")).is_ok(), "{name}");
    }
}

// V5
#[test]
fn names_and_values_are_bytes() {
    let odd = OsString::from_vec(b"v\xff\xfe\n=".to_vec());
    let bed = host(&[]);
    let mut inherited = bed.bash.config().inherited_env.clone().unwrap();
    inherited.push((OsString::from("HOST_ODD"), odd.clone()));
    inherited.push((OsString::from_vec(b"N\xff".to_vec()), odd.clone()));
    let bed = Bed::with(|config| config.inherited_env = Some(inherited));
    let result = bed.run(bed.request("cat /proc/self/environ | tr '\\0' '@'").env("MINE", odd.clone()));
    let block = result.stdout.bytes();
    let has = |entry: &[u8]| {
        let entry = [entry, odd.as_bytes(), b"@"].concat();
        block.windows(entry.len()).any(|window| window == entry)
    };
    assert!(has(b"MINE=") && has(b"HOST_ODD=") && has(b"N\xff="), "{}", result.stdout.text);
}

// R2, V1
#[test]
fn the_hosts_own_environment_is_read_when_the_request_is_resolved() {
    let bed = Bed::new();
    let spec = bed.bash.resolve(bed.request("true")).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    assert!(spec.environment.contains(&("PATH".into(), path)));
}
