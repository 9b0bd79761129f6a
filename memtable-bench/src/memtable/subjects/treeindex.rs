//! scc's `TreeIndex`, a concurrent B+ tree of boxed keys and values. Reads take no lock.

use std::ops::Bound;

use scc::{Guard, TreeIndex};

use super::super::shape::Shape;
use super::{Delete, Get, Insert, Ordered, Record, ScanBack, Seek};

pub(crate) struct Tree(TreeIndex<Box<[u8]>, Box<[u8]>>);

impl Insert for Tree {
    fn new(_shape: &Shape) -> Self {
        Self(TreeIndex::new())
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|record| self.0.insert_sync(record.key.into(), record.value.into()).is_ok()).count()
    }
}

impl Get for Tree {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.peek_with(key, |_, value| read(value))
    }
}

impl Ordered for Tree {
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter(&Guard::new()).for_each(|(key, value)| each(key, value));
    }
}

impl Seek for Tree {
    fn seek(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) {
        let guard = Guard::new();
        let entries = self.0.range::<[u8], _>((Bound::Included(from), Bound::Unbounded), &guard);
        entries.take(most).for_each(|(key, value)| each(key, value));
    }
}

impl ScanBack for Tree {
    fn scan_back(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter(&Guard::new()).rev().for_each(|(key, value)| each(key, value));
    }
}

impl Delete for Tree {
    fn delete(&self, key: &[u8], _seqno: u64) -> bool {
        self.0.remove_sync(key)
    }
}
