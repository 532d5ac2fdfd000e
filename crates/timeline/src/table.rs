//! Tables of a report: columns as wide as their cells, with two blanks between them.

use textwrap::core::display_width;

/// The blanks between two columns.
const GAP: usize = 2;

/// A column of a table: its side, and the width that it has at least, whatever its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextColumn {
    /// Names, on the left. A name with more letters than `most` has a line of its own, above the other cells of its row.
    Names {
        /// The width that the column has at least.
        least: usize,
        /// The width that the column has at most.
        most: usize,
    },
    /// Words, on the left, of any length.
    Words(usize),
    /// Numbers, on the right.
    Numbers(usize),
}

impl TextColumn {
    fn least(self) -> usize {
        match self {
            TextColumn::Names { least, .. } | TextColumn::Words(least) | TextColumn::Numbers(least) => least,
        }
    }
}

/// A line of a table.
#[derive(Clone, Debug)]
enum TextRow {
    Cells(Vec<String>),
    Across(String),
}

/// A table of a report, laid out when all of its cells are known: columns never touch.
#[derive(Clone, Debug)]
pub struct TextTable {
    columns: Vec<TextColumn>,
    rows: Vec<TextRow>,
}

impl TextTable {
    /// An empty table.
    pub fn new(columns: impl IntoIterator<Item = TextColumn>) -> TextTable {
        TextTable { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row, or the head. Cells that it lacks are empty; a number without a column of its own makes one.
    pub fn row<C: ToString>(&mut self, cells: impl IntoIterator<Item = C>) {
        let mut cells: Vec<String> = cells.into_iter().map(|cell| cell.to_string()).collect();
        if let (Some(TextColumn::Names { most, .. }), Some(name)) = (self.columns.first(), cells.first_mut())
            && display_width(name) > *most
            && cells.len() > 1
        {
            let name = std::mem::take(&mut cells[0]);
            self.rows.push(TextRow::Across(name));
        }
        self.columns.resize(self.columns.len().max(cells.len()), TextColumn::Numbers(0));
        self.rows.push(TextRow::Cells(cells));
    }

    /// Adds a line across all columns.
    pub fn across(&mut self, line: impl Into<String>) {
        self.rows.push(TextRow::Across(line.into()));
    }

    /// Adds the lines of the table to a text.
    pub fn write(&self, out: &mut String) {
        let cell = |row: &TextRow, at: usize| match row {
            TextRow::Cells(cells) => cells.get(at).map_or(0, |cell| display_width(cell)),
            TextRow::Across(_) => 0,
        };
        let widest = |at: usize| self.rows.iter().map(|row| cell(row, at)).max().unwrap_or(0);
        let widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(at, column)| widest(at).max(column.least())).collect();
        for row in &self.rows {
            match row {
                TextRow::Across(line) => out.push_str(line),
                TextRow::Cells(cells) => {
                    let mut line = String::new();
                    for (at, (cell, (column, width))) in cells.iter().zip(self.columns.iter().zip(&widths)).enumerate()
                    {
                        let blanks = " ".repeat(width - display_width(cell));
                        line.push_str(&" ".repeat(if at == 0 { 0 } else { GAP }));
                        match column {
                            TextColumn::Numbers(_) => line.extend([&*blanks, cell]),
                            TextColumn::Names { .. } | TextColumn::Words(_) => line.extend([cell, &*blanks]),
                        }
                    }
                    out.push_str(line.trim_end());
                }
            }
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TextColumn::{Names, Numbers, Words};
    use super::*;

    fn laid_out(columns: &[TextColumn], rows: &[&[&str]]) -> String {
        let mut table = TextTable::new(columns.iter().copied());
        rows.iter().for_each(|row| table.row(row.iter().copied()));
        let mut out = String::new();
        table.write(&mut out);
        out
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_two_blanks_apart() {
        let columns = [Names { least: 6, most: 12 }, Numbers(4), Numbers(4)];
        let rows: [&[&str]; 3] =
            [&["policy", "lost", "interval"], &["steal", "39.9ms", "1.53ms..78.3ms"], &["ideal", "-", "0"]];
        let expected =
            "policy    lost        interval\nsteal   39.9ms  1.53ms..78.3ms\nideal        -               0\n";
        assert_eq!(laid_out(&columns, &rows), expected);
    }

    #[test]
    fn long_names_have_a_line_and_widths_hold_at_least() {
        let columns = [Names { least: 4, most: 6 }, Words(5), Numbers(3)];
        let rows: [&[&str]; 3] = [&["", "a", "µs"], &["a long name", "b", "1"], &["x"]];
        assert_eq!(laid_out(&columns, &rows), "      a       µs\na long name\n      b        1\nx\n");
        let mut table = TextTable::new([Words(0)]);
        table.row(["a", "12"]);
        table.across("(one line, however long)");
        let mut out = String::new();
        table.write(&mut out);
        assert_eq!(out, "a  12\n(one line, however long)\n");
    }
}
