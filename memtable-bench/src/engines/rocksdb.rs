//! RocksDB: an LSM tree.

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Options, WaitForCompactOptions, WriteBatch, WriteOptions,
};

use super::engine::{BLOCK_BYTES, Done, Engine, FILTER_BITS, Settings};
use crate::tables::Record;

pub(crate) struct Rocksdb {
    db: DB,
    write: WriteOptions,
}

impl Engine for Rocksdb {
    fn open(settings: &Settings) -> Done<Self> {
        let mut tables = BlockBasedOptions::default();
        tables.set_block_cache(&Cache::new_lru_cache(settings.cache_bytes as usize));
        tables.set_block_size(BLOCK_BYTES);
        tables.set_bloom_filter(f64::from(FILTER_BITS), false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&tables);
        options.set_compression_type(DBCompressionType::None);
        options.set_write_buffer_size(settings.memtable_bytes as usize);
        options.set_max_write_buffer_number(2);
        options.set_target_file_size_base(settings.memtable_bytes);
        options.set_max_bytes_for_level_base(settings.memtable_bytes);
        let mut write = WriteOptions::default();
        write.set_sync(settings.synced);
        Ok(Self { db: DB::open(&options, &settings.dir)?, write })
    }

    fn put(&self, record: Record<'_>) -> Done {
        Ok(self.db.put_opt(record.key, record.value, &self.write)?)
    }

    fn put_batch<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        let mut batch = WriteBatch::default();
        records.for_each(|record| batch.put(record.key, record.value));
        Ok(self.db.write_opt(batch, &self.write)?)
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        Ok(self.db.get_pinned(key)?.map(|value| read(&value)))
    }

    fn scan(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) -> Done {
        let mut entries = self.db.raw_iterator();
        entries.seek(from);
        for read in 0..most {
            if read > 0 {
                entries.next();
            }
            let Some((key, value)) = entries.item() else { break };
            each(key, value);
        }
        Ok(entries.status()?)
    }

    fn flush(&self) -> Done {
        Ok(self.db.flush()?)
    }

    fn settle(&self) -> Done {
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }
}
