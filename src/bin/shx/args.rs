//! The command line: its options, and how their values are read.

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, value_parser};
use shell_executor::{EnvEntry, SandboxBackend, SandboxMode};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// Runs shell commands with a deadline, bounded output, and nothing left behind.
#[derive(Debug, Parser)]
#[command(
    name = "shx",
    version,
    arg_required_else_help = true,
    after_help = "\
`shx run --help` has all options, the exit statuses and examples."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command, pass its output through, and exit with its status
    Run(Box<RunArgs>),
    /// Say what this machine offers: shells, containment, kernel facilities, limits
    Doctor(DoctorArgs),
}

const RUN_AFTER: &str = "\
Exit status:
  the command's own   it ended by itself
  128+N               signal N ended it
  124                 it timed out
  125                 shx could not run it (the reason is on stderr)
  130                 Ctrl-C aborted it
  141                 whoever read shx's output has closed it; the command was killed
  2                   the command line is wrong
  With --json: 0 whenever a result was printed, 125 otherwise.

Whatever the command has started and left running is stopped before shx exits.
The first Ctrl-C stops the command politely, a second one at once.

Durations are a whole number and a unit: 500ms, 30s, 5m, 2h.
Sizes are bytes, or a whole number and k, m or g (1k is 1024).

Examples:
  shx run -t 5m -- make -j4
  shx run 'grep -c TODO src/*.rs | sort'
  shx run -C /tmp -e LANG=C -e DISPLAY- -- 'ls | head -3'
  shx run -i input.txt -- 'wc -l'
  shx run --shell pwsh -- 'Get-ChildItem | Sort-Object Length'
  shx run -s workspace-write -w ~/src/project -C ~/src/project -- make test
  shx run --render --request - <request.json
  shx run --json --max-stdout 1m --keep-spill -- ./report.sh";

