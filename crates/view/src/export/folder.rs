//! A folder with the page and tiles, for any server of static files.

use crate::ask::plots::{self, Plotted};
use crate::ask::questions::{ListKind, list};
use crate::export::apart::Apart;
use crate::export::pack::Packer;
use crate::export::{task_numbers, task_rows};
use crate::index::store::FEW_CHECKPOINTS;
use crate::index::viewed::{NotReady, Viewed};
use crate::index::{Index, SumBy};
use crate::serve::page;
use crate::serve::site::{SHORTER, Site};
use sched::Dur;
use serde_json::Value;
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
    /// Gives the page and packs of tiles, as the files of a folder, to `write` by their paths in it: of each trace the tiles
    /// of its index, and of a window, in nanoseconds from the start of the trace, finer ones, as far as they show more events
    /// apart. `view`: the part of the page's address that a visitor without one sees.
    pub fn export(
        &self,
        window: Option<(u64, u64)>,
        view: &str,
        write: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
    ) -> io::Result<Exported> {
        // These read the traces as their commands do. They come before the indexes are in memory, so that no two of the large ones are there at once.
        for (number, trace) in self.traces().iter().enumerate() {
            let failed = |NotReady(why)| io::Error::other(format!("{}: {why}", trace.name()));
            self.main_findings(number).map_err(failed)?;
            self.missed(number).map_err(failed)?;
        }
        self.read_all(FEW_CHECKPOINTS);
        let mut exported = Exported::default();
        let mut each = |name: &str, bytes: &[u8]| {
            exported.files += 1;
            exported.bytes += bytes.len() as u64;
            write(name, bytes)
        };
        for (name, text) in page::FILES {
            each(name, text.as_bytes())?;
        }
        each("traces.json", &self.list(Some(view)))?;
        self.each_trace_file(window, &mut each)?;
        match self.traces().iter().find(|trace| !trace.is_whole()) {
            Some(trace) => Err(io::Error::other(format!("{}: {SHORTER}", trace.name()))),
            None => Ok(exported),
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
                let bytes = tiles(trace, &apart, &mut packer)?;
                let has_tasks = task_numbers::are_kept(trace, apart.events()).map_err(failed)?;
                let room = if has_tasks { bytes / task_rows::SHARE } else { 0 };
                let finest = task_rows::pack(trace, room, &mut packer)?;
                self.blocks(number, trace, window, &mut packer)?;
                (packer.finish()?, finest)
            };
            let (packs, finest) = packs;
            each(&format!("t/{number}/packs.json"), &packs)?;
            let facts = task_rows::facts(trace, finest).map_err(failed)?;
            each(&format!("t/{number}/rows.json"), facts.to_string().as_bytes())?;
            let kept = task_numbers::are_kept(trace, apart.events()).map_err(failed)?;
            let numbers = if kept { task_numbers::answer(trace, window).map_err(failed)? } else { Value::Null };
            each(&format!("t/{number}/tasks.json"), numbers.to_string().as_bytes())?;
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
    let of = |levels: (u32, u32)| Apart::new(zero, shape.shift(), levels);
    let all = trace.judged_with(of((base, top)))?;
    let Some((from, to)) = window else { return Ok(all) };
    let finest = base.min((shape.covering(to - from) + shape.shift()).saturating_sub(DEPTH));
    let at = |ns: u64| zero.after(Dur(ns)).min(end);
    let finer = store.window(at(from), at(to), of((finest, top)));
    Ok(all.and(finer.map_err(|e| NotReady(e.to_string()))?))
}

