//! This workspace's tables, one by one and in batches.

use fastskip::{ConcurrentSkipList, Kind, Lookup, Memtable, Op, Version};

use super::table::{Record, Table, in_batches, table};
use crate::spec::Shape;

table! {
    Fastskip<const BATCHED: bool>(ConcurrentSkipList);
    new(shape) => ConcurrentSkipList::builder().shards(shape.threads).huge_pages(true).build();
    insert_all(list, records) => {
        if !BATCHED {
            return records.filter(|record| list.insert(record.key, record.value)).count();
        }
        let mut stored = 0;
        in_batches(records.map(|record| (record.key, record.value)), |batch| {
            stored += list.insert_batch(&batch).unwrap_or(0);
        });
        stored
    };
    scan(list, each) => list.iter().filter(|entry| !entry.is_tombstone).for_each(|entry| each(entry.key, entry.value));
    get(list, key, read) => list.get_live(key).map(read);
    get_many(list, keys, each) => in_batches(keys, |batch| list.get_many(&batch).into_iter().flatten().for_each(&mut each));
    seek(list, from, most, each) => {
        let Some(mut cursor) = list.cursor_at(from) else { return };
        for _ in 0..most {
            let Some(entry) = cursor.next_entry() else { return };
            each(entry.key, entry.value);
        }
    };
    scan_back(list, each) => {
        list.iter().rev().filter(|entry| !entry.is_tombstone).for_each(|entry| each(entry.key, entry.value))
    };
    delete(list, key, _seqno) => list.delete(key);
    freeze_and_scan(list, each) => {
        list.freeze();
        list.iter().filter(|entry| !entry.is_tombstone).for_each(|entry| each(entry.key, entry.value));
    };
    memory_used(list) => list.memory_usage();
    cas_failures(list) => list.stats().cas_failures;
}

/// A sequence number at which every write is visible.
const NEWEST: u64 = u64::MAX;

/// A reader skips what is deleted.
fn is_live(version: &Version<'_>) -> bool {
    version.kind == Kind::Value
}

fn value(found: Lookup<'_>) -> Option<&[u8]> {
    match found {
        Lookup::Value(value) => Some(value),
        _ => None,
    }
}

table! {
    /// A memtable. It is read as an engine reads it: the newest version of each key at a sequence number.
    VersionedTable<const BATCHED: bool>(Memtable);
    new(shape) => Memtable::builder().shards(shape.threads).huge_pages(true).build();
    insert_all(table, records) => {
        if !BATCHED {
            return records.filter(|record| table.put(record.key, record.number, record.value).is_ok()).count();
        }
        let mut stored = 0;
        let mut records = records.peekable();
        let mut first_seqno = records.peek().map_or(0, |record| record.number);
        // The operations are made anew for each batch, as an engine does for each write it is given.
        in_batches(records.map(|record| Op::Put { key: record.key, value: record.value }), |ops| {
            stored += table.reserve(&ops).map_or(0, |reservation| reservation.apply(first_seqno));
            first_seqno += ops.len() as u64;
        });
        stored
    };
    scan(table, each) => table.iter(NEWEST).filter(is_live).for_each(|version| each(version.key, version.value));
    get(table, key, read) => value(table.get(key, NEWEST)).map(read);
    get_many(table, keys, each) => {
        in_batches(keys, |batch| table.get_many(&batch, NEWEST).into_iter().filter_map(value).for_each(&mut each))
    };
    seek(table, from, most, each) => {
        // By the cursor, as merging iterators read it, and whatever kind an entry has, as the list peers are read.
        let mut cursor = table.cursor();
        cursor.seek(from, NEWEST);
        cursor.take(most).for_each(|version| each(version.key, version.value));
    };
    scan_back(table, each) => {
        table.iter(NEWEST).rev().filter(is_live).for_each(|version| each(version.key, version.value))
    };
    // It stores the tombstone whether the key is there or not.
    delete(table, key, seqno) => table.delete(key, seqno).is_ok();
    // Every version, as a flush writes them.
    freeze_and_scan(table, each) => {
        table.freeze().all_versions().for_each(|version| each(version.key, version.value))
    };
    memory_used(table) => table.memory_usage();
    cas_failures(table) => table.stats().cas_failures;
}
