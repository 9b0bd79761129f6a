//! This workspace's engine.

use mini_engine::{Compaction, Compression, Db, Durability, MemtableKind, Metrics, TableReads, WriteBatch};

use super::engine::{BLOCK_BYTES, Done, Engine, FILTER_BITS, Settings};
use crate::spec::Subject;
use crate::tables::Record;

pub(crate) struct Mini {
    db: Db,
    durability: Durability,
}

impl Engine for Mini {
    fn open(settings: &Settings) -> Done<Self> {
        let compaction = match settings.subject {
            Subject::MiniEngineTiered => Compaction::Tiered,
            Subject::MiniEngineLazyLeveled => Compaction::LazyLeveled,
            Subject::MiniEnginePartial => Compaction::Partial,
            _ => Compaction::Leveled,
        };
        let is_mapped = settings.subject == Subject::MiniEngineMmap;
        let is_vector = settings.subject == Subject::MiniEngineVector;
        let durability = if settings.synced { Durability::Synced } else { Durability::Buffered };
        let db = Db::builder(&settings.dir)
            .memtable_kind(if is_vector { MemtableKind::Vector } else { MemtableKind::SkipList })
            .table_reads(if is_mapped { TableReads::Mmap } else { TableReads::Pread })
            .memtable_bytes(settings.memtable_bytes as usize)
            .table_file_bytes(settings.memtable_bytes)
            .level1_bytes(settings.memtable_bytes)
            .cache_bytes(settings.cache_bytes)
            .block_bytes(BLOCK_BYTES)
            .filter_bits_per_key(FILTER_BITS)
            .compression(Compression::None)
            .compaction(compaction)
            .durability(durability)
            .open()?;
        Ok(Self { db, durability })
    }

    fn put(&self, record: Record<'_>) -> Done {
        Ok(self.db.insert(record.key, record.value)?)
    }

    fn put_batch<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        let mut batch = WriteBatch::new();
        for record in records {
            batch.insert(record.key, record.value)?;
        }
        self.db.write(batch, self.durability)?;
        Ok(())
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        Ok(self.db.get(key)?.map(|value| read(&value)))
    }

    fn scan(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) -> Done {
        let mut cursor = self.db.cursor();
        cursor.seek(from)?;
        for read in 0..most {
            if read > 0 {
                cursor.advance()?;
            }
            if !cursor.valid() {
                break;
            }
            each(cursor.key(), cursor.value());
        }
        Ok(())
    }

    fn flush(&self) -> Done {
        Ok(self.db.flush()?)
    }

    fn settle(&self) -> Done {
        Ok(self.db.wait_for_compactions()?)
    }

    fn close(self) -> Done {
        Ok(self.db.close()?)
    }

    fn metrics(&self) -> Option<Metrics> {
        Some(self.db.metrics())
    }
}
