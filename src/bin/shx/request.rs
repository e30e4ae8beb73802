//! `--request`: a request as JSON, with errors that say where in it they are.

use crate::print::reason;
use serde_json::{Map, Value};
use shell_executor::{EnvEntry, ExecRequest, OnExpiry, SandboxMode, SandboxPolicy, Stdin};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A request is read into memory before anything else; a larger one is a mistake.
const MOST: u64 = 256 * 1024 * 1024;

/// Reads the request from the file, or from our own stdin for `-`.
///
/// # Errors
///
/// In words, with the place in the document: `env.PATH: is a number, not a text or null`.
pub(crate) fn read(from: &OsStr) -> Result<ExecRequest, String> {
    let name = if from == "-" { "stdin".to_owned() } else { format!("{from:?}") };
    let mut text = String::new();
    let taken = if from == "-" {
        std::io::stdin().take(MOST + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(Path::new(from)).and_then(|file| file.take(MOST + 1).read_to_string(&mut text))
    };
    taken.map_err(|error| format!("cannot read the request from {name}: {}", reason(&error)))?;
    if text.len() as u64 > MOST {
        return Err(format!("the request in {name} is larger than {MOST} bytes"));
    }
    parse(&text).map_err(|error| format!("the request in {name}: {error}"))
}

fn parse(text: &str) -> Result<ExecRequest, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    let root = Object::of("", &document)?;
    root.only(&[
        "command",
        "workdir",
        "timeoutMs",
        "stdoutMaxBytes",
        "stdin",
        "env",
        "managedEnv",
        "sandboxPolicy",
        "onExpiry",
    ])?;
    let command = root.text("command")?.ok_or("command: is missing")?;
    let mut request = ExecRequest::new(command);
    request.workdir = root.text("workdir")?.map(PathBuf::from);
    request.timeout = root.count("timeoutMs")?.map(Duration::from_millis);
    let bytes = root.count("stdoutMaxBytes")?;
    request.stdout_max_bytes = bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if let Some(text) = root.text("stdin")? {
        request.stdin = Stdin::Bytes(text.into());
    }
    if let Some(env) = root.object("env")? {
        for (name, value) in env.fields {
            request.env.push(match value {
                Value::Null => EnvEntry::remove(name),
                Value::String(value) => EnvEntry::set(name, value),
                other => return Err(env.wrong(name, other, "a text, or null to remove it")),
            });
        }
    }
    if let Some(managed) = root.object("managedEnv")? {
        for (name, value) in managed.fields {
            let Value::String(value) = value else { return Err(managed.wrong(name, value, "a text")) };
            request.managed_env.push((OsString::from(name), OsString::from(value)));
        }
    }
    if let Some(policy) = root.object("sandboxPolicy")? {
        policy.only(&["mode", "workspaceRoot", "session"])?;
        let mode = policy.text("mode")?.ok_or_else(|| format!("{}: is missing", policy.at("mode")))?;
        let modes = "read-only, workspace-write or danger-full-access";
        let mode: SandboxMode =
            mode.parse().map_err(|_| format!("{}: is {mode:?}, not {modes}", policy.at("mode")))?;
        let workdir = request.workdir.clone().unwrap_or_else(|| PathBuf::from("."));
        let root = policy.text("workspaceRoot")?.map_or(workdir, PathBuf::from);
        let mut asked = SandboxPolicy::new(mode, root);
        asked.session = policy.text("session")?.map(str::to_owned);
        request.sandbox_policy = Some(asked);
    }
    request.on_expiry = match root.text("onExpiry")? {
        None | Some("kill") => OnExpiry::Kill,
        Some("offer") => OnExpiry::Offer,
        Some("none") => OnExpiry::None,
        Some(other) => return Err(format!("onExpiry: is {other:?}, not kill, offer or none")),
    };
    Ok(request)
}

