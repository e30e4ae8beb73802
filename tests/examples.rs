//! The examples, run as a reader would run them.

use std::path::PathBuf;
use std::process::Command;

/// `cargo test` builds the examples beside the tests.
fn run(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let path: PathBuf = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    let output = Command::new(&path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{name}: {}\n{text}", String::from_utf8_lossy(&output.stderr));
    text
}

// E2
#[test]
fn background() {
    let text = run("background");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("started as process "), "{text}");
    for expected in ["line 1", "line 2", "line 3", "[stderr]", "careful"] {
        assert!(lines.contains(&expected), "{expected}: {text}");
    }
    assert!(
        text.ends_with(
            "from offset 7: \"line 2\\nline 3\\n\"\nstopped by this call: true\nkilled, SIGTERM\n"
        )
    );
}

// P1, P2
#[test]
fn promotion() {
    let expected = "past its deadline; kept: true\nso far: working\nlater: got news\n\
                    exit code Some(5), timed out: false\n";
    assert_eq!(run("promotion"), expected);
}
