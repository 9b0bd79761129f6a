//! fjall: an LSM tree. Its levels grow by ten from four tables on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::engine::{BLOCK_BYTES, Done, Engine, FILTER_BITS, Settings};
use crate::tables::Record;

/// How often a wait looks, and how often no compaction has to be seen.
const LOOK: Duration = Duration::from_millis(1);
const QUIET: u32 = 100;

pub(crate) struct Fjall {
    db: Database,
    records: Keyspace,
    synced: bool,
}

fn options(settings: &Settings) -> KeyspaceCreateOptions {
    let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS as f32));
    KeyspaceCreateOptions::default()
        .max_memtable_size(settings.memtable_bytes)
        .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(settings.memtable_bytes)))
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES as u32))
        .filter_policy(FilterPolicy::all(filter))
        .data_block_compression_policy(CompressionPolicy::disabled())
        .index_block_compression_policy(CompressionPolicy::disabled())
}

/// Waits until `is_done`.
fn within(limit: Duration, what: &str, mut is_done: impl FnMut() -> bool) -> Done {
    let begun = Instant::now();
    while !is_done() {
        if begun.elapsed() > limit {
            return Err(format!("it did not {what} within {} s", limit.as_secs()).into());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

impl Engine for Fjall {
    fn open(settings: &Settings) -> Done<Self> {
        let db = Database::builder(&settings.dir)
            .cache_size(settings.cache_bytes)
            .journal_compression(CompressionType::None)
            .open()?;
        let records = db.keyspace("records", || options(settings))?;
        Ok(Self { db, records, synced: settings.synced })
    }

    fn put(&self, record: Record<'_>) -> Done {
        self.records.insert(record.key, record.value)?;
        if self.synced { Ok(self.db.persist(PersistMode::SyncData)?) } else { Ok(()) }
    }

    fn put_batch<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        let mut batch = self.db.batch();
        records.for_each(|record| batch.insert(&self.records, record.key, record.value));
        Ok(batch.commit()?)
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        Ok(self.records.get(key)?.map(|value| read(&value)))
    }

    fn scan(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) -> Done {
        for entry in self.records.range(from..).take(most) {
            let (key, value) = entry.into_inner()?;
            each(&key, &value);
        }
        Ok(())
    }

    fn flush(&self) -> Done {
        self.db.persist(PersistMode::SyncAll)?;
        self.records.rotate_memtable()?;
        within(Duration::from_secs(60), "flush", || self.records.sealed_memtable_count() == 0)
    }

    /// It does not tell whether a compaction is due: none having run for a while must do.
    fn settle(&self) -> Done {
        let (mut quiet, mut completed) = (0, 0);
        within(Duration::from_secs(300), "settle", || {
            let now = self.db.compactions_completed();
            let is_quiet = self.db.active_compactions() == 0 && now == completed;
            quiet = if is_quiet { quiet + 1 } else { 0 };
            completed = now;
            quiet == QUIET
        })
    }
}