/// An object, and where in the document it stands. A field that is null is one that is not there.
struct Object<'a> {
    path: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    fn of(path: &'a str, value: &'a Value) -> Result<Object<'a>, String> {
        match value {
            Value::Object(fields) => Ok(Object { path, fields }),
            other if path.is_empty() => Err(format!("is {}, not an object", kind(other))),
            other => Err(format!("{path}: is {}, not an object", kind(other))),
        }
    }

    fn at(&self, name: &str) -> String {
        // A name that would be taken for a path is quoted.
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let name = if plain { name.to_owned() } else { format!("{name:?}") };
        if self.path.is_empty() { name } else { format!("{}.{name}", self.path) }
    }

    fn wrong(&self, name: &str, value: &Value, wanted: &str) -> String {
        format!("{}: is {}, not {wanted}", self.at(name), kind(value))
    }

    fn only(&self, known: &[&str]) -> Result<(), String> {
        match self.fields.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(format!("{}: is unknown; known are {}", self.at(name), known.join(", "))),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(name, value, "a text"))
    }

    /// A whole number above zero.
    fn count(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64() {
            Some(0) => Err(format!("{}: is zero", self.at(name))),
            Some(count) => Ok(Some(count)),
            None => Err(self.wrong(name, value, "a whole number above zero")),
        }
    }

    fn object(&self, name: &'a str) -> Result<Option<Object<'a>>, String> {
        self.get(name).map(|value| Object::of(name, value)).transpose()
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // L4, R1
    #[test]
    fn every_field_has_its_name() {
        let request = parse(
            r#"{"command":"make","workdir":"/w","timeoutMs":1500,"stdoutMaxBytes":10,"stdin":"in",
                "env":{"A":"1","B":null,"C":""},"managedEnv":{"DSH_X":"y"},"onExpiry":"offer",
                "sandboxPolicy":{"mode":"workspace-write","workspaceRoot":"/r","session":"s"}}"#,
        )
        .unwrap();
        assert_eq!(request.command, "make");
        assert_eq!(request.workdir, Some("/w".into()));
        assert_eq!(request.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(request.stdout_max_bytes, Some(10));
        assert_eq!(request.stdin, Stdin::Bytes(b"in".to_vec()));
        let env = [EnvEntry::set("A", "1"), EnvEntry::remove("B"), EnvEntry::set("C", "")];
        assert_eq!(request.env, env);
        assert_eq!(request.managed_env, [("DSH_X".into(), "y".into())]);
        assert_eq!(request.on_expiry, OnExpiry::Offer);
        let policy = SandboxPolicy::new(SandboxMode::WorkspaceWrite, "/r").session("s");
        assert_eq!(request.sandbox_policy, Some(policy));
    }

    // L4: what is null is not there
    #[test]
    fn all_but_the_command_may_be_absent() {
        let request =
            parse(r#"{"command":"","workdir":null,"timeoutMs":null,"env":null,"onExpiry":null}"#).unwrap();
        assert_eq!((request.workdir, request.timeout, request.stdin), (None, None, Stdin::Null));
        assert!(request.env.is_empty() && request.sandbox_policy.is_none());
        let request =
            parse(r#"{"command":"x","workdir":"/w","sandboxPolicy":{"mode":"read-only"}}"#).unwrap();
        assert_eq!(request.sandbox_policy.unwrap().workspace_root, PathBuf::from("/w"));
    }

    // L4
    #[test]
    fn an_error_says_where_it_is() {
        let cases = [
            ("[]", "is a list, not an object"),
            ("{", "is no JSON"),
            ("{}", "command: is missing"),
            (r#"{"command":1}"#, "command: is the number 1, not a text"),
            (r#"{"command":"x","timeout":1}"#, "timeout: is unknown; known are command, workdir, timeoutMs"),
            (r#"{"command":"x","timeoutMs":0}"#, "timeoutMs: is zero"),
            (r#"{"command":"x","timeoutMs":1.5}"#, "timeoutMs: is the number 1.5, not a whole number"),
            (r#"{"command":"x","timeoutMs":-1}"#, "timeoutMs: is the number -1"),
            (r#"{"command":"x","stdoutMaxBytes":"1k"}"#, "stdoutMaxBytes: is a text"),
            (r#"{"command":"x","env":[]}"#, "env: is a list, not an object"),
            (r#"{"command":"x","env":{"A":1}}"#, "env.A: is the number 1, not a text, or null to remove it"),
            (r#"{"command":"x","env":{"a.b":true}}"#, r#"env."a.b": is true"#),
            (r#"{"command":"x","managedEnv":{"DSH_A":null}}"#, "managedEnv.DSH_A: is null, not a text"),
            (r#"{"command":"x","sandboxPolicy":{}}"#, "sandboxPolicy.mode: is missing"),
            (
                r#"{"command":"x","sandboxPolicy":{"mode":"ro"}}"#,
                r#"sandboxPolicy.mode: is "ro", not read-only"#,
            ),
            (r#"{"command":"x","sandboxPolicy":{"root":"/"}}"#, "sandboxPolicy.root: is unknown"),
            (r#"{"command":"x","onExpiry":"keep"}"#, r#"onExpiry: is "keep", not kill, offer or none"#),
        ];
        for (text, expected) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
