//! The C interface, from C: a program in C for each object's life, each refusal and each state of a host, and what the
//! library exports.
//!
//! `.ci/c` runs the same under a checker: `SHX_LIBRARY` is then another build of the library, `SHX_CFLAGS` are words for
//! the compiler and `SHX_UNDER` the words before the program.
#![cfg(all(feature = "capi", target_os = "linux"))]
#![allow(unsafe_code, reason = "what all tests share is removed at the exit")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::skip;

/// The package's directory at the time of the test: the programs are compiled from what lies there.
fn source() -> PathBuf {
    let here = std::env::current_dir().unwrap();
    assert!(here.join("include/shell_executor.h").exists(), "not run in the package's directory: {here:?}");
    here
}

/// The shared library that was built for this test, beside it.
fn library() -> PathBuf {
    if let Some(library) = std::env::var_os("SHX_LIBRARY") {
        return library.into();
    }
    let library = support::this_program().with_file_name("libshell_executor.so");
    assert!(library.exists(), "no {library:?}");
    library
}

/// The functions that the header declares: name, type of the result, types of the parameters.
fn declared() -> Vec<(String, String, Vec<String>)> {
    let header = fs::read_to_string(source().join("include/shell_executor.h")).unwrap();
    let text: String = header
        .lines()
        .filter(|line| !line.trim_start().starts_with("//") && !line.starts_with('#'))
        .collect::<Vec<_>>()
        .join(" ");
    let text = text.replace("extern \"C\" {", "");
    // What follows is not declared but defined, for the header's own readers.
    let (text, _) = text.split_once("static inline").expect("the end of the header");
    let mut functions = Vec::new();
    for statement in text.split(';') {
        let Some((head, parameters)) =
            statement.trim().rsplit_once(')').and_then(|(all, _)| all.split_once('('))
        else {
            continue;
        };
        let (Some(at), false) = (head.rfind("shx_"), head.contains("typedef") || head.contains('{')) else {
            continue;
        };
        let (result, name) = head.split_at(at);
        let result = result.rsplit(['}', '{']).next().unwrap().trim().to_owned();
        let parameters = parameters.split(',').map(|parameter| {
            let parameter = parameter.split_whitespace().collect::<Vec<_>>().join(" ");
            let name = parameter.rfind([' ', '*']).map_or(0, |at| at + 1);
            parameter[..name].trim().to_owned()
        });
        let parameters = parameters.filter(|parameter| !parameter.is_empty()).collect();
        functions.push((name.trim().to_owned(), result, parameters));
    }
    functions
}

/// A program that calls every function with nothing but nulls and zeros, once without an error object and once with.
fn nulls() -> String {
    let mut text = String::from("#include \"check.h\"\n\nvoid nulls(void) {\n");
    for (name, result, parameters) in declared() {
        let with = |error: &str| {
            let words = parameters.iter().map(|kind| match kind.as_str() {
                "shx_error **" if !error.is_empty() => error.to_owned(),
                kind => format!("({kind}){{0}}"),
            });
            format!("{name}({})", words.collect::<Vec<_>>().join(", "))
        };
        let makes_one_of_nothing = parameters.is_empty();
        match result.as_str() {
            // What it gives is not how the call itself went.
            "shx_status" if name == "shx_error_status" => {}
            "shx_status" => {
                text += &format!("    CHECK({} == SHX_STATUS_INVALID_ARGUMENT);\n", with(""));
                if parameters.iter().any(|kind| kind == "shx_error **") {
                    text +=
                        &format!("    FAILS(SHX_STATUS_INVALID_ARGUMENT, \" is \", {});\n", with("&error"));
                }
            }
            "void" => text += &format!("    {};\n", with("")),
            "shx_view" => text += &format!("    CHECK({}.len == 0 && {}.data);\n", with(""), with("")),
            _ if makes_one_of_nothing => {}
            "bool" => text += &format!("    CHECK(!{});\n", with("")),
            // A name, and there is one for every number.
            "const char *" => text += &format!("    CHECK({}[0]);\n", with("")),
            kind if kind.ends_with('*') => text += &format!("    CHECK(!{});\n", with("")),
            _ => text += &format!("    (void){};\n", with("")),
        }
    }
    text + "}\n"
}

static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();

