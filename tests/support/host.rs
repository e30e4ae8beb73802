//! Running the host program `test-host`: its facts, its end, and a watchdog so that nothing hangs for ever.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than any scenario takes on a loaded machine. A host that is still there then is killed, and the test fails.
const WATCHDOG: Duration = Duration::from_secs(60);

/// One run of the host program.
#[derive(Debug)]
pub(crate) struct Host {
    scenario: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    facts: HashMap<String, String>,
    until: Instant,
}

/// A host that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) scenario: String,
    pub(crate) status: ExitStatus,
    pub(crate) facts: HashMap<String, String>,
    pub(crate) stderr: String,
}

/// Plays a scenario to its end, all of whose promises have to hold. `None`, with the reason printed, where it cannot be
/// played on this machine.
#[track_caller]
pub(crate) fn play(arguments: &[&str]) -> Option<Ended> {
    play_within(WATCHDOG, arguments)
}

/// The same with a watchdog of another patience.
#[track_caller]
pub(crate) fn play_within(patience: Duration, arguments: &[&str]) -> Option<Ended> {
    let mut host = Host::start(arguments);
    host.until = Instant::now() + patience;
    let ended = host.end();
    assert!(ended.status.success(), "{} ended with {}:\n{}", ended.scenario, ended.status, ended.stderr);
    if let Some(reason) = ended.facts.get("skip") {
        println!("{} is not played: {reason}", ended.scenario);
        return None;
    }
    Some(ended)
}

impl Host {
    #[track_caller]
    pub(crate) fn start(arguments: &[&str]) -> Host {
        let mut child = Command::new(program())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the example test-host is built by `cargo test`");
        let stdout = child.stdout.take().expect("piped");
        let mut stderr = child.stderr.take().expect("piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            // What came before an error is worth showing.
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Host {
            scenario: arguments.join(" "),
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
            facts: HashMap::new(),
            until: Instant::now() + WATCHDOG,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Blocks until the host has told this fact.
    #[track_caller]
    pub(crate) fn fact(&mut self, key: &str) -> String {
        loop {
            if let Some(value) = self.facts.get(key) {
                return value.clone();
            }
            let left = self.until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.note(&line),
                Err(_) => {
                    // A host that still runs would keep its stderr open.
                    let _ = self.child.kill();
                    let stderr = self.take_stderr();
                    panic!("{} has not told {key}:\n{stderr}", self.scenario);
                }
            }
        }
    }

    /// Ends the host's stdin.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Blocks until the host has ended.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                break status;
            }
            if Instant::now() > self.until {
                let _ = self.child.kill();
                let stderr = self.take_stderr();
                panic!("{} hangs; so far {:?}\n{stderr}", self.scenario, self.facts);
            }
            match self.lines.recv_timeout(Duration::from_millis(5)) {
                Ok(line) => self.note(&line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        while let Ok(line) = self.lines.recv_timeout(self.until.saturating_duration_since(Instant::now())) {
            self.note(&line);
        }
        let stderr = self.take_stderr();
        Ended { scenario: self.scenario, status, facts: self.facts, stderr }
    }

    fn note(&mut self, line: &str) {
        if let Some((key, value)) = line.split_once('=') {
            self.facts.insert(key.to_owned(), value.to_owned());
        }
    }

    fn take_stderr(&mut self) -> String {
        self.stderr.take().and_then(|stderr| stderr.join().ok()).unwrap_or_default()
    }
}

impl Ended {
    /// What the host told, as text.
    #[track_caller]
    pub(crate) fn fact(&self, key: &str) -> &str {
        match self.facts.get(key) {
            Some(value) => value,
            None => panic!("{} tells no {key}: {:?}", self.scenario, self.facts),
        }
    }

    /// What the host told, as a number.
    #[track_caller]
    pub(crate) fn number(&self, key: &str) -> u64 {
        let text = self.fact(key);
        text.parse().unwrap_or_else(|_| panic!("{}: {key} is {text:?}, no number", self.scenario))
    }
}

/// `target/PROFILE/deps/THIS-TEST`, and there `../examples/test-host`.
fn program() -> PathBuf {
    let this = std::env::current_exe().expect("the path of this test");
    let profile = this.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    profile.join("examples").join("test-host")
}
