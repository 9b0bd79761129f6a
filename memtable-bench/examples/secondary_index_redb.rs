//! Stores accounts, their orders, and an index of orders by account, on redb. mini-engine's example `secondary_index` is the same program.

use std::path::Path;

use redb::{Database, Error, ReadableDatabase, ReadableTable, TableDefinition};

const ACCOUNTS: TableDefinition<'_, u64, &str> = TableDefinition::new("accounts");
const ORDERS: TableDefinition<'_, u64, (u64, &str)> = TableDefinition::new("orders");
const BY_ACCOUNT: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("orders by account");

struct Shop(Database);

impl Shop {
    fn open(path: &Path) -> Result<Self, Error> {
        let db = Database::create(path)?;
        let write = db.begin_write()?;
        write.open_table(ACCOUNTS)?;
        write.open_table(ORDERS)?;
        write.open_table(BY_ACCOUNT)?;
        write.commit()?;
        Ok(Self(db))
    }

    fn add_account(&self, account: u64, name: &str) -> Result<(), Error> {
        let write = self.0.begin_write()?;
        write.open_table(ACCOUNTS)?.insert(account, name)?;
        Ok(write.commit()?)
    }

    /// False if there is no such account.
    fn add_order(&self, order: u64, account: u64, item: &str) -> Result<bool, Error> {
        let write = self.0.begin_write()?;
        if write.open_table(ACCOUNTS)?.get(account)?.is_none() {
            return Ok(false);
        }
        write.open_table(ORDERS)?.insert(order, (account, item))?;
        write.open_table(BY_ACCOUNT)?.insert((account, order), ())?;
        write.commit()?;
        Ok(true)
    }

    fn orders_of(&self, account: u64) -> Result<Vec<(u64, String)>, Error> {
        let read = self.0.begin_read()?;
        let (orders, index) = (read.open_table(ORDERS)?, read.open_table(BY_ACCOUNT)?);
        let mut found = Vec::new();
        for entry in index.range((account, 0)..=(account, u64::MAX))? {
            let order = entry?.0.value().1;
            let item = orders.get(order)?.map_or(String::new(), |order| order.value().1.to_owned());
            found.push((order, item));
        }
        Ok(found)
    }

    /// Removes an account with all of its orders.
    fn remove_account(&self, account: u64) -> Result<(), Error> {
        let write = self.0.begin_write()?;
        write.open_table(ACCOUNTS)?.remove(account)?;
        for entry in write.open_table(BY_ACCOUNT)?.extract_from_if((account, 0)..=(account, u64::MAX), |_, ()| true)? {
            write.open_table(ORDERS)?.remove(entry?.0.value().1)?;
        }
        Ok(write.commit()?)
    }
}

fn main() -> Result<(), Error> {
    let directory = tempfile::tempdir()?;
    let shop = Shop::open(&directory.path().join("shop.redb"))?;
    shop.add_account(7, "ada")?;
    assert!(shop.add_order(1, 7, "tea")? && shop.add_order(2, 7, "milk")? && !shop.add_order(3, 8, "salt")?);
    assert_eq!(shop.orders_of(7)?, [(1, "tea".to_owned()), (2, "milk".to_owned())]);
    shop.remove_account(7)?;
    assert!(shop.orders_of(7)?.is_empty());
    Ok(())
}
