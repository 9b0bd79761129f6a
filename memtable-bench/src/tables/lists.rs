//! The concurrent peers: skip lists and a B+ tree. Those that do not copy what they store get boxed keys and values: each
//! insert copies both, as the arenas do.

use std::ops::Bound::{Included, Unbounded};

use crossbeam_skiplist::SkipMap;
use fastskip_published::ConcurrentSkipList;
use scc::{Guard, TreeIndex};

use super::table::{Record, Table, table};
use crate::spec::Shape;

table! {
    /// crossbeam's `SkipMap`.
    CrossbeamList(SkipMap<Box<[u8]>, Box<[u8]>>);
    new(_shape) => SkipMap::new();
    // It overwrites, so it takes everything; the check of the scan shows whether anything was overwritten.
    insert(list, record) => {
        list.insert(record.key.into(), record.value.into());
        true
    };
    scan(list, each) => list.iter().for_each(|entry| each(entry.key(), entry.value()));
    get(list, key, read) => list.get(key).map(|entry| read(entry.value()));
    seek(list, from, most, each) => {
        let entries = list.range::<[u8], _>((Included(from), Unbounded));
        entries.take(most).for_each(|entry| each(entry.key(), entry.value()));
    };
    scan_back(list, each) => list.iter().rev().for_each(|entry| each(entry.key(), entry.value()));
    delete(list, key, _seqno) => list.remove(key).is_some();
}

/// The workloads of a round that write, each in threads of its own: insert, mixed, mixed-95.
const WRITE_PHASES: usize = 3;

table! {
    /// The published `fastskip` 0.1.1, by another author. It cannot be read from its end.
    PublishedList(ConcurrentSkipList);
    // It panics when more threads have written than it has shards, ended ones included; and the thread that makes it takes
    // one for its head.
    new(shape) => ConcurrentSkipList::with_shards(1 + WRITE_PHASES * shape.threads);
    insert(list, record) => list.insert(record.key, record.value);
    scan(list, each) => {
        // Stops at the first `None`: its iterator must not be asked again past the end.
        for entry in list.iter() {
            if !entry.is_tombstone {
                each(entry.key, entry.value);
            }
        }
    };
    get(list, key, read) => list.get_live(key).map(read);
    seek(list, from, most, each) => {
        let Some(mut cursor) = list.cursor_at(from) else { return };
        for read in 0..most {
            if read > 0 && !cursor.next_entry() {
                return;
            }
            if let Some(entry) = cursor.entry() {
                each(entry.key, entry.value);
            }
        }
    };
    delete(list, key, _seqno) => list.delete(key);
    memory_used(list) => list.memory_usage();
}

table! {
    /// scc's `TreeIndex`, a concurrent B+ tree. Reads take no lock.
    Tree(TreeIndex<Box<[u8]>, Box<[u8]>>);
    new(_shape) => TreeIndex::new();
    insert(tree, record) => tree.insert_sync(record.key.into(), record.value.into()).is_ok();
    scan(tree, each) => tree.iter(&Guard::new()).for_each(|(key, value)| each(key, value));
    get(tree, key, read) => tree.peek_with(key, |_, value| read(value));
    seek(tree, from, most, each) => {
        let guard = Guard::new();
        let entries = tree.range::<[u8], _>((Included(from), Unbounded), &guard);
        entries.take(most).for_each(|(key, value)| each(key, value));
    };
    scan_back(tree, each) => tree.iter(&Guard::new()).rev().for_each(|(key, value)| each(key, value));
    delete(tree, key, _seqno) => tree.remove_sync(key);
}
