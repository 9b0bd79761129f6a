//! The tables that compactions could not read and therefore avoid.
//!
//! A compaction that failed because of one of its inputs would fail again, and its other inputs would wait. So such a table is avoided: no plan
//! includes it, or a table that could be compacted only together with it (the rule of `plan.rs`); all other compactions continue. Its data stays in
//! place. After a while the table is tried again, with growing delays: a device may recover, and a file may be restored.
//!
//! The list of damaged tables is kept in memory only. The next open finds the damage again, or quarantines the table.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::error::Error;

const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The tables by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Damage {
    tables: BTreeMap<u64, Damaged>,
    changes: u64,
}

#[derive(Debug, Clone)]
struct Damaged {
    file: PathBuf,
    error: Error,
    /// The time of the next try; `None` during a try.
    until: Option<Instant>,
    delay: Duration,
}

impl Damage {
    /// Records that a compaction failed to read table `number`, whose file is `file`.
    pub(crate) fn note(&mut self, number: u64, file: PathBuf, error: Error, now: Instant) {
        self.changes += 1;
        let delay = self.tables.get(&number).map_or(FIRST_DELAY, |known| MAX_DELAY.min(known.delay * 2));
        self.tables.insert(number, Damaged { file, error, until: Some(now + delay), delay });
    }

    /// Whether no compaction may take table `number`.
    pub(crate) fn is_avoided(&self, number: u64) -> bool {
        self.tables.get(&number).is_some_and(|table| table.until.is_some())
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Lets compactions try the tables whose delay has passed. Returns whether there are such tables.
    pub(crate) fn retry(&mut self, now: Instant) -> bool {
        let mut due = self.tables.values_mut().filter(|table| table.until.is_some_and(|until| until <= now)).peekable();
        let any = due.peek().is_some();
        due.for_each(|table| table.until = None);
        self.changes += u64::from(any);
        any
    }

    pub(crate) fn next_retry(&self) -> Option<Instant> {
        self.tables.values().filter_map(|table| table.until).min()
    }

    /// Called when a compaction has read these tables to their end.
    pub(crate) fn forget(&mut self, numbers: impl IntoIterator<Item = u64>) {
        if !self.is_empty() {
            self.changes += 1;
            numbers.into_iter().for_each(|number| drop(self.tables.remove(&number)));
        }
    }

    /// The error of reading the first damaged table.
    pub(crate) fn cause(&self) -> Option<&Error> {
        self.tables.values().next().map(|table| &table.error)
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.tables.values().map(|table| table.file.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_damaged_table_is_avoided_and_tried_ever_more_rarely() {
        // Catches a damaged table that is never tried again, one that makes every compaction fail, and one that is still avoided after it was read.
        let (mut damage, begun) = (Damage::default(), Instant::now());
        let mut now = begun;
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            damage.note(7, "000007.sst".into(), Error::corruption(Path::new("000007.sst"), 0, "torn"), now);
            assert!(damage.is_avoided(7) && !damage.is_avoided(8));
            assert_eq!(damage.next_retry(), Some(now + Duration::from_secs(seconds)));
            assert!(
                !damage.retry(now + Duration::from_secs(seconds) - Duration::from_nanos(1)) && damage.is_avoided(7)
            );
            now += Duration::from_secs(seconds);
            assert!(damage.retry(now) && !damage.retry(now));
            assert!(!damage.is_avoided(7) && damage.cause().is_some());
            assert_eq!((damage.next_retry(), damage.files()), (None, vec![PathBuf::from("000007.sst")]));
        }
        damage.forget([6, 7]);
        assert!(damage.is_empty());
    }
}
