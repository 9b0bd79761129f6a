//! TidesDB: an LSM tree in C. Each operation is a transaction; the binding lends the column family, so each looks it up, and copies what it reads.

use std::thread;
use std::time::Duration;

use tidesdb::{ColumnFamily, ColumnFamilyConfig, CompressionAlgorithm, Config, LogLevel, SyncMode, TidesDB};

use super::store::{BLOCK_BYTES, Done, Record, Settings, Store, store};

const RECORDS: &str = "records";
/// The rate of false positives of a filter of 10 bits a key.
const FALSE_POSITIVES: f64 = 0.0082;
/// The interval at which a wait checks.
const LOOK: Duration = Duration::from_millis(1);

fn records(db: &TidesDB) -> Done<ColumnFamily<'_>> {
    Ok(db.get_column_family(RECORDS)?)
}

fn open(settings: &Settings) -> Done<TidesDB> {
    let (shape, dir) = (&settings.shape, settings.dir.join("db"));
    // What is not synced at once is written by each commit, and synced later: it survives a killed process.
    let sync = if settings.synced { SyncMode::Full } else { SyncMode::Interval };
    let config = Config::new(dir).block_cache_size(shape.cache_bytes() as usize).memtable_sync_mode(sync);
    let db =
        TidesDB::open(config.memtable_write_buffer_size(shape.memtable_bytes() as usize).log_level(LogLevel::None))?;
    if records(&db).is_err() {
        let family = ColumnFamilyConfig::new().compression_algorithm(CompressionAlgorithm::None);
        let family = family.btree_klog_block_size(BLOCK_BYTES).enable_bloom_filter(true).bloom_fpr(FALSE_POSITIVES);
        db.create_column_family(RECORDS, family)?;
    }
    Ok(db)
}

store! {
    Tidesdb(TidesDB);
    open(settings) => open(settings)?;
    put(db, record) => {
        let mut transaction = db.begin_transaction()?;
        transaction.put(&records(db)?, record.key, record.value)?;
        transaction.commit()?;
    };
    put_batch(db, records_of) => {
        let (mut transaction, family) = (db.begin_transaction()?, records(db)?);
        for record in records_of {
            transaction.put(&family, record.key, record.value)?;
        }
        transaction.commit()?;
    };
    get(db, key, read) => match db.begin_transaction()?.get_notrack(&records(db)?, key) {
        Ok(value) => Some(read(&value)),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error.into()),
    };
    scan(db, from, most, each) => {
        let (transaction, family) = (db.begin_transaction()?, records(db)?);
        let mut entries = transaction.new_iterator(&family)?;
        entries.seek(from)?;
        for read in 0..most {
            if read > 0 && entries.next().is_err() || !entries.is_valid() {
                break;
            }
            let (key, value) = entries.key_value()?;
            each(&key, &value);
        }
    };
    flush(db) => {
        db.flush_memtable()?;
        while db.is_flushing() {
            thread::sleep(LOOK);
        }
        db.sync_wal()?;
    };
    settle(db) => {
        let family = records(db)?;
        while family.is_compacting() {
            thread::sleep(LOOK);
        }
    };
}
