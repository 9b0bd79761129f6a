//! The peers whose transactions are compared.

use std::path::Path;

use fjall::{
    CompressionType, Keyspace, OptimisticTxDatabase, OptimisticTxKeyspace, Readable, SingleWriterTxDatabase,
    SingleWriterTxKeyspace,
};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::banks::{Bank, balance, settings, value};
use crate::spec::{KEY_LEN, Subject};
use crate::subjects::fjall::{options, settle};
use crate::subjects::store::Done;

/// fjall with optimistic transactions.
pub(crate) struct FjallOptimistic(OptimisticTxDatabase, OptimisticTxKeyspace);

/// fjall with one writing transaction at a time; the next one waits.
pub(crate) struct FjallOneWriter(SingleWriterTxDatabase, SingleWriterTxKeyspace);

/// Reads the account in `$transaction`, and writes it.
macro_rules! move_amounts {
    ($transaction:ident, $accounts:expr, $from:ident, $to:ident) => {
        for (account, amount) in [($from, -1), ($to, 1)] {
            let before = balance(&$transaction.get($accounts, account)?.unwrap_or_default())?;
            $transaction.insert($accounts, account, value(before + amount));
        }
    };
}

macro_rules! fjall_bank {
    ($bank:ident($db:ident), $transfer:expr) => {
        impl Bank for $bank {
            fn open(dir: &Path) -> Done<Self> {
                let shape = settings(Subject::Fjall, dir).shape;
                let builder = $db::builder(dir).cache_size(shape.cache_bytes());
                let db = builder.journal_compression(CompressionType::None).open()?;
                let accounts = db.keyspace("accounts", || options(shape.memtable_bytes()))?;
                Ok(Self(db, accounts))
            }

            fn add(&self, accounts: &[[u8; KEY_LEN]]) -> Done {
                let mut batch = self.0.inner().batch();
                accounts.iter().for_each(|account| batch.insert(self.1.inner(), account, value(0)));
                Ok(batch.commit()?)
            }

            fn settle(&self) -> Done {
                self.1.inner().rotate_memtable()?;
                settle(self.0.inner(), self.1.inner())
            }

            fn transfer(&self, from: &[u8], to: &[u8]) -> Done<u64> {
                $transfer(self, from, to)
            }

            fn balances(&self, mut each: impl FnMut(i64)) -> Done {
                let accounts: &Keyspace = self.1.inner();
                accounts.iter().try_for_each(|entry| Ok(each(balance(&entry.value()?)?)))
            }
        }
    };
}

fjall_bank!(FjallOptimistic(OptimisticTxDatabase), |bank: &Self, from, to| {
    for tries in 1.. {
        let mut transaction = bank.0.write_tx()?;
        move_amounts!(transaction, &bank.1, from, to);
        if transaction.commit()?.is_ok() {
            return Ok(tries);
        }
    }
    unreachable!()
});

fjall_bank!(FjallOneWriter(SingleWriterTxDatabase), |bank: &Self, from, to| {
    let mut transaction = bank.0.write_tx();
    move_amounts!(transaction, &bank.1, from, to);
    transaction.commit()?;
    Ok(1)
});

const ACCOUNTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("accounts");

/// redb, which has one writing transaction at a time.
pub(crate) struct Redb(Database);

impl Redb {
    fn write(&self, change: impl FnOnce(&mut redb::Table<'_, &[u8], &[u8]>) -> Done) -> Done {
        let mut transaction = self.0.begin_write()?;
        transaction.set_durability(redb::Durability::None)?;
        change(&mut transaction.open_table(ACCOUNTS)?)?;
        Ok(transaction.commit()?)
    }
}

impl Bank for Redb {
    fn open(dir: &Path) -> Done<Self> {
        let shape = settings(Subject::Redb, dir).shape;
        let cache_bytes = shape.cache_bytes() as usize;
        Ok(Self(Database::builder().set_cache_size(cache_bytes).create(dir.join("accounts.redb"))?))
    }

    fn add(&self, accounts: &[[u8; KEY_LEN]]) -> Done {
        self.write(|table| {
            for account in accounts {
                table.insert(&account[..], &value(0)[..])?;
            }
            Ok(())
        })
    }

    fn settle(&self) -> Done {
        Ok(())
    }

    fn transfer(&self, from: &[u8], to: &[u8]) -> Done<u64> {
        self.write(|table| {
            for (account, amount) in [(from, -1), (to, 1)] {
                let before = table.get(account)?.map_or(Ok(0), |found| balance(found.value()))?;
                table.insert(account, &value(before + amount)[..])?;
            }
            Ok(())
        })?;
        Ok(1)
    }

    fn balances(&self, mut each: impl FnMut(i64)) -> Done {
        for entry in self.0.begin_read()?.open_table(ACCOUNTS)?.iter()? {
            each(balance(entry?.1.value())?);
        }
        Ok(())
    }
}
