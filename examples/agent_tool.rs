//! A shell tool as a model uses it: a request per line in, as JSON; text out, each answer closed by a line `---`.
//!
//! ```text
//! {"command": "cargo test", "timeoutMs": 60000, "workdir": "src"}      run it; past its deadline it becomes a job
//! {"command": "npm start", "background": true}                         a job from the start
//! {"poll": 1, "waitMs": 2000}                                          what job 1 has printed since the last look
//! {"kill": 1}                                                          stop job 1
//! {"command": "touch /etc/x", "mode": "danger-full-access", "justification": "…"}   ask whoever sits at the terminal
//! ```
//!
//! The one argument is the mode that commands are confined to, `workspace-write` by default; the workspace is the current
//! directory. Commands that run when the input ends, or on Ctrl-C, are stopped with all they have started.

use serde_json::Value;
use shell_executor::{
    Approver, BashExecutor, Config, EnvCall, EnvRegistry, Escalation, ExecRequest, Execution, OnExpiry,
    SandboxChain, SandboxMode, SandboxPolicy, ServiceConfig, ShellExecutor, SubprocessService, render_read,
    render_result,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::Duration;

/// What is wrong with a request, or kept it from being run.
type Refusal = Box<dyn Error>;

fn main() -> Result<(), Refusal> {
    let mode: SandboxMode = std::env::args().nth(1).as_deref().unwrap_or("workspace-write").parse()?;
    let workspace = std::env::current_dir()?;
    let service = SubprocessService::with_config(ServiceConfig::default());
    let _until_the_end = service.dispose_on_signals()?;

    let mut config = Config::default();
    config.output_max_bytes = 16_000; // what a model can be expected to read; the rest is in the spill file
    let policy = SandboxPolicy::new(mode, &workspace);
    let bash = BashExecutor::new(&service, config)?.with_sandbox(Arc::new(SandboxChain::new()), policy)?;
    let environment = EnvRegistry::new(workspace.join(".agent"));
    let mut tool = Tool { bash, environment, jobs: BTreeMap::new(), last: 0 };

    for line in std::io::stdin().lines() {
        let text = match tool.answer(&line?) {
            Ok(text) => text,
            Err(refusal) => format!("[error: {refusal}]"),
        };
        println!("{text}\n---");
    }
    Ok(())
}

struct Tool {
    bash: BashExecutor,
    environment: EnvRegistry,
    /// What runs in the background, and what has ended there and nobody has been told of yet.
    jobs: BTreeMap<u64, Execution>,
    last: u64,
}

impl Tool {
    fn answer(&mut self, line: &str) -> Result<String, Refusal> {
        let call: Value = serde_json::from_str(line)?;
        if let Some(command) = text(&call, "command")? {
            self.run(command, &call)
        } else if let Some(job) = number(&call, "poll")? {
            self.poll(job, number(&call, "waitMs")?.unwrap_or(0))
        } else if let Some(job) = number(&call, "kill")? {
            self.kill(job)
        } else {
            Err("the request has none of \"command\", \"poll\" and \"kill\"".into())
        }
    }

    fn run(&mut self, command: &str, call: &Value) -> Result<String, Refusal> {
        let background = call["background"] == true;
        let facts = self.environment.collect(&EnvCall::new().session("example").command(command))?;
        let mut request = ExecRequest::new(command).managed_snapshot(&facts);
        request = request.on_expiry(if background { OnExpiry::None } else { OnExpiry::Offer });
        if let Some(workdir) = text(call, "workdir")? {
            request = request.workdir(workdir);
        }
        if let Some(timeout) = number(call, "timeoutMs")? {
            request = request.timeout(Duration::from_millis(timeout));
        }
        let mut spec = self.bash.resolve(request)?;
        if let Some(mode) = text(call, "mode")? {
            let justification = text(call, "justification")?.unwrap_or_default();
            spec = spec.escalate(mode.parse()?, justification, &AtTheTerminal)?;
        }

        let execution = self.bash.start(spec)?;
        if background {
            return Ok(format!("[job {}]\n{}", self.keep(&execution), look(&execution)));
        }
        // Blocks until the command has outrun its deadline, or ended.
        if execution.promotion().is_some_and(|offer| offer.accept()) {
            let job = self.keep(&execution);
            return Ok(format!("[past its deadline, goes on as job {job}]\n{}", look(&execution)));
        }
        Ok(render_result(&execution.result()?))
    }

    fn keep(&mut self, execution: &Execution) -> u64 {
        self.last += 1;
        self.jobs.insert(self.last, execution.clone());
        self.last
    }

    fn poll(&mut self, job: u64, wait_ms: u64) -> Result<String, Refusal> {
        let execution = self.job(job)?;
        execution.wait_output(Some(Duration::from_millis(wait_ms)));
        self.tell(job)
    }

    fn kill(&mut self, job: u64) -> Result<String, Refusal> {
        let execution = self.job(job)?;
        // One that has just ended is told of as it ended.
        execution.kill();
        execution.wait();
        self.tell(job)
    }

    fn job(&self, job: u64) -> Result<&Execution, Refusal> {
        self.jobs.get(&job).ok_or_else(|| format!("there is no job {job}").into())
    }

    /// What is new. A job whose end has been told is forgotten.
    fn tell(&mut self, job: u64) -> Result<String, Refusal> {
        let execution = self.job(job)?;
        let (ended, text) = (execution.try_wait().is_some(), look(execution));
        if ended {
            self.jobs.remove(&job);
        }
        Ok(text)
    }
}

fn look(execution: &Execution) -> String {
    // Asked first: a text with an exit status then has the last of the output too.
    let outcome = execution.try_wait().map(|_| execution.result());
    render_read(&execution.read_output(), outcome.as_ref())
}

/// Grants what the person at the terminal grants. Without a terminal nobody can be asked, and nothing is granted.
struct AtTheTerminal;

impl Approver for AtTheTerminal {
    fn approve(&self, escalation: &Escalation) -> bool {
        let Ok(mut terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
            return false;
        };
        let mut reply = String::new();
        write!(terminal, "{escalation}\nLet it? [y/N] ").is_ok()
            && BufReader::new(terminal).read_line(&mut reply).is_ok()
            && reply.trim() == "y"
    }
}

fn text<'a>(call: &'a Value, field: &str) -> Result<Option<&'a str>, Refusal> {
    match &call[field] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(format!("{field} is {other}, not a string").into()),
    }
}

fn number(call: &Value, field: &str) -> Result<Option<u64>, Refusal> {
    match &call[field] {
        Value::Null => Ok(None),
        other => {
            other.as_u64().map(Some).ok_or_else(|| format!("{field} is {other}, no whole number").into())
        }
    }
}
