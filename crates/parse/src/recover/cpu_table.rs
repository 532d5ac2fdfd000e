//! The CPUs of a buffer whose table is missing.
//!
//! The table of a version 7 file stands behind the data: in one that was cut the data of some CPUs are left, and
//! their CPUs are not named. They follow one another in the order of the CPUs, each from the start of a page on, and
//! CPUs without data are left out. Compressed data have their own ends; others end where time steps back,
//! or where the idle task is that of another CPU. Its name shows whose they are: `swapper/3` stands in every switch
//! to it or away from it. A CPU that never idled is presumed to be the next one.

use crate::bytes::Endian;
use crate::file::chunk::{self, Chunks, Codec};
use crate::file::header::{CpuData, Untabled};
use crate::file::page_layout::PageLayout;
use crate::file::source::Source;
use crate::issue::FileIssue;
use crate::limits;
use crate::ring::page::RingPage;
use sched::topology::format_cpu_list;
use sched::{Cpu, Diagnostics};
use std::ops::Range;

/// Data begin at a multiple of this, or of the machine's larger pages.
const PAGE: u64 = 4096;

/// Number of chunks of a CPU that are searched for its idle task.
const SEARCHED: usize = 64;

/// The data of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuStretch {
    at: u64,
    size: u64,
    is_cut: bool,
    /// Whose idle task is in it.
    cpu: Option<u32>,
}

/// The data of each CPU; `codec`, if they are compressed.
pub(crate) fn find(
    source: &Source,
    untabled: &Untabled,
    layout: &PageLayout,
    codec: Option<Codec>,
    diagnostics: &mut Diagnostics,
) -> Vec<CpuData> {
    let runs = match codec {
        Some(codec) => compressed(source, &untabled.place, codec, layout.endian),
        None => plain(source, untabled, layout),
    };
    let (rows, presumed) = number(&runs);
    diagnostics.add_many(FileIssue::BadCpu, runs.len().saturating_sub(rows.len()) as u64);
    for row in rows.iter().filter(|row| row.is_cut) {
        diagnostics.add_at(FileIssue::TruncatedData, || format!("CPU {}", row.cpu));
    }
    diagnostics.add_at(FileIssue::LostTable, || {
        let found: Vec<Cpu> = rows.iter().map(|row| Cpu(row.cpu)).collect();
        let presumed = match presumed.as_slice() {
            [] => String::new(),
            presumed => format!("; by their order alone: {}", format_cpu_list(presumed)),
        };
        format!("CPUs {}{presumed}", format_cpu_list(&found))
    });
    rows
}

fn compressed(source: &Source, place: &Range<u64>, codec: Codec, endian: Endian) -> Vec<CpuStretch> {
    let (mut compressed, mut bytes) = (Vec::new(), Vec::new());
    let mut runs = Vec::new();
    let mut at = place.start.next_multiple_of(PAGE);
    let mut expansion = limits::decompressed(source.size());
    while at < place.end {
        let found = Chunks::index(source, at..place.end, endian);
        let Some(last) = found.chunks.last() else {
            // Behind the data of a CPU the page is filled up with zeroes.
            if found.cut {
                break;
            }
            at = at.saturating_add(PAGE);
            continue;
        };
        let end = last.place().end;
        let cpu = found.chunks.iter().take(SEARCHED).find_map(|chunk| {
            expansion = expansion.checked_sub(chunk.size.into())?;
            chunk::decompress(codec, source.read(&chunk.place(), &mut compressed)?, chunk.size as usize, &mut bytes)?;
            idle_cpu(&bytes)
        });
        // Whether it is cut is found in the search for its chunks.
        runs.push(CpuStretch { at, size: end.saturating_sub(at), is_cut: false, cpu });
        at = end.next_multiple_of(PAGE);
    }
    runs
}

