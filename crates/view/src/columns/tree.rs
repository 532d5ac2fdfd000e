//! Columns of time on several levels, each twice as long as those of the level below.
//!
//! A level gets the exact content of two finer columns before these are shortened to their stored form, so that a
//! column of any level is as exact as one that was computed from the events. Equal neighbours are stored once.

use crate::Shape;
use crate::columns::coding::{In, Out, Unusable, number, put_number};
use std::cmp::Ordering;
use std::io::{self, Read, Write};

/// The number of columns that are stored together. The columns of a tile are within them.
const BLOCK: u64 = Shape::MOST_COLUMNS;

/// The content of a column of a [`Tree`]. Content must be additive: the content of a column is that of its two halves
/// together, whatever the order in which they were added.
pub(crate) trait ColumnSummary: Clone + Default {
    /// A state that holds for a stretch of time, of which the column keeps a part.
    type Now: Copy;

    /// Adds a stretch of `ns` nanoseconds in one state. Called for each change of the state, so that it must be cheap;
    /// the stretch is within the column.
    fn pass(&mut self, now: &Self::Now, ns: u64);

    /// Takes over the exact content of a finer column, which must be empty afterwards. Called once for each half.
    fn absorb(&mut self, finer: &mut Self);

    /// Whether no time has passed in the column.
    fn is_empty(&self) -> bool;

    /// Appends the stored form, which may be shorter than the content. Called when time has passed the end of the
    /// column, before the coarser level absorbs the content; that may be brought into another order here, but must stay
    /// complete. Neighbours of equal bytes are stored once.
    fn encode(&mut self, out: &mut Vec<u8>);

    /// Removes one stored form from the front of `bytes`, and returns the rest; nothing where the bytes are no such
    /// form. Bytes can come from a file, so that this must not panic.
    fn skip(bytes: &[u8]) -> Option<&[u8]>;
}

/// Makes room for `more` elements at the end of a list that can become long. It grows by an eighth, and by 64 bytes at least: by default it would
/// have up to twice the room that it needs, in each of thousands of lists.
pub(crate) fn make_room<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 8).max(64 / size_of::<T>().clamp(1, 64)));
    }
}

/// The columns of one level.
#[derive(Clone, Debug, Default)]
struct TreeLevel<S> {
    /// The column that time passes in.
    open: S,
    /// The number of columns before that.
    column: u64,
    /// Stored runs of equal columns: the length of a run less one, and the form of its columns.
    bytes: Vec<u8>,
    /// The start of each block in the bytes. A run never crosses the start of a block.
    blocks: Vec<usize>,
    /// The form of the last columns, which are not stored yet.
    last: Vec<u8>,
    /// The number of the last columns, all of the form `last`.
    repeat: usize,
}

impl<S: ColumnSummary> TreeLevel<S> {
    /// Adds columns of this form; returns the number of bytes that this took.
    fn store(&mut self, form: &[u8], mut count: u64) -> usize {
        let before = self.size();
        while count > 0 {
            let place = self.column % BLOCK;
            if place == 0 {
                self.flush();
                make_room(&mut self.blocks, 1);
                self.blocks.push(self.bytes.len());
            }
            let taken = count.min(BLOCK - place);
            if self.repeat == 0 || self.last != form {
                self.flush();
                self.last.clear();
                self.last.extend_from_slice(form);
            }
            self.repeat += taken as usize;
            self.column += taken;
            count -= taken;
        }
        self.size() - before
    }

    fn flush(&mut self) {
        if let Some(others) = self.repeat.checked_sub(1) {
            make_room(&mut self.bytes, self.last.len() + 1);
            self.bytes.push(others as u8);
            self.bytes.extend_from_slice(&self.last);
            self.repeat = 0;
        }
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.blocks.len() * size_of::<usize>()
    }

    /// The bytes of a block; empty if there is none.
    fn block(&self, index: u64) -> &[u8] {
        let Ok(index) = usize::try_from(index) else { return &[] };
        let Some(start) = self.blocks.get(index) else { return &[] };
        let end = self.blocks.get(index + 1).copied().unwrap_or(self.bytes.len());
        self.bytes.get(*start..end).unwrap_or_default()
    }
}

/// The columns of all levels.
#[derive(Clone, Debug)]
pub(crate) struct Tree<S> {
    /// The finest level: its columns have this power of two as their length in nanoseconds.
    base: u32,
    levels: Vec<TreeLevel<S>>,
    /// The time that has passed.
    at: u64,
    size: usize,
    form: Vec<u8>,
}

