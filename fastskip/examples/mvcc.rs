//! Transactions over a memtable: each reads a snapshot and its own writes, and commits unless another transaction has meanwhile committed a write
//! to one of its keys. `cargo run -p fastskip --example mvcc`

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use fastskip::{InsertError, Kind, Memtable, Op};

#[derive(Debug, PartialEq)]
enum CommitError {
    /// Another transaction wrote the key first.
    Conflict,
    Refused(InsertError),
}

#[derive(Default)]
struct Store {
    table: Memtable,
    /// The sequence number of the last commit that readers see.
    visible: AtomicU64,
    commits: Mutex<()>,
}

/// A transaction. `None` is a deletion.
struct Transaction<'a> {
    store: &'a Store,
    snapshot: u64,
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'a> Transaction<'a> {
    fn begin(store: &'a Store) -> Self {
        // Acquire: everything committed up to this number is in the table.
        Self { store, snapshot: store.visible.load(Ordering::Acquire), writes: BTreeMap::new() }
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        if let Some(own) = self.writes.get(key) {
            return own.clone();
        }
        let found = self.store.table.get_version(key, self.snapshot)?;
        (found.kind == Kind::Value).then(|| found.value.to_vec())
    }

    fn commit(self) -> Result<(), CommitError> {
        let Store { table, visible, commits } = self.store;
        fn op<'w>((key, value): (&'w Vec<u8>, &'w Option<Vec<u8>>)) -> Op<'w> {
            value.as_ref().map_or(Op::Delete { key }, |value| Op::Put { key, value })
        }
        let ops: Vec<_> = self.writes.iter().map(op).collect();
        let _alone = commits.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newer = |op: &Op<'_>| table.get_version(op.key(), u64::MAX).is_some_and(|v| v.seqno > self.snapshot);
        if ops.iter().any(is_newer) {
            return Err(CommitError::Conflict);
        }
        let seqno = visible.load(Ordering::Relaxed) + 1;
        table.apply_at(&ops, seqno).map_err(CommitError::Refused)?;
        visible.store(seqno, Ordering::Release);
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

#[cfg_attr(test, test)]
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