#[derive(Debug, Args)]
#[command(after_help = RUN_AFTER)]
pub(crate) struct RunArgs {
    /// The command, in the shell's language; several words are joined by spaces
    #[arg(
        required_unless_present = "request",
        trailing_var_arg = true,
        value_name = "COMMAND",
        value_parser = value_parser!(OsString)
    )]
    pub(crate) command: Vec<OsString>,

    /// Take the request from a file of JSON, or from stdin for -
    ///
    /// One object: command, and as wanted workdir, timeoutMs, stdoutMaxBytes, stdin (a text), env (null removes a
    /// name), managedEnv, sandboxPolicy with mode and workspaceRoot, onExpiry (kill, offer, which nobody accepts here,
    /// or none).
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["command", "timeout", "max_stdout", "workdir", "env", "managed", "sandbox", "stdin"]
    )]
    pub(crate) request: Option<OsString>,

    /// Stop the command after this long: 500ms, 30s, 5m, 2h or none [default: 120s]
    #[arg(short, long, value_name = "TIME", value_parser = parse_timeout, help_heading = "Limits")]
    pub(crate) timeout: Option<Timeout>,

    /// From the polite signal to the forceful one; 0s for none in between [default: 3s]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub(crate) grace: Option<Duration>,

    /// Keep this much of stdout's end, with --json or --render [default: as --max-output]
    #[arg(long, value_name = "SIZE", value_parser = parse_budget, help_heading = "Limits")]
    pub(crate) max_stdout: Option<usize>,

    /// Keep this much of each stream's end, with --json or --render [default: 64000]
    #[arg(long, value_name = "SIZE", value_parser = parse_budget, help_heading = "Limits")]
    pub(crate) max_output: Option<usize>,

    /// The largest spill file of one stream, or none for no files [default: 64m]
    #[arg(long, value_name = "SIZE", value_parser = parse_spill, help_heading = "Limits")]
    pub(crate) max_spill: Option<Spill>,

    /// Run it in this directory
    #[arg(short = 'C', long, value_name = "DIR", help_heading = "Surroundings")]
    pub(crate) workdir: Option<PathBuf>,

    /// Set NAME=VALUE in its environment, NAME= to nothing, or remove NAME-; repeatable
    #[arg(
        short,
        long,
        value_name = "ENTRY",
        value_parser = OsStringValueParser::new().try_map(parse_entry),
        help_heading = "Surroundings"
    )]
    pub(crate) env: Vec<EnvEntry>,

    /// Set a fact of the host's, DSH_NAME=VALUE, that --env cannot displace; repeatable
    #[arg(
        long,
        value_name = "ENTRY",
        value_parser = OsStringValueParser::new().try_map(parse_fact),
        help_heading = "Surroundings"
    )]
    pub(crate) managed: Vec<(OsString, OsString)>,

    /// The shell: bash or pwsh, which is PowerShell [default: bash]
    #[arg(long, value_name = "SHELL", value_parser = parse_shell, help_heading = "Surroundings")]
    pub(crate) shell: Option<Shell>,

    /// How its processes are held together: auto, or session to insist on it
    #[arg(long, value_name = "HOW", value_parser = parse_containment, help_heading = "Surroundings")]
    pub(crate) containment: Option<Held>,

    /// What it may do to files: read-only, workspace-write or danger-full-access
    ///
    /// Where nothing can confine it, it is not run. Reading, the network and other processes are not restricted.
    #[arg(short, long, value_name = "MODE", value_parser = parse_mode, help_heading = "Sandbox")]
    pub(crate) sandbox: Option<SandboxMode>,

    /// The directory that workspace-write may write, besides the temp directory [default: the workdir]
    #[arg(short, long, value_name = "DIR", requires = "sandbox", help_heading = "Sandbox")]
    pub(crate) workspace: Option<PathBuf>,

    /// What confines it: native, bwrap, landlock (only in part), or auto for the first that works
    #[arg(
        long,
        value_name = "NAME",
        value_parser = parse_backend,
        help_heading = "Sandbox"
    )]
    pub(crate) sandbox_backend: Option<Backend>,

    /// Where bubblewrap stands [default: where systems install it, never PATH]
    #[arg(long, value_name = "FILE", help_heading = "Sandbox")]
    pub(crate) bwrap: Option<PathBuf>,

    /// What it reads: a file, - for shx's own stdin, or none [default: none]
    #[arg(short = 'i', long, value_name = "FILE", help_heading = "Input and output")]
    pub(crate) stdin: Option<OsString>,

    /// Pass no output through; errors are still told
    #[arg(short, long, help_heading = "Input and output")]
    pub(crate) quiet: bool,

    /// Pass no output through; print the result as one line of JSON
    #[arg(long, help_heading = "Input and output")]
    pub(crate) json: bool,

    /// Pass no output through; print the result as text for a model, with the exit status as its last line
    #[arg(long, conflicts_with_all = ["json", "quiet"], help_heading = "Input and output")]
    pub(crate) render: bool,

    /// With --json or --render: leave the file with a whole overflowing stream, and name it
    ///
    /// Without it no file outlives shx, so none is made and none is named.
    #[arg(long, help_heading = "Input and output")]
    pub(crate) keep_spill: bool,

    /// Where the private directory for such files is made [default: the temp directory]
    #[arg(long, value_name = "DIR", help_heading = "Input and output")]
    pub(crate) spill_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one line of JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// A deadline, or the wish for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timeout {
    None,
    After(Duration),
}

/// How large a spill file may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spill {
    None,
    Bytes(u64),
}

/// Which sandbox backend is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Auto,
    Only(SandboxBackend),
}

/// Which shell is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shell {
    Bash,
    Pwsh,
}

/// Which containment is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Auto,
    Session,
}

fn parse_timeout(text: &str) -> Result<Timeout, String> {
    if text == "none" {
        return Ok(Timeout::None);
    }
    let time = parse_duration(text).map_err(|error| format!("{error}, or none"))?;
    if time.is_zero() {
        return Err("nothing can run in no time; for no deadline write none".to_owned());
    }
    Ok(Timeout::After(time))
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let Some(number) = number else {
        return Err("a time is a whole number and a unit: 500ms, 30s, 5m, 2h".to_owned());
    };
    // A time that no clock can express is for ever.
    let seconds = |each: u64| Ok(Duration::from_secs(number.saturating_mul(each)));
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(60 * 60),
        "" => Err(format!("a unit is missing: write {text}s for seconds, or {text}ms, {text}m, {text}h")),
        other => Err(format!("there is no unit {other:?}: write ms, s, m or h")),
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let Some(number) = number else {
        return Err("a size is a whole number of bytes, or one and k, m or g".to_owned());
    };
    let bytes = match unit {
        "" => Some(number),
        "k" | "K" => number.checked_mul(1 << 10),
        "m" | "M" => number.checked_mul(1 << 20),
        "g" | "G" => number.checked_mul(1 << 30),
        other => return Err(format!("there is no unit {other:?}: write k, m or g, or nothing for bytes")),
    };
    match bytes {
        Some(0) => Err("is zero".to_owned()),
        Some(bytes) => Ok(bytes),
        None => Err("is more than anything can hold".to_owned()),
    }
}

