//! The PowerShell executor: what the shell is told, and what comes of it. A script stands in for PowerShell: it records its
//! arguments, environment and script, and runs the command between our own lines as a shell would, so that what is the same in
//! both languages (`exit 7`, programs) has its effect.
#![cfg(target_os = "linux")]

mod support;

use shell_executor::{
    AbortToken, Cause, Config, Enforcement, Error, ExecRequest, Execution, OnExpiry, ProcessStatus,
    PwshExecutor, RunResult, SandboxChain, SandboxMode, SandboxPolicy, ServiceConfig, ShellExecutor,
    SpawnStage, SubprocessService,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use support::{
    Bed, PATIENCE, alone, files_below, is_alone, nap, script, see, skip, this_program, until, until_running,
};
use tempfile::TempDir;

const STAND_IN: &str = r#"#!/bin/sh
PATH=$PATH:/usr/bin:/bin
{
    printf '%s\0' "$@" >"$D/argv"
    env -0 >"$D/env"
} 2>/dev/null
for word; do option=$text text=$word; done
if [ "$option" = -File ]; then
    cp "$text" "$D/file" 2>/dev/null
    text=$(cat "$text")
fi
line='
'
text=${text#*"$line"}
text=${text%"$line$line"'if(-not $?)'*}
eval "$text"
"#;

const BEFORE: &str = "try{[Console]::InputEncoding=[Console]::OutputEncoding=$OutputEncoding=[Text.UTF8Encoding]::new($false)}\
    catch{};$global:LASTEXITCODE=0;$ProgressPreference='SilentlyContinue'\n";
const AFTER: &str = "\n\nif(-not $?){$Host.SetShouldExit($(if($LASTEXITCODE){$LASTEXITCODE}else{1}))}";

/// One service with a PowerShell executor, and a directory that commands find as `$D`.
struct Pwsh {
    executor: PwshExecutor,
    #[expect(dead_code, reason = "what runs ends with it")]
    service: SubprocessService,
    dir: TempDir,
}

impl Pwsh {
    fn new() -> Pwsh {
        Pwsh::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Pwsh {
        let dir = tempfile::tempdir().unwrap();
        let shell = dir.path().join("a 'pwsh'");
        script(&shell, STAND_IN);
        fs::create_dir(dir.path().join("spill")).unwrap();
        let mut of_service = ServiceConfig::default();
        of_service.spill_root = dir.path().join("spill");
        let service = SubprocessService::with_config(of_service);
        let mut config = Config::default();
        config.shell = shell;
        change(&mut config);
        let executor = PwshExecutor::new(&service, config).unwrap();
        Pwsh { executor, service, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn request(&self, command: impl Into<OsString>) -> ExecRequest {
        ExecRequest::new(command).env("D", self.dir.path())
    }

    fn start(&self, request: ExecRequest) -> Execution {
        self.executor.start(self.executor.resolve(request).unwrap()).unwrap()
    }

    fn run(&self, request: ExecRequest) -> RunResult {
        self.executor.run(self.executor.resolve(request).unwrap()).unwrap()
    }

    fn sh(&self, command: &str) -> RunResult {
        self.run(self.request(command))
    }

    /// What the stand-in was started with, and the script among it.
    fn argv(&self) -> Vec<String> {
        let argv = fs::read_to_string(self.path("argv")).unwrap();
        argv.strip_suffix('\0').unwrap().split('\0').map(str::to_owned).collect()
    }
}

fn environment(path: &Path) -> BTreeMap<String, String> {
    let block = fs::read_to_string(path).unwrap();
    let entries = block.split('\0').filter_map(|entry| entry.split_once('='));
    entries.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

// --- what it is told -----------------------------------------------------------------------------------------------

// W4, I4
#[test]
fn the_command_is_one_argument_between_two_lines_of_ours() {
    let bed = Pwsh::new();
    for command in
        ["echo 'a  b' \"$HOME\"", "", "-x", "--version", "-", "-File", "echo žluť €\n# a comment", "false `"]
    {
        bed.sh(command);
        let script = format!("{BEFORE}{command}{AFTER}");
        assert_eq!(
            bed.argv(),
            ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", &script],
            "{command:?}"
        );
    }
    bed.sh("using namespace System.IO; 1");
    assert_eq!(bed.argv()[4], format!("using namespace System.IO; 1{AFTER}"));
}

// W4
#[test]
fn a_command_that_is_no_text_is_refused() {
    let bed = Pwsh::new();
    let bytes = OsString::from_vec(b"echo \xff".to_vec());
    let refused = |error: &Error| matches!(error, Error::InvalidRequest { field, .. } if field == "command");
    assert!(refused(&bed.executor.resolve(bed.request(bytes.clone())).unwrap_err()));
    // Also one that comes with a spec, which may have been made by hand or by another executor.
    let mut spec = bed.executor.resolve(bed.request("echo")).unwrap();
    spec.command = bytes;
    let execution = bed.executor.execute(spec);
    assert!(refused(&execution.result().unwrap_err()));
    assert_eq!((execution.status(), execution.pid()), (ProcessStatus::Killed, None));
    assert!(!bed.path("argv").exists(), "nothing was started");
    assert!(refused(&bed.executor.resolve(bed.request("a\0b")).unwrap_err()));
}

// V1, V3, W4: the same environment as a command of bash has
#[test]
fn the_environment_is_that_of_bash() {
    let inherited =
        ["PATH=/usr/bin:/bin", "GH_TOKEN=hush", "DSH_OLD=x", "BASH_ENV=/x", "KEYBOARD=us", "TERM=xterm"];
    let change = |config: &mut Config| {
        let pairs = inherited.iter().filter_map(|entry| entry.split_once('='));
        config.inherited_env = Some(pairs.map(|(name, value)| (name.into(), value.into())).collect());
    };
    let (pwsh, bash) = (Pwsh::with(change), Bed::with(change));
    let asked = |request: ExecRequest| request.env("MINE", "1").env_remove("PAGER").managed_env("DSH_X", "y");
    let execution = pwsh.start(asked(pwsh.request("exit 0")));
    assert_eq!(execution.scrubbed(), ["BASH_ENV", "DSH_OLD", "GH_TOKEN"]);
    execution.wait();
    bash.run(asked(bash.request("env -0 >$D/env").env_remove("CHILD")));
    let (mut of_pwsh, mut of_bash) = (environment(&pwsh.path("env")), environment(&bash.path("env")));
    assert_eq!((&*of_pwsh["NO_COLOR"], &*of_pwsh["TERM"], &*of_pwsh["DSH_X"]), ("1", "dumb", "y"));
    // What is each range's and each shell's own.
    for own in ["SHELL_EXECUTOR_RANGE", "D", "_", "SHLVL", "PWD", "OLDPWD", "PATH"] {
        of_pwsh.remove(own);
        of_bash.remove(own);
    }
    assert_eq!(of_pwsh, of_bash);
}

// I1, W4
#[test]
fn stdin_is_the_commands() {
    let bed = Pwsh::new();
    assert_eq!(bed.run(bed.request("cat; echo after").stdin("one\ntwo")).stdout.text, "one\ntwoafter\n");
    assert_eq!(bed.sh("cat; echo after; readlink /proc/self/fd/0").stdout.text, "after\n/dev/null\n");
    let execution = bed.start(bed.request("while read x; do echo \"got $x\"; done").stdin_piped());
    let mut stdin = execution.take_stdin().unwrap();
    std::io::Write::write_all(&mut stdin, b"one\n").unwrap();
    see(&execution, "got one\n");
    drop(stdin);
    assert_eq!(execution.result().unwrap().exit_code, Some(0));
}

// I3, W4
#[test]
fn a_command_longer_than_one_argument_may_be_stands_in_a_file() {
    let bed = Pwsh::new();
    let rest = "echo ok; cat; exit 5";
    for length in [100_000, 131_000, 200_000, 3_000_000] {
        let command = format!(": {}\n{rest}", "x".repeat(length));
        let result = bed.run(bed.request(&*command).stdin("the input\n"));
        assert_eq!((result.exit_code, result.stdout.text.as_str()), (Some(5), "ok\nthe input\n"), "{length}");
        assert_eq!(result.stderr.text, "", "{length}");
        let argv = bed.argv();
        let script = format!("{BEFORE}{command}{AFTER}");
        if script.len() < 131_072 {
            assert_eq!(argv[3..], ["-Command", &*script], "{length}");
            continue;
        }
        assert_eq!(argv[..4], ["-NoLogo", "-NoProfile", "-NonInteractive", "-File"], "{length}");
        assert!(argv[4].starts_with(bed.path("spill").to_str().unwrap()) && argv.len() == 5, "{argv:?}");
        assert!(!argv[4].ends_with(".ps1"), "run as text and not as a script file: {argv:?}");
        assert!(fs::read_to_string(bed.path("file")).unwrap() == format!("\u{feff}{script}"), "{length}");
        until("its file is gone", || files_below(&bed.path("spill")).is_empty());
    }
}

// I3: one byte around the limit
#[test]
fn the_limit_counts_our_own_lines_too() {
    let bed = Pwsh::new();
    let ours = BEFORE.len() + AFTER.len();
    for (length, option) in [(131_071, "-Command"), (131_072, "-File"), (131_073, "-File")] {
        let command = format!(": {}\necho $#", "x".repeat(length - ours - ": \necho $#".len()));
        assert_eq!(command.len() + ours, length);
        let result = bed.sh(&command);
        assert_eq!((result.exit_code, &*bed.argv()[3]), (Some(0), option), "{length}");
    }
}

// --- what comes of it ----------------------------------------------------------------------------------------------

// W4
#[test]
fn the_shells_exit_code_is_the_results() {
    let bed = Pwsh::new();
    for code in [0, 1, 7, 64, 124, 137, 255] {
        let result = bed.sh(&format!("echo out; echo err >&2; exit {code}"));
        assert_eq!((result.exit_code, result.signal), (Some(code), None));
        assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("out\n", "err\n"));
        assert_eq!((result.cause, result.status), (Some(Cause::Exit), ProcessStatus::Completed));
    }
    assert_eq!(bed.sh("kill -KILL $$").signal, Some(libc::SIGKILL));
}

// W4, T3, C1
#[test]
fn a_timeout_an_abort_and_a_kill_reach_the_whole_range() {
    let bed = Pwsh::new();
    let nap = nap();
    let command = format!("setsid sleep {nap} & sleep {nap} & echo ready; wait");
    let late = bed.start(bed.request(&*command).timeout(Duration::from_secs(1)));
    assert!(late.result().unwrap().timed_out);
    until_running(&nap, 0);

    let token = AbortToken::new();
    let aborted = bed.start(bed.request(&*command).abort(&token));
    see(&aborted, "ready");
    until_running(&nap, 2);
    token.fire();
    assert!(aborted.result().unwrap().aborted);
    until_running(&nap, 0);

    let killed = bed.start(bed.request(&*command).on_expiry(OnExpiry::None));
    see(&killed, "ready");
    until_running(&nap, 2);
    assert!(killed.kill());
    assert_eq!(killed.wait_timeout(PATIENCE), Some(ProcessStatus::Killed));
    until_running(&nap, 0);
}

// S3, S5, W4
#[test]
fn a_confined_command_is_confined() {
    let bed = Pwsh::new();
    let workspace = bed.path("workspace");
    fs::create_dir(&workspace).unwrap();
    // The test's own directories lie in the real temp directory, which would all be writable.
    let chain = SandboxChain::new().temp_dir("/nonexistent");
    let policy = SandboxPolicy::new(SandboxMode::WorkspaceWrite, &workspace);
    let pwsh = bed.executor.clone().with_sandbox(Arc::new(chain), policy).unwrap();
    assert_eq!(pwsh.sandbox_mode(), Some(SandboxMode::WorkspaceWrite));
    let run = |command: &str| pwsh.run(pwsh.resolve(bed.request(command).env("O", bed.dir.path())).unwrap());
    let inside = match run("echo x >$O/workspace/file; exit 3") {
        Err(Error::SandboxUnavailable { reason, .. }) => skip!("nothing confines here: {reason}"),
        other => other.unwrap(),
    };
    assert_eq!((inside.exit_code, inside.stderr.text.as_str()), (Some(3), ""));
    assert!(workspace.join("file").exists() && !inside.sandbox.as_ref().unwrap().denied);
    let padding = "x".repeat(200_000);
    for outside in ["echo x >$O/file".to_owned(), format!(": {padding}\necho x >$O/file")] {
        let result = run(&outside).unwrap();
        let facts = result.sandbox.unwrap();
        assert_ne!(result.exit_code, Some(0));
        assert_eq!(facts.mode, SandboxMode::WorkspaceWrite);
        assert_eq!(facts.denied, facts.enforcement == Some(Enforcement::Full), "{}", result.stderr.text);
        assert!(!bed.path("file").exists());
    }
}

// S3: a spec that asks for confinement is not run without
#[test]
fn an_executor_that_does_not_confine_says_so() {
    let bed = Pwsh::new();
    let policy = SandboxPolicy::new(SandboxMode::ReadOnly, bed.dir.path());
    let unavailable = |error: &Error| matches!(error, Error::SandboxUnavailable { .. });
    let refused = bed.executor.resolve(bed.request("exit 0").sandbox_policy(policy.clone())).unwrap_err();
    assert!(unavailable(&refused));
    let mut spec = bed.executor.resolve(bed.request("exit 0")).unwrap();
    spec.sandbox_policy = Some(policy);
    assert!(unavailable(&bed.executor.execute(spec).result().unwrap_err()));
    assert!(!bed.path("argv").exists());
}

// --- which shell it is ---------------------------------------------------------------------------------------------

// W4
#[test]
fn a_shell_that_nobody_has_named_is_powershell() {
    let service = SubprocessService::new();
    let pwsh = PwshExecutor::new(&service, Config::default()).unwrap();
    assert_eq!(pwsh.config().shell, Path::new("pwsh"));
    let mut config = Config::default();
    config.shell = "pwsh-preview".into();
    assert_eq!(
        PwshExecutor::new(&service, config.clone()).unwrap().config().shell,
        Path::new("pwsh-preview")
    );
    config.shell = "bin/pwsh".into();
    assert!(PwshExecutor::new(&service, config.clone()).is_err());
    config = Config::default();
    config.output_max_bytes = 0;
    assert!(PwshExecutor::new(&service, config).is_err());
}

/// The failure to start of a command in a shell of this name.
fn missing(shell: Option<PathBuf>) -> (SpawnStage, Option<PathBuf>, String) {
    let service = SubprocessService::new();
    let mut config = Config::default();
    if let Some(shell) = shell {
        config.shell = shell;
    }
    let pwsh = PwshExecutor::new(&service, config).unwrap();
    let error = match pwsh.run(pwsh.resolve(ExecRequest::new("exit 0")).unwrap()) {
        Err(Error::Spawn(error)) => error,
        other => panic!("{other:?}"),
    };
    (error.stage(), error.path().map(Path::to_path_buf), error.to_string())
}

// X1, W4
#[test]
fn a_missing_shell_says_what_was_looked_for_and_where() {
    let dir = tempfile::tempdir().unwrap();
    let shell = dir.path().join("pwsh");
    let (stage, path, text) = missing(Some(shell.clone()));
    assert_eq!((stage, path), (SpawnStage::Shell, Some(shell.clone())));
    assert_eq!(text, format!("cannot use {shell:?} as the shell: no such file or directory"));
    fs::write(&shell, "not executable").unwrap();
    let (stage, _, text) = missing(Some(shell.clone()));
    assert_eq!(stage, SpawnStage::Shell);
    assert!(text.ends_with("permission denied"), "{text}");
    let part =
        alone(this_program(), "no_powershell_on_the_path").env("PATH", "/nonexistent:relative").output();
    let output = part.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "part of a_missing_shell_says_what_was_looked_for_and_where"]
fn no_powershell_on_the_path() {
    if !is_alone("no_powershell_on_the_path") {
        return;
    }
    let (stage, path, text) = missing(None);
    assert_eq!((stage, path), (SpawnStage::Shell, Some("pwsh".into())));
    assert!(text.starts_with("cannot find the shell \"pwsh\" or \"powershell\" on PATH: "), "{text}");
    let (_, path, text) = missing(Some("pwsh-preview".into()));
    assert_eq!(path, Some("pwsh-preview".into()));
    assert!(text.starts_with("cannot find the shell \"pwsh-preview\" on PATH: "), "{text}");
}

// W4
#[test]
fn without_a_pwsh_it_is_powershell() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["early", "late"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    let says = |name: &str| format!("#!/bin/sh\necho {name} \"$1\"\n");
    script(&dir.path().join("early/powershell"), &says("powershell"));
    let found = || {
        let part = "the_shell_that_is_found";
        let mut path = dir.path().join("early").into_os_string();
        path.push(":");
        path.push(dir.path().join("late"));
        let output = alone(this_program(), part).env("PATH", path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let said = String::from_utf8(output.stdout).unwrap();
        said.lines().find_map(|line| line.strip_prefix("said: ").map(str::to_owned)).unwrap()
    };
    assert_eq!(found(), "powershell -NoLogo");
    // The better name counts for more than the better place.
    script(&dir.path().join("late/pwsh"), &says("pwsh"));
    assert_eq!(found(), "pwsh -NoLogo");
}

#[test]
#[ignore = "part of without_a_pwsh_it_is_powershell"]
fn the_shell_that_is_found() {
    if !is_alone("the_shell_that_is_found") {
        return;
    }
    let service = SubprocessService::new();
    let pwsh = PwshExecutor::new(&service, Config::default()).unwrap();
    let result = pwsh.run(pwsh.resolve(ExecRequest::new("exit 0")).unwrap()).unwrap();
    // After the name of the test, which stands at the beginning of the line.
    print!("\nsaid: {}", result.stdout.text);
}
