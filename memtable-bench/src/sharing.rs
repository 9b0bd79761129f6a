//! What each table writes, in one operation, to cache lines that other threads write or read too: what many cores feel and two
//! do not. Read from the sources of the versions in `Cargo.lock`, not measured.
//!
//! Counted is the usual path: no retry, no split, no refill of an arena. A line is *hot* if every operation of that kind
//! writes it, wherever its key is: those writes come one after the other, however many cores there are. Other lines lie among
//! the entries: two threads meet on one only when their keys are neighbours. What only one thread writes, or nobody has seen
//! yet, is not shared.
//!
//! `sharing.txt` has the mean writes to hot lines and to lines among the entries, in an insert and in a get. A tower of the
//! peers' skip lists has two levels in the mean, where each further one has probability 1/2, and a link of a neighbour is
//! written for each. Our lists have one link and blocks of hints: adding one writes the header, the ends of both rows, and in six
//! of ten cases the fourth line.

use crate::text::Sheet;

pub(crate) const EXPLANATION: &str = "\
Writes to shared cache lines in one operation, read from the sources: hot lines, which every operation writes,
and lines among the entries, where only neighbours meet.
";

/// The whole table.
pub(crate) fn sheet() -> Sheet {
    let mut lines = include_str!("sharing.txt").lines().map(|line| line.split(" | ").map(str::trim));
    let head: Vec<_> = lines.next().into_iter().flatten().collect();
    Sheet::new(head, lines.map(|cells| cells.map(Into::into).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Workload::{Get, GetMany};
    use crate::spec::{Store, Subject};
    use crate::text::name;

    #[test]
    fn every_subject_is_there_and_has_figures_of_what_it_can_do() {
        // Catches a new subject of which nobody has read the source.
        let gets = |row: &Vec<String>| (row.len(), row[0].clone(), row[3].parse::<f64>().is_ok());
        let expected = Subject::of(Store::Table).map(|subject| (6, name(subject), subject.can_any(&[Get, GetMany])));
        assert!(sheet().rows.iter().map(gets).eq(expected));
    }
}
