//! The engines whose transactions are compared. Each holds accounts and moves amounts between two of them, in a transaction that reads and writes
//! both accounts. The settings are those of the engines' other comparisons (see the book): no commit is synced.

use std::path::Path;

use mini_engine::{Db, Durability, Error, Transaction, WriteBatch};

use crate::spec::{KEY_LEN, KeySet, Shape, Store, Subject, VALUE_LEN};
use crate::subjects::mini;
use crate::subjects::store::{Done, Settings};

/// An engine with accounts, which many threads use.
pub(super) trait Bank: Sync + Sized {
    fn open(dir: &Path) -> Done<Self>;

    /// Stores accounts without money, as one write.
    fn add(&self, accounts: &[[u8; KEY_LEN]]) -> Done;

    /// Returns when everything is flushed and no compaction is due.
    fn settle(&self) -> Done;

    /// Moves 1 from one account to another. Returns how often the transaction began, retries included.
    fn transfer(&self, from: &[u8], to: &[u8]) -> Done<u64>;

    /// Calls `each` with the balance of each account.
    fn balances(&self, each: impl FnMut(i64)) -> Done;
}

/// The value of an account.
pub(super) fn value(balance: i64) -> [u8; VALUE_LEN] {
    let mut value = [7; VALUE_LEN];
    value[..8].copy_from_slice(&balance.to_le_bytes());
    value
}

pub(super) fn balance(value: &[u8]) -> Done<i64> {
    let bytes = value.first_chunk().ok_or("expected a balance, found a shorter value")?;
    Ok(i64::from_le_bytes(*bytes))
}

pub(super) fn settings(subject: Subject, dir: &Path) -> Settings {
    let shape = Shape::new(KeySet::Random, 1).in_store(Store::Engine);
    Settings { subject, shape, dir: dir.to_owned(), synced: false }
}

pub(super) struct Mini(Db);

fn transfer(transaction: &Transaction, from: &[u8], to: &[u8]) -> mini_engine::Result<()> {
    for (account, amount) in [(from, -1), (to, 1)] {
        let found = transaction.get(account)?;
        let before = balance(found.as_deref().unwrap_or_default());
        let before = before.map_err(|error| Error::InvalidArgument(error.to_string()))?;
        transaction.insert(account, value(before + amount))?;
    }
    Ok(())
}

impl Bank for Mini {
    fn open(dir: &Path) -> Done<Self> {
        Ok(Self(mini::open_db(&settings(Subject::MiniEngine, dir))?))
    }

    fn add(&self, accounts: &[[u8; KEY_LEN]]) -> Done {
        let mut batch = WriteBatch::new();
        accounts.iter().try_for_each(|account| batch.insert(account, value(0)))?;
        self.0.write(batch, Durability::Buffered)?;
        Ok(())
    }

    fn settle(&self) -> Done {
        self.0.flush()?;
        Ok(self.0.wait_for_compactions()?)
    }

    fn transfer(&self, from: &[u8], to: &[u8]) -> Done<u64> {
        let mut tries = 0;
        self.0.transact(|transaction| {
            tries += 1;
            transfer(transaction, from, to)
        })?;
        Ok(tries)
    }

    fn balances(&self, mut each: impl FnMut(i64)) -> Done {
        for entry in self.0.iter() {
            each(balance(&entry?.1)?);
        }
        Ok(())
    }
}
