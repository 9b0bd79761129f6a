//! sled: a tree of pages in a log. What is not synced lies in a buffer of the process, and is lost when that is killed.

use sled::{Batch, Config, Db, Mode};

use super::engine::{Done, Engine, Settings};
use crate::tables::Record;

pub(crate) struct Sled {
    db: Db,
    synced: bool,
}

impl Engine for Sled {
    fn open(settings: &Settings) -> Done<Self> {
        let config = Config::new().path(&settings.dir).cache_capacity(settings.cache_bytes).mode(Mode::HighThroughput);
        Ok(Self { db: config.flush_every_ms(None).open()?, synced: settings.synced })
    }

    fn put(&self, record: Record<'_>) -> Done {
        self.db.insert(record.key, record.value)?;
        if self.synced { self.flush() } else { Ok(()) }
    }

    fn put_batch<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        let mut batch = Batch::default();
        records.for_each(|record| batch.insert(record.key, record.value));
        Ok(self.db.apply_batch(batch)?)
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        Ok(self.db.get(key)?.map(|value| read(&value)))
    }

    fn scan(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) -> Done {
        for entry in self.db.range(from..).take(most) {
            let (key, value) = entry?;
            each(&key, &value);
        }
        Ok(())
    }

    fn flush(&self) -> Done {
        self.db.flush()?;
        Ok(())
    }
}
