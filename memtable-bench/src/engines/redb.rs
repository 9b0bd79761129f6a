//! redb: a B+ tree that copies on write, one writer at a time. It has no log: what is not synced is lost when the process is killed.

use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use super::engine::{Done, Engine, Settings};
use crate::tables::Record;

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

pub(crate) struct Redb {
    db: Database,
    durability: Durability,
}

impl Redb {
    fn write<'a>(&self, records: impl Iterator<Item = Record<'a>>, durability: Durability) -> Done {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            for record in records {
                table.insert(record.key, record.value)?;
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Engine for Redb {
    fn open(settings: &Settings) -> Done<Self> {
        let path = settings.dir.join("records.redb");
        let db = Database::builder().set_cache_size(settings.cache_bytes as usize).create(path)?;
        let durability = if settings.synced { Durability::Immediate } else { Durability::None };
        let opened = Self { db, durability };
        // Readers expect the table.
        opened.write(std::iter::empty(), durability)?;
        Ok(opened)
    }

    fn put(&self, record: Record<'_>) -> Done {
        self.write(std::iter::once(record), self.durability)
    }

    fn put_batch<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        self.write(records, self.durability)
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        Ok(table.get(key)?.map(|value| read(value.value())))
    }

    fn scan(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) -> Done {
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        for entry in table.range(from..)?.take(most) {
            let (key, value) = entry?;
            each(key.value(), value.value());
        }
        Ok(())
    }

    fn flush(&self) -> Done {
        self.write(std::iter::empty(), Durability::Immediate)
    }
}
