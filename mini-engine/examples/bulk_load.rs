//! Loads sorted data directly into tables, without the log and the memtable, and unsorted data in
//! batches. `cargo run -p mini-engine --example bulk_load`

use mini_engine::{Db, Durability, MemtableKind, WriteBatch};

const RECORDS: u64 = 200_000;

/// The key of the `number`-th record in sorted order.
fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn shuffled() -> impl Iterator<Item = [u8; 8]> {
    (0..RECORDS).map(|n| key((n * 7_919) % RECORDS))
}

fn report(what: &str, db: &Db) {
    let metrics = db.metrics();
    let tables: u64 = metrics.levels.iter().map(|level| level.tables).sum();
    let written: u64 = metrics.levels.iter().map(|level| level.written).sum();
    println!(
        "{what}: tables: {tables}; written: {} KiB of log, {} KiB of tables",
        metrics.wal_bytes >> 10,
        written >> 10
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;

    // Sorted data with distinct keys: each entry is written once. All entries become visible at once, and are durable when the call returns; a
    // crash before that leaves none of them. Entries are not collected in memory, so they may come from a file of any size.
    let sorted = Db::open(directory.path().join("sorted"))?;
    sorted.ingest((0..RECORDS).map(|number| (key(number), number.to_string())))?;
    assert_eq!(sorted.iter().count() as u64, RECORDS);
    report("ingested", &sorted);

    // Unsorted data is refused, and none of it is stored.
    let refused = sorted.ingest([("z", "1"), ("a", "2")]);
    println!("out of order: {}", refused.unwrap_err());
    assert!(!sorted.contains_key("z")?);

    // Unsorted data: batches of some hundred entries, and one sync at the end. A vector memtable is sorted once, when it is flushed, which
    // suits a load without reads.
    let path = directory.path().join("unsorted");
    let loading = Db::builder(&path).memtable_kind(MemtableKind::Vector).memtable_bytes(4 << 20).open()?;
    let mut batch = WriteBatch::new();
    for (number, key) in shuffled().enumerate() {
        batch.insert(key, number.to_string())?;
        if batch.len() == 500 {
            loading.write(&batch, Durability::Buffered)?;
            batch.clear();
        }
    }
    loading.write(&batch, Durability::Synced)?;
    report("batches", &loading);
    loading.close()?;

    // The kind of the memtable is not stored on disk: the reopened database uses the default kind, is at rest, and has one run.
    let db = Db::open(&path)?;
    db.compact_range(..)?;
    assert_eq!(db.iter().count() as u64, RECORDS);
    assert_eq!(db.first()?.map(|(key, _)| key.to_vec()), Some(key(0).to_vec()));
    report("compacted", &db);
    db.close()?;
    Ok(())
}
