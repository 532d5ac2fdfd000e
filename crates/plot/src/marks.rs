//! The points of a figure.

use sched::Ts;
use timeline::columns::PieceClass;

/// Maximum number of markers of one point; more are drawn as bars by column.
pub(crate) const MARKERS: usize = 4000;

/// The counts of a point, and its markers.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointCounts {
    pub(crate) count: u64,
    pub(crate) by: Vec<(PieceClass, u64)>,
    /// Lane, time and colour, unless there are too many.
    pub(crate) at: Vec<(usize, Ts, PieceClass)>,
    pub(crate) labels: Vec<(usize, Ts, String)>,
}
