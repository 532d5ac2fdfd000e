//! The rows of the figure, with their bars and points.

use crate::expr::EventValue;
use sched::Ts;
use sched::seeded::SeededMap;
use std::collections::hash_map::Entry;
use timeline::Division;
use timeline::columns::{Columns, Piece, PieceClass};
use timeline::strips::BLANK;

/// Columns of the page in which short bars share their height.
const COLUMNS: u32 = 900;

/// Bars above one another in a lane; deeper ones are counted and not drawn.
pub(crate) const DEPTH: usize = 6;

/// Maximum number of lanes that are followed. The figure draws the first of them in its order.
pub(crate) const MOST_LANES: usize = 1024;

/// Bars as long as this part of the window may carry their label.
pub(crate) const LABELLED: u64 = 60;

/// Columns in which points are counted where they are too many for markers.
pub(crate) const DENSITY: usize = 400;

/// A label in a bar.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) depth: usize,
    pub(crate) start: Ts,
    pub(crate) end: Ts,
    pub(crate) text: String,
    pub(crate) class: PieceClass,
}

/// A row of bars that never overlap.
#[derive(Clone, Debug)]
struct BarRow {
    is_taken: bool,
    /// The end of the last bar.
    at: Ts,
    columns: Columns,
}

/// A lane of the figure, with its rows of bars.
#[derive(Clone, Debug)]
pub(crate) struct PlotLane {
    pub(crate) key: EventValue,
    /// The name of a task; empty for other lanes.
    pub(crate) name: String,
    rows: Vec<BarRow>,
    pub(crate) total_ns: u64,
    pub(crate) points: u64,
    pub(crate) labels: Vec<Label>,
    /// The number of points in each column, by the place of the point in the specification.
    pub(crate) density: SeededMap<usize, Vec<u32>>,
    division: Division,
    from: Ts,
    to: Ts,
}

impl PlotLane {
    fn new(key: EventValue, from: Ts, to: Ts) -> PlotLane {
        let (name, labels, density) = (String::new(), Vec::new(), SeededMap::default());
        let division = Division::into_parts(from, to, DENSITY);
        PlotLane { key, name, rows: Vec::new(), total_ns: 0, points: 0, labels, density, division, from, to }
    }

    fn row(&mut self, is_free: impl Fn(&BarRow) -> bool) -> Option<usize> {
        if let Some(free) = self.rows.iter().position(is_free) {
            return Some(free);
        }
        (self.rows.len() < DEPTH).then(|| {
            self.rows.push(BarRow {
                is_taken: false,
                at: self.from,
                columns: Columns::new(self.from, self.to, COLUMNS),
            });
            self.rows.len() - 1
        })
    }

    /// Takes a row for a bar that begins now; nothing if all are taken.
    pub(crate) fn begin(&mut self) -> Option<usize> {
        let row = self.row(|row| !row.is_taken)?;
        self.rows[row].is_taken = true;
        Some(row)
    }

    /// Draws the bar that took a row.
    pub(crate) fn end(&mut self, row: usize, class: PieceClass, start: Ts, end: Ts, label: Option<String>) {
        let Some(taken) = self.rows.get_mut(row) else { return };
        taken.is_taken = false;
        self.put(row, class, start, end, label);
    }

    /// Draws a bar whose beginning is in the past. Returns its row; nothing if no row has room.
    pub(crate) fn lone(&mut self, class: PieceClass, start: Ts, end: Ts, label: Option<String>) -> Option<usize> {
        let start = start.max(self.from);
        let row = self.row(|row| !row.is_taken && row.at <= start)?;
        self.put(row, class, start, end, label);
        Some(row)
    }

    fn put(&mut self, depth: usize, class: PieceClass, start: Ts, end: Ts, label: Option<String>) {
        let row = &mut self.rows[depth];
        let start = start.max(row.at);
        row.columns.push(BLANK, row.at, start);
        row.columns.push(class, start, end);
        row.at = row.at.max(end);
        let is_wide = end.since(start).0 >= self.to.since(self.from).0 / LABELLED;
        if let Some(text) = label.filter(|_| is_wide) {
            self.labels.push(Label { depth, start, end, text, class });
        }
    }

    /// A point of the specification occurred at this time.
    pub(crate) fn point(&mut self, place: usize, ts: Ts) {
        self.points += 1;
        let column = self.division.part_of(ts);
        self.density.entry(place).or_insert_with(|| vec![0; DENSITY])[column] += 1;
    }

    /// The rows' pieces, from above to below.
    pub(crate) fn pieces(&self) -> Vec<Vec<Piece>> {
        self.rows.iter().map(|row| row.columns.clone().finish()).collect()
    }
}

/// All lanes, in the order in which they appeared.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    places: SeededMap<EventValue, usize>,
    pub(crate) all: Vec<PlotLane>,
    /// Values that have no lane since there are too many.
    pub(crate) left_out: u64,
    from: Ts,
    to: Ts,
}

impl Lanes {
    pub(crate) fn new(from: Ts, to: Ts) -> Lanes {
        Lanes { places: SeededMap::default(), all: Vec::new(), left_out: 0, from, to }
    }

    /// The lane of a value; nothing if there are too many.
    pub(crate) fn place(&mut self, key: EventValue) -> Option<usize> {
        match self.places.entry(key) {
            Entry::Occupied(place) => Some(*place.get()),
            Entry::Vacant(_) if self.all.len() >= MOST_LANES => {
                self.left_out += 1;
                None
            }
            Entry::Vacant(new) => {
                self.all.push(PlotLane::new(new.key().clone(), self.from, self.to));
                Some(*new.insert(self.all.len() - 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_take_rows_and_lose_no_time() {
        let mut lane = PlotLane::new(EventValue::Number(0), Ts(0), Ts(1_000_000));
        let rows: Vec<_> = (0..DEPTH).map(|_| lane.begin()).collect();
        assert_eq!(rows, (0..DEPTH).map(Some).collect::<Vec<_>>());
        assert_eq!(lane.begin(), None);
        lane.end(1, 4, Ts(10), Ts(400_000), Some("a".into()));
        assert_eq!(lane.begin(), Some(1));
        lane.end(1, 4, Ts(400_000), Ts(400_007), Some("too short".into()));
        // The others are taken, and this one is used from 400,007 on.
        assert_eq!(lane.lone(5, Ts(300_000), Ts(500_000), None), None);
        assert_eq!(lane.lone(5, Ts(450_000), Ts(500_000), None), Some(1));
        assert_eq!(lane.labels.len(), 1);
        let time = |piece: &Piece, class| match piece {
            Piece::Exact { class: c, start, end } if *c == class => end.since(*start).0,
            Piece::Exact { .. } => 0,
            Piece::Shares { shares, .. } => shares.iter().filter(|s| s.0 == class).map(|s| s.1).sum(),
        };
        let pieces = lane.pieces();
        let of = |class| pieces[1].iter().map(|piece| time(piece, class)).sum::<u64>();
        assert_eq!((of(4), of(5)), (400_007 - 10, 50_000));
    }

    #[test]
    fn lanes_are_limited() {
        let mut lanes = Lanes::new(Ts(0), Ts(10));
        let places: Vec<_> = (0..MOST_LANES as i128 + 5).filter_map(|n| lanes.place(EventValue::Number(n))).collect();
        assert_eq!((places.len(), lanes.left_out, lanes.place(EventValue::Number(3))), (MOST_LANES, 5, Some(3)));
    }
}
