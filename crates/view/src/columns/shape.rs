//! The shape of tiles: few enough columns and lanes that a tile is small and computed from few events.

/// The number of columns of all lanes of a tile together.
const CELLS: usize = 1024;

/// The number of columns and of lanes of each tile of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of columns, a power of two: 16 or 64.
    pub columns: u64,
    /// The maximum number of lanes.
    pub lanes: usize,
}

impl Shape {
    /// The maximum number of columns of a tile.
    pub(crate) const MOST_COLUMNS: u64 = 64;

    /// The shape for a trace with this number of CPUs: with more of them, more events belong to a column, and a tile
    /// that is computed from its events has fewer columns.
    pub(crate) fn of(cpus: usize) -> Shape {
        let columns = match cpus {
            0..=64 => Shape::MOST_COLUMNS,
            _ => 16,
        };
        Shape { columns, lanes: CELLS / columns as usize }
    }

    /// The power of two that is the number of columns.
    pub(crate) fn shift(self) -> u32 {
        self.columns.trailing_zeros()
    }

    /// The number of groups of lanes of this number of CPUs.
    pub(crate) fn groups(self, cpus: usize) -> usize {
        cpus.div_ceil(self.lanes)
    }

    /// The smallest level at which one tile covers a span.
    pub(crate) fn covering(self, span: u64) -> u32 {
        (0..62 - self.shift()).find(|level| self.columns << level >= span.max(1)).unwrap_or(62 - self.shift())
    }
}
