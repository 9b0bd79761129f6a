//! The concurrent peers: skip lists, a B+ tree and Masstree. Peers that do not copy the stored bytes get boxed keys and values: each insert copies both, as
//! the arenas do.

use std::ops::Bound::{Included, Unbounded};

use crossbeam_skiplist::SkipMap;
use fastskip_published::ConcurrentSkipList;
use masstree::{MassTree15, RangeBound};
use scc::{Guard, TreeIndex};

use super::store::{Done, Record, Settings, Store, store};

store! {
    /// crossbeam's `SkipMap`.
    CrossbeamList(SkipMap<Box<[u8]>, Box<[u8]>>);
    open(_settings) => SkipMap::new();
    // `insert` overwrites and never refuses; the check of the contents detects an overwrite.
    put(list, record) => list.insert(record.key.into(), record.value.into());
    get(list, key, read) => list.get(key).map(|entry| read(entry.value()));
    scan(list, from, most, each) => {
        let entries = list.range::<[u8], _>((Included(from), Unbounded));
        entries.take(most).for_each(|entry| each(entry.key(), entry.value()));
    };
    scan_all(list, each) => list.iter().for_each(|entry| each(entry.key(), entry.value()));
    scan_back(list, each) => list.iter().rev().for_each(|entry| each(entry.key(), entry.value()));
    delete(list, key, _seqno) => list.remove(key).is_some();
}

/// The number of writing workloads in a round, each with threads of its own: insert, mixed, mixed-95.
const WRITE_PHASES: usize = 3;

store! {
    /// The published `fastskip` 0.1.1, by another author. It cannot be read from its end.
    PublishedList(ConcurrentSkipList);
    // The list panics when more threads have written than it has shards, ended threads included. The thread that makes it
    // takes one shard for the head.
    open(settings) => ConcurrentSkipList::with_shards(1 + WRITE_PHASES * settings.shape.threads);
    insert(list, record) => list.insert(record.key, record.value);
    get(list, key, read) => list.get_live(key).map(read);
    scan(list, from, most, each) => {
        let Some(mut cursor) = list.cursor_at(from) else { return Ok(()) };
        for read in 0..most {
            if read > 0 && !cursor.next_entry() {
                break;
            }
            if let Some(entry) = cursor.entry() {
                each(entry.key, entry.value);
            }
        }
    };
    scan_all(list, each) => {
        // Stops at the first `None`: a call of `next` past the end would be unsound in this list.
        for entry in list.iter() {
            if !entry.is_tombstone {
                each(entry.key, entry.value);
            }
        }
    };
    delete(list, key, _seqno) => list.delete(key);
    memory_used(list) => list.memory_usage();
}

store! {
    /// scc's `TreeIndex`, a concurrent B+ tree. Reads take no lock.
    Tree(TreeIndex<Box<[u8]>, Box<[u8]>>);
    open(_settings) => TreeIndex::new();
    insert(tree, record) => tree.insert_sync(record.key.into(), record.value.into()).is_ok();
    get(tree, key, read) => tree.peek_with(key, |_, value| read(value));
    scan(tree, from, most, each) => {
        let guard = Guard::new();
        let entries = tree.range::<[u8], _>((Included(from), Unbounded), &guard);
        entries.take(most).for_each(|(key, value)| each(key, value));
    };
    scan_all(tree, each) => tree.iter(&Guard::new()).for_each(|(key, value)| each(key, value));
    scan_back(tree, each) => tree.iter(&Guard::new()).rev().for_each(|(key, value)| each(key, value));
    delete(tree, key, _seqno) => tree.remove_sync(key);
}

store! {
    /// `masstree`, a trie of concurrent B+ trees, with boxed values; it copies keys itself. Each call takes a guard, like calls of separate callers,
    /// and lends the value. Batches are not measured: batched inserts need owned keys, and there are no batched lookups. The tree is read only as a
    /// whole, because its ranges that begin at a key miss entries where keys share their first eight bytes.
    Masstree(MassTree15<Box<[u8]>>);
    open(_settings) => MassTree15::new();
    insert(tree, record) => tree.insert_with_guard(record.key, record.value.into(), &tree.guard()).is_none();
    get(tree, key, read) => tree.get_ref(key, &tree.guard()).map(|value| read(&value));
    scan_all(tree, each) => {
        let (all, guard) = (RangeBound::Unbounded, tree.guard());
        tree.scan_intra_leaf_batch_ref(all, all, |key, value| { each(key, value); true }, &guard);
    };
    scan_back(tree, each) => {
        let (all, guard) = (RangeBound::Unbounded, tree.guard());
        tree.scan_rev_batch_ref(all, all, |key, value| { each(key, value); true }, &guard);
    };
    delete(tree, key, _seqno) => tree.remove_with_guard(key, &tree.guard())?.is_some();
}