extern "C" fn remove() {
    if let Some(dir) = MADE.get().and_then(|made| made.as_ref()?.parent()) {
        let _ = fs::remove_dir_all(dir);
    }
}

/// The program, compiled once for all tests; `None` without a compiler.
fn battery() -> Option<&'static Path> {
    let made = MADE.get_or_init(|| {
        Command::new("cc").arg("--version").output().ok()?;
        let dir = tempfile::tempdir().unwrap().keep();
        // SAFETY: the function takes nothing and gives nothing.
        unsafe { libc::atexit(remove) };
        fs::write(dir.join("nulls.c"), nulls()).unwrap();
        let from = source();
        let program = dir.join("battery");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g"]);
        compiler
            .args(words("SHX_CFLAGS"))
            .arg("-I")
            .arg(from.join("include"))
            .arg("-I")
            .arg(from.join("tests/programs/capi"));
        for file in ["main.c", "objects.c", "refusals.c", "hosts.c"] {
            compiler.arg(from.join("tests/programs/capi").join(file));
        }
        compiler.arg(dir.join("nulls.c")).arg(library()).args(["-lpthread", "-o"]).arg(&program);
        let output = compiler.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(program)
    });
    made.as_deref()
}

fn words(variable: &str) -> Vec<String> {
    let words = std::env::var(variable).unwrap_or_default();
    words.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn plays(part: &str) {
    let Some(program) = battery() else { skip!("no C compiler") };
    let mut line = words("SHX_UNDER");
    if part == "host-forked" && !(line.is_empty() && words("SHX_CFLAGS").is_empty()) {
        skip!("to a checker, what belongs to threads that a forked process does not have is lost there");
    }
    line.extend([program.display().to_string(), part.to_owned()]);
    let mut run = Command::new(&line[0]);
    run.args(&line[1..]).env("LD_LIBRARY_PATH", library().parent().unwrap());
    let output = run.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{part}: {}\n{said}", output.status);
    let out = String::from_utf8_lossy(&output.stdout).into_owned() + &said;
    assert!(out.contains(&format!("done {part}")), "{part}: {out}");
}

macro_rules! parts {
    ($($(#[$doc:meta])* $test:ident => $part:literal;)*) => {
        $($(#[$doc])* #[test] fn $test() { plays($part); })*
    };
}

// F2, F3, F4, F5; which other promises each part is about stands in the programs
parts! {
    every_function_takes_null => "nulls";
    a_foreground_run => "foreground";
    output_in_every_view => "output";
    a_spec_field_by_field => "spec";
    another_shell => "powershell";
    stopping_a_range => "stopping";
    firing_a_token => "aborting";
    keeping_a_late_command => "promotion";
    starting_by_argv => "spawning";
    confining_and_approving => "sandbox";
    contributing_to_the_environment => "environment";
    a_service_and_what_outlives_it => "service";
    handles_on_many_threads => "sharing";
    requests_that_are_refused => "refuse-requests";
    starts_that_fail => "refuse-starts";
    numbers_and_texts_that_are_refused => "refuse-values";
    a_host_with_default_sigpipe => "host-sigpipe";
    a_host_that_ignores_sigchld => "host-sigchld";
    a_host_with_all_signals_blocked => "host-blocked";
    a_host_with_small_stacks => "host-stack";
    a_host_that_forks => "host-forked";
    a_host_without_standard_streams => "host-closed";
}

// F1: C99 above, and C++
#[test]
fn the_header_is_cpp() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("main.cpp");
    fs::write(
        &file,
        "#include \"shell_executor.h\"\nint main() { return shx_str(shx_version()).len == 0; }\n",
    )
    .unwrap();
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-I"]);
    match compiler.arg(source().join("include")).arg(&file).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => skip!("no C++ compiler: {error}"),
    }
}

// F6: what is exported is what the header declares
#[test]
fn the_library_exports_the_header_and_nothing_else() {
    let listed = match Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output() {
        Ok(listed) => String::from_utf8(listed.stdout).unwrap(),
        Err(error) => skip!("no nm: {error}"),
    };
    let exported: BTreeSet<&str> = listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let declared = declared();
    let declared: BTreeSet<&str> = declared.iter().map(|(name, ..)| name.as_str()).collect();
    assert!(declared.len() > 150, "{declared:?}");
    assert_eq!(exported, declared);
}
