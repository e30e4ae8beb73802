//! The child program of the tests: what a shell cannot do exactly, one word for each.
//!
//! Whatever it does, it is gone after five minutes.

#![allow(unsafe_code, reason = "signals, forks and descriptors as the system has them")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: alarm takes an integer. Its signal ends this program, which is the point.
    unsafe { libc::alarm(300) };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["write", stream, total, chunks, what] => write(stream, total, chunks, what),
        ["arguments", rest @ ..] => arguments_as_lines(rest),
        ["descriptors"] => descriptors(),
        ["ignore-term", ..] => ignore_term(),
        ["daemon", held] => daemon(*held == "hold"),
        #[cfg(target_os = "linux")]
        ["headless", term] => headless(*term == "ignore-term"),
        ["copy"] => copy(),
        _ => {
            eprintln!(
                "usage: write out|err TOTAL CHUNK[,CHUNK…] bytes|text | arguments … | descriptors | \
                 ignore-term … | daemon hold|close | headless take-term|ignore-term | copy"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("test-child: {error}");
            ExitCode::FAILURE
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.parse().map_err(|_| io::Error::other(format!("{text:?} is no number")))
}

/// Writes `total` bytes in chunks of the sizes given, which are repeated: one `write` each, and none is buffered.
fn write(stream: &str, total: &str, chunks: &str, what: &str) -> io::Result<()> {
    let total: usize = number(total)?;
    let sizes = chunks.split(',').map(number).collect::<io::Result<Vec<usize>>>()?;
    let period: Vec<u8> = match what {
        "text" => "a\u{e9}\u{20ac}\u{1f600}\n".bytes().collect(),
        _ => (0..251).collect(),
    };
    let descriptor = if stream == "err" { libc::STDERR_FILENO } else { libc::STDOUT_FILENO };
    let mut written = 0;
    for size in sizes.into_iter().cycle() {
        if written == total {
            return Ok(());
        }
        let size = size.clamp(1, total - written);
        let chunk: Vec<u8> = (written..written + size).map(|offset| period[offset % period.len()]).collect();
        // SAFETY: the chunk is readable for its length.
        let count = unsafe { libc::write(descriptor, chunk.as_ptr().cast(), chunk.len()) };
        written += usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    }
    Ok(())
}

/// The arguments, one a line, as Rust would quote them.
fn arguments_as_lines(words: &[&str]) -> io::Result<()> {
    for word in words {
        println!("{word:?}");
    }
    Ok(())
}

/// The numbers of the open descriptors, by asking each instead of opening a directory.
fn descriptors() -> io::Result<()> {
    let open: Vec<String> = (0..4096)
        .filter(|&fd| {
            // SAFETY: F_GETFD takes no pointer; a number that is not open gives -1.
            unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
        })
        .map(|fd| fd.to_string())
        .collect();
    println!("{}", open.join(" "));
    Ok(())
}

/// Says `ready` once SIGTERM is ignored, and stays. Further words are for finding it in the process table.
fn ignore_term() -> io::Result<()> {
    // SAFETY: SIG_IGN is a disposition of the system's own.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    println!("ready");
    io::stdout().flush()?;
    stay()
}

fn stay() -> io::Result<()> {
    loop {
        // SAFETY: pause takes nothing.
        unsafe { libc::pause() };
    }
}

/// Becomes a daemon by the book: a fork, a session of its own, another fork. Says the daemon's number and ends; the daemon
/// stays, with the standard streams still open when it is to `hold` them.
fn daemon(hold: bool) -> io::Result<()> {
    let (mut done, told) = pipe()?;
    if fork()? != 0 {
        drop(told);
        // Not before the daemon is what it is to be: it and its parent hold the pipe's other end until then.
        done.read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    drop(done);
    // SAFETY: setsid takes nothing.
    unsafe { libc::setsid() };
    if fork()? != 0 {
        std::process::exit(0);
    }
    // SAFETY: as in `main`; an alarm is not inherited through fork.
    unsafe { libc::alarm(300) };
    println!("{}", std::process::id());
    io::stdout().flush()?;
    if !hold {
        for fd in 0..3 {
            // SAFETY: closes a descriptor that nothing below uses.
            unsafe { libc::close(fd) };
        }
    }
    drop(told);
    stay()
}

fn pipe() -> io::Result<(File, File)> {
    let mut ends = [-1; 2];
    // SAFETY: the array has room for both.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and nobody else's.
    let reading = unsafe { File::from_raw_fd(ends[0]) };
    // SAFETY: just made, and nobody else's.
    Ok((reading, unsafe { File::from_raw_fd(ends[1]) }))
}

fn fork() -> io::Result<libc::pid_t> {
    // SAFETY: this program has one thread, so its copy may do all that it does.
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}

/// Says its number, and goes on in a second thread alone: the end of the first is not the end of the process, though the
/// process table calls it a zombie from then on.
#[cfg(target_os = "linux")]
fn headless(ignore_term: bool) -> io::Result<()> {
    if ignore_term {
        // SAFETY: SIG_IGN is a disposition of the system's own.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    }
    println!("{}", std::process::id());
    io::stdout().flush()?;
    std::thread::spawn(stay);
    // SAFETY: ends this thread alone, and drops nothing that the other uses.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    Err(io::Error::last_os_error())
}

/// Stdin to stdout, all of it.
fn copy() -> io::Result<()> {
    let mut all = Vec::new();
    io::stdin().read_to_end(&mut all)?;
    io::stdout().write_all(&all)?;
    io::stdout().flush()
}
