//! This workspace's engine.

use mini_engine::{
    Compaction, Compression, Db, Durability, Error, MemtableKind, Metrics, TableReads, Transaction, WriteBatch,
};

use super::store::{BLOCK_BYTES, Done, FILTER_BITS, Record, Settings, Store, changed, store};
use crate::spec::Subject;

pub(crate) struct Open {
    db: Db,
    durability: Durability,
}

fn durability(settings: &Settings) -> Durability {
    if settings.synced { Durability::Synced } else { Durability::Buffered }
}

fn open_db(settings: &Settings) -> Done<Db> {
    let compaction = match settings.subject {
        Subject::MiniEngineTiered => Compaction::Tiered,
        Subject::MiniEngineLazyLeveled => Compaction::LazyLeveled,
        Subject::MiniEnginePartial => Compaction::Partial,
        _ => Compaction::Leveled,
    };
    let is_mapped = settings.subject == Subject::MiniEngineMmap;
    let is_vector = settings.subject == Subject::MiniEngineVector;
    let memtable_bytes = settings.shape.memtable_bytes();
    let db = Db::builder(&settings.dir)
        .memtable_kind(if is_vector { MemtableKind::Vector } else { MemtableKind::SkipList })
        .table_reads(if is_mapped { TableReads::Mmap } else { TableReads::Pread })
        .memtable_bytes(memtable_bytes as usize)
        .table_file_bytes(memtable_bytes)
        .level1_bytes(memtable_bytes)
        .cache_bytes(settings.shape.cache_bytes())
        .block_bytes(BLOCK_BYTES)
        .filter_bits_per_key(FILTER_BITS)
        .compression(Compression::None)
        .compaction(compaction)
        .durability(durability(settings))
        .open()?;
    Ok(db)
}

store! {
    Mini(Open);
    open(settings) => Open { db: open_db(settings)?, durability: durability(settings) };
    put(of, record) => of.db.insert(record.key, record.value)?;
    put_batch(of, records) => {
        let mut batch = WriteBatch::new();
        for record in records {
            batch.insert(record.key, record.value)?;
        }
        of.db.write(batch, of.durability)?;
    };
    get(of, key, read) => of.db.get(key)?.map(|value| read(&value));
    scan(of, from, most, each) => {
        let mut cursor = of.db.cursor();
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
    };
    transfer(of, from, to) => {
        let mut tries = 0;
        let mut body = |transaction: &Transaction| -> Done {
            tries += 1;
            for (account, by) in [(from, -1), (to, 1)] {
                transaction.insert(account, changed(transaction.get(account)?, by)?)?;
            }
            Ok(())
        };
        // Among few accounts a thread may lose a thousand times in a row; the peers' loops have no bound either.
        loop {
            match of.db.transact(&mut body) {
                Err(error) if matches!(error.downcast_ref(), Some(Error::Conflict { .. })) => {}
                ended => break ended?,
            }
        }
        tries
    };
    flush(of) => of.db.flush()?;
    settle(of) => of.db.wait_for_compactions()?;
    close(of) => of.db.close()?;
    metrics(of) => of.db.metrics();
}
