//! A folder with the page and tiles, for any server of static files.

use crate::page;
use crate::plots;
use crate::site::Site;
use crate::viewed::{NotReady, Viewed};
use std::fs;
use std::io;
use std::path::Path;

/// The content of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The number of files.
    pub files: u64,
    /// The number of bytes of all of them.
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

    /// Writes the page and the tiles into a folder: of each trace all levels of its index, and of a window, in
    /// nanoseconds from the start of the trace, finer ones. [`Site::size_of_export`] comes first.
    pub fn export(&self, folder: &Path, window: Option<(u64, u64)>) -> io::Result<()> {
        self.each_file(window, &mut |name, bytes| {
            let path = folder.join(name);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, bytes)
        })
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
        for (number, trace) in self.traces().iter().enumerate() {
            let failed = |NotReady(why)| io::Error::other(format!("{}: {why}", trace.name()));
            let finest = finest(trace, window).map_err(failed)?;
            each(&format!("t/{number}/head.json"), &trace.head(finest).map_err(failed)?)?;
            tiles(trace, window, finest, &mut |name, tile| each(&format!("t/{number}/{name}"), tile))?;
            self.plots(number, trace, window, &mut |name, block| each(&format!("t/{number}/plot/{name}"), block))?;
        }
        Ok(())
    }
}

impl Site<'_> {
    /// Calls `each` with the name and the content of each file of the figures of a trace.
    fn plots(
        &self,
        number: usize,
        trace: &Viewed<'_>,
        window: Option<(u64, u64)>,
        each: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (finest, blocks) = plots::exported(trace, window);
        for place in 0..self.specifications() {
            let plotted = self.plot(number, place).map_err(|NotReady(why)| io::Error::other(why))?;
            let levels = (finest, plots::levels(trace).1);
            each(&format!("{place}.json"), plotted.head(levels).to_string().as_bytes())?;
            for (level, index) in &blocks {
                if let Some(block) = plotted.block(trace.extent(), *level, *index) {
                    each(&format!("{place}/{level}/{index}.json"), block.to_string().as_bytes())?;
                }
            }
        }
        Ok(())
    }
}

/// The finest level that is exported.
fn finest(trace: &Viewed<'_>, window: Option<(u64, u64)>) -> Result<u32, NotReady> {
    let (base, shape) = (trace.store()?.index().levels().0, trace.shape());
    let Some((from, to)) = window else { return Ok(base) };
    Ok(base.min((shape.covering(to - from) + shape.shift()).saturating_sub(DEPTH)))
}

/// Calls `each` with the name and the content of each tile.
fn tiles(
    trace: &Viewed<'_>,
    window: Option<(u64, u64)>,
    finest: u32,
    each: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let failed = |NotReady(why)| io::Error::other(why);
    let store = trace.store().map_err(failed)?;
    let (base, top) = store.index().levels();
    let span = trace.span();
    let shape = trace.shape();
    let groups = shape.groups(store.index().cpus().len());
    let sums = trace.folds().last().map_or(0, |fold| fold.tile + 1);
    for level in finest..=top {
        let (from, to) = window.filter(|_| level < base).map_or((0, span), |(from, to)| (from, to.min(span)));
        let shift = level + shape.shift();
        for index in from >> shift..=to >> shift {
            for group in 0..groups {
                if let Some(tile) = trace.lanes(level, group, index).map_err(failed)? {
                    each(&format!("lanes/{level}/{group}/{index}.bin"), &tile)?;
                }
            }
            for sum in 0..sums {
                if let Some(tile) = trace.sums(level, sum, index).map_err(failed)? {
                    each(&format!("sums/{level}/{sum}/{index}.bin"), &tile)?;
                }
            }
            if let Some(tile) = trace.machine(level, index).map_err(failed)? {
                each(&format!("machine/{level}/{index}.bin"), &tile)?;
            }
        }
    }
    Ok(())
}