fn plain(source: &Source, untabled: &Untabled, layout: &PageLayout) -> Vec<CpuStretch> {
    let Untabled { ref place, is_cut } = *untabled;
    let mut runs: Vec<CpuStretch> = Vec::new();
    let mut at = place.start.next_multiple_of(PAGE);
    let (mut buffer, mut last) = (Vec::new(), 0);
    while at < place.end {
        let end = at.saturating_add(layout.size.max(1) as u64).min(place.end);
        let bytes = source.read(&(at..end), &mut buffer).unwrap_or_default();
        let page = RingPage::parse(bytes, layout).ok().filter(|page| !page.is_empty());
        if let Some(page) = page {
            let cpu = idle_cpu(bytes);
            let goes_on = runs.last().is_some_and(|run| match run.cpu.zip(cpu) {
                Some((before, now)) => before == now,
                None => page.ts >= last,
            });
            if !goes_on {
                runs.push(CpuStretch { at, size: 0, is_cut: false, cpu });
            }
            if let Some(run) = runs.last_mut() {
                run.cpu = run.cpu.or(cpu);
            }
            last = last_stamp(&page);
        }
        let Some(run) = runs.last_mut() else {
            // The first one may begin at a larger page.
            at = at.saturating_add(PAGE);
            continue;
        };
        run.size = end.saturating_sub(run.at);
        at = end;
    }
    if let Some(run) = runs.last_mut() {
        run.is_cut = is_cut;
    }
    runs
}

/// The raw stamp of a page's last record.
fn last_stamp(page: &RingPage<'_>) -> u64 {
    let (mut records, mut last) = (page.records(), page.ts);
    while let Ok(Some(raw)) = records.next() {
        last = raw.ts;
    }
    last
}

/// The CPU whose idle task is named in these bytes.
pub(crate) fn idle_cpu(bytes: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"swapper/";
    let names = bytes.windows(NAME.len()).enumerate().filter(|(_, text)| *text == NAME);
    names.into_iter().find_map(|(at, _)| {
        let number = bytes.get(at.saturating_add(NAME.len())..)?;
        let digits = number.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
        let is_whole = number.get(digits) == Some(&0);
        std::str::from_utf8(number.get(..digits)?).ok()?.parse().ok().filter(|_| is_whole)
    })
}

/// The table, and the CPUs whose number is presumed. Data that fit nowhere between their neighbours are left out.
fn number(runs: &[CpuStretch]) -> (Vec<CpuData>, Vec<Cpu>) {
    // For each run, the CPU that some run behind it is known to be.
    let mut bounds = vec![Cpu::LIMIT; runs.len()];
    let mut bound = Cpu::LIMIT;
    for (run, slot) in runs.iter().zip(&mut bounds).rev() {
        *slot = bound;
        bound = run.cpu.unwrap_or(bound);
    }
    let (mut rows, mut presumed): (Vec<CpuData>, Vec<Cpu>) = (Vec::new(), Vec::new());
    for (run, bound) in runs.iter().zip(bounds) {
        let next = rows.last().map_or(0, |row| row.cpu.saturating_add(1));
        let cpu = run.cpu.unwrap_or(next);
        if cpu < next || cpu >= Cpu::LIMIT || (run.cpu.is_none() && cpu >= bound) {
            continue;
        }
        if run.cpu.is_none() {
            presumed.push(Cpu(cpu));
        }
        rows.push(CpuData { cpu, at: run.at, size: run.size, is_cut: run.is_cut });
    }
    (rows, presumed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(known: &[Option<u32>]) -> (Vec<u32>, Vec<u32>) {
        let run = |cpu: &Option<u32>| CpuStretch { at: 0, size: 4096, is_cut: false, cpu: *cpu };
        let (rows, presumed) = number(&known.iter().map(run).collect::<Vec<_>>());
        (rows.iter().map(|row| row.cpu).collect(), presumed.iter().map(|cpu| cpu.0).collect())
    }

    #[test]
    fn names_count_and_order_fills_in() {
        assert_eq!(numbered(&[Some(0), Some(2), Some(7)]), (vec![0, 2, 7], vec![]));
        assert_eq!(numbered(&[None, None, Some(5), None]), (vec![0, 1, 5, 6], vec![0, 1, 6]));
        // There is no room for one, and one is there twice.
        assert_eq!(numbered(&[Some(3), None, Some(4), Some(4), Some(u32::MAX)]), (vec![3, 4], vec![]));
    }

    #[test]
    fn the_idle_task_is_found_by_its_whole_name() {
        assert_eq!(idle_cpu(b"....swapper/12\0..swapper/3\0"), Some(12));
        assert_eq!(idle_cpu(b"swapper/\0swapper/1xswapper/123456789\0swapper/8\0"), Some(8));
        assert_eq!(idle_cpu(b"swapper/7"), None);
    }
}
