//! A table of text with aligned columns.

/// Which side of a column its texts stand at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

#[derive(Clone, Debug)]
pub(crate) struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Begins a table. A title that starts with `>` makes a column of numbers, at the right side.
    pub(crate) fn new(titles: &[&str]) -> Self {
        let side = |title: &&str| match title.starts_with('>') {
            true => Side::Right,
            false => Side::Left,
        };
        let sides = titles.iter().map(side).collect();
        let titles = titles
            .iter()
            .map(|it| it.trim_start_matches('>').to_owned());
        Self {
            sides,
            rows: vec![titles.collect()],
        }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Returns the table as text, with two spaces before each row.
    pub(crate) fn show(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.sides.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::from(" ");
            for ((cell, side), &width) in row.iter().zip(&self.sides).zip(&widths) {
                line += &match side {
                    Side::Left => format!(" {cell:<width$} "),
                    Side::Right => format!(" {cell:>width$} "),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests;
