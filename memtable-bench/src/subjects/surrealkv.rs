//! SurrealKV: an LSM tree. Every write is a transaction, committed on an asynchronous runtime. It has no call that waits for compactions, so it comes
//! to rest by a compaction of everything.

use surrealkv::{
    CompactRangeOptions, Durability, Error, LSMIterator, Mode, ReadOptions, Transaction, Tree, TreeBuilder,
};
use tokio::runtime::{Builder, Runtime};

use super::store::{BLOCK_BYTES, Done, Record, Settings, Store, changed, store};

pub(crate) struct Open {
    tree: Tree,
    runtime: Runtime,
    durability: Durability,
}

fn open(settings: &Settings) -> Done<Open> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let shape = &settings.shape;
    let builder = TreeBuilder::new().with_path(settings.dir.clone()).with_block_size(BLOCK_BYTES).without_compression();
    let builder = builder.with_max_memtable_size(shape.memtable_bytes() as usize);
    let guard = runtime.enter();
    let tree = builder.with_block_cache_capacity(shape.cache_bytes()).build()?;
    drop(guard);
    let durability = if settings.synced { Durability::Immediate } else { Durability::Eventual };
    Ok(Open { tree, runtime, durability })
}

impl Open {
    fn commit(&self, transaction: Transaction) -> Result<(), Error> {
        let mut transaction = transaction.with_durability(self.durability);
        self.runtime.block_on(transaction.commit())
    }

    fn write<'a>(&self, mut records: impl Iterator<Item = Record<'a>>) -> Done {
        let mut transaction = self.tree.begin_with_mode(Mode::WriteOnly)?;
        records.try_for_each(|record| transaction.set(record.key, record.value))?;
        Ok(self.commit(transaction)?)
    }

    fn compact(&self, target_level: Option<u8>) -> Done {
        let options = CompactRangeOptions { flush_memtable: true, target_level, rewrite_bottommost: false };
        let _guard = self.runtime.enter();
        Ok(self.tree.compact_range(None, None, &options)?)
    }
}

store! {
    Surrealkv(Open);
    open(settings) => open(settings)?;
    put(of, record) => of.write(std::iter::once(record))?;
    put_batch(of, records) => of.write(records)?;
    get(of, key, read) => of.tree.begin_with_mode(Mode::ReadOnly)?.get(key)?.map(|value| read(&value));
    scan(of, from, most, each) => {
        let transaction = of.tree.begin_with_mode(Mode::ReadOnly)?;
        let mut entries = transaction.range_with_options(&ReadOptions::from_range(from..))?;
        let mut is_there = entries.seek_first()?;
        for read in 0..most {
            if read > 0 {
                is_there = entries.next()?;
            }
            if !is_there {
                break;
            }
            each(entries.key().user_key(), &entries.value_ref()?);
        }
    };
    transfer(of, from, to) => {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut transaction = of.tree.begin()?;
            for (account, by) in [(from, -1), (to, 1)] {
                transaction.set(account, changed(transaction.get(account)?, by)?)?;
            }
            match of.commit(transaction) {
                Ok(()) => break tries,
                Err(Error::TransactionWriteConflict | Error::TransactionRetry) => {}
                Err(error) => return Err(error.into()),
            }
        }
    };
    flush(of) => {
        of.compact(Some(0))?;
        of.tree.flush_wal(true)?;
    };
    settle(of) => of.compact(None)?;
    close(of) => of.runtime.block_on(of.tree.close())?;
}
