//! `shx doctor`: what this machine offers, as a table or as one line of JSON.

use crate::args::DoctorArgs;
use crate::json;
use crate::print::print;
use serde::Serialize;
use shell_executor::{
    Error, Facility, HostFacts, HostLimit, HostProgram, SandboxChain, SandboxRung, SubprocessService,
};
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn doctor(args: &DoctorArgs) -> ExitCode {
    let facts = HostFacts::probe();
    // What cannot be found out is shown as unavailable, each with the reason.
    let rungs = SubprocessService::new().sandbox_rungs(&SandboxChain::new());
    print(&if args.json { json::line(&Facts::new(&facts, &rungs)) } else { table(&facts, &rungs) })
}

type Rungs = Result<Vec<SandboxRung>, Error>;

fn table(facts: &HostFacts, rungs: &Rungs) -> String {
    let mut table = Table::default();
    table.section("shx");
    table.row("version", VERSION);
    table.row("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    table.section("shells");
    for shell in &facts.shells {
        table.row(shell.name, place(shell).unwrap_or_else(|| "not found".to_owned()));
    }
    table.section("containment");
    table.row(facts.containment.as_str(), &facts.containment_reason);
    table.section("kernel");
    let kernel = &facts.kernel;
    table.row("pidfd_open", &kernel.pidfd_open);
    table.row("pidfd group signals", &kernel.pidfd_group_signal);
    table.row("pidfd exit info", &kernel.pidfd_exit_info);
    table.row("clone3", &kernel.clone3);
    table.row("close_range", &kernel.close_range);
    table.row("Landlock ABI", kernel.landlock_abi.map_or_else(|| "none".to_owned(), |abi| abi.to_string()));
    table.row("user namespaces", &kernel.user_namespaces);
    table.section("sandbox backends");
    match rungs {
        Ok(rungs) => rungs.iter().for_each(|rung| table.row(rung.backend.as_str(), verdict(rung))),
        Err(error) => table.row("not known", error),
    }
    table.section("limits");
    let limits = &facts.limits;
    table.row("open files", spelt(limits.open_files));
    table.row("processes", spelt(limits.processes));
    table.row("one argument", bytes(limits.one_argument));
    table.row("all arguments", bytes(limits.all_arguments));
    table.row(
        "pipe pages per user",
        match limits.user_pipe_pages_soft {
            Some(0) => "unlimited".to_owned(),
            Some(pages) => format!("{pages} soft"),
            None => UNKNOWN.to_owned(),
        },
    );
    table.section("temp directory");
    table.row("path", facts.temp_dir.display());
    table.row("private directory", &facts.private_temp);
    table.text
}

/// Whether a backend works, how completely, and whether it is the one that is used.
fn verdict(rung: &SandboxRung) -> String {
    if let Some(reason) = &rung.unavailable {
        return format!("unavailable: {reason}");
    }
    let used = if rung.chosen { "used" } else { "works" };
    let mut text = format!("{used}, {}", rung.backend.enforcement().as_str());
    if !rung.ungoverned.is_empty() {
        let _ = write!(text, " (not governed: {})", rung.ungoverned.join("; "));
    }
    text
}

const UNKNOWN: &str = "not told";

fn place(program: &HostProgram) -> Option<String> {
    program.path.as_ref().map(|path| path.display().to_string())
}

fn spelt(limit: Option<HostLimit>) -> String {
    let one = |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), |value| value.to_string());
    limit.map_or_else(
        || UNKNOWN.to_owned(),
        |limit| format!("{} soft, {} hard", one(limit.soft), one(limit.hard)),
    )
}

fn bytes(limit: Option<u64>) -> String {
    limit.map_or_else(|| "no limit of its own".to_owned(), |bytes| format!("{bytes} bytes"))
}

/// Two columns under headings.
#[derive(Debug, Default)]
struct Table {
    text: String,
}

impl Table {
    fn section(&mut self, name: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{gap}{name}");
    }

    fn row(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.text, "  {name:<22}{value}");
    }
}

/// The same for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Facts<'a> {
    version: &'a str,
    os: &'a str,
    arch: &'a str,
    shells: Vec<Program<'a>>,
    containment: &'a str,
    containment_reason: &'a str,
    kernel: Kernel<'a>,
    sandbox_backends: Vec<Backend<'a>>,
    limits: Limits,
    temp_dir: String,
    private_temp: Usable<'a>,
}

#[derive(Debug, Serialize)]
struct Program<'a> {
    name: &'a str,
    path: Option<String>,
}

#[derive(Debug, Serialize)]
struct Usable<'a> {
    available: bool,
    reason: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kernel<'a> {
    pidfd_open: Usable<'a>,
    pidfd_group_signal: Usable<'a>,
    pidfd_exit_info: Usable<'a>,
    clone3: Usable<'a>,
    close_range: Usable<'a>,
    landlock_abi: Option<u32>,
    user_namespaces: Usable<'a>,
}

#[derive(Debug, Serialize)]
struct Backend<'a> {
    name: &'a str,
    available: bool,
    used: bool,
    enforcement: &'a str,
    reason: Option<&'a str>,
    ungoverned: &'a [&'a str],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Limits {
    open_files: Option<Limit>,
    processes: Option<Limit>,
    one_argument: Option<u64>,
    all_arguments: Option<u64>,
    user_pipe_pages_soft: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Limit {
    soft: Option<u64>,
    hard: Option<u64>,
}

impl<'a> Facts<'a> {
    fn new(facts: &'a HostFacts, rungs: &'a Rungs) -> Facts<'a> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let limit =
            |limit: Option<HostLimit>| limit.map(|limit| Limit { soft: limit.soft, hard: limit.hard });
        let (kernel, limits) = (&facts.kernel, &facts.limits);
        Facts {
            version: VERSION,
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            shells: facts
                .shells
                .iter()
                .map(|shell| Program { name: shell.name, path: shell.path.as_deref().map(text) })
                .collect(),
            containment: facts.containment.as_str(),
            containment_reason: &facts.containment_reason,
            kernel: Kernel {
                pidfd_open: (&kernel.pidfd_open).into(),
                pidfd_group_signal: (&kernel.pidfd_group_signal).into(),
                pidfd_exit_info: (&kernel.pidfd_exit_info).into(),
                clone3: (&kernel.clone3).into(),
                close_range: (&kernel.close_range).into(),
                landlock_abi: kernel.landlock_abi,
                user_namespaces: (&kernel.user_namespaces).into(),
            },
            sandbox_backends: rungs
                .iter()
                .flatten()
                .map(|rung| Backend {
                    name: rung.backend.as_str(),
                    available: rung.unavailable.is_none(),
                    used: rung.chosen,
                    enforcement: rung.backend.enforcement().as_str(),
                    reason: rung.unavailable.as_deref(),
                    ungoverned: &rung.ungoverned,
                })
                .collect(),
            limits: Limits {
                open_files: limit(limits.open_files),
                processes: limit(limits.processes),
                one_argument: limits.one_argument,
                all_arguments: limits.all_arguments,
                user_pipe_pages_soft: limits.user_pipe_pages_soft,
            },
            temp_dir: text(&facts.temp_dir),
            private_temp: (&facts.private_temp).into(),
        }
    }
}

impl<'a> From<&'a Facility> for Usable<'a> {
    fn from(facility: &'a Facility) -> Usable<'a> {
        let reason = match facility {
            Facility::Unavailable { reason } => Some(reason.as_str()),
            _ => None,
        };
        Usable { available: facility.is_available(), reason }
    }
}
