//! This workspace's tables.

use fastskip::{ConcurrentSkipList, Kind, Lookup, Op, Version};

use super::store::{Done, Record, Settings, Store, store};

store! {
    Fastskip(ConcurrentSkipList);
    open(settings) => ConcurrentSkipList::builder().shards(settings.shape.threads).huge_pages(true).build();
    insert(list, record) => list.insert(record.key, record.value);
    insert_batch(list, records) => {
        let batch: Vec<_> = records.map(|record| (record.key, record.value)).collect();
        list.insert_batch(&batch) == Ok(batch.len())
    };
    get(list, key, read) => list.get_live(key).map(read);
    get_many(list, keys, each) => list.get_many(keys).into_iter().flatten().for_each(each);
    scan(list, from, most, each) => {
        let Some(mut cursor) = list.cursor_at(from) else { return Ok(()) };
        for _ in 0..most {
            let Some(entry) = cursor.next_entry() else { break };
            each(entry.key, entry.value);
        }
    };
    scan_all(list, each) => {
        list.iter().filter(|entry| !entry.is_tombstone).for_each(|entry| each(entry.key, entry.value))
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

/// Whether a reader returns the version: it skips tombstones.
fn is_live(version: &Version<'_>) -> bool {
    version.kind == Kind::Value
}

fn value(found: Lookup<'_>) -> Option<&[u8]> {
    match found {
        Lookup::Value(value) => Some(value),
        _ => None,
    }
}

store! {
    /// A memtable. It is read as an engine reads it: the newest version of each key at a sequence number.
    Memtable(fastskip::Memtable);
    open(settings) => fastskip::Memtable::builder().shards(settings.shape.threads).huge_pages(true).build();
    insert(table, record) => table.put(record.key, record.number, record.value).is_ok();
    // The operations are built for each batch, as an engine builds them for each write.
    insert_batch(table, records) => {
        let mut records = records.peekable();
        let first_seqno = records.peek().map_or(0, |record| record.number);
        let ops: Vec<_> = records.map(|record| Op::Put { key: record.key, value: record.value }).collect();
        table.reserve(&ops).is_ok_and(|reservation| reservation.apply(first_seqno).stored == ops.len())
    };
    get(table, key, read) => value(table.get(key, NEWEST)).map(read);
    get_many(table, keys, each) => table.get_many(keys, NEWEST).into_iter().filter_map(value).for_each(each);
    // Reads by the cursor, as merging iterators do. Includes tombstones, since the lists of peers are read in full too.
    scan(table, from, most, each) => {
        let mut cursor = table.cursor();
        cursor.seek(from, NEWEST);
        cursor.take(most).for_each(|version| each(version.key, version.value));
    };
    scan_all(table, each) => table.iter(NEWEST).filter(is_live).for_each(|version| each(version.key, version.value));
    scan_back(table, each) => {
        table.iter(NEWEST).rev().filter(is_live).for_each(|version| each(version.key, version.value))
    };
    // Stores a tombstone even if the key is absent.
    delete(table, key, seqno) => table.delete(key, seqno).is_ok();
    // Reads every version, as a flush does.
    freeze_and_scan(table, each) => {
        table.freeze().all_versions().for_each(|version| each(version.key, version.value))
    };
    memory_used(table) => table.memory_usage();
    cas_failures(table) => table.stats().cas_failures;
}
