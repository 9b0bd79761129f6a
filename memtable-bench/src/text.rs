//! Text for people: names, numbers, and standard output.

use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum;

use crate::error::Error;

/// The name of a variant, as arguments, tables and files have it.
pub(crate) fn name<T: ValueEnum>(value: T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Prints `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // The reader of a pipe has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Error::io("write", Path::new("stdout"))),
    }
}

/// A figure that may be missing.
pub(crate) fn or_dash<T>(value: Option<T>, dash: &str, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| dash.into(), show)
}

/// A count with a comma after every three digits.
pub(crate) fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// 3000000 as 3M, and 466000 as 466K.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        // Catches digits that nobody can read or that a measurement does not have.
        let shown = [7.44, 9.96, 68.4, 999.6, 1350.2, 1_234_567.0].map(nanos);
        assert_eq!(shown, ["7.4", "10", "68", "1,000", "1,350", "1,234,567"]);
        assert_eq!([0, 999, 1000, 466_000, 3_000_000].map(grouped), ["0", "999", "1,000", "466,000", "3,000,000"]);
        assert_eq!([0, 999, 1000, 466_000, 3_000_000].map(short), ["0", "999", "1K", "466K", "3M"]);
    }
}