fn parse_budget(text: &str) -> Result<usize, String> {
    usize::try_from(parse_size(text)?).map_err(|_| "is more than memory can hold".to_owned())
}

fn parse_spill(text: &str) -> Result<Spill, String> {
    if text == "none" {
        return Ok(Spill::None);
    }
    parse_size(text).map(Spill::Bytes)
}

/// The leading whole number, if there is one, and the rest. One that is too large for anything is the largest.
fn split(text: &str) -> (Option<u64>, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number = (!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX));
    (number, unit)
}

fn parse_entry(text: OsString) -> Result<EnvEntry, String> {
    if let Some((name, value)) = split_entry(&text)? {
        return Ok(EnvEntry::set(name, value));
    }
    match text.as_bytes().strip_suffix(b"-") {
        Some(b"") => Err("the name is empty".to_owned()),
        Some(name) => Ok(EnvEntry::remove(OsStr::from_bytes(name))),
        None => Err("an entry is NAME=VALUE, NAME= or, to remove it, NAME-".to_owned()),
    }
}

fn parse_fact(text: OsString) -> Result<(OsString, OsString), String> {
    let (name, value) = split_entry(&text)?.ok_or("an entry is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Name and value, around the first equals sign; `None` without one.
fn split_entry(text: &OsStr) -> Result<Option<(&OsStr, &OsStr)>, String> {
    let bytes = text.as_bytes();
    match bytes.iter().position(|&byte| byte == b'=') {
        Some(0) => Err("the name is empty".to_owned()),
        Some(at) => Ok(Some((OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])))),
        None => Ok(None),
    }
}

fn parse_shell(text: &str) -> Result<Shell, String> {
    match text {
        "bash" => Ok(Shell::Bash),
        "pwsh" => Ok(Shell::Pwsh),
        _ => Err("it is bash or pwsh".to_owned()),
    }
}

fn parse_containment(text: &str) -> Result<Held, String> {
    match text {
        "auto" => Ok(Held::Auto),
        "session" => Ok(Held::Session),
        "cgroup" => Err("control groups are not in this version; session is".to_owned()),
        _ => Err("it is auto or session".to_owned()),
    }
}

fn parse_mode(text: &str) -> Result<SandboxMode, String> {
    text.parse().map_err(|_| "it is read-only, workspace-write or danger-full-access".to_owned())
}

