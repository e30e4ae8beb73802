//! The collector: takes one stream's bytes as they are read, into the ring and, once they overflow it, into a file.

use super::shared::{Output, OutputStream};
use super::spill::{Spill, SpillDir};
use crate::error::reason;
use std::io;

/// The writing side of one collected stream. It belongs to the supervisor, which reads the pipe.
#[derive(Debug)]
pub(crate) struct Collector {
    channel: OutputStream,
    limit: u64,
    /// How large a file may become; `None` for no file.
    cap: Option<u64>,
    total: u64,
    file: File,
}

#[derive(Debug)]
enum File {
    NotNeeded,
    Writing(Spill),
    /// It failed, was too large, or was never wanted. The stream goes on without.
    GivenUp,
}

impl Collector {
    pub(crate) fn new(channel: OutputStream, limit: usize, cap: Option<u64>) -> Collector {
        Collector { channel, limit: limit as u64, cap, total: 0, file: File::NotNeeded }
    }

    pub(crate) fn channel(&self) -> OutputStream {
        self.channel
    }

    /// Takes the next bytes of the stream.
    ///
    /// The file is written first and the ring second, in one step with the announcement of the file: a reader that finds
    /// bytes gone from the ring finds the file that has them.
    pub(crate) fn take(&mut self, output: &Output, dir: &SpillDir, chunk: &[u8]) {
        let before = self.total;
        self.total += chunk.len() as u64;
        let failure =
            if self.total > self.limit { self.spill(output, dir, before, chunk).err() } else { None };
        let view = match &self.file {
            File::Writing(spill) => Some(spill.view()),
            File::NotNeeded | File::GivenUp => None,
        };
        output.update(|streams| {
            let stream = streams.of_mut(self.channel);
            stream.ring.push(chunk);
            stream.spill = view;
            if let Some(error) = failure {
                stream.spill_error = Some(error);
            }
        });
    }

    /// Best effort: whatever fails costs the file and nothing else. The reason is given once, when it does.
    fn spill(&mut self, output: &Output, dir: &SpillDir, before: u64, chunk: &[u8]) -> Result<(), String> {
        let attempt = match &mut self.file {
            File::GivenUp => return Ok(()),
            File::Writing(spill) => spill.append(chunk),
            File::NotNeeded => self.begin(output, dir, before, chunk),
        };
        attempt.map_err(|error| {
            // Dropping the spill removes its file, which can no longer become complete.
            self.file = File::GivenUp;
            reason(&error)
        })
    }

    /// The first overflow: all that the ring holds, which is the stream so far, and then the chunk.
    fn begin(&mut self, output: &Output, dir: &SpillDir, before: u64, chunk: &[u8]) -> io::Result<()> {
        let Some(cap) = self.cap else {
            self.file = File::GivenUp;
            return Ok(());
        };
        let so_far = output.lock().of(self.channel).ring.copy_from(0);
        debug_assert_eq!(so_far.len() as u64, before, "nothing has left the ring before its first overflow");
        let mut spill = Spill::create(dir, self.channel, cap)?;
        spill.append(&so_far)?;
        spill.append(chunk)?;
        self.file = File::Writing(spill);
        Ok(())
    }

    /// The stream is over: the file, if there is one, is complete and stays.
    pub(crate) fn finish(self, output: &Output) {
        if let File::Writing(spill) = self.file {
            if let Err(error) = spill.finish() {
                let reason = reason(&error);
                output.update(|streams| {
                    let stream = streams.of_mut(self.channel);
                    stream.spill = None;
                    stream.spill_error = Some(reason);
                });
            }
        }
        output.end(self.channel);
    }
}
