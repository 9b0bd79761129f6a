//! Stores accounts, their orders, and an index of orders by account, on fjall. mini-engine's example `secondary_index` is the same program.

use std::path::Path;

use fjall::{KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, Readable, Result};

struct Shop {
    db: OptimisticTxDatabase,
    accounts: OptimisticTxKeyspace,
    orders: OptimisticTxKeyspace,
    by_account: OptimisticTxKeyspace,
}

impl Shop {
    fn open(path: &Path) -> Result<Self> {
        let db = OptimisticTxDatabase::builder(path).open()?;
        let keyspace = |name| db.keyspace(name, KeyspaceCreateOptions::default);
        Ok(Self {
            accounts: keyspace("accounts")?,
            orders: keyspace("orders")?,
            by_account: keyspace("orders by account")?,
            db,
        })
    }

    fn add_account(&self, account: u64, name: &str) -> Result<()> {
        self.accounts.insert(account.to_be_bytes(), name)
    }

    /// False if there is no such account.
    fn add_order(&self, order: u64, account: u64, item: &str) -> Result<bool> {
        loop {
            let mut tx = self.db.write_tx()?;
            if !tx.contains_key(&self.accounts, account.to_be_bytes())? {
                return Ok(false);
            }
            tx.insert(&self.orders, order.to_be_bytes(), item);
            tx.insert(&self.by_account, [account.to_be_bytes(), order.to_be_bytes()].concat(), "");
            if tx.commit()?.is_ok() {
                return Ok(true);
            }
        }
    }

    fn orders_of(&self, account: u64) -> Result<Vec<(u64, String)>> {
        let read = self.db.read_tx();
        let mut found = Vec::new();
        for entry in read.prefix(&self.by_account, account.to_be_bytes()) {
            let order = entry.key()?[8..].to_owned();
            let item = read.get(&self.orders, &order)?.unwrap_or_default();
            let number = u64::from_be_bytes(order.try_into().expect("eight bytes"));
            found.push((number, String::from_utf8_lossy(&item).into_owned()));
        }
        Ok(found)
    }

    /// Removes an account with all of its orders.
    fn remove_account(&self, account: u64) -> Result<()> {
        loop {
            let mut tx = self.db.write_tx()?;
            tx.remove(&self.accounts, account.to_be_bytes());
            let index: Vec<_> = tx.prefix(&self.by_account, account.to_be_bytes()).map(|entry| entry.key()).collect();
            for key in index {
                let key = key?;
                tx.remove(&self.orders, &key[8..]);
                tx.remove(&self.by_account, key);
            }
            if tx.commit()?.is_ok() {
                return Ok(());
            }
        }
    }
}

fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let shop = Shop::open(directory.path())?;
    shop.add_account(7, "ada")?;
    assert!(shop.add_order(1, 7, "tea")? && shop.add_order(2, 7, "milk")? && !shop.add_order(3, 8, "salt")?);
    assert_eq!(shop.orders_of(7)?, [(1, "tea".to_owned()), (2, "milk".to_owned())]);
    shop.remove_account(7)?;
    assert!(shop.orders_of(7)?.is_empty());
    Ok(())
}