/// Packs the tiles, the coarsest first, and returns their bytes.
fn tiles(trace: &Viewed<'_>, apart: &Apart, packer: &mut Packer<'_>) -> io::Result<usize> {
    let mut bytes = 0;
    let failed = |NotReady(why)| io::Error::other(why);
    let store = trace.store().map_err(failed)?;
    let (base, top) = store.index().levels();
    for level in (apart.finest().max(base)..=top).rev() {
        for index in apart.of_level(level) {
            let found = tiles_at(trace, level, *index).map_err(failed)?;
            bytes += found.iter().map(|(_, tile)| tile.len()).sum::<usize>();
            packer.add("tiles", (level, *index), &found)?;
        }
    }
    for (levels, whole) in finer_levels(apart.finest(), (base, top), trace) {
        let mut stretches: Vec<u64> = apart.of_level(levels.1).iter().map(|tile| tile >> (whole - levels.1)).collect();
        stretches.dedup();
        for stretch in stretches {
            let part = store.stretch((levels.0, whole), stretch);
            let part = part.map_err(|error| io::Error::other(error.to_string()))?;
            for level in (levels.0..=levels.1).rev() {
                let first = stretch << (whole - level);
                let end = (stretch + 1) << (whole - level);
                for index in apart.of_level(level).iter().filter(|index| (first..end).contains(*index)) {
                    let found = tiles_within(trace, (store.index(), &part), level, (*index, index - first));
                    let found = found.map_err(failed)?;
                    bytes += found.iter().map(|(_, tile)| tile.len()).sum::<usize>();
                    packer.add("tiles", (level, *index), &found)?;
                }
            }
        }
    }
    Ok(bytes)
}

/// The columns of all lanes together that one reading makes on its finest level, at most: with those of coarser levels some 10 MB.
const CELLS: u64 = 1 << 19;

/// The levels from `finest` up to that below those of the index, in groups that are read together: the finest of each and its coarsest, with the level
/// of the tiles that are read as a whole for it. The coarsest group comes first.
fn finer_levels(finest: u32, (base, top): (u32, u32), trace: &Viewed<'_>) -> Vec<((u32, u32), u32)> {
    let cells = trace.shape().columns * (trace.cpus().len() as u64 + 1);
    let more = (CELLS / cells).max(1).ilog2();
    let mut groups: Vec<((u32, u32), u32)> = Vec::new();
    let mut next = finest;
    while next < base {
        let whole = (next + more).min(top);
        let coarsest = whole.min(base - 1);
        groups.push(((next, coarsest), whole));
        next = coarsest + 1;
    }
    groups.reverse();
    groups
}

/// The tiles at one level and place, with their names.
fn tiles_at(trace: &Viewed<'_>, level: u32, index: u64) -> Result<Vec<(String, Vec<u8>)>, NotReady> {
    named(trace, (level, index), |kind| match kind {
        TileOf::Lanes(group) => trace.lanes(level, group, index),
        TileOf::Sums(sum) => trace.sums(level, sum, index, SumBy::Task),
        TileOf::Machine => trace.machine(level, index),
    })
}

/// The same from the columns of a part, in which the place has another number.
fn tiles_within(
    trace: &Viewed<'_>,
    (all, part): (&Index, &Index),
    level: u32,
    (index, within): (u64, u64),
) -> Result<Vec<(String, Vec<u8>)>, NotReady> {
    named(trace, (level, index), |kind| match kind {
        TileOf::Lanes(group) => Ok(part.lanes(level, group, within)),
        TileOf::Sums(sum) => trace.sums_by(sum, |lanes| Ok(part.sum(level, lanes, within, SumBy::Task))),
        TileOf::Machine => Ok(Some(all.machine_within(part, level, (index, within)))),
    })
}

/// The kind of a tile, with the number of its group.
enum TileOf {
    Lanes(usize),
    Sums(usize),
    Machine,
}

/// The tiles that there are at a level and place, with their names.
fn named(
    trace: &Viewed<'_>,
    (level, index): (u32, u64),
    tile: impl Fn(TileOf) -> Result<Option<Vec<u8>>, NotReady>,
) -> Result<Vec<(String, Vec<u8>)>, NotReady> {
    let mut tiles = Vec::new();
    for group in 0..trace.shape().groups(trace.cpus().len()) {
        let tile = tile(TileOf::Lanes(group))?;
        tiles.extend(tile.map(|tile| (format!("lanes/{level}/{group}/{index}.bin"), tile)));
    }
    for sum in 0..trace.folds().last().map_or(0, |fold| fold.tile + 1) {
        let tile = tile(TileOf::Sums(sum))?;
        tiles.extend(tile.map(|tile| (format!("sums/{level}/{sum}/{index}.bin"), tile)));
    }
    tiles.extend(tile(TileOf::Machine)?.map(|tile| (format!("machine/{level}/{index}.bin"), tile)));
    Ok(tiles)
}