impl<S: ColumnSummary> Tree<S> {
    /// An empty tree of the levels from `base` to `top`.
    pub(crate) fn new(base: u32, top: u32) -> Tree<S> {
        let levels = (base..=top).map(|_| TreeLevel::default()).collect();
        Tree { base, levels, at: 0, size: 0, form: Vec::new() }
    }

    /// The bytes that the columns take.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Time passes up to `to`, all of it in this state.
    pub(crate) fn pass(&mut self, now: &S::Now, to: u64) {
        self.fill(to, |column, ns| column.pass(now, ns));
    }

    /// Time passes up to `to`. `add` adds a part of it to a column, whose content depends on the length of the part alone.
    #[inline]
    pub(crate) fn fill(&mut self, to: u64, add: impl Fn(&mut S, u64)) {
        let (mut from, mut to) = (self.at, to);
        self.at = from.max(to);
        let mut level = 0;
        while from < to {
            let shift = self.base + level as u32;
            let Some(this) = self.levels.get_mut(level) else { return };
            let end = ((from >> shift) + 1) << shift;
            if to < end {
                add(&mut this.open, to - from);
                return;
            }
            add(&mut this.open, end - from);
            self.close(level);
            let whole = (to - end) >> shift;
            let reached = end + (whole << shift);
            let Some(this) = self.levels.get_mut(level) else { return };
            if whole > 0 {
                let mut column = S::default();
                add(&mut column, 1 << shift);
                self.form.clear();
                column.encode(&mut self.form);
                self.size += this.store(&self.form, whole);
            }
            if reached < to {
                add(&mut this.open, to - reached);
            }
            // The coarser levels have all up to `end` by now.
            (from, to, level) = (end, reached, level + 1);
        }
    }

    /// The open column of this level is complete, and perhaps those of coarser ones.
    fn close(&mut self, mut level: usize) {
        while let Some((this, coarser)) = self.levels.get_mut(level..).and_then(|levels| levels.split_first_mut()) {
            self.form.clear();
            this.open.encode(&mut self.form);
            self.size += this.store(&self.form, 1);
            match coarser.first_mut() {
                Some(parent) => parent.open.absorb(&mut this.open),
                None => this.open = S::default(),
            }
            if this.column % 2 == 1 {
                return;
            }
            level += 1;
        }
    }

    /// Ends the columns that are still open, where the trace ends.
    pub(crate) fn finish(&mut self) {
        for level in 0..self.levels.len() {
            let Some((this, coarser)) = self.levels.get_mut(level..).and_then(|levels| levels.split_first_mut()) else {
                return;
            };
            if !this.open.is_empty() {
                self.form.clear();
                this.open.encode(&mut self.form);
                this.store(&self.form, 1);
                if let Some(parent) = coarser.first_mut() {
                    parent.open.absorb(&mut this.open);
                }
            }
            this.flush();
            this.bytes.shrink_to_fit();
            this.blocks.shrink_to_fit();
        }
        self.size = self.levels.iter().map(TreeLevel::size).sum();
    }

    /// Removes the finest level, unless it is the only one.
    pub(crate) fn coarsen(&mut self) {
        if self.levels.len() < 2 {
            return;
        }
        let mut finest = self.levels.remove(0);
        if let Some(next) = self.levels.first_mut() {
            next.open.absorb(&mut finest.open);
        }
        self.base += 1;
        self.size = self.levels.iter().map(TreeLevel::size).sum();
    }

    /// A finished copy of the levels from this one on.
    pub(crate) fn coarse(&self, from: u32) -> Tree<S> {
        let skipped = (from.saturating_sub(self.base) as usize).min(self.levels.len().saturating_sub(1));
        let (finer, kept) = self.levels.split_at(skipped);
        let mut copy =
            Tree { base: self.base + skipped as u32, levels: kept.to_vec(), at: self.at, size: 0, form: Vec::new() };
        if let Some(first) = copy.levels.first_mut() {
            // The open columns of the finer levels come before anything later.
            finer.iter().rev().for_each(|level| first.open.absorb(&mut level.open.clone()));
        }
        copy.finish();
        copy
    }

