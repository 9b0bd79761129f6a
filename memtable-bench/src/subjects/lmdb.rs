//! LMDB: a B+ tree in a memory map, one writer at a time. It has no log: without syncs a killed process loses no data, but a power cut may leave a
//! damaged file. It uses the page cache of the system, so our memory bounds do not apply to it.
#![expect(unsafe_code, reason = "whoever maps a file vouches that nobody else changes it")]

use std::iter::once;
use std::ops::Bound::{Included, Unbounded};

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};

use super::store::{Done, Record, Settings, Store, store};

/// Address space for the map: the file grows as needed.
const MAP_BYTES: usize = 64 << 30;
/// The most concurrent readers: more than a round has threads.
const READERS: u32 = 1024;

pub(crate) struct Open {
    env: Env,
    records: Database<Bytes, Bytes>,
}

fn open(settings: &Settings) -> Done<Open> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_readers(READERS);
    if !settings.synced {
        // SAFETY: only a power cut may damage the file, and a power cut also ends the round.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: the directory is this round's own: no other process changes the file, and it is opened once at a time.
    let env = unsafe { options.open(&settings.dir)? };
    let mut transaction = env.write_txn()?;
    let records = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Open { env, records })
}

impl Open {
    fn write<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        let mut transaction = self.env.write_txn()?;
        for record in records {
            self.records.put(&mut transaction, record.key, record.value)?;
        }
        Ok(transaction.commit()?)
    }
}

store! {
    Lmdb(Open);
    open(settings) => open(settings)?;
    put(of, record) => of.write(once(record))?;
    put_batch(of, records) => of.write(records)?;
    get(of, key, read) => {
        let transaction = of.env.read_txn()?;
        of.records.get(&transaction, key)?.map(read)
    };
    scan(of, from, most, each) => {
        let transaction = of.env.read_txn()?;
        for entry in of.records.range(&transaction, &(Included(from), Unbounded))?.take(most) {
            let (key, value) = entry?;
            each(key, value);
        }
    };
    flush(of) => of.env.force_sync()?;
    close(of) => of.env.prepare_for_closing().wait();
}
