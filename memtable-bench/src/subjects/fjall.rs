//! fjall: an LSM tree. The first of its levels holds four tables, and each next level ten times as many.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace,
    PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace,
};

use super::store::{BLOCK_BYTES, Done, FILTER_BITS, Record, Settings, Store, changed, store};

/// The interval at which a wait checks, and the number of checks without a compaction after which none is due.
const LOOK: Duration = Duration::from_millis(1);
const QUIET: u32 = 100;

pub(crate) struct Open {
    db: Database,
    records: Keyspace,
    synced: bool,
}

fn options(memtable_bytes: u64) -> KeyspaceCreateOptions {
    let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS as f32));
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes)
        .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(memtable_bytes)))
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES as u32))
        .filter_policy(FilterPolicy::all(filter))
        .data_block_compression_policy(CompressionPolicy::disabled())
        .index_block_compression_policy(CompressionPolicy::disabled())
}

/// Returns when no memtable waits for its flush.
fn flushed(records: &Keyspace) {
    while records.sealed_memtable_count() > 0 {
        thread::sleep(LOOK);
    }
}

/// Returns when everything is flushed, and no compaction is due. fjall does not report whether one is due, so the wait ends when none has run for a
/// while.
fn settle(db: &Database, records: &Keyspace) {
    flushed(records);
    let (mut quiet, mut completed) = (0, 0);
    while quiet < QUIET {
        let now = db.compactions_completed();
        quiet = if db.active_compactions() == 0 && now == completed { quiet + 1 } else { 0 };
        completed = now;
        thread::sleep(LOOK);
    }
}

fn scan(records: &Keyspace, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) -> Done {
    for entry in records.range(from..).take(most) {
        let (key, value) = entry.into_inner()?;
        each(&key, &value);
    }
    Ok(())
}

store! {
    Fjall(Open);
    open(settings) => {
        let (dir, shape) = (&settings.dir, &settings.shape);
        let builder = Database::builder(dir).cache_size(shape.cache_bytes()).journal_compression(CompressionType::None);
        let db = builder.open()?;
        let records = db.keyspace("records", || options(shape.memtable_bytes()))?;
        Open { db, records, synced: settings.synced }
    };
    put(of, record) => {
        of.records.insert(record.key, record.value)?;
        if of.synced {
            of.db.persist(PersistMode::SyncData)?;
        }
    };
    put_batch(of, records) => {
        let mut batch = of.db.batch();
        records.for_each(|record| batch.insert(&of.records, record.key, record.value));
        batch.commit()?;
    };
    get(of, key, read) => of.records.get(key)?.map(|value| read(&value));
    scan(of, from, most, each) => scan(&of.records, from, most, each)?;
    flush(of) => {
        of.db.persist(PersistMode::SyncAll)?;
        of.records.rotate_memtable()?;
        flushed(&of.records);
    };
    settle(of) => settle(&of.db, &of.records);
}

/// Reads the account in `$transaction`, and writes it.
macro_rules! move_amounts {
    ($transaction:ident, $accounts:expr, $from:ident, $to:ident) => {
        for (account, by) in [($from, -1), ($to, 1)] {
            let value = changed($transaction.get($accounts, account)?, by)?;
            $transaction.insert($accounts, account, value);
        }
    };
}

/// A subject that only does transactions.
macro_rules! transacting {
    ($(#[$doc:meta])* $name:ident: $db:ident, $records:ident, $of:ident $from:ident $to:ident $transfer:block) => {
        store! {
            $(#[$doc])*
            $name(($db, $records));
            open(settings) => {
                let builder = $db::builder(&settings.dir).cache_size(settings.shape.cache_bytes());
                let db = builder.journal_compression(CompressionType::None).open()?;
                let records = db.keyspace("records", || options(settings.shape.memtable_bytes()))?;
                (db, records)
            };
            put(of, record) => of.1.inner().insert(record.key, record.value)?;
            scan(of, from, most, each) => scan(of.1.inner(), from, most, each)?;
            flush(of) => {
                of.1.inner().rotate_memtable()?;
                flushed(of.1.inner());
            };
            settle(of) => settle(of.0.inner(), of.1.inner());
            transfer($of, $from, $to) => $transfer;
        }
    };
}

transacting! {
    /// Transactions that are tried again after a conflict.
    Optimistic: OptimisticTxDatabase, OptimisticTxKeyspace, of from to {
        let mut tries = 0;
        loop {
            let mut transaction = of.0.write_tx()?;
            tries += 1;
            move_amounts!(transaction, &of.1, from, to);
            if transaction.commit()?.is_ok() {
                break tries;
            }
        }
    }
}

transacting! {
    /// One writing transaction at a time; the next one waits.
    OneWriter: SingleWriterTxDatabase, SingleWriterTxKeyspace, of from to {
        let mut transaction = of.0.write_tx();
        move_amounts!(transaction, &of.1, from, to);
        transaction.commit()?;
        1
    }
}
