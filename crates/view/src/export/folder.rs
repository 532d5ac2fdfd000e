//! A folder with the page and tiles, for any server of static files.

use crate::ask::plots::{self, Plotted};
use crate::ask::questions::{ListKind, list};
use crate::export::apart::Apart;
use crate::export::pack::Packer;
use crate::index::viewed::{NotReady, Viewed};
use crate::serve::page;
use crate::serve::site::{SHORTER, Site};
use sched::{Dur, Ts};
use std::io;
use std::sync::Arc;

/// The content of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The number of files in the folder.
    pub files: u64,
    /// The number of bytes of all files together.
    pub bytes: u64,
}

/// A window is exported with this power of two as its number of columns: 65,536.
const DEPTH: u32 = 16;

impl Site<'_> {
    /// Reads the traces, and gives the size of the folder that [`Site::export`] would write.
    pub fn size_of_export(&self, window: Option<(u64, u64)>) -> io::Result<Exported> {
        self.read_all();
        let mut exported = Exported::default();
        self.each_file(window, &mut |_, bytes| {
            exported.files += 1;
            exported.bytes += bytes.len() as u64;
            Ok(())
        })?;
        Ok(exported)
    }

    /// Gives the page and packs of tiles, as the files of a folder, to `write` by their paths in it: of each trace the tiles
    /// of its index, and of a window, in nanoseconds from the start of the trace, finer ones, as far as they show more events
    /// apart.
    /// [`Site::size_of_export`] comes first.
    pub fn export(
        &self,
        window: Option<(u64, u64)>,
        write: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.each_file(window, write)
    }

    /// Calls `each` with the name and the content of each file of the folder.
    fn each_file(
        &self,
        window: Option<(u64, u64)>,
        each: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        for (name, text) in page::FILES {
            each(name, text.as_bytes())?;
        }
        each("traces.json", &self.list(true))?;
        self.each_trace_file(window, each)?;
        match self.traces().iter().find(|trace| !trace.is_whole()) {
            Some(trace) => Err(io::Error::other(format!("{}: {SHORTER}", trace.name()))),
            None => Ok(()),
        }
    }

    /// Calls `each` with the name and the content of each file of the traces.
    fn each_trace_file(
        &self,
        window: Option<(u64, u64)>,
        each: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        for (number, trace) in self.traces().iter().enumerate() {
            let failed = |NotReady(why)| io::Error::other(format!("{}: {why}", trace.name()));
            let apart = apart(trace, window).map_err(failed)?;
            let finest = apart.finest();
            each(&format!("t/{number}/head.json"), &trace.head(finest).map_err(failed)?)?;
            let packs = {
                let mut put = |pack: u32, bytes: &[u8]| each(&format!("t/{number}/packs/{pack}.bin"), bytes);
                let mut packer = Packer::new(&mut put);
                tiles(trace, &apart, &mut packer)?;
                self.blocks(number, trace, window, &mut packer)?;
                packer.finish()?
            };
            each(&format!("t/{number}/packs.json"), &packs)?;
            for kind in ListKind::ALL {
                let list = list(trace, kind, &|| self.missed(number)).map_err(failed)?;
                each(&format!("t/{number}/list/{}.json", kind.name()), list.to_string().as_bytes())?;
            }
            let findings = self.findings(number).map_err(failed)?;
            each(&format!("t/{number}/findings.json"), findings.to_string().as_bytes())?;
            let main = self.main_findings(number).map_err(failed)?;
            each(&format!("t/{number}/main.json"), main.to_string().as_bytes())?;
            let groups = self.task_groups(number).map_err(failed)?;
            each(&format!("t/{number}/groups.json"), groups.to_string().as_bytes())?;
            for place in 0..self.specifications() {
                let levels = (plots::exported(trace, window).0, plots::levels(trace).1);
                let head = self.figure(number, place)?.head(levels).to_string();
                each(&format!("t/{number}/plot/{place}.json"), head.as_bytes())?;
            }
        }
        Ok(())
    }

    /// The figure of a specification.
    fn figure(&self, number: usize, place: usize) -> io::Result<Arc<Plotted>> {
        self.plot(number, place).map_err(|NotReady(why)| io::Error::other(why))
    }

    /// Packs the blocks of the figures of a trace.
    fn blocks(
        &self,
        number: usize,
        trace: &Viewed<'_>,
        window: Option<(u64, u64)>,
        packer: &mut Packer<'_>,
    ) -> io::Result<()> {
        for place in 0..self.specifications() {
            let plotted = self.figure(number, place)?;
            for (level, index) in plots::exported(trace, window).1 {
                let block = plotted.block(trace.extent(), level, index).map(|block| block.to_string().into_bytes());
                let named = block.map(|block| (format!("plot/{place}/{level}/{index}.json"), block));
                packer.add(&format!("plot/{place}"), (level, index), named.as_slice())?;
            }
        }
        Ok(())
    }
}

/// The tiles that are exported: those that show the events apart, on the levels of the index of all of the trace, and on
/// finer ones of a window. A coarser tile stands in for one that is left out.
fn apart(trace: &Viewed<'_>, window: Option<(u64, u64)>) -> Result<Apart, NotReady> {
    let (store, shape, (zero, end)) = (trace.store()?, trace.shape(), trace.extent());
    let (base, top) = store.index().levels();
    let follow = |levels: (u32, u32), from: Ts, to: Ts| {
        let found = store.window(from, to, Apart::new(zero, shape.shift(), levels));
        found.map_err(|e| NotReady(e.to_string()))
    };
    let all = follow((base, top), zero, end)?;
    let Some((from, to)) = window else { return Ok(all) };
    let finest = base.min((shape.covering(to - from) + shape.shift()).saturating_sub(DEPTH));
    let at = |ns: u64| zero.after(Dur(ns)).min(end);
    Ok(all.and(follow((finest, top), at(from), at(to))?))
}

/// Packs the tiles, the coarsest first.
fn tiles(trace: &Viewed<'_>, apart: &Apart, packer: &mut Packer<'_>) -> io::Result<()> {
    let failed = |NotReady(why)| io::Error::other(why);
    let top = trace.store().map_err(failed)?.index().levels().1;
    for level in (apart.finest()..=top).rev() {
        for index in apart.of_level(level) {
            packer.add("tiles", (level, *index), &tiles_at(trace, level, *index).map_err(failed)?)?;
        }
    }
    Ok(())
}

/// The tiles at one level and place, with their names.
fn tiles_at(trace: &Viewed<'_>, level: u32, index: u64) -> Result<Vec<(String, Vec<u8>)>, NotReady> {
    let mut tiles = Vec::new();
    let groups = trace.shape().groups(trace.cpus().len());
    let sums = trace.folds().last().map_or(0, |fold| fold.tile + 1);
    for group in 0..groups {
        let tile = trace.lanes(level, group, index)?;
        tiles.extend(tile.map(|tile| (format!("lanes/{level}/{group}/{index}.bin"), tile)));
    }
    for sum in 0..sums {
        let tile = trace.sums(level, sum, index)?;
        tiles.extend(tile.map(|tile| (format!("sums/{level}/{sum}/{index}.bin"), tile)));
    }
    let machine = trace.machine(level, index)?;
    tiles.extend(machine.map(|tile| (format!("machine/{level}/{index}.bin"), tile)));
    Ok(tiles)
}
