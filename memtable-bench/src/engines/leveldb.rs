//! LevelDB: an LSM tree. Its binding sets no filter, no size of tables and no level's bound, and copies each value and key.

use db_key::Key as LevelKey;
use leveldb::batch::{Batch, Writebatch};
use leveldb::database::Database;
use leveldb::database::cache::Cache;
use leveldb::iterator::{Iterable, LevelDBIterator};
use leveldb::kv::KV;
use leveldb::options::{Options, ReadOptions, WriteOptions};

use super::engine::{BLOCK_BYTES, Done, Engine, Settings};
use crate::tables::Record;

pub(crate) struct Leveldb {
    db: Database<Key>,
    synced: bool,
}

/// A key as the binding wants it.
struct Key(Box<[u8]>);

impl LevelKey for Key {
    fn from_u8(key: &[u8]) -> Self {
        Self(key.into())
    }

    fn as_slice<T, F: Fn(&[u8]) -> T>(&self, read: F) -> T {
        read(&self.0)
    }
}

impl Leveldb {
    fn options(&self) -> WriteOptions {
        WriteOptions { sync: self.synced }
    }
}

impl Engine for Leveldb {
    fn open(settings: &Settings) -> Done<Self> {
        let mut options = Options::new();
        options.create_if_missing = true;
        options.write_buffer_size = Some(settings.memtable_bytes as usize);
        options.block_size = Some(BLOCK_BYTES);
        options.cache = Some(Cache::new(settings.cache_bytes as usize));
        Ok(Self { db: Database::open(&settings.dir, options)?, synced: settings.synced })
    }

    fn put(&self, record: Record<'_>) -> Done {
        Ok(self.db.put(self.options(), Key::from_u8(record.key), record.value)?)
    }

    fn put_batch<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        let mut batch = Writebatch::new();
        records.for_each(|record| batch.put(Key::from_u8(record.key), record.value));
        Ok(self.db.write(self.options(), &batch)?)
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        Ok(self.db.get_bytes(ReadOptions::new(), Key::from_u8(key))?.map(|value| read(&value)))
    }

    /// Its binding cannot flush: the log is synced.
    fn flush(&self) -> Done {
        Ok(self.db.write(WriteOptions { sync: true }, &Writebatch::new())?)
    }

    fn scan(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) -> Done {
        let from = Key::from_u8(from);
        let entries = self.db.iter(ReadOptions::new()).from(&from);
        entries.take(most).for_each(|(key, value)| each(&key.0, &value));
        Ok(())
    }
}
