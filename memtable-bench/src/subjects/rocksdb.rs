//! RocksDB and its fork Speedb: LSM trees.

/// The subject `$name` over the binding `$binding`, both of which have the same interface.
macro_rules! of_binding {
    ($binding:ident, $name:ident, $of:ident => $settle:expr) => {
        use $binding::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WriteBatch, WriteOptions};

        use crate::subjects::store::{BLOCK_BYTES, Done, FILTER_BITS, Record, Settings, Store, store};

        pub(crate) struct Open {
            db: DB,
            write: WriteOptions,
        }

        fn open(settings: &Settings) -> Done<Open> {
            let mut tables = BlockBasedOptions::default();
            tables.set_block_cache(&Cache::new_lru_cache(settings.shape.cache_bytes() as usize));
            tables.set_block_size(BLOCK_BYTES);
            tables.set_bloom_filter(f64::from(FILTER_BITS), false);
            let memtable_bytes = settings.shape.memtable_bytes();
            let mut options = Options::default();
            options.create_if_missing(true);
            options.set_block_based_table_factory(&tables);
            options.set_compression_type(DBCompressionType::None);
            options.set_write_buffer_size(memtable_bytes as usize);
            options.set_max_write_buffer_number(2);
            options.set_target_file_size_base(memtable_bytes);
            options.set_max_bytes_for_level_base(memtable_bytes);
            let mut write = WriteOptions::default();
            write.set_sync(settings.synced);
            Ok(Open { db: DB::open(&options, &settings.dir)?, write })
        }

        store! {
            $name(Open);
            open(settings) => open(settings)?;
            put(of, record) => of.db.put_opt(record.key, record.value, &of.write)?;
            put_batch(of, records) => {
                let mut batch = WriteBatch::default();
                records.for_each(|record| batch.put(record.key, record.value));
                of.db.write_opt(batch, &of.write)?;
            };
            get(of, key, read) => of.db.get_pinned(key)?.map(|value| read(&value));
            scan(of, from, most, each) => {
                let mut entries = of.db.raw_iterator();
                entries.seek(from);
                for read in 0..most {
                    if read > 0 {
                        entries.next();
                    }
                    let Some((key, value)) = entries.item() else { break };
                    each(key, value);
                }
                entries.status()?
            };
            flush(of) => of.db.flush()?;
            settle($of) => $settle;
        }
    };
}

#[cfg(feature = "rocksdb")]
pub(crate) mod original {
    of_binding!(rocksdb, Rocksdb, of => of.db.wait_for_compact(&rocksdb::WaitForCompactOptions::default())?);
}

#[cfg(feature = "speedb")]
pub(crate) mod fork {
    // The binding cannot wait for compactions: it compacts everything instead.
    of_binding!(speedb, Speedb, of => of.db.compact_range(None::<&[u8]>, None::<&[u8]>));
}
