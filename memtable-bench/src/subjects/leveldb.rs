//! LevelDB: an LSM tree. Its binding cannot set a filter, the size of tables or the bound of a level, and copies each value and key.

use db_key::Key as LevelKey;
use leveldb::batch::{Batch, Writebatch};
use leveldb::database::Database;
use leveldb::database::cache::Cache;
use leveldb::iterator::{Iterable, LevelDBIterator};
use leveldb::kv::KV;
use leveldb::options::{Options, ReadOptions, WriteOptions};

use super::store::{BLOCK_BYTES, Done, Record, Settings, Store, store};

pub(crate) struct Open {
    db: Database<Key>,
    synced: bool,
}

/// A key of the type that the binding requires.
struct Key(Box<[u8]>);

impl LevelKey for Key {
    fn from_u8(key: &[u8]) -> Self {
        Self(key.into())
    }

    fn as_slice<T, F: Fn(&[u8]) -> T>(&self, read: F) -> T {
        read(&self.0)
    }
}

store! {
    Leveldb(Open);
    open(settings) => {
        let mut options = Options::new();
        options.create_if_missing = true;
        options.write_buffer_size = Some(settings.shape.memtable_bytes() as usize);
        options.block_size = Some(BLOCK_BYTES);
        options.cache = Some(Cache::new(settings.shape.cache_bytes() as usize));
        Open { db: Database::open(&settings.dir, options)?, synced: settings.synced }
    };
    put(of, record) => of.db.put(WriteOptions { sync: of.synced }, Key::from_u8(record.key), record.value)?;
    put_batch(of, records) => {
        let mut batch = Writebatch::new();
        records.for_each(|record| batch.put(Key::from_u8(record.key), record.value));
        of.db.write(WriteOptions { sync: of.synced }, &batch)?;
    };
    get(of, key, read) => of.db.get_bytes(ReadOptions::new(), Key::from_u8(key))?.map(|value| read(&value));
    scan(of, from, most, each) => {
        let from = Key::from_u8(from);
        let entries = of.db.iter(ReadOptions::new()).from(&from);
        entries.take(most).for_each(|(key, value)| each(&key.0, &value));
    };
    // The binding cannot flush, so this syncs the log.
    flush(of) => of.db.write(WriteOptions { sync: true }, &Writebatch::new())?;
}
