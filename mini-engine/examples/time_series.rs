//! Four writers store measurements, and readers read the newest ones and a span of time. One range tombstone for each series removes old
//! measurements, however many there are. `cargo run -p mini-engine --example time_series`

use std::thread;

use mini_engine::{Db, Durability, Result, Slice, WriteBatch};

const SERIES: u16 = 4;
/// The number of measurements of each series, one a second.
const SECONDS: u64 = 20_000;

/// The series comes first, so that one series is one range; then the time in big-endian form, so that it sorts by value.
fn key(series: u16, second: u64) -> [u8; 10] {
    let mut key = [0; 10];
    key[..2].copy_from_slice(&series.to_be_bytes());
    key[2..].copy_from_slice(&second.to_be_bytes());
    key
}

/// Writers need no lock and no order among them. A minute is one batch: this needs fewer calls, and a crash leaves all of the minute or nothing.
fn record(db: &Db, series: u16) -> Result<()> {
    let mut minute = WriteBatch::new();
    for second in 0..SECONDS {
        minute.insert(key(series, second), (second as f64 / 10.0).to_le_bytes())?;
        if minute.len() == 60 || second + 1 == SECONDS {
            db.write(&minute, Durability::Buffered)?;
            minute.clear();
        }
    }
    Ok(())
}

/// Removes measurements older than `second` from all series at once, with one range tombstone for each series. From now on reads skip the
/// covered measurements; later compactions drop them.
fn keep_from(db: &Db, second: u64) -> Result<()> {
    let mut batch = WriteBatch::new();
    for series in 0..SERIES {
        batch.remove_range(key(series, 0)..key(series, second))?;
    }
    db.write(batch, Durability::Synced).map(drop)
}

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let opened = Db::builder(directory.path()).memtable_bytes(1 << 20).open()?;
    let db = &opened;
    thread::scope(|scope| {
        let writers: Vec<_> = (0..SERIES).map(|series| scope.spawn(move || record(db, series))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer"))
    })?;
    db.persist(Durability::Synced)?; // One sync for everything so far.

    // The newest measurement, and the mean of a span of time.
    let (newest, _) = db.prefix(2_u16.to_be_bytes()).next_back().expect("series 2 is not empty")?;
    assert_eq!(*newest, key(2, SECONDS - 1));
    let value = |record: Result<(Slice, Slice)>| Ok(f64::from_le_bytes(record?.1[..].try_into().expect("8 bytes")));
    let values: Vec<f64> = db.range(key(2, 600)..key(2, 660)).map(value).collect::<Result<_>>()?;
    println!("the mean of minute 10 is {:.2}", values.iter().sum::<f64>() / values.len() as f64);
    assert_eq!(values.len(), 60);

    db.flush()?;
    let bytes = || db.metrics().levels.iter().map(|level| level.bytes).sum::<u64>();
    let before = bytes();
    keep_from(db, SECONDS - 3_600)?;
    assert_eq!(db.iter().count() as u64, u64::from(SERIES) * 3_600);
    // A compaction of the old range frees its space at once; without it, later compactions do.
    db.compact_range(..)?;
    println!("{before} bytes before, {} after", bytes());
    assert!(bytes() < before / 2);
    opened.close()
}
