//! crossbeam's `SkipMap` of boxed keys and values: it owns what it stores, so each insert copies both, as the arenas do.

use std::ops::Bound;

use crossbeam_skiplist::SkipMap;

use super::super::shape::Shape;
use super::{Delete, Get, Insert, Ordered, Record, ScanBack, Seek};

pub(crate) struct CrossbeamList(SkipMap<Box<[u8]>, Box<[u8]>>);

impl Insert for CrossbeamList {
    fn new(_shape: &Shape) -> Self {
        Self(SkipMap::new())
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        // It overwrites, so that it takes everything; that nothing was overwritten shows in the check of the scan.
        records.fold(0, |stored, record| {
            self.0.insert(record.key.into(), record.value.into());
            stored + 1
        })
    }
}

impl Get for CrossbeamList {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get(key).map(|entry| read(entry.value()))
    }
}

impl Ordered for CrossbeamList {
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter().for_each(|entry| each(entry.key(), entry.value()));
    }
}

impl Seek for CrossbeamList {
    fn seek(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) {
        let entries = self.0.range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
        entries.take(most).for_each(|entry| each(entry.key(), entry.value()));
    }
}

impl ScanBack for CrossbeamList {
    fn scan_back(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter().rev().for_each(|entry| each(entry.key(), entry.value()));
    }
}

impl Delete for CrossbeamList {
    fn delete(&self, key: &[u8], _seqno: u64) -> bool {
        self.0.remove(key).is_some()
    }
}
