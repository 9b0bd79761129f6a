//! Two kinds of records and an index that stay consistent, with keys and values of Rust types: accounts, their orders, and the orders by account.
//! Needs the feature `typed`.

use std::path::Path;

use mini_engine::{Db, Keyspace, Result, Typed};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    account: u64,
    item: String,
    /// A field that was added later.
    #[serde(default)]
    paid: bool,
}

struct Shop {
    db: Db,
    /// Names by account.
    accounts: Typed<Keyspace, u64, String>,
    orders: Typed<Keyspace, u64, Order>,
    /// The index: account and order.
    by_account: Typed<Keyspace, (u64, u64), ()>,
}

impl Shop {
    fn open(path: &Path) -> Result<Self> {
        let db = Db::open(path)?;
        let accounts = db.keyspace("accounts")?.typed();
        let orders = db.keyspace("orders")?.typed();
        let by_account = db.keyspace("orders by account")?.typed();
        Ok(Self { db, accounts, orders, by_account })
    }

    /// False if there is no such account.
    fn add_order(&self, number: u64, order: &Order) -> Result<bool> {
        self.db.transact(|tx| {
            if self.accounts.within(tx).get(&order.account)?.is_none() {
                return Ok(false);
            }
            self.orders.within(tx).insert(&number, order)?;
            self.by_account.within(tx).insert(&(order.account, number), &())?;
            Ok(true)
        })
    }

    /// The newest orders of the account before this one, for a page of a list; the next page begins before the last of them.
    fn orders_before(&self, account: u64, number: u64, count: usize) -> Result<Vec<u64>> {
        let index = self.by_account.range((account, 0)..(account, number));
        index.rev().take(count).map(|entry| Ok(entry?.0.1)).collect()
    }

    /// Removes an account with all of its orders.
    fn remove_account(&self, account: u64) -> Result<()> {
        self.db.transact(|tx| {
            self.accounts.within(tx).remove(&account)?;
            for entry in self.by_account.within(tx).prefix(&(account,)) {
                let (key, ()) = entry?;
                self.orders.within(tx).remove(&key.1)?;
                self.by_account.within(tx).remove(&key)?;
            }
            Ok(())
        })
    }
}

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let shop = Shop::open(directory.path())?;
    shop.accounts.insert(&7, &"ada".to_owned())?;
    let order = |account, item: &str| Order { account, item: item.to_owned(), paid: false };
    assert!((1..=5).try_fold(true, |all, number| Ok(all & shop.add_order(number, &order(7, "tea"))?))?);
    assert!(!shop.add_order(6, &order(8, "salt"))?);
    assert_eq!((shop.orders_before(7, u64::MAX, 2)?, shop.orders_before(7, 4, 2)?), (vec![5, 4], vec![3, 2]));
    shop.remove_account(7)?;
    assert!(shop.orders.first()?.is_none() && shop.by_account.first()?.is_none());
    Ok(())
}
