//! The examples of the C interface, in C and in Python, built and run as a reader would, against the library that was
//! built with this test.

#![cfg(feature = "capi")]

mod support;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::skip;
use tempfile::TempDir;

const EXAMPLES: [&str; 3] = ["foreground", "jobs", "sandboxed"];
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"];
/// What the static library needs of the system, as the head of `foreground.c` says.
#[cfg(target_os = "linux")]
const SYSTEM: [&str; 7] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Where `cargo` has put the libraries that belong to this test: beside it.
fn libraries() -> PathBuf {
    support::this_program().parent().expect("target/<profile>/deps").to_owned()
}

/// The shared library.
fn library() -> PathBuf {
    let path = libraries().join(format!("{DLL_PREFIX}shell_executor{DLL_SUFFIX}"));
    assert!(path.exists(), "{path:?} is missing: `cargo test --all-features` builds it");
    path
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// An example as a program, in a directory of its own.
struct Built {
    program: PathBuf,
    dir: TempDir,
}

fn build(name: &str) -> Built {
    library();
    let mut linked = Command::new("cc");
    linked.args(["-std=c99", "-g"]).args(STRICT).arg("-I").arg(source("include"));
    linked.arg(source(&format!("examples/c/{name}.c")));
    linked.arg("-L").arg(libraries()).arg("-lshell_executor");
    compile(linked, name)
}

fn compile(mut command: Command, name: &str) -> Built {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join(name);
    let output = command.arg("-o").arg(&program).output().unwrap();
    // A library without the interface stands there when the last build in this directory had no feature `capi`.
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Built { program, dir }
}

impl Built {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("LD_LIBRARY_PATH", libraries());
        command
    }

    /// The same, watched by valgrind, which says by exit code 99 that memory was lost or misused.
    fn watched(&self) -> Command {
        let mut command = Command::new("valgrind");
        command.args(["-q", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect"]);
        command.arg("--error-exitcode=99").arg(&self.program).env("LD_LIBRARY_PATH", libraries());
        command
    }
}

/// What a program has printed, and its exit code.
#[track_caller]
fn told(command: &mut Command) -> (String, Option<i32>) {
    let Output { stdout, stderr, status } = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.code().is_some_and(|code| code != 99), "{command:?}: {status}\n{stderr}");
    // Seen only when the test fails.
    eprint!("{stderr}");
    (String::from_utf8(stdout).unwrap(), status.code())
}

/// What a program prints whose argument is a deadline, that has to pass after its command has started.
#[track_caller]
fn past_its_deadline(kept: &str, mut run: impl FnMut(u32) -> (String, Option<i32>)) -> (String, Option<i32>) {
    let mut told = run(1);
    for seconds in [4, 16] {
        if !told.0.contains(kept) {
            told = run(seconds);
        }
    }
    told
}

// --- foreground ----------------------------------------------------------------------------------------------------

const FAILING: &str = "[stdout, 4 bytes]\nout\n[stderr, 4 bytes]\nerr\nexit code 3\n";

// F7
#[test]
fn foreground_shows_how_a_command_ended() {
    if !has("cc") {
        skip!("there is no cc");
    }
    let built = build("foreground");
    assert_eq!(told(&mut built.command()), (FAILING.to_owned(), Some(3)));
    let (text, code) = told(built.command().arg("printf unended; kill -9 $$"));
    let expected = "[stdout, 7 bytes]\nunended\n[stderr, 0 bytes]\nkilled by SIGKILL\n";
    assert_eq!((text.as_str(), code), (expected, Some(137)));
    let (text, code) = told(built.command().arg("printf %100000d 7"));
    assert!(text.contains("7\n[the beginning is missing; all of it: /"), "{text}");
    assert_eq!(code, Some(0));
}

#[test]
fn foreground_says_why_a_command_was_not_run() {
    if !has("cc") {
        skip!("there is no cc");
    }
    let built = build("foreground");
    let output = built.command().arg("true").env("PATH", "/nonexistent").output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("foreground: cannot find the shell \"bash\""), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn foreground_is_linked_with_the_static_library() {
    if !has("cc") {
        skip!("there is no cc");
    }
    let archive = libraries().join("libshell_executor.a");
    assert!(archive.exists(), "{archive:?} is missing: `cargo test --all-features` builds it");
    let path = source("examples/c/foreground.c");
    let documented = fs::read_to_string(&path).unwrap();
    assert!(documented.contains(&SYSTEM.join(" ")), "foreground.c names other libraries");
    let mut linked = Command::new("cc");
    linked.arg("-I").arg(source("include")).arg(path).arg(archive).args(SYSTEM);
    let built = compile(linked, "foreground");
    assert_eq!(told(&mut Command::new(&built.program)), (FAILING.to_owned(), Some(3)));
}

// --- jobs ----------------------------------------------------------------------------------------------------------

const JOBS: &str = "\
asks: who?
asks: hello you
asks ended: exit code 3
stuck: waiting
stuck ended: SIGTERM, killed by us
late: working
late: past its deadline, kept
late: done: late
late ended: exit code 0
";

#[track_caller]
fn jobs(command: impl Fn() -> Command) {
    let told = past_its_deadline("late: past its deadline, kept", |seconds| {
        told(command().arg((seconds * 1000).to_string()))
    });
    assert_eq!(told, (JOBS.to_owned(), Some(0)));
}

// F7, P1, P2
#[test]
fn jobs_are_answered_kept_and_killed() {
    if !has("cc") {
        skip!("there is no cc");
    }
    let built = build("jobs");
    jobs(|| built.command());
}

// --- sandboxed -----------------------------------------------------------------------------------------------------

#[track_caller]
fn sandboxed(mut command: Command, dir: &Path) {
    let (text, code) = told(command.arg(dir));
    assert_eq!(code, Some(0), "{text}");
    if text.starts_with("nothing here can confine, so nothing was run: ") {
        assert!(text.ends_with("approvals asked for: 0\n"), "{text}");
        skip!("nothing here can confine");
    }
    let lines: Vec<&str> = text.lines().collect();
    let facts: Vec<&str> = lines[0].split(", ").collect();
    assert_eq!(facts[0], "mode read-only", "{text}");
    let backend = facts[1].strip_prefix("backend ").unwrap();
    let enforced = ["enforcement full", "enforcement partial"].iter().find(|name| **name == facts[2]);
    let enforced = enforced.unwrap_or_else(|| panic!("{text}"));
    // Landlock alone does not tell its refusals from other missing permissions.
    assert_eq!(facts[3] == "denied yes", backend != "landlock", "{text}");
    assert!(lines[1].contains("note.txt"), "{text}");
    let rest = [
        "exit code 1",
        "asked to run \"echo text >note.txt && echo written\" in workspace-write instead of read-only, \
         because it makes a file",
        &format!("mode workspace-write, backend {backend}, {enforced}, denied no"),
        "written",
        "exit code 0",
        "approvals asked for: 1",
    ];
    assert_eq!(lines[2..], rest, "{text}");
    assert_eq!(fs::read(dir.join("note.txt")).unwrap(), b"text\n");
}

// F7, S10
#[test]
fn sandboxed_writes_after_approval_only() {
    if !has("cc") {
        skip!("there is no cc");
    }
    let built = build("sandboxed");
    sandboxed(built.command(), built.dir.path());
}

#[test]
fn sandboxed_says_that_its_workspace_is_missing() {
    if !has("cc") {
        skip!("there is no cc");
    }
    let output = build("sandboxed").command().arg("/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent"));
}

// --- all of them ---------------------------------------------------------------------------------------------------

// F1
#[test]
fn the_examples_are_cpp_as_well() {
    if !has("c++") {
        skip!("there is no c++");
    }
    for name in EXAMPLES {
        let mut checked = Command::new("c++");
        checked.args(["-x", "c++", "-std=c++17", "-fsyntax-only"]).args(STRICT);
        checked.arg("-I").arg(source("include")).arg(source(&format!("examples/c/{name}.c")));
        let output = checked.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

// F7
#[test]
fn the_examples_lose_no_memory() {
    if !has("cc") || !has("valgrind") {
        skip!("there is no cc, or no valgrind");
    }
    let built = build("foreground");
    assert_eq!(told(&mut built.watched()), (FAILING.to_owned(), Some(3)));
    let built = build("jobs");
    jobs(|| built.watched());
    let built = build("sandboxed");
    sandboxed(built.watched(), built.dir.path());
    assert_eq!(told(built.watched().arg("/nonexistent")).1, Some(125));
}

// --- Python --------------------------------------------------------------------------------------------------------

/// Python in its development mode, where every warning is an error.
fn python(program: &str) -> Option<Command> {
    let recent = ["-c", "import ctypes, sys; sys.exit(sys.version_info < (3, 8))"];
    if !Command::new("python3").args(recent).output().is_ok_and(|output| output.status.success()) {
        return None;
    }
    let mut command = Command::new("python3");
    command.args(["-B", "-X", "dev", "-W", "error"]).arg(source(program));
    command.env("SHELL_EXECUTOR_LIB", library()).env("PYTHONPATH", source("examples/python"));
    Some(command)
}

const DEMO: &str = r#"
foreground: exit code 3, success False, timed out False
foreground: 'out\nread a line\n', b'err\n'
foreground: 'out\nread a line\n[stderr]\nerr\n[exit code: 3]'
background: careful, ready
background: got news
background: from offset 6: 'got news\n'
background: killed by this call True, by the next False
background: KILLED, SIGTERM, cause KILL
promotion: kept True
promotion: exit code 0, timed out False, 'working\ndone: late\n'
error: directory: SPAWN, WORKDIR, '/nonexistent', 2, ''
error: request: INVALID_REQUEST, NONE, '', 0, 'env A=B'
error: token: ABORTED, NONE, '', 0, ''
error: sandbox: SANDBOX_UNAVAILABLE, NONE, '', 0, ''
disposed: 1 stopped, 0 survived
"#;

// F7
#[test]
fn python_does_all_of_it() {
    if python("examples/python/demo.py").is_none() {
        skip!("there is no python3 of version 3.8 or later");
    }
    let (text, code) = past_its_deadline("promotion: kept True", |seconds| {
        told(python("examples/python/demo.py").unwrap().arg(seconds.to_string()))
    });
    assert_eq!(code, Some(0), "{text}");
    let (sandbox, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("sandbox: "));
    assert_eq!(rest, DEMO.trim().lines().collect::<Vec<_>>(), "{text}");
    if sandbox == ["sandbox: nothing here can confine"] {
        return;
    }
    let by = sandbox[0].strip_prefix("sandbox: read-only, ").unwrap().split(", ").next().unwrap();
    assert!(by.starts_with("FULL by ") || by.starts_with("PARTIAL by "), "{text}");
    let expected = [
        &format!(
            "sandbox: read-only, {by}, denied {}",
            if by.ends_with("landlock") { "False" } else { "True" }
        ),
        "sandbox: exit code 1, ''",
        "sandbox: asked for workspace-write, because it makes a file",
        &format!("sandbox: workspace-write, {by}, denied False"),
        "sandbox: exit code 0, 'text\\n'",
        "sandbox: NOT_APPROVED",
    ];
    assert_eq!(sandbox, expected);
}

#[test]
fn python_objects_are_freed_once_and_exceptions_get_through() {
    let Some(mut command) = python("tests/programs/binding.py") else {
        skip!("there is no python3 of version 3.8 or later");
    };
    let (text, code) = told(&mut command);
    assert_eq!((text.lines().count(), code), (7, Some(0)), "{text}");
}
