//! The number of migrations by time and cause.

use crate::columns::coding::{In, Out, Unusable};
use crate::columns::tree::make_room;
use sched::Cause;
use std::io::{self, Read, Write};

/// The number of causes of migrations.
pub(crate) const CAUSES: usize = Cause::ALL.len();

/// Migrations by column and cause. The columns have the length of a nanosecond as long as there is room for that.
#[derive(Clone, Debug)]
pub(crate) struct MoveCounts {
    level: u32,
    /// Column and cause as one number, and the number of migrations; summed and in order up to `sorted`.
    counts: Vec<(u64, u32)>,
    sorted: usize,
    /// The maximum number of counts.
    most: usize,
    /// The number of migrations by column of a coarse level and cause, for publications: summed anew, millions of counts
    /// would take milliseconds each time.
    coarse: Vec<u32>,
    coarse_level: u32,
}

impl MoveCounts {
    /// No migrations yet, for a trace of `span` nanoseconds. `room`: the maximum number of bytes. `coarse_level`: a
    /// level on which the trace has few columns.
    pub(crate) fn new(span: u64, room: usize, coarse_level: u32) -> MoveCounts {
        // A column and a cause are one number of 64 bits.
        let level = (64 - span.leading_zeros()).saturating_sub(58);
        let most = (room / size_of::<(u64, u32)>()).max(1024);
        MoveCounts { level, counts: Vec::new(), sorted: 0, most, coarse: Vec::new(), coarse_level }
    }

    /// The level of its columns.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    pub(crate) fn add(&mut self, ns: u64, cause: Cause) {
        make_room(&mut self.counts, 1);
        self.counts.push(((ns >> self.level) * CAUSES as u64 + cause as u64, 1));
        let place = (ns >> self.coarse_level) as usize * CAUSES + cause as usize;
        if place >= self.coarse.len() {
            self.coarse.resize(place + 1, 0);
        }
        self.coarse[place] = self.coarse[place].saturating_add(1);
        if self.counts.len() > self.most.min(4096.max(2 * self.sorted)) {
            self.sum();
            while self.counts.len() > self.most / 2 && self.level < 62 {
                self.coarsen();
            }
        }
    }

    /// Sums the entries of equal column and cause.
    pub(crate) fn sum(&mut self) {
        if self.sorted < self.counts.len() {
            // Most of the new ones are behind the others.
            let first = self.counts.get(self.sorted..).into_iter().flatten().map(|(key, _)| *key).min().unwrap_or(0);
            let sorted = self.counts.get(..self.sorted).unwrap_or_default();
            let from = sorted.partition_point(|(key, _)| *key < first);
            self.counts.get_mut(from..).unwrap_or_default().sort_unstable_by_key(|(key, _)| *key);
            self.counts.dedup_by(|later, first| {
                let same = later.0 == first.0;
                if same {
                    first.1 = first.1.saturating_add(later.1);
                }
                same
            });
            self.sorted = self.counts.len();
        }
    }

    /// A copy in the columns of the coarse level, which are few.
    pub(crate) fn coarse(&self) -> MoveCounts {
        let counts = (0..).zip(&self.coarse).filter(|(_, number)| **number > 0);
        let counts: Vec<(u64, u32)> = counts.map(|(key, number)| (key, *number)).collect();
        let (sorted, most) = (counts.len(), counts.len());
        MoveCounts {
            level: self.coarse_level,
            counts,
            sorted,
            most,
            coarse: Vec::new(),
            coarse_level: self.coarse_level,
        }
    }

    /// Columns are twice as long from now on.
    fn coarsen(&mut self) {
        for (key, _) in &mut self.counts {
            let (column, cause) = (*key / CAUSES as u64, *key % CAUSES as u64);
            *key = column / 2 * CAUSES as u64 + cause;
        }
        self.level += 1;
        // Two columns become one, whose causes are not in order.
        self.sorted = 0;
        self.sum();
    }

    pub(crate) fn size(&self) -> usize {
        self.counts.len() * size_of::<(u64, u32)>()
    }

    /// Writes the counts, which have been summed.
    pub(crate) fn write(&self, out: &mut Out<impl Write>) -> io::Result<()> {
        out.number(self.level.into())?;
        out.number(self.counts.len() as u64)?;
        let mut before = 0;
        for (key, number) in &self.counts {
            out.number(key - before)?;
            out.number((*number).into())?;
            before = *key;
        }
        Ok(())
    }

    /// Reads counts that have been summed.
    pub(crate) fn read(from: &mut In<impl Read>) -> Result<MoveCounts, Unusable> {
        let (level, count) = (from.below(62)? as u32, from.number()?);
        let (mut counts, mut key) = (Vec::new(), 0u64);
        for _ in 0..count {
            from.take(size_of::<(u64, u32)>())?;
            key = key.saturating_add(from.number()?);
            counts.push((key, from.below(u32::MAX.into())? as u32));
        }
        let (sorted, most) = (counts.len(), counts.len());
        counts.shrink_to_fit();
        Ok(MoveCounts { level, counts, sorted, most, coarse: Vec::new(), coarse_level: level })
    }

    /// The number of migrations by cause in columns of a level, from the column `first` on. The level is not below that
    /// of the columns here, and all have been summed.
    pub(crate) fn columns(&self, level: u32, first: u64, count: usize) -> Vec<[u32; CAUSES]> {
        let mut columns = vec![[0u32; CAUSES]; count];
        let finer = level.saturating_sub(self.level);
        let key = (first << finer).saturating_mul(CAUSES as u64);
        for (key, number) in self.counts.iter().skip(self.counts.partition_point(|(other, _)| *other < key)) {
            let (column, cause) = (key / CAUSES as u64, (key % CAUSES as u64) as usize);
            let place = ((column >> finer) - first) as usize;
            let Some(sum) = columns.get_mut(place).and_then(|column| column.get_mut(cause)) else { break };
            *sum = sum.saturating_add(*number);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_where_the_time_is_not() {
        let (mut free, mut tight) = (MoveCounts::new(1 << 20, 1 << 24, 16), MoveCounts::new(1 << 20, 0, 16));
        for ns in 0..10_000u64 {
            // Not in the order of time.
            let ns = ns.wrapping_mul(7_919) % 10_000;
            let cause = Cause::ALL[(ns % 3) as usize];
            free.add(ns * 100, cause);
            tight.add(ns * 100, cause);
        }
        free.sum();
        tight.sum();
        assert_eq!(free.level(), 0);
        assert!(tight.level() > 8 && tight.size() <= 1024 * 16, "{} at level {}", tight.size(), tight.level());
        assert_eq!(free.columns(0, 900, 200)[100][1], 1, "the migration at 1,000 ns is the tenth, of the second cause");
        assert_eq!(free.columns(0, 900, 200).iter().flatten().sum::<u32>(), 2);
        assert_eq!(free.columns(16, 0, 16), tight.columns(16, 0, 16));
        assert_eq!(free.coarse().columns(16, 0, 16), tight.columns(16, 0, 16));
        assert_eq!(free.columns(16, 0, 16).iter().flatten().sum::<u32>(), 10_000);
        assert_eq!(free.columns(16, 3, 1)[0], free.columns(16, 0, 16)[3]);
    }

    #[test]
    fn a_trace_of_a_century_is_counted() {
        let mut moves = MoveCounts::new(1 << 62, 1 << 20, 56);
        moves.add((1 << 62) - 1, Cause::Exec);
        moves.sum();
        assert_eq!(moves.columns(60, 0, 4)[3][Cause::Exec as usize], 1);
    }
}
