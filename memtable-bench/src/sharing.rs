//! What each table writes, in one operation, to cache lines that other threads write or read too: what many cores feel and two
//! do not. Read from the sources of the versions in `Cargo.lock`, not measured.
//!
//! Counted is the usual path: no retry, no split, no refill of an arena. A line is *hot* if every operation of that kind
//! writes it, wherever its key is: those writes come one after the other, however many cores there are. Other lines lie among
//! the entries: two threads meet on one only when their keys are neighbours. What only one thread writes, or nobody has seen
//! yet, is not shared.

use crate::sheet::Sheet;
use crate::spec::Subject;
use crate::text::{name, or_dash};

pub(crate) const EXPLANATION: &str = "\
Writes to shared cache lines in one operation, read from the sources: hot lines, which every operation writes,
and lines among the entries, where only neighbours meet.
";

/// Mean writes to hot lines, and to lines among the entries.
type Writes = (f64, f64);

const NONE: Option<Writes> = Some((0.0, 0.0));

/// A tower has two levels in the mean where each further one has probability 1/2, and one link of a neighbour is written for
/// each.
const LINKS: f64 = 2.0;

/// Each subject's writes in an insert and in a get, and which ones they are.
#[rustfmt::skip]
const SHARING: [(Subject, Writes, Option<Writes>, &str); 12] = [
    (Subject::Fastskip, (1.0, LINKS), NONE,
        "a read-modify-write of the clock; a link on each level. Gate, counters and arena are the shard's own"),
    (Subject::FastskipBatch, (1.0, LINKS), NONE,
        "as one by one: each entry of a batch is stamped by itself"),
    (Subject::Memtable, (0.0, LINKS), NONE,
        "a link on each level. Sequence numbers are the caller's; gate, counters and arena are the shard's own"),
    (Subject::MemtableBatch, (0.0, LINKS), NONE,
        "as one by one"),
    (Subject::FastskipPublished, (3.0, LINKS), NONE,
        "sequence number, count of live keys, count of inserts; a link on each level"),
    (Subject::CrossbeamSkiplist, (2.0, LINKS), Some((0.0, 2.0)),
        "seed of heights and length; a link on each level. A get counts a reference to its entry up and down"),
    (Subject::Skl, (4.0, 3.2), NONE,
        "arena's end three times (node, key, value) and length; a link forward and one back on each of 1.6 levels"),
    (Subject::Treeindex, (0.0, 2.0), NONE,
        "a leaf's slots and its order; splits lock a node now and then"),
    (Subject::Btreemap, (3.0, 1.0), Some((2.0, 0.0)),
        "lock and unlock, for readers too, and the length; the leaf"),
    (Subject::ShardedBtreemap, (0.0, 4.0), Some((0.0, 2.0)),
        "as the tree, under one lock of 16: two threads meet there once in 16 times"),
    (Subject::Hashmap, (3.0, 2.0), Some((2.0, 0.0)),
        "lock and unlock, for readers too, and the count; a slot and its tag"),
    (Subject::Vec, (3.0, 1.0), None,
        "lock and unlock, the length; the next slot"),
];

/// The whole table.
pub(crate) fn sheet() -> Sheet {
    let mut sheet = Sheet::new(["", "insert, hot", "among entries", "get, hot", "among entries", "which"]);
    let show = |writes: Option<f64>| or_dash(writes, "–", |writes| format!("{writes:.1}"));
    let columns = |(hot, among): Writes| [hot, among].map(|writes| show(Some(writes)));
    let row = |(subject, insert, get, which): (Subject, Writes, Option<Writes>, &str)| {
        let [insert, get] = [columns(insert), get.map_or([show(None), show(None)], columns)];
        [vec![name(subject)], insert.to_vec(), get.to_vec(), vec![which.to_owned()]].concat()
    };
    sheet.rows = SHARING.into_iter().map(row).collect();
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Workload::{Get, GetMany};

    #[test]
    fn every_subject_is_there_and_has_figures_of_what_it_can_do() {
        // Catches a new subject of which nobody has read the source.
        assert_eq!(SHARING.map(|sharing| sharing.0), Subject::all());
        assert!(SHARING.iter().all(|(subject, _, get, _)| get.is_some() == subject.can_any(&[Get, GetMany])));
    }
}
