//! Transactions over a memtable: each reads a snapshot and its own writes, and commits unless another transaction has meanwhile committed a write
//! to one of its keys. `cargo run -p fastskip --example mvcc`

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use fastskip::{InsertError, Kind, Memtable, Op};

#[derive(Debug, PartialEq)]
enum CommitError {
    Conflict,
    Refused(InsertError),
}

#[derive(Default)]
struct Store {
    table: Memtable,
    /// The sequence number of the last visible commit. Locked while a transaction commits.
    last: Mutex<u64>,
}

/// A transaction. `None` is a deletion.
struct Transaction<'a> {
    store: &'a Store,
    snapshot: u64,
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'a> Transaction<'a> {
    fn begin(store: &'a Store) -> Self {
        Self { store, snapshot: *store.last.lock().unwrap(), writes: BTreeMap::new() }
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        if let Some(own) = self.writes.get(key) {
            return own.clone();
        }
        let found = self.store.table.get_version(key, self.snapshot)?;
        (found.kind == Kind::Value).then(|| found.value.to_vec())
    }

    fn commit(self) -> Result<(), CommitError> {
        let mut ops = Vec::new();
        for (key, value) in &self.writes {
            ops.push(value.as_ref().map_or(Op::Delete { key }, |value| Op::Put { key, value }));
        }
        let mut last = self.store.last.lock().unwrap();
        let newest = |op: &Op<'_>| self.store.table.get_version(op.key(), u64::MAX);
        if ops.iter().filter_map(newest).any(|version| version.seqno > self.snapshot) {
            return Err(CommitError::Conflict);
        }
        self.store.table.apply_at(&ops, *last + 1).map_err(CommitError::Refused)?;
        *last += 1;
        Ok(())
    }
}

/// A transaction that adds one to a number and deletes another.
fn add_one(store: &Store) -> Transaction<'_> {
    let mut transaction = Transaction::begin(store);
    let old = transaction.get(b"n").map_or(0, |old| old[0]);
    transaction.writes.extend([(b"n".to_vec(), Some(vec![old + 1])), (b"m".to_vec(), None)]);
    assert_eq!(transaction.get(b"n"), Some(vec![old + 1]), "it reads its own writes");
    transaction
}

fn main() {
    let store = Store::default();
    let (first, second) = (add_one(&store), add_one(&store));
    assert_eq!((first.commit(), second.commit()), (Ok(()), Err(CommitError::Conflict)));
    let reader = Transaction::begin(&store);
    let add_many = || (0..50).for_each(|_| while add_one(&store).commit().is_err() {});
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(add_many))));
    let last = Transaction::begin(&store);
    println!("the reader sees {:?}, a later one {:?}", reader.get(b"n"), last.get(b"n"));
    assert_eq!((reader.get(b"n"), last.get(b"n"), last.get(b"m")), (Some(vec![1]), Some(vec![201]), None));
}
