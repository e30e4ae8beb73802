//! What all tests share: executors to run in, gates that commands wait at, and looks at the process table.

#![allow(dead_code, unused_imports, unused_macros, reason = "every test file uses its own part")]

use shell_executor::{
    BashExecutor, Config, Disposition, ExecRequest, Execution, RunResult, ServiceConfig, ShellExecutor,
    SpawnSpec, SubprocessService,
};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a test waits for what must come. Far beyond what a loaded machine takes, so that passing it is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A bound for what has to be soon, when the alternative is a sleeper's 300 s.
pub(crate) const SOON: Duration = Duration::from_secs(25);

/// Says why a test does not run here, and ends it.
macro_rules! skip {
    ($($reason:tt)*) => {{
        eprintln!("skipped: {}", format_args!($($reason)*));
        return;
    }};
}
pub(crate) use skip;

// --- executors -----------------------------------------------------------------------------------------------------

/// One service with a bash executor and a directory of its own, which commands find as `$D`.
pub(crate) struct Bed {
    pub(crate) bash: BashExecutor,
    pub(crate) service: SubprocessService,
    /// Holds what the commands of the test make. Dropped last.
    pub(crate) dir: TempDir,
}

impl Bed {
    pub(crate) fn new() -> Bed {
        Bed::with(|_| {})
    }

    /// With a configuration of its own. Spill files go below `spill` in the directory.
    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Bed {
        Bed::with_both(change, |_| {})
    }

    pub(crate) fn with_both(
        change: impl FnOnce(&mut Config),
        change_service: impl FnOnce(&mut ServiceConfig),
    ) -> Bed {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let spill_root = dir.path().join("spill");
        fs::create_dir(&spill_root).expect("a directory for spill files");
        let mut of_service = ServiceConfig::default();
        of_service.spill_root = spill_root;
        change_service(&mut of_service);
        let service = SubprocessService::with_config(of_service);
        let mut config = Config::default();
        change(&mut config);
        let bash = BashExecutor::new(&service, config).expect("a valid configuration");
        Bed { bash, service, dir }
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn spill_root(&self) -> PathBuf {
        self.path("spill")
    }

    /// A request that finds the directory as `$D` and the test's child program as `$CHILD`.
    pub(crate) fn request(&self, command: impl Into<OsString>) -> ExecRequest {
        ExecRequest::new(command).env("D", self.dir.path()).env("CHILD", child())
    }

    pub(crate) fn execute(&self, request: ExecRequest) -> Execution {
        self.bash.execute(self.bash.resolve(request).expect("a valid request"))
    }

    pub(crate) fn start(&self, request: ExecRequest) -> Execution {
        self.bash
            .start(self.bash.resolve(request).expect("a valid request"))
            .expect("a command that can be started")
    }

    pub(crate) fn run(&self, request: ExecRequest) -> RunResult {
        self.bash.run(self.bash.resolve(request).expect("a valid request")).expect("a result")
    }

    /// The same for a plain command.
    pub(crate) fn sh(&self, command: &str) -> RunResult {
        self.run(self.request(command))
    }

    pub(crate) fn begin(&self, command: &str) -> Execution {
        self.start(self.request(command))
    }

    pub(crate) fn gate(&self, name: &str) -> Gate {
        Gate::at(&self.path(name))
    }

    /// An order for the service: the host's environment with `$D`, both streams collected.
    pub(crate) fn spawn_spec<I, A>(&self, argv: I) -> SpawnSpec
    where
        I: IntoIterator<Item = A>,
        A: Into<OsString>,
    {
        let collect = Disposition::Collect { max_bytes: 64_000, spill_max_bytes: None };
        let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        env.push(("D".into(), self.dir.path().into()));
        env.push(("CHILD".into(), child().into()));
        let argv = argv.into_iter().map(Into::into).collect();
        SpawnSpec::new(argv, self.dir.path(), env, collect, Duration::from_secs(3))
    }

    /// The same for a shell command, where a test needs what only the service's own handle has.
    pub(crate) fn spawn_sh(&self, command: &str) -> SpawnSpec {
        self.spawn_spec(["bash", "-c", command])
    }
}

/// The program that does what a shell cannot do exactly. `cargo test` builds it; for one test file alone, it is
/// `cargo build --example test-child`.
pub(crate) fn child() -> PathBuf {
    let exe = this_program();
    let profile = exe.parent().and_then(Path::parent).expect("target/<profile>/deps");
    profile.join("examples").join("test-child")
}

/// The bytes that `test-child write … bytes` writes.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|offset| (offset % 251) as u8).collect()
}

/// The text that `test-child write … text` writes, cut wherever `length` falls: characters of one to four bytes.
pub(crate) fn pattern_text(length: usize) -> Vec<u8> {
    "a\u{e9}\u{20ac}\u{1f600}\n".bytes().cycle().take(length).collect()
}

// --- waiting -------------------------------------------------------------------------------------------------------

/// Waits until `holds`, and fails the test if it never does.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    until_some(what, || holds().then_some(()));
}