    /// Writes the columns of a tree that is finished.
    pub(crate) fn write(&self, out: &mut Out<impl Write>) -> io::Result<()> {
        for level in &self.levels {
            out.number(level.blocks.len() as u64)?;
            let mut before = 0;
            for start in &level.blocks {
                out.number((start - before) as u64)?;
                before = *start;
            }
            out.bytes(&level.bytes)?;
        }
        Ok(())
    }

    /// Reads the columns of the levels from `base` to `top`. Columns behind damage are missing.
    pub(crate) fn read(base: u32, top: u32, from: &mut In<impl Read>) -> Result<Tree<S>, Unusable> {
        let mut tree = Tree::new(base, top);
        for level in &mut tree.levels {
            let mut start = 0usize;
            for _ in 0..from.number()? {
                from.take(size_of::<usize>())?;
                start = start.saturating_add(from.number()? as usize);
                level.blocks.push(start);
            }
            level.blocks.shrink_to_fit();
            level.bytes = from.bytes()?;
            level.bytes.shrink_to_fit();
        }
        tree.size = tree.levels.iter().map(TreeLevel::size).sum();
        Ok(tree)
    }

    /// Calls `each` with the runs of equal columns among these of a level, which are within a block: their number and
    /// their form. Returns the number of columns that there are.
    pub(crate) fn columns(&self, level: u32, first: u64, count: u64, each: impl FnMut(u64, &[u8])) -> u64 {
        let Some(level) = level.checked_sub(self.base).and_then(|level| self.levels.get(level as usize)) else {
            return 0;
        };
        runs::<S>(level.block(first / BLOCK), first % BLOCK, count, each)
    }

