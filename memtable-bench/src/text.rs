//! Text for people: names, numbers, tables, and standard output.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum;
use indicatif::HumanCount;
use serde::Serialize;

use crate::error::Error;

/// The name of a variant in arguments, tables and files.
pub(crate) fn name<T: ValueEnum>(value: T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Prints `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // The reader of the pipe has closed it, which is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Error::io("write", Path::new("stdout"))),
    }
}

/// A figure that may be missing.
pub(crate) fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".into(), show)
}

/// A count with a comma after every three digits.
pub(crate) fn grouped(count: usize) -> String {
    HumanCount(count as u64).to_string()
}

/// A short form of a count: 3000000 as 3M, and 466000 as 466K.
pub(crate) fn short(count: usize) -> String {
    let unit = [(1_000_000, "M"), (1000, "K")].into_iter().find(|(unit, _)| count > 0 && count.is_multiple_of(*unit));
    unit.map_or_else(|| count.to_string(), |(unit, letter)| format!("{}{letter}", count / unit))
}

/// Nanoseconds: 1,350, 68 or 7.4.
pub(crate) fn nanos(ns: f64) -> String {
    match ns {
        large if large >= 999.5 => grouped(large.round() as usize),
        middle if middle >= 9.95 => format!("{middle:.0}"),
        small => format!("{small:.1}"),
    }
}

/// Microseconds: 135, 6.8 or 0.74.
pub(crate) fn micros(ns: f64) -> String {
    if ns < 995.0 { format!("{:.2}", ns / 1e3) } else { nanos(ns / 1e3) }
}

/// A table of texts, which is printed in aligned columns. Each row has as many cells as the head.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Sheet {
    head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// The columns of numbers, which are aligned to the right.
    numeric: Vec<bool>,
}

impl Sheet {
    pub(crate) fn new(
        head: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let head: Vec<String> = head.into_iter().map(Into::into).collect();
        let rows: Vec<_> = rows.into_iter().collect();
        let is_numeric = |column: usize| !rows.iter().any(|row| row[column].starts_with(char::is_alphabetic));
        let numeric = (0..head.len()).map(is_numeric).collect();
        Self { head, rows, numeric }
    }

    pub(crate) fn markdown(&self) -> String {
        let rule = self.numeric.iter().map(|numeric| if *numeric { "---:" } else { "---" }.into());
        let lines = [self.head.clone(), rule.collect()];
        lines.iter().chain(&self.rows).map(|row| format!("| {} |\n", row.join(" | "))).collect()
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || [&self.head].into_iter().chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let columns: Vec<_> = self.numeric.iter().enumerate().map(|(at, numeric)| (width(at), *numeric)).collect();
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
    fn numbers_are_short_and_aligned_to_the_right() {
        // Catches too many digits for a reader or for the precision of a measurement, and misaligned columns.
        let shown = [7.44, 9.96, 68.4, 999.6, 1350.2, 1_234_567.0].map(nanos);
        assert_eq!(shown, ["7.4", "10", "68", "1,000", "1,350", "1,234,567"]);
        assert_eq!([0, 999, 1000, 466_000, 3_000_000].map(short), ["0", "999", "1K", "466K", "3M"]);
        let rows = [["vec", "7", "b"], ["treeindex", "1,350", "lock"]].map(|row| row.map(Into::into).to_vec());
        let sheet = Sheet::new(["", "ns", "which"], rows);
        assert_eq!(sheet.to_string(), "              ns  which\nvec            7  b\ntreeindex  1,350  lock\n");
        let markdown = "|  | ns | which |\n| --- | ---: | --- |\n| vec | 7 | b |\n| treeindex | 1,350 | lock |\n";
        assert_eq!(sheet.markdown(), markdown);
    }
}
