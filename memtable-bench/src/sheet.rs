//! A table of texts: printed in aligned columns, as Markdown, or on the page.

use std::fmt;

/// Each row has as many cells as the head.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Sheet {
    pub(crate) fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Whether a column holds numbers, which are aligned to the right.
    pub(crate) fn is_numeric(&self, column: usize) -> bool {
        self.rows.iter().all(|row| !row[column].starts_with(char::is_alphabetic))
    }

    pub(crate) fn markdown(&self) -> String {
        let rule = (0..self.head.len()).map(|column| if self.is_numeric(column) { "---:" } else { "---" }.into());
        let lines = [self.head.clone(), rule.collect()];
        lines.iter().chain(&self.rows).map(|row| format!("| {} |\n", row.join(" | "))).collect()
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || [&self.head].into_iter().chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let columns: Vec<_> = (0..self.head.len()).map(|column| (width(column), self.is_numeric(column))).collect();
        for row in lines() {
            let padded = row.iter().zip(&columns).map(|(cell, &(width, is_numeric))| match is_numeric {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
            writeln!(f, "{}", padded.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_to_the_right_and_words_to_the_left() {
        // Catches columns that drift apart, and digits of different weight below each other.
        let mut sheet = Sheet::new(["", "ns", "which"]);
        sheet.rows =
            [["vec", "7", "b"], ["treeindex", "1,350", "lock"]].map(|row| row.map(Into::into).to_vec()).to_vec();
        assert_eq!(sheet.to_string(), "              ns  which\nvec            7  b\ntreeindex  1,350  lock\n");
        let markdown = "|  | ns | which |\n| --- | ---: | --- |\n| vec | 7 | b |\n| treeindex | 1,350 | lock |\n";
        assert_eq!(sheet.markdown(), markdown);
    }
}