    /// Appends the columns of a finished tree, in as little room as they need.
    pub(crate) fn store(&self, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        for level in &self.levels {
            bytes.clear();
            put_number(&mut bytes, level.blocks.len() as u64);
            for block in 0..level.blocks.len() as u64 {
                put_number(&mut bytes, level.block(block).len() as u64);
            }
            bytes.extend_from_slice(&level.bytes);
            put_number(out, bytes.len() as u64);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Calls `each` with runs of the columns of a block, without those that are skipped, and `count` of them at most. Returns the number of columns
/// that there are.
fn runs<S: ColumnSummary>(mut bytes: &[u8], mut skipped: u64, count: u64, mut each: impl FnMut(u64, &[u8])) -> u64 {
    let mut passed = 0;
    while let Some((others, form)) = bytes.split_first().filter(|_| passed < count) {
        let Some(rest) = S::skip(form) else { break };
        let length = u64::from(*others) + 1;
        let shown = length.saturating_sub(skipped).min(count - passed);
        skipped = skipped.saturating_sub(length);
        if shown > 0 {
            each(shown, &form[..form.len() - rest.len()]);
        }
        passed += shown;
        bytes = rest;
    }
    passed
}

/// The columns of a finished [`Tree`] in a list of bytes: a tree takes some 300 bytes a level beside its columns, more than a row of a short trace
/// has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredTree<'b> {
    /// The finest level.
    pub(crate) base: u32,
    /// The levels, the finest first: the bytes of each, the number of its blocks, the bytes of each of them, and the blocks.
    pub(crate) bytes: &'b [u8],
}

impl<'b> StoredTree<'b> {
    /// Calls `each` as [`Tree::columns`] does.
    pub(crate) fn columns<S: ColumnSummary>(
        &self,
        level: u32,
        first: u64,
        count: u64,
        each: impl FnMut(u64, &[u8]),
    ) -> u64 {
        let block = level.checked_sub(self.base).and_then(|nth| self.block(nth, first / BLOCK));
        runs::<S>(block.unwrap_or_default(), first % BLOCK, count, each)
    }

    /// The bytes of a block of the level with this number from the finest.
    fn block(&self, nth: u32, block: u64) -> Option<&'b [u8]> {
        let mut rest = self.bytes;
        for _ in 0..nth {
            let (length, behind) = number(rest)?;
            rest = behind.get(usize::try_from(length).ok()?..)?;
        }
        let (length, behind) = number(rest)?;
        let (blocks, mut rest) = number(behind.get(..usize::try_from(length).ok()?)?)?;
        let (mut start, mut end) = (0, 0);
        for other in 0..blocks {
            let (length, behind) = number(rest)?;
            rest = behind;
            let length = usize::try_from(length).ok()?;
            (start, end) = match other.cmp(&block) {
                Ordering::Less => (start + length, start + length),
                Ordering::Equal => (start, start + length),
                Ordering::Greater => (start, end),
            };
        }
        if block < blocks { rest.get(start..end) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Rng;

    /// The time in each of four states, exactly.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Times([u64; 4]);

    impl ColumnSummary for Times {
        type Now = usize;

        fn pass(&mut self, now: &usize, ns: u64) {
            self.0[*now] += ns;
        }

        fn absorb(&mut self, finer: &mut Times) {
            self.0.iter_mut().zip(std::mem::take(finer).0).for_each(|(sum, ns)| *sum += ns);
        }

        fn is_empty(&self) -> bool {
            self.0 == [0; 4]
        }

        fn encode(&mut self, out: &mut Vec<u8>) {
            self.0.iter().for_each(|ns| out.extend(ns.to_le_bytes()));
        }

        fn skip(bytes: &[u8]) -> Option<&[u8]> {
            bytes.get(32..)
        }
    }

    fn columns(tree: &Tree<Times>, level: u32) -> Vec<[u64; 4]> {
        read(|first, each| tree.columns(level, first, BLOCK / 4, each))
    }

    fn stored_columns(stored: &StoredTree<'_>, level: u32) -> Vec<[u64; 4]> {
        read(|first, each| stored.columns::<Times>(level, first, BLOCK / 4, each))
    }

    fn read(tile: impl Fn(u64, &mut dyn FnMut(u64, &[u8])) -> u64) -> Vec<[u64; 4]> {
        let mut columns = Vec::new();
        // Tiles of a quarter of a block.
        for index in 0.. {
            let number = tile(index * BLOCK / 4, &mut |repeat, form| {
                let column = std::array::from_fn(|i| u64::from_le_bytes(form[8 * i..8 * i + 8].try_into().expect("8")));
                columns.extend(std::iter::repeat_n(column, repeat as usize));
            });
            if number < BLOCK / 4 {
                return columns;
            }
        }
        columns
    }

    #[test]
    fn each_level_is_what_its_own_columns_hold() {
        let mut rng = Rng::new(7);
        for round in 0..12 {
            let (mut at, mut stretches) = (0, Vec::new());
            for _ in 0..200 {
                let length = match rng.below(8) {
                    0 => rng.below(20_000),
                    1 | 2 => rng.below(600),
                    _ => rng.below(20),
                };
                at += length as u64;
                stretches.push((rng.below(4), at));
            }
            let (dropped_at, shown_at) = (rng.below(200), rng.below(200));
            let mut tree: Tree<Times> = Tree::new(2, 12);
            let truth = |level: u32, until: u64| {
                let mut truth = vec![[0u64; 4]; (until >> level) as usize + 1];
                let mut from = 0;
                for (state, to) in &stretches {
                    for ns in from..(*to).min(until) {
                        truth[(ns >> level) as usize][*state] += 1;
                    }
                    from = *to;
                }
                truth.retain(|column| *column != [0; 4]);
                truth
            };
            for (nth, (state, to)) in stretches.iter().enumerate() {
                tree.pass(state, *to);
                if nth == dropped_at {
                    tree.coarsen();
                }
                if nth == shown_at {
                    let copy = tree.coarse(6);
                    for level in 6..=12 {
                        assert_eq!(columns(&copy, level), truth(level, *to), "a copy of level {level}, round {round}");
                    }
                }
            }
            tree.finish();
            for level in 3..=12 {
                assert_eq!(columns(&tree, level), truth(level, at), "level {level}, round {round}");
            }
            assert_eq!(columns(&tree, 2), Vec::<[u64; 4]>::new(), "the finest level was removed");
            let mut bytes = Vec::new();
            tree.store(&mut bytes);
            let (size, stored) = (tree.size(), StoredTree { base: 3, bytes: &bytes });
            (0..=13).for_each(|level| assert_eq!(stored_columns(&stored, level), columns(&tree, level), "{level}"));
            assert!(stored.bytes.len() <= size, "{} bytes of {size}", stored.bytes.len());
        }
    }

    #[test]
    fn a_century_of_one_state_takes_little() {
        let mut tree: Tree<Times> = Tree::new(50, 62);
        tree.pass(&1, 1 << 62);
        tree.finish();
        assert_eq!(columns(&tree, 54), vec![[0, 1 << 54, 0, 0]; 256]);
        assert!(tree.size() < 6_000, "{}", tree.size());
    }
}
