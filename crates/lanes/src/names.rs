//! The names of tasks in their bars.

use crate::lane::{Lane, NamedRun};
use crate::{ColorBy, Coloring, Options};
use draw::{Anchor, Figure, PT, Point, Unit, text};
use timeline::palette::ink_on;
use timeline::{LaneLayout, TimeScale};

/// The maximum number of names in a figure. Longer runs have theirs first.
const MOST: usize = 300;
/// The least and the greatest size of the letters.
const SMALLEST: Unit = 7 * PT / 2;
const LARGEST: Unit = 6 * PT;
/// The room between a name and the ends of its bar, both together.
const MARGIN: Unit = 3 * PT;

/// Draws names into the bars that are wide and high enough; `bar` is their height.
pub(crate) fn draw_names(
    figure: &mut Figure,
    lanes: &[Lane],
    options: &Options,
    scale: &TimeScale,
    layout: &LaneLayout,
    bar: Unit,
) {
    let size = (bar * 7 / 10).min(LARGEST);
    if size < SMALLEST {
        return;
    }
    let runs = lanes.iter().enumerate().flat_map(|(index, lane)| lane.named.iter().map(move |run| (index, run)));
    let mut names: Vec<(Unit, Point, &NamedRun, String)> = runs
        .filter_map(|(index, run)| {
            let (x, right) = (scale.at(run.start), scale.at(run.end));
            let name = fitting(&options.coloring, run, size, right - x - MARGIN)?;
            let y = layout.top_of(index) + bar / 2 + size * 35 / 100;
            Some((right - x, Point { x: (x + right) / 2, y }, run, name))
        })
        .collect();
    names.sort_by_key(|(width, at, ..)| (std::cmp::Reverse(*width), at.y, at.x));
    for (_, at, run, name) in names.into_iter().take(MOST) {
        figure.text(at, size, Anchor::Middle, ink_on(options.coloring.paint(run.class)), &name);
    }
}

/// Returns the most informative name of a run that has room: command and PID, or one of them by the property that
/// decides the colour.
fn fitting(coloring: &Coloring, run: &NamedRun, size: Unit, room: Unit) -> Option<String> {
    let (comm, pid) = (text::printable(&run.comm.to_string()), run.pid.0.to_string());
    let mut names = Vec::new();
    if run.comm.is_empty() {
        names.push(pid);
    } else {
        names.push(format!("{comm} {pid}"));
        names.push(if coloring.by == ColorBy::Pid { pid } else { comm });
    }
    names.into_iter().find(|name| text::width(name, size) <= room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Comm, Pid, Ts};

    #[test]
    fn the_most_informative_name_that_has_room() {
        let run = NamedRun { start: Ts(0), end: Ts(1), pid: Pid(347), comm: Comm::new(b"hackbench"), class: 4 };
        let name = |by, comm: &[u8], room| {
            let coloring = Coloring { by, ..Coloring::default() };
            fitting(&coloring, &NamedRun { comm: Comm::new(comm), ..run }, 1_000, room)
        };
        let widths = ["hackbench 347", "hackbench", "347"].map(|name| text::width(name, 1_000));
        assert_eq!(name(ColorBy::Pid, b"hackbench", widths[0]).as_deref(), Some("hackbench 347"));
        assert_eq!(name(ColorBy::Pid, b"hackbench", widths[0] - 1).as_deref(), Some("347"));
        assert_eq!(name(ColorBy::Command, b"hackbench", widths[0] - 1).as_deref(), Some("hackbench"));
        assert_eq!(name(ColorBy::Command, b"hackbench", widths[1] - 1), None);
        assert_eq!(name(ColorBy::Pid, b"hackbench", widths[2] - 1), None);
        assert_eq!(name(ColorBy::Class, b"", widths[2]).as_deref(), Some("347"));
    }
}
