//! The sandbox backends against one table of attempts, each for real: what must not happen has not happened, what must
//! work does, and what a backend does not stop is what it says it does not.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "a descriptor as a host that is careless with it has it")]

mod support;

use shell_executor::{
    BashExecutor, Config, Enforcement, ExecRequest, Facility, HostFacts, RunResult, SandboxBackend,
    SandboxChain, SandboxMode, SandboxPolicy, ShellExecutor, SubprocessService,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use support::{is_root, skip};
use tempfile::TempDir;

/// A place with a directory outside, a workspace and a temp directory, beside each other, and what the attempts aim at.
struct Ground {
    dir: TempDir,
    service: SubprocessService,
    held: File,
    victim: Child,
}

impl Ground {
    fn new() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        for name in ["outside", "outside/dir", "workspace", "temp"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for name in ["file", "second"] {
            fs::write(outside.join(name), "whole\n").unwrap();
        }
        let held = OpenOptions::new().write(true).open(outside.join("file")).unwrap();
        // As a host that has forgotten the flag.
        // SAFETY: integers only.
        unsafe { libc::fcntl(held.as_raw_fd(), libc::F_SETFD, 0) };
        let victim = Command::new("sleep").arg("300").spawn().unwrap();
        Ground { dir, service: SubprocessService::new(), held, victim }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn bash(&self, backend: SandboxBackend, mode: SandboxMode) -> BashExecutor {
        let chain = SandboxChain::new().backends([backend]).temp_dir(self.path("temp"));
        let policy = SandboxPolicy::new(mode, self.path("workspace"));
        BashExecutor::new(&self.service, Config::default())
            .unwrap()
            .with_sandbox(Arc::new(chain), policy)
            .unwrap()
    }

    /// Runs all attempts, and gives what each of them says.
    fn attempt(&self, backend: SandboxBackend, mode: SandboxMode) -> BTreeMap<String, String> {
        let quoted = |text: &Path| format!("'{}'", text.display());
        let command = format!(
            "{} {} {} {} {} {}",
            quoted(&support::child().with_file_name("test-breakout")),
            quoted(&self.path("outside")),
            quoted(&self.path("workspace")),
            std::process::id(),
            self.held.as_raw_fd(),
            self.victim.id(),
        );
        let bash = self.bash(backend, mode);
        let result = bash.run(bash.resolve(ExecRequest::new(command)).unwrap()).unwrap();
        assert_eq!(result.exit_code, Some(0), "{}", result.stderr.text);
        let lines = result.stdout.text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(name, said)| (name.to_owned(), said.to_owned())).collect()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// All there is to see of what lies below a directory.
fn picture(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        let data = fs::symlink_metadata(&path).unwrap();
        let content = if data.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
        let kind = data.file_type();
        let kind = (kind.is_dir(), kind.is_file(), kind.is_symlink(), kind.is_fifo(), kind.is_socket());
        let times = (data.mtime(), data.mtime_nsec());
        let facts = format!("{kind:?} {:o} {} {} {times:?}", data.mode(), data.uid(), data.nlink());
        found.insert(path.clone(), format!("{facts} {content:?}"));
        if data.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found
}

/// The backends that work here.
fn working() -> Vec<SandboxBackend> {
    let service = SubprocessService::new();
    let rungs = service.sandbox_rungs(&SandboxChain::new()).unwrap();
    for rung in &rungs {
        if let Some(reason) = &rung.unavailable {
            eprintln!("skipped: {}: {reason}", rung.backend.as_str());
        }
    }
    rungs.into_iter().filter(|rung| rung.unavailable.is_none()).map(|rung| rung.backend).collect()
}

// S4.1: for root and for ordinary users. The other tests pass over a backend that does not work, and would not see it.
#[test]
fn the_native_backend_works_where_the_kernel_lets_it() {
    let kernel = HostFacts::probe().kernel;
    let Some(abi) = kernel.landlock_abi else { skip!("no Landlock") };
    if !is_root() && kernel.user_namespaces != Facility::Available {
        skip!("no user namespaces for {}", std::process::id());
    }
    let rungs = SubprocessService::new().sandbox_rungs(&SandboxChain::new()).unwrap();
    let native = rungs.iter().find(|rung| rung.backend == SandboxBackend::Native).unwrap();
    assert_eq!(native.unavailable, None, "with Landlock {abi}");
    assert!(native.chosen);
}

/// Metadata, which Landlock does not govern.
const METADATA: [&str; 8] = [
    "chmod",
    "chown",
    "utimes",
    "setxattr",
    "chmod-by-descriptor",
    "chmod-device",
    "chown-device",
    "utimes-device",
];

fn ok(said: &BTreeMap<String, String>) -> BTreeSet<&str> {
    let fine = said.iter().filter(|(_, said)| *said == "ok");
    fine.map(|(name, _)| name.as_str()).collect()
}

// S1, S4, case 85: nothing outside is changed, whatever is tried, and no other process is reached
#[test]
fn nothing_outside_is_changed() {
    for backend in working() {
        for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
            let ground = Ground::new();
            let before = picture(&ground.path("outside"));
            let said = ground.attempt(backend, mode);
            let after = picture(&ground.path("outside"));
            let done: BTreeSet<&str> =
                ok(&said).into_iter().filter(|name| !name.starts_with("in.")).collect();
            let name = backend.as_str();
            if backend == SandboxBackend::Landlock {
                // The file's metadata has changed, and nothing else of it or beside it.
                let let_through: BTreeSet<&str> = METADATA.into_iter().collect();
                assert!(done.is_subset(&let_through), "{name} {mode}: {done:?}");
                assert!(done.contains("chmod") && done.contains("utimes"), "{name} {mode}: {done:?}");
                let file = ground.path("outside/file");
                assert_eq!(fs::read_to_string(&file).unwrap(), "whole\n", "{name} {mode}");
                assert_eq!(fs::metadata(&file).unwrap().nlink(), 1, "{name} {mode}");
                let others = |picture: &BTreeMap<PathBuf, String>| {
                    let mut others = picture.clone();
                    others.remove(&file);
                    others
                };
                assert_eq!(others(&after), others(&before), "{name} {mode}");
            } else {
                // What bubblewrap says of itself for root: a device of root's is root's to change.
                let owned = backend == SandboxBackend::Bwrap && is_root();
                let others: Vec<&&str> =
                    done.iter().filter(|name| !(owned && name.ends_with("-device"))).collect();
                assert!(others.is_empty(), "{name} {mode}: {others:?}");
                assert_eq!(after, before, "{name} {mode}");
            }
            let whole = done.is_empty();
            assert!(whole || backend.enforcement() == Enforcement::Partial, "{name} {mode}: {done:?}");
            let missing = ["write", "chmod-by-handle", "enter-namespace", "inherited"];
            assert!(missing.iter().all(|name| said.contains_key(*name)), "not all was tried: {said:?}");
        }
    }
}

// S1, S9: in the workspace a command may do all of it, but for device nodes
#[test]
fn all_may_be_done_in_the_workspace() {
    for backend in working() {
        let ground = Ground::new();
        let said = ground.attempt(backend, SandboxMode::WorkspaceWrite);
        let refused: Vec<_> =
            said.iter().filter(|(name, said)| name.starts_with("in.") && *said != "ok").collect();
        assert!(refused.is_empty(), "{}: {refused:?}", backend.as_str());
        let said = ground.attempt(backend, SandboxMode::ReadOnly);
        let done: Vec<_> = said
            .iter()
            .filter(|(name, said)| name.starts_with("in.") && *said == "ok")
            .map(|(name, _)| name.as_str())
            .collect();
        let governed: Vec<&&str> =
            done.iter().filter(|name| !["in.chmod", "in.chown", "in.utimes"].contains(name)).collect();
        assert!(governed.is_empty(), "{}: {governed:?}", backend.as_str());
    }
}

// S1: a device node that stands in the workspace opens nothing, and none of the host's disks can be written
#[test]
fn no_device_is_reached_through_the_workspace() {
    if !is_root() {
        skip!("only root can make a device node for the test");
    }
    for backend in working() {
        let ground = Ground::new();
        let node = ground.path("workspace/node");
        let made = Command::new("mknod").arg(&node).args(["c", "1", "3"]).status().unwrap();
        if !made.success() {
            skip!("no device node can be made here");
        }
        let said = ground.attempt(backend, SandboxMode::WorkspaceWrite);
        // Landlock alone cannot tell a device from a file; it is null, and only a node that root has put there.
        if backend != SandboxBackend::Landlock {
            assert_ne!(said["open-a-device-inside"], "ok", "{}", backend.as_str());
        }
    }
}

/// Runs a command confined to the workspace, and gives its result.
fn run(ground: &Ground, backend: SandboxBackend, mode: SandboxMode, command: &str) -> RunResult {
    let bash = ground.bash(backend, mode);
    let request = ExecRequest::new(command)
        .workdir(ground.path("workspace"))
        .env("TMPDIR", ground.path("temp"))
        .env("O", ground.path("outside"));
    bash.run(bash.resolve(request).unwrap()).unwrap()
}

// S1, S9, I2, cases 93, 95, 96: what commands do every day works
#[test]
fn what_commands_do_every_day_works() {
    let long = "x".repeat(80_000);
    let commands = [
        "echo x >/dev/null && : >/dev/zero && dd if=/dev/zero of=/dev/null count=1 2>/dev/null",
        "! echo x 2>/dev/null >/dev/full",
        "echo out >/dev/stdout && echo err >/dev/stderr && echo fd >/dev/fd/1",
        "f=$(mktemp) && echo ok >\"$f\" && [ \"$(cat \"$f\")\" = ok ]",
        "mkdir -p a b && echo x >a/f && mv a/f b/f && mv b/f \"$TMPDIR/f\" && mv \"$TMPDIR/f\" . && [ -s f ]",
        "[ \"$(cat <(echo inner))\" = inner ]",
        "git init -q r && cd r && git config user.email a@b && git config user.name n && echo x >x && git add x &&
         git commit -qm m && [ -z \"$(git status --porcelain)\" ]",
        "printf 'int main(void){return 7;}' >m.c && cc m.c -o m && { ./m; [ $? = 7 ]; }",
        "ln -s \"$O/file\" out && ! { echo x >out; } 2>/dev/null",
    ];
    for backend in working() {
        let ground = Ground::new();
        for command in commands {
            let result = run(&ground, backend, SandboxMode::WorkspaceWrite, command);
            assert_eq!(result.exit_code, Some(0), "{}: {command}\n{}", backend.as_str(), result.stderr.text);
        }
        let document = format!("wc -c <<E\n{long}\nE");
        let result = run(&ground, backend, SandboxMode::WorkspaceWrite, &document);
        assert_eq!(result.stdout.text.trim(), "80001", "{}", backend.as_str());
        let result = run(&ground, backend, SandboxMode::ReadOnly, "cd r && git status --porcelain");
        assert_eq!((result.exit_code, result.stdout.text.as_str()), (Some(0), ""), "{}", backend.as_str());
        if backend != SandboxBackend::Landlock {
            let result = run(&ground, backend, SandboxMode::ReadOnly, &document);
            assert_eq!(result.stdout.text.trim(), "80001", "{}", backend.as_str());
            let terminal = "script -qec 'test -t 1 && echo yes' /dev/null </dev/null";
            let result = run(&ground, backend, SandboxMode::WorkspaceWrite, terminal);
            assert!(result.stdout.text.contains("yes"), "{}: {result:?}", backend.as_str());
        }
    }
}

// S9: a workspace is the directory behind a link, and a link out of it leads nowhere
#[test]
fn a_workspace_may_be_reached_through_a_link() {
    for backend in working() {
        let ground = Ground::new();
        let link = ground.path("link");
        std::os::unix::fs::symlink(ground.path("workspace"), &link).unwrap();
        let policy = SandboxPolicy::new(SandboxMode::WorkspaceWrite, &link);
        let chain = SandboxChain::new().backends([backend]).temp_dir(ground.path("temp"));
        let bash = BashExecutor::new(&ground.service, Config::default()).unwrap();
        let bash = bash.with_sandbox(Arc::new(chain), policy).unwrap();
        let command = format!("echo x >'{}/made'", link.display());
        let result = bash.run(bash.resolve(ExecRequest::new(command).workdir(&link)).unwrap()).unwrap();
        assert_eq!(result.exit_code, Some(0), "{}: {}", backend.as_str(), result.stderr.text);
        assert!(ground.path("workspace/made").exists());
    }
}

// S9: the scratch directory is private, of limited size, and gone with the run
#[test]
fn a_scratch_directory_is_private_and_small() {
    for backend in working().into_iter().filter(|&backend| backend != SandboxBackend::Landlock) {
        let ground = Ground::new();
        let chain = SandboxChain::new().backends([backend]).scratch_max_bytes(64 * 1024);
        let policy = SandboxPolicy::new(SandboxMode::ReadOnly, ground.path("workspace"));
        let bash = BashExecutor::new(&ground.service, Config::default()).unwrap();
        let bash = bash.with_sandbox(Arc::new(chain), policy).unwrap();
        let run = |command: &str| bash.run(bash.resolve(ExecRequest::new(command)).unwrap()).unwrap();
        let full = run("head -c 1M /dev/zero >\"$TMPDIR/big\"; stat -c %s \"$TMPDIR/big\"; ls \"$TMPDIR\"");
        assert!(full.stderr.text.contains("No space left"), "{}: {}", backend.as_str(), full.stderr.text);
        assert_eq!(full.stdout.text, "65536\nbig\n", "{}", backend.as_str());
        let next = run("ls -A \"$TMPDIR\"; echo \"$TMPDIR\"");
        let place = next.stdout.text.trim();
        assert_eq!(place.lines().count(), 1, "it is empty again: {place}");
        assert_eq!(fs::read_dir(place).unwrap().count(), 0, "nothing of it is seen outside");
    }
}