/// Waits until there is something.
#[track_caller]
pub(crate) fn until_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it never came that {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads the execution's output until `text` has come, and gives all of it.
#[track_caller]
pub(crate) fn read_until(execution: &Execution, text: &str) -> String {
    let mut all = String::new();
    until(&format!("the command says {text:?}"), || {
        all.push_str(&execution.read_output().delta);
        all.contains(text)
    });
    all
}

/// Waits until stdout has carried `text`, consuming nothing.
#[track_caller]
pub(crate) fn see(execution: &Execution, text: &str) {
    let observed = execution.observed().expect("a local execution can be observed");
    until(&format!("the command says {text:?}"), || observed.stdout.read_from(0).text.contains(text));
}

/// A FIFO: a command that says `read x <"$D/name"` waits there until it is opened. Each is good for one use: whoever came
/// to the same one again could find the end of the first opening.
pub(crate) struct Gate(PathBuf);

impl Gate {
    pub(crate) fn at(path: &Path) -> Gate {
        let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
        assert!(made.success());
        Gate(path.to_owned())
    }

    /// Waits until somebody stands at the gate, and lets him through.
    #[track_caller]
    pub(crate) fn open(self) {
        let mut gate = until_some("somebody waits at the gate", || {
            // Without a reader a FIFO does not open for writing, ENXIO.
            OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&self.0).ok()
        });
        gate.write_all(b"go\n").expect("room in a FIFO");
    }
}

// --- the process table ---------------------------------------------------------------------------------------------

/// A number of seconds that no other sleeper has, so that it can be found by it: some 300 s, and so gone by itself if a
/// test fails.
pub(crate) fn nap() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("300.{:07}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The living processes that have `argument` as one of their arguments. A zombie has none.
pub(crate) fn with_argument(argument: &str) -> Vec<i32> {
    let has = |pid: &i32| command_line(*pid).split(|&byte| byte == 0).any(|word| word == argument.as_bytes());
    pids().into_iter().filter(has).collect()
}

/// The arguments of a process, each with a NUL after it; empty for a zombie. One on its way through `execve` has none
/// either, though it has memory: it is asked again.
pub(crate) fn command_line(pid: i32) -> Vec<u8> {
    let has_memory =
        || fs::read_to_string(format!("/proc/{pid}/statm")).is_ok_and(|pages| !pages.starts_with("0 "));
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if !line.is_empty() || !has_memory() {
            return line;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Vec::new()
}

/// Waits until `count` processes have the argument.
#[track_caller]
pub(crate) fn until_running(argument: &str, count: usize) {
    until(&format!("{count} processes have the argument {argument}"), || {
        with_argument(argument).len() == count
    });
}

fn pids() -> Vec<i32> {
    let listed = fs::read_dir("/proc").expect("the process table");
    listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// One process as `/proc/<pid>/stat` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    pub(crate) terminal: i32,
}

pub(crate) fn process(pid: i32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let mut number = || fields.next()?.parse().ok();
    Some(Process { state, parent: number()?, group: number()?, session: number()?, terminal: number()? })
}

/// Whether the process with this number lives. A zombie does not.
pub(crate) fn lives(pid: i32) -> bool {
    process(pid).is_some_and(|process| process.state != 'Z')
}

/// Whether the number is that of a zombie of this process.
pub(crate) fn is_our_zombie(pid: i32) -> bool {
    let us = i32::try_from(std::process::id()).expect("a process id");
    process(pid).is_some_and(|process| process.state == 'Z' && process.parent == us)
}

// --- a process of its own ------------------------------------------------------------------------------------------

/// In whose environment a part of a test finds that it is meant to run.
const ALONE: &str = "SHELL_EXECUTOR_TEST_PART";

/// This program once more, to run only `part`, a test that is otherwise ignored: for what has to be measured alone, or
/// as another user, or has to die.
pub(crate) fn alone(program: impl AsRef<Path>, part: &str) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(["--exact", part, "--ignored", "--nocapture", "--test-threads=1"]).env(ALONE, part);
    command
}

pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().expect("the path of this program")
}

/// Whether this process is here for `part` and nothing else.
pub(crate) fn is_alone(part: &str) -> bool {
    std::env::var(ALONE).is_ok_and(|asked| asked == part)
}

/// Runs `part` in a process of its own, and fails where it does.
#[track_caller]
pub(crate) fn run_alone(part: &str) {
    let output = alone(this_program(), part).output().expect("this program once more");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{part}: {}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "{part} did not run:\n{stdout}\n{stderr}");
}

/// Whether this process may do what only root may.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|us| us.uid() == 0)
}

// --- files ---------------------------------------------------------------------------------------------------------

/// All that lies below a directory, at any depth; files only.
pub(crate) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                _ => found.push(entry.path()),
            }
        }
    }
    found
}

pub(crate) fn touch(path: &Path) {
    File::create(path).expect("a file of the test");
}

/// Written by another process: a copy of a descriptor that is open for writing, in a child that another test's thread is
/// just starting, would make the script "busy" (ETXTBSY) when it is to be executed.
pub(crate) fn script(path: &Path, text: &str) {
    let write = "set -C; printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"";
    let status = Command::new("sh").args(["-c", write, "sh", text]).arg(path).status().expect("sh");
    assert!(status.success(), "no script at {path:?}");
}
