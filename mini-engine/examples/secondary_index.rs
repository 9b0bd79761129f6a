//! Two kinds of records and an index that stay consistent: accounts, their orders, and the orders by account.

use std::path::Path;

use mini_engine::{Db, Keyspace, Result, Slice};

struct Shop {
    db: Db,
    accounts: Keyspace,
    orders: Keyspace,
    by_account: Keyspace,
}

impl Shop {
    fn open(path: &Path) -> Result<Self> {
        let db = Db::open(path)?;
        let [accounts, orders, by_account] = ["accounts", "orders", "orders by account"].map(|name| db.keyspace(name));
        Ok(Self { db, accounts: accounts?, orders: orders?, by_account: by_account? })
    }

    fn add_account(&self, account: u64, name: &str) -> Result<()> {
        self.accounts.insert(account.to_be_bytes(), name)
    }

    /// False if there is no such account.
    fn add_order(&self, order: u64, account: u64, item: &str) -> Result<bool> {
        self.db.transact(|tx| {
            if !tx.keyspace(&self.accounts).contains_key(account.to_be_bytes())? {
                return Ok(false);
            }
            tx.keyspace(&self.orders).insert(order.to_be_bytes(), item)?;
            tx.keyspace(&self.by_account).insert([account.to_be_bytes(), order.to_be_bytes()].concat(), "")?;
            Ok(true)
        })
    }

    fn orders_of(&self, account: u64) -> Result<Vec<(u64, String)>> {
        let now = self.db.snapshot();
        let (orders, index) = (now.keyspace(&self.orders), now.keyspace(&self.by_account));
        let order = |entry: Result<(Slice, Slice)>| {
            let number = &entry?.0[8..];
            let item = orders.get(number)?.unwrap_or_default();
            Ok((
                u64::from_be_bytes(number.try_into().expect("eight bytes")),
                String::from_utf8_lossy(&item).into_owned(),
            ))
        };
        index.prefix(account.to_be_bytes()).map(order).collect()
    }

    /// Removes an account with all of its orders.
    fn remove_account(&self, account: u64) -> Result<()> {
        self.db.transact(|tx| {
            tx.keyspace(&self.accounts).remove(account.to_be_bytes())?;
            for entry in tx.keyspace(&self.by_account).prefix(account.to_be_bytes()) {
                tx.keyspace(&self.orders).remove(&entry?.0[8..])?;
            }
            tx.keyspace(&self.by_account).remove_prefix(account.to_be_bytes())
        })
    }
}

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let shop = Shop::open(directory.path())?;
    shop.add_account(7, "ada")?;
    assert!(shop.add_order(1, 7, "tea")? && shop.add_order(2, 7, "milk")? && !shop.add_order(3, 8, "salt")?);
    assert_eq!(shop.orders_of(7)?, [(1, "tea".to_owned()), (2, "milk".to_owned())]);
    shop.remove_account(7)?;
    assert!(shop.orders_of(7)?.is_empty());
    Ok(())
}