fn parse_backend(text: &str) -> Result<Backend, String> {
    if text == "auto" {
        return Ok(Backend::Auto);
    }
    let names = || SandboxBackend::ALL.iter().map(|backend| backend.as_str()).collect::<Vec<_>>().join(", ");
    text.parse().map(Backend::Only).map_err(|_| format!("it is auto or one of: {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn run(words: &[&str]) -> Result<RunArgs, clap::Error> {
        let words = ["shx", "run"].iter().chain(words);
        match Cli::try_parse_from(words)?.command {
            Command::Run(args) => Ok(*args),
            Command::Doctor(_) => unreachable!("the words say run"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    // L2
    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        assert!(parse_duration("30").unwrap_err().contains("30s"));
        for wrong in ["", "s", "-1s", "1.5s", "1d", "1 s", "+1s", "1S", "none", "\u{661}s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong:?}");
        }
    }

    // L2, R5
    #[test]
    fn a_time_without_end_is_the_longest() {
        assert_eq!(parse_duration("99999999999999999999h"), Ok(Duration::from_secs(u64::MAX)));
        assert_eq!(parse_duration("18446744073709551615m"), Ok(Duration::from_secs(u64::MAX)));
        assert_eq!(parse_duration("18446744073709551615ms"), Ok(Duration::from_millis(u64::MAX)));
    }

    // L2
    #[test]
    fn a_timeout_may_be_none_and_not_zero() {
        assert_eq!(parse_timeout("none"), Ok(Timeout::None));
        assert_eq!(parse_timeout("1s"), Ok(Timeout::After(Duration::from_secs(1))));
        assert!(parse_timeout("0s").unwrap_err().contains("none"));
        assert!(parse_timeout("10").unwrap_err().contains("10s"));
    }

    // L2, R3
    #[test]
    fn a_size_is_binary_and_not_zero() {
        assert_eq!(parse_size("1"), Ok(1));
        assert_eq!(parse_size("2k"), Ok(2048));
        assert_eq!(parse_size("3M"), Ok(3 << 20));
        assert_eq!(parse_size("4g"), Ok(4 << 30));
        for wrong in ["0", "0g", "", "k", "1kb", "-1", "1.5k", "17179869184g", "none"] {
            assert!(parse_size(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(parse_spill("none"), Ok(Spill::None));
        assert_eq!(parse_spill("1k"), Ok(Spill::Bytes(1024)));
        let error = run(&["--max-stdout", "0", "true"]).unwrap_err().to_string();
        assert!(error.contains("--max-stdout") && error.contains("zero"), "{error}");
    }

    // L2, V5
    #[test]
    fn an_entry_sets_empties_or_removes() {
        let entry = |text: &[u8]| parse_entry(OsStr::from_bytes(text).to_owned());
        assert_eq!(entry(b"A=b=c"), Ok(EnvEntry::set("A", "b=c")));
        assert_eq!(entry(b"A="), Ok(EnvEntry::set("A", "")));
        assert_eq!(entry(b"A-"), Ok(EnvEntry::remove("A")));
        assert_eq!(entry(b"A-=x-"), Ok(EnvEntry::set("A-", "x-")));
        assert_eq!(entry(b"A=\xff"), Ok(EnvEntry::set("A", OsStr::from_bytes(b"\xff"))));
        for wrong in [&b"A"[..], b"", b"=x", b"-"] {
            assert!(entry(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse_fact("DSH_A".into()).is_err());
        assert_eq!(parse_fact("DSH_A=1".into()), Ok(("DSH_A".into(), "1".into())));
    }

    // L1, I4
    #[test]
    fn all_that_follows_the_command_belongs_to_it() {
        let words = |args: &[&str]| run(args).unwrap().command;
        assert_eq!(words(&["-t", "1s", "echo", "-n", "--json"]), ["echo", "-n", "--json"]);
        assert_eq!(words(&["--", "-x"]), ["-x"]);
        assert_eq!(words(&["--", "a", "--", "b"]), ["a", "--", "b"]);
        assert_eq!(words(&[""]), [""]);
        assert!(run(&[]).is_err());
        assert_eq!(run(&["--request", "-"]).unwrap().command, [""; 0]);
        assert!(run(&["--request", "-", "true"]).is_err(), "the command is in the request");
        assert!(run(&["--request", "-", "-t", "1s"]).is_err());
        assert!(run(&["--json", "--render", "true"]).is_err());
        assert!(run(&["--unknown", "true"]).is_err());
    }

    // L2
    #[test]
    fn what_this_version_lacks_is_said() {
        let error = |args: &[&str]| run(args).unwrap_err().to_string();
        assert!(error(&["--shell", "zsh", "x"]).contains("it is bash or pwsh"));
        assert_eq!(run(&["--shell", "pwsh", "x"]).unwrap().shell, Some(Shell::Pwsh));
        assert!(error(&["--containment", "cgroup", "x"]).contains("not in this version"));
        assert!(error(&["-s", "tight", "x"]).contains("read-only"));
        assert!(run(&["-w", "/", "x"]).is_err(), "a workspace without a mode confines nothing");
        assert!(run(&["-s", "read-only", "-w", "/", "x"]).is_ok());
        assert!(error(&["-s", "read-only", "--sandbox-backend", "chroot", "x"]).contains("auto"));
        let parsed = run(&["-s", "read-only", "--sandbox-backend", "bwrap", "x"]).unwrap();
        assert_eq!(parsed.sandbox_backend, Some(Backend::Only(SandboxBackend::Bwrap)));
    }
}
