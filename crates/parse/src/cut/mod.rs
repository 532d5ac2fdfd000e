//! Writes a part of a trace as a trace.dat of its own: with the pages of a window, and with a note of what precedes them
//! (`docs/trace-dat.md`, section 12). The part of a trace.dat has its version, byte order and compression; for a recording of another
//! format, and for another version, all but the data is made anew (`made.rs`), and records without pages get some (`records.rs`).

mod allowed;
mod anonymous;
mod data;
mod made;
mod page;
mod records;
mod stats;
mod version_6;
mod version_7;
mod writer;

use crate::bytes::Endian;
use crate::decode::cpu_offline::Behind;
use crate::error::Error;
use crate::file::chunk::Codec;
use crate::file::header::PART;
use crate::trace::Trace;
use crate::trace::part::{Note, ReadingOptions, Sampled, carried};
use anonymous::buffer_alias;
use sched::{Comm, Cpu, Past, Pid, Ts};
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;
use writer::Writer;

/// The part to be written.
#[derive(Clone, Debug)]
pub struct CutPart {
    /// The state before it, its start and its end.
    pub past: Past,
    /// The times at which CPUs went offline in it.
    pub offline: Vec<(Cpu, Ts)>,
    /// Whether the kernel's symbols are left out: stacks and functions in the part have no names then.
    pub without_symbols: bool,
    /// The version of the file; that of the trace where none is asked for, and 7 for a recording of another format.
    pub version: Option<DatVersion>,
    /// Names of tasks at the end, for a recording of another format. Those that its recorder saved go before.
    pub names: Vec<(Pid, Comm)>,
}

/// A version of the format trace.dat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatVersion {
    /// Parts in a fixed order, not compressed: what every trace-cmd reads.
    Six,
    /// Sections, compressed: what trace-cmd reads since 3.0.
    Seven,
}

/// The names that stand for others in an anonymous part.
pub use anonymous::{Aliases, Rewriter};

/// The reason why a part of a trace cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CutError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] Error),
    /// The part cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The note on the state before the part exceeds its limit, since the trace has too many tasks.
    #[error("the state before the part takes {bytes} bytes, more than a part may have: there are too many tasks")]
    TooLarge {
        /// Size of the note, in bytes.
        bytes: usize,
    },
}

/// The file that is written.
struct CutFile<W> {
    file: W,
    endian: Endian,
    /// The number of bytes so far.
    at: u64,
}

impl<W: Write + Seek> CutFile<W> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.at = self.at.saturating_add(bytes.len() as u64);
        Ok(())
    }

    fn number(&mut self, value: u64, size: usize) -> io::Result<()> {
        let mut number = Vec::new();
        self.endian.put(&mut number, value, size);
        self.bytes(&number)
    }

    /// Fills up to a multiple of this number of bytes.
    fn align(&mut self, to: usize) -> io::Result<()> {
        let aligned = self.at.checked_next_multiple_of(to.max(1) as u64).unwrap_or(self.at);
        let gap = usize::try_from(aligned.saturating_sub(self.at)).unwrap_or(0);
        self.bytes(&vec![0; gap])
    }

    /// Writes a number in the place of zeroes.
    fn patch(&mut self, at: u64, value: u64, size: usize) -> io::Result<()> {
        let mut number = Vec::new();
        self.endian.put(&mut number, value, size);
        self.patch_bytes(at, &number)
    }

    /// Writes bytes in the place of zeroes.
    fn patch_bytes(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)?;
        self.file.seek(SeekFrom::Start(self.at)).map(drop)
    }
}

impl Trace {
    /// Writes a part of the trace to `file`, which is empty; with `aliases` in place of all names and texts.
    pub fn cut<W: Write + Seek>(&self, part: CutPart, aliases: Option<&mut Aliases>, file: W) -> Result<(), CutError> {
        let mut aliases = aliases;
        let CutPart { without_symbols, version, ref names, .. } = part;
        let more_names = names.clone();
        let own = if self.header().version.number == 6 { DatVersion::Six } else { DatVersion::Seven };
        let own = if self.origin().is_some() { DatVersion::Seven } else { own };
        let version = version.unwrap_or(own);
        let is_made = self.origin().is_some() || version != own;
        let note = self.note_of(part, aliases.as_deref_mut())?;
        let text = serde_json::to_vec(&note).map_err(io::Error::other)?;
        if text.len() as u64 > crate::limits::PART_NOTE {
            return Err(CutError::TooLarge { bytes: text.len() });
        }
        let out = CutFile { file, endian: self.endian(), at: 0 };
        let rewriter = aliases.map(|aliases| Rewriter::new(self, aliases));
        let codec = match version {
            DatVersion::Six => None,
            DatVersion::Seven if is_made => Some(Codec::Zstd),
            DatVersion::Seven => self.header().codec,
        };
        let mut writer = Writer {
            trace: self,
            past: &note.past,
            note: &text,
            rewriter,
            without_symbols,
            is_made,
            codec,
            layout: if self.origin().is_some() { made::layout(self) } else { self.header().layout },
            options: made::options(self),
            more_names: &more_names,
            out,
        };
        match version {
            DatVersion::Six => writer.version_6()?,
            DatVersion::Seven => writer.version_7()?,
        }
        Ok(writer.out.file.flush()?)
    }

    fn note_of(&self, part: CutPart, mut aliases: Option<&mut Aliases>) -> Result<Note, CutError> {
        let CutPart { past, offline, .. } = part;
        let is_anonymous = aliases.is_some();
        let (all_sleeps, sleeps) = self.events()?.sleeps_within(past.from, past.to)?;
        let names = (0..self.info().buffers.len()).map(|buffer| {
            let ids = (0..=u16::MAX).filter(|id| self.occurs_in(buffer, *id)).collect();
            let name = self.buffer_name(buffer);
            (if is_anonymous { buffer_alias(self, name) } else { name.to_owned() }, ids)
        });
        let sampled = self.sampled_runs().into_iter().map(|((pid, comm), time)| {
            let comm = aliases.as_mut().map_or(comm, |aliases| aliases.of(comm));
            Sampled { pid, comm, ns: time.0 }
        });
        Ok(Note {
            sampled: sampled.collect(),
            reading: ReadingOptions::of(self.options()).with_buffer(&|name| match is_anonymous {
                true => buffer_alias(self, name),
                false => name.to_owned(),
            }),
            selected: self.selected_buffers().to_vec(),
            recorded: self.recorded(),
            observed: self.observed(),
            occurring: names.collect(),
            encoding: self.states().encoding(),
            offline,
            is_behind_stoppers_unknown: self.behind_a_stopper() == Behind::Unknown,
            all_sleeps,
            sleeps,
            past: Arc::new(past),
            carried: carried(self),
            topology: self.topology().cloned().unwrap_or_default(),
        })
    }
}
