//! Output: the tail in memory, the whole in a file, and readers that see both as one.
//!
//! A command can print more than anybody wants in memory, print nothing for an hour, or print faster than it is read.
//! None of that may block it, kill it, or cost the host more than it has agreed to.
//!
//! # What is kept
//!
//! Each of the two streams is read until its end, whatever becomes of the bytes. The last
//! [`stdout_max_bytes`](crate::ExecSpec::stdout_max_bytes) of stdout and
//! [`stderr_max_bytes`](crate::ExecSpec::stderr_max_bytes) of stderr (64,000 by default) stay in memory, in a ring that
//! is only allocated when the stream speaks. Exactly as many bytes as the budget are not truncated; with one more, the
//! first one goes.
//!
//! With the first byte that would be dropped, the complete stream goes into a private file, and stays complete:
//! [`spill_path`](crate::CollectedOutput::spill_path). Its cap ([`Config::spill_max_bytes`](crate::Config::spill_max_bytes), 64 MiB by default) is the most
//! that it may hold; a stream that grows past it could no longer be complete, so the file is removed and its path never
//! told again. A full disk, a quota or a directory that somebody has removed cost the file and nothing else; the tail
//! and the command are untouched, and [`spill_error`](crate::CollectedOutput::spill_error) has the reason.
//!
//! ```
//! # use shell_executor::{BashExecutor, Config, ExecRequest, ShellExecutor, SubprocessService};
//! # let service = SubprocessService::new();
//! # let bash = BashExecutor::new(&service, Config::default())?;
//! let result = bash.run(bash.resolve(ExecRequest::new("seq 1 2000").stdout_max_bytes(10))?)?;
//! let stdout = &result.stdout;
//! assert_eq!((stdout.text.as_str(), stdout.total_bytes), ("1999\n2000\n", 8893));
//! assert_eq!(std::fs::metadata(stdout.spill_path.as_ref().unwrap()).unwrap().len(), 8893);
//! # Ok::<(), shell_executor::Error>(())
//! ```
//!
//! # The files
//!
//! They lie in one directory per service, which is made with mode 0700 when the first stream overflows, below
//! [`ServiceConfig::spill_root`](crate::ServiceConfig::spill_root); the files have random names and mode 0600, and are
//! created exclusively. They live until the service is disposed of, unless
//! [`keep_spill`](crate::ServiceConfig::keep_spill) keeps them. A directory left behind by a host that was killed is
//! removed when a later service starts, once the lock that its owner held is free: never because of its age. A path is
//! told only while the file stands there, is the very file that was written, and is complete.
//!
//! # Reading
//!
//! | view | gives | takes it away |
//! |---|---|---|
//! | [`result`](crate::Execution::result) | both tails, at the end | no |
//! | [`read_output`](crate::Execution::read_output) | what is new on both streams, as one text | yes |
//! | [`read_output_bytes`](crate::Execution::read_output_bytes), [`read_stream`](crate::Execution::read_stream) | the same as bytes, of both or one | yes, from the same place |
//! | [`observed`](crate::Execution::observed) | a stream from any offset on | no |
//!
//! All of them can be mixed, from any thread, while the command runs and for ever after. What has left memory is read
//! back from the spill file. Only what is in neither is lost, and the read then says `lossy` and has the whole of the
//! tail. Consecutive consuming reads neither repeat nor skip silently.
//!
//! [`wait_output`](crate::Execution::wait_output) blocks until there is something to consume, or the command has
//! settled; no view ever polls. The loop of a reader who wants everything:
//!
//! ```
//! # use shell_executor::{BashExecutor, Config, ExecRequest, ShellExecutor, SubprocessService};
//! # let service = SubprocessService::new();
//! # let bash = BashExecutor::new(&service, Config::default())?;
//! let job = bash.execute(bash.resolve(ExecRequest::new("echo a; echo b >&2; echo c"))?);
//! let mut all = String::new();
//! while job.wait_output(None) {
//!     all += &job.read_output().delta;
//! }
//! assert!(all.contains("a\n") && all.contains("[stderr]\nb\n") && all.contains("c\n"));
//! # Ok::<(), shell_executor::Error>(())
//! ```
//!
//! A host that passes everything on and would rather make the command wait than lose a byte asks for
//! [`backpressure`](crate::ExecRequest::backpressure). Then there is no spill file, and a host that stops reading stops
//! the command, as in a shell pipeline.
//!
//! # Text
//!
//! Commands print bytes; text is made of them at the edge. It is UTF-8: a tail that begins inside a character begins at
//! the next one, an incremental read leaves a character that is not complete for the next read, and what is not UTF-8
//! is U+FFFD in text and exact in bytes and on disk. What is incomplete when the stream ends is one U+FFFD.
//!
//! # The end
//!
//! The last byte before the exit is in the result, however quick the command was. What a descendant that still holds
//! the stream prints after the result was given goes on into the same ring and the same file, and can be read from the
//! handle; see [`range`](super::range) for how long the settlement waits for such a one.
