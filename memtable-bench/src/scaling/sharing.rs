//! What each table writes, in one operation, to cache lines that other threads write or read too: what many cores feel and two
//! do not. Read from the sources of the versions in `Cargo.lock`, not measured.
//!
//! Counted is the usual path: no retry, no split, no refill of an arena. A line is *hot* if every operation of that kind
//! writes it, wherever its key is: those writes come one after the other, however many cores there are. Other lines lie among
//! the entries: two threads meet on one only when their keys are neighbours. What only one thread writes, or nobody
//! has seen yet, is not shared.

use std::fmt::{self, Display};

use crate::memtable::Subject;

/// Writes of one subject in one operation, in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sharing {
    pub(crate) subject: Subject,
    pub(crate) insert: Writes,
    pub(crate) get: Option<Writes>,
    /// Which ones.
    pub(crate) because: &'static str,
}

/// Writes to shared cache lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Writes {
    pub(crate) hot: f64,
    pub(crate) among_entries: f64,
}

const fn writes(hot: f64, among_entries: f64) -> Writes {
    Writes { hot, among_entries }
}

const NONE: Writes = writes(0.0, 0.0);

/// A tower has two levels in the mean where each further one has probability 1/2, and one link of a neighbour is written for each.
const LINKS: f64 = 2.0;

/// All subjects.
pub(crate) const SHARING: [Sharing; 12] = [
    Sharing {
        subject: Subject::Fastskip,
        insert: writes(1.0, LINKS),
        get: Some(NONE),
        because: "a read-modify-write of the clock; a link on each level. Gate, counters and arena are the shard's own",
    },
    Sharing {
        subject: Subject::FastskipBatch,
        insert: writes(1.0, LINKS),
        get: Some(NONE),
        because: "as one by one: each entry of a batch is stamped by itself",
    },
    Sharing {
        subject: Subject::Memtable,
        insert: writes(0.0, LINKS),
        get: Some(NONE),
        because: "a link on each level. Sequence numbers are the caller's; gate, counters and arena are the shard's own",
    },
    Sharing { subject: Subject::MemtableBatch, insert: writes(0.0, LINKS), get: Some(NONE), because: "as one by one" },
    Sharing {
        subject: Subject::FastskipPublished,
        insert: writes(3.0, LINKS),
        get: Some(NONE),
        because: "sequence number, count of live keys, count of inserts; a link on each level",
    },
    Sharing {
        subject: Subject::CrossbeamSkiplist,
        insert: writes(2.0, LINKS),
        get: Some(writes(0.0, 2.0)),
        because: "seed of heights and length; a link on each level. A get counts a reference to its entry up and down",
    },
    Sharing {
        subject: Subject::Skl,
        insert: writes(4.0, 3.2),
        get: Some(NONE),
        because: "arena's end three times (node, key, value) and length; a link forward and one back on each of 1.6 levels",
    },
    Sharing {
        subject: Subject::Treeindex,
        insert: writes(0.0, 2.0),
        get: Some(NONE),
        because: "a leaf's slots and its order; splits lock a node now and then",
    },
    Sharing {
        subject: Subject::Btreemap,
        insert: writes(3.0, 1.0),
        get: Some(writes(2.0, 0.0)),
        because: "lock and unlock, for readers too, and the length; the leaf",
    },
    Sharing {
        subject: Subject::ShardedBtreemap,
        insert: writes(0.0, 4.0),
        get: Some(writes(0.0, 2.0)),
        because: "as the tree, under one lock of 16: two threads meet there once in 16 times",
    },
    Sharing {
        subject: Subject::Hashmap,
        insert: writes(3.0, 2.0),
        get: Some(writes(2.0, 0.0)),
        because: "lock and unlock, for readers too, and the count; a slot and its tag",
    },
    Sharing {
        subject: Subject::Vec,
        insert: writes(3.0, 1.0),
        get: None,
        because: "lock and unlock, the length; the next slot",
    },
];

/// The whole table, as text.
pub(crate) struct Static;

impl Display for Static {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Writes to shared cache lines in one operation, read from the sources: hot lines, which every")?;
        writeln!(f, "operation writes, and lines among the entries, where only neighbours meet.\n")?;
        writeln!(f, "  {:<18} {:>10} {:>6} {:>10} {:>6}", "", "insert hot", "among", "get hot", "among")?;
        for Sharing { subject, insert, get, because } in SHARING {
            let show = |writes: Option<f64>| writes.map_or_else(|| "-".into(), |writes| format!("{writes:.1}"));
            let (hot, among) = (show(get.map(|get| get.hot)), show(get.map(|get| get.among_entries)));
            let (name, Writes { hot: insert_hot, among_entries }) = (subject.name(), insert);
            writeln!(f, "  {name:<18} {insert_hot:>10.1} {among_entries:>6.1} {hot:>10} {among:>6}  {because}")?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memtable::Workload;

    #[test]
    fn every_subject_is_there_and_has_figures_of_what_it_can_do() {
        // Catches a new subject that nobody has read the source of.
        assert_eq!(SHARING.map(|sharing| sharing.subject), Subject::ALL);
        for Sharing { subject, get, .. } in SHARING {
            assert_eq!(get.is_some(), subject.can(Workload::Get) || subject.can(Workload::GetMany), "{subject:?}");
        }
    }
}
