//! Whose data stand where in a file: no two CPUs share a byte.
//!
//! No writer lets the data of CPUs overlap, so a table in which they do is damaged. Read as it stands, the same
//! events would count for several CPUs, and a file of kilobytes could ask for any amount of work: of
//! hackbench-v6.dat with one bit of its number of CPUs changed, 65,552 CPUs shared 184 KB.

use super::{BufferHeader, CpuData};
use crate::issue::FileIssue;
use sched::Diagnostics;

/// Uncompressed data begin at a page of the machine that records. Hardly one in thousands does by accident.
const PAGE: u64 = 4096;

struct Claim<'b> {
    row: &'b mut CpuData,
    compressed: bool,
    /// Whether the data begin at a place where data can begin.
    plausible: bool,
}

/// Ends the data of every CPU where those of another begin, and takes away what begins inside another's, or together
/// with those of a CPU before it. Afterwards compressed data reach as far as they may, since their size is
/// not reliable: their own headers say how far they do.
pub(super) fn resolve(buffers: &mut [BufferHeader], file_end: u64, diagnostics: &mut Diagnostics) {
    let mut claims: Vec<Claim<'_>> = Vec::new();
    for buffer in buffers {
        let compressed = buffer.compressed;
        let page = u64::from(buffer.page_size).clamp(1, PAGE);
        claims.extend(buffer.cpus.iter_mut().filter(|row| row.size > 0 && row.at < file_end).map(|row| {
            let plausible = compressed || row.at.is_multiple_of(page);
            Claim { row, compressed, plausible }
        }));
    }
    claims.sort_by_key(|claim| (claim.row.at, !claim.plausible));
    let starts: Vec<u64> = claims.iter().filter(|claim| claim.plausible).map(|claim| claim.row.at).collect();
    let mut taken = 0;
    for Claim { row, compressed, .. } in claims {
        let limit = starts.get(starts.partition_point(|start| *start <= row.at)).map_or(file_end, |next| *next);
        let end = if compressed { limit } else { row.at.saturating_add(row.size) };
        let inside = row.at < taken;
        if inside || end > limit {
            diagnostics.add_at(FileIssue::OverlappingData, || format!("CPU {}, at offset {}", row.cpu, row.at));
            row.is_cut = true;
        }
        row.size = if inside { 0 } else { end.min(limit).saturating_sub(row.at) };
        taken = taken.max(row.at.saturating_add(row.size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const END: u64 = 100 * PAGE;

    fn buffer(compressed: bool, rows: &[(u64, u64)]) -> BufferHeader {
        let cpus =
            (0..).zip(rows).map(|(cpu, (at, size))| CpuData { cpu, at: *at, size: *size, is_cut: false }).collect();
        BufferHeader { page_size: 4096, compressed, cpus, ..BufferHeader::default() }
    }

    fn resolved(compressed: bool, rows: &[(u64, u64)]) -> (Vec<(u64, u64)>, u64) {
        let mut buffers = [buffer(compressed, rows)];
        let mut diagnostics = Diagnostics::default();
        resolve(&mut buffers, END, &mut diagnostics);
        let rows = buffers[0].cpus.iter().map(|row| (row.at / PAGE, row.size / PAGE)).collect();
        (rows, diagnostics.count(FileIssue::OverlappingData))
    }

    #[test]
    fn what_does_not_overlap_stays_in_any_order() {
        let rows = [(8 * PAGE, 2 * PAGE), (0, 0), (PAGE, 7 * PAGE), (10 * PAGE + 512, 3 * PAGE), (PAGE, 0)];
        assert_eq!(resolved(false, &rows), (vec![(8, 2), (0, 0), (1, 7), (10, 3), (1, 0)], 0));
    }

    #[test]
    fn data_end_where_others_begin() {
        // A size that is too large takes nothing from the next.
        assert_eq!(resolved(false, &[(PAGE, 50 * PAGE), (3 * PAGE, PAGE)]), (vec![(1, 2), (3, 1)], 1));
        // Data that begin at no page take nothing from data that do.
        assert_eq!(resolved(false, &[(PAGE, 5 * PAGE), (2 * PAGE + 7, 2 * PAGE)]), (vec![(1, 5), (2, 0)], 1));
        // The first of two that begin together has the data.
        assert_eq!(resolved(false, &[(PAGE, PAGE), (PAGE, 4 * PAGE)]), (vec![(1, 1), (1, 0)], 1));
    }

    #[test]
    fn compressed_data_reach_to_the_next() {
        assert_eq!(resolved(true, &[(9 * PAGE, 5), (PAGE, 5), (9 * PAGE, 5)]), (vec![(9, 91), (1, 8), (9, 0)], 1));
    }

    proptest! {
        #[test]
        fn no_byte_is_anybody_elses(
            rows in prop::collection::vec((0u64..120, 0u64..9, 0u64..40), 0..30),
            split in 0usize..30,
        ) {
            let place = |(page, odd, size): &(u64, u64, u64)| (page * PAGE + odd / 6 * 64, size * PAGE / 3);
            let rows: Vec<(u64, u64)> = rows.iter().map(place).collect();
            let (one, two) = rows.split_at(split.min(rows.len()));
            let mut buffers = [buffer(false, one), buffer(true, two)];
            resolve(&mut buffers, END, &mut Diagnostics::default());
            let mut kept: Vec<CpuData> = buffers.iter().flat_map(|b| b.cpus.clone()).collect();
            kept.retain(|row| row.at < END && row.size > 0);
            kept.sort_by_key(|row| row.at);
            for pair in kept.windows(2) {
                prop_assert!(pair[0].at + pair[0].size <= pair[1].at, "{:?}", pair);
            }
            // Whatever begins at a page, before the end and with some size, is there in one row.
            for (at, size) in rows.iter().filter(|(at, size)| at % PAGE == 0 && *at < END && *size > 0) {
                prop_assert!(kept.iter().any(|row| row.at <= *at && *at < row.at + row.size), "{} {}", at, size);
            }
        }
    }
}
