//! The recorded counts: a line of text for each case, and the compiler, since another compiler may inline other functions.

use std::collections::BTreeMap;
use std::fmt;

/// The relative growth and shrinkage of counts that is allowed.
const TOLERATED: f64 = 0.03;
/// The largest rounding error of recorded counts.
const ROUNDED: f64 = 0.006;

/// The counts of one operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Executed instructions.
    pub instructions: f64,
    /// Atomic read-modify-writes.
    pub atomics: f64,
}

/// The counts of all cases.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The version of the compiler, as `rustc --version` prints it.
    pub compiler: String,
    /// The counts of each case, by its name.
    pub cases: BTreeMap<String, Counts>,
}

/// The differences between measured and recorded counts, as sentences.
#[derive(Debug, Default, PartialEq)]
pub struct Comparison {
    /// Counts that grew, are not recorded, or were not measured.
    pub wrong: Vec<String>,
    /// Counts that shrank, so that the record is too generous.
    pub shrunk: Vec<String>,
}

impl Record {
    /// The inverse of `to_string`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let compiler = lines.next().ok_or("expected a compiler and counts, found nothing")?.to_owned();
        let case = |line: &str| {
            let [name, instructions, atomics] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
            let (instructions, atomics) = (instructions.parse().ok()?, atomics.parse().ok()?);
            Some((name.to_owned(), Counts { instructions, atomics }))
        };
        let cases = lines.map(|line| case(line).ok_or_else(|| format!("expected a case and two counts, found {line}")));
        Ok(Self { compiler, cases: cases.collect::<Result<_, _>>()? })
    }

    /// Compares `found` with this record. If only a part of the cases was counted (`is_part`), the others may be absent.
    pub fn compare(&self, found: &Self, is_part: bool) -> Comparison {
        let mut comparison = Comparison::default();
        for (name, now) in &found.cases {
            let Some(then) = self.cases.get(name) else {
                comparison.wrong.push(format!("{name}: counted, but not recorded"));
                continue;
            };
            for (what, recorded, found) in [
                ("instructions", then.instructions, now.instructions),
                ("atomic read-modify-writes", then.atomics, now.atomics),
            ] {
                let change = if recorded > 0.0 { (found / recorded - 1.0) * 100.0 } else { f64::INFINITY };
                let says =
                    format!("{name}: {what} an operation: recorded {recorded:.2}, found {found:.2} ({change:+.1} %)");
                if found > recorded * (1.0 + TOLERATED) + ROUNDED {
                    comparison.wrong.push(says);
                } else if found < recorded * (1.0 - TOLERATED) - ROUNDED {
                    comparison.shrunk.push(says);
                }
            }
        }
        let missed = self.cases.keys().filter(|name| !is_part && !found.cases.contains_key(*name));
        comparison.wrong.extend(missed.map(|name| format!("{name}: recorded, but not counted")));
        comparison
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.compiler)?;
        for (name, Counts { instructions, atomics }) in &self.cases {
            writeln!(f, "{name:<28} {instructions:>8.1} {atomics:>6.2}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(cases: &[(&str, f64, f64)]) -> Record {
        let case = |&(name, instructions, atomics): &(&str, f64, f64)| (name.into(), Counts { instructions, atomics });
        Record { compiler: "rustc 1.95.0".into(), cases: cases.iter().map(case).collect() }
    }

    #[test]
    fn growth_beyond_three_per_cent_is_wrong_and_names_figure_recorded_and_found() {
        // Catches a limit that accepts growth, or that rounding exceeds; a count of atomic operations that is rounded to zero; and a case that
        // is no longer counted.
        let recorded = record(&[("get", 400.0, 0.0), ("insert", 1000.0, 4.0)]);
        let compare =
            |get, atomics| recorded.compare(&record(&[("get", get, atomics), ("insert", 1000.0, 4.004)]), false);
        for (get, atomics, wrong, shrunk) in [
            (400.0, 0.0, "", ""),
            (411.9, 0.004, "", ""),
            (388.1, 0.0, "", ""),
            (412.1, 0.0, "get: instructions an operation: recorded 400.00, found 412.10 (+3.0 %)", ""),
            (386.0, 0.0, "", "get: instructions an operation: recorded 400.00, found 386.00 (-3.5 %)"),
            (400.0, 1.0, "get: atomic read-modify-writes an operation: recorded 0.00, found 1.00 (+inf %)", ""),
        ] {
            let found = compare(get, atomics);
            assert_eq!((found.wrong.concat(), found.shrunk.concat()), (wrong.into(), shrunk.into()));
        }
        let one = record(&[("scan", 60.0, 0.0)]);
        assert_eq!(recorded.compare(&one, true).wrong, ["scan: counted, but not recorded"]);
        assert_eq!(recorded.compare(&one, false).wrong.len(), 3);
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        // Catches a new record that the next run cannot read, and a line that is skipped.
        let written = record(&[("list/get.random", 772.1, 0.0), ("list/insert.random", 1725.3, 4.25)]);
        assert_eq!(Record::parse(&format!("# What it is.\n\n{written}")), Ok(written));
        assert!(Record::parse("").is_err() && Record::parse("rustc 1.95.0\nlist/get.random 772.1\n").is_err());
    }
}
