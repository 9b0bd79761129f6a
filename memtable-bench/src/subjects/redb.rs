//! redb: a B+ tree that copies on write, one writer at a time. It has no log: a killed process loses all data that is not synced.

use std::iter::{empty, once};

use redb::{Database, Durability, ReadableDatabase, ReadableTable, Table, TableDefinition};

use super::store::{Done, Record, Settings, Store, changed, store};

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

pub(crate) struct Open {
    db: Database,
    durability: Durability,
}

impl Open {
    fn transact(&self, durability: Durability, change: impl FnOnce(&mut Table<'_, &[u8], &[u8]>) -> Done) -> Done {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        change(&mut transaction.open_table(RECORDS)?)?;
        Ok(transaction.commit()?)
    }

    fn write<'a>(&self, mut records: impl Iterator<Item = Record<'a>>, durability: Durability) -> Done {
        self.transact(durability, |table| {
            records.try_for_each(|record| Ok(table.insert(record.key, record.value).map(drop)?))
        })
    }
}

store! {
    Redb(Open);
    open(settings) => {
        let (path, cache_bytes) = (settings.dir.join("records.redb"), settings.shape.cache_bytes() as usize);
        let durability = if settings.synced { Durability::Immediate } else { Durability::None };
        let opened = Open { db: Database::builder().set_cache_size(cache_bytes).create(path)?, durability };
        // Reads fail unless a write has created the table.
        opened.write(empty(), durability)?;
        opened
    };
    put(of, record) => of.write(once(record), of.durability)?;
    put_batch(of, records) => of.write(records, of.durability)?;
    get(of, key, read) => {
        let table = of.db.begin_read()?.open_table(RECORDS)?;
        table.get(key)?.map(|value| read(value.value()))
    };
    scan(of, from, most, each) => {
        let table = of.db.begin_read()?.open_table(RECORDS)?;
        for entry in table.range(from..)?.take(most) {
            let (key, value) = entry?;
            each(key.value(), value.value());
        }
    };
    transfer(of, from, to) => {
        of.transact(of.durability, |table| {
            for (account, by) in [(from, -1), (to, 1)] {
                let value = changed(table.get(account)?.map(|found| found.value().to_vec()), by)?;
                table.insert(account, &value[..])?;
            }
            Ok(())
        })?;
        1
    };
    flush(of) => of.write(empty(), Durability::Immediate)?;
}
