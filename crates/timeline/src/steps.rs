//! A quantity by column, as a line.

use draw::{Line, Point, Unit};

/// A line in steps: level within a column, upright between columns, interrupted where there is
/// nothing. A column lies between two neighbouring edges.
pub fn steps(heights: &[Option<Unit>], edges: &[Unit]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (y, x) in heights.iter().zip(edges.windows(2)) {
        let Some(y) = *y else { continue };
        let (from, to) = (Point { x: x[0], y }, Point { x: x[1], y });
        match lines.last_mut() {
            Some(last) if last.to == from && last.from.y == y => last.to = to,
            Some(last) if last.to.x == from.x => {
                let upright = Line { from: last.to, to: from };
                lines.extend([upright, Line { from, to }]);
            }
            _ => lines.push(Line { from, to }),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_interrupted_where_there_is_nothing() {
        let lines = steps(&[Some(5), Some(5), Some(7), None, Some(7)], &[0, 10, 20, 30, 40, 50]);
        let ends: Vec<_> = lines.iter().map(|l| (l.from.x, l.from.y, l.to.x, l.to.y)).collect();
        assert_eq!(ends, [(0, 5, 20, 5), (20, 5, 20, 7), (20, 7, 30, 7), (40, 7, 50, 7)]);
    }
}
