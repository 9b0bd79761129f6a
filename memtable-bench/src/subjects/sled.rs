//! sled: a tree of pages in a log. Data that is not synced lies in a buffer of the process, and is lost when the process is killed.

use sled::{Batch, Config, Db, Mode};

use super::store::{Done, Record, Settings, Store, store};

pub(crate) struct Open {
    db: Db,
    synced: bool,
}

store! {
    Sled(Open);
    open(settings) => {
        let config = Config::new().path(&settings.dir).cache_capacity(settings.shape.cache_bytes());
        let db = config.mode(Mode::HighThroughput).flush_every_ms(None).open()?;
        Open { db, synced: settings.synced }
    };
    put(of, record) => {
        of.db.insert(record.key, record.value)?;
        if of.synced {
            of.db.flush()?;
        }
    };
    put_batch(of, records) => {
        let mut batch = Batch::default();
        records.for_each(|record| batch.insert(record.key, record.value));
        of.db.apply_batch(batch)?;
    };
    get(of, key, read) => of.db.get(key)?.map(|value| read(&value));
    scan(of, from, most, each) => {
        for entry in of.db.range(from..).take(most) {
            let (key, value) = entry?;
            each(&key, &value);
        }
    };
    flush(of) => of.db.flush()?;
}
