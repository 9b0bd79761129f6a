//! `Mutex<Vec>` of boxed keys and values, appended to and sorted afterwards: the price of storing without order, and then of
//! order by the fastest means. It finds nothing before it is sorted, so it is a floor and no peer.

use std::sync::{Mutex, PoisonError};

use super::super::shape::Shape;
use super::{Insert, Ordered, Record};

type Pair = (Box<[u8]>, Box<[u8]>);

pub(crate) struct LockedVec(Mutex<Vec<Pair>>);

impl LockedVec {
    /// Sorts the records by key.
    pub(crate) fn sort(&mut self) {
        let pairs = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        pairs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    }
}

/// In the order that it has, which is no order before it is sorted.
impl Ordered for LockedVec {
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        let pairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.iter().for_each(|(key, value)| each(key, value));
    }
}

impl Insert for LockedVec {
    fn new(_shape: &Shape) -> Self {
        Self(Mutex::default())
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        let store = |record: Record<'_>| {
            let pair = (record.key.into(), record.value.into());
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pair);
        };
        records.map(store).count()
    }
}
