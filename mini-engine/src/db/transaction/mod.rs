//! Transactions: reads at a snapshot and buffered writes, until a commit checks the reads and writes all or nothing.
//!
//! `reads` and `writes` hold the data of a transaction, together `pending`; `keyspace` has its methods, and `iter` merges its writes with committed
//! entries; `commit` is the check, and explains why transactions are serializable.

mod commit;
mod exclusive;
mod iter;
mod keyspace;
mod pending;
mod reads;
mod state;
mod writes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use self::commit::{commit, validate, validate_expiries};
use self::state::TransactionState;
use self::writes::SavepointId;
use super::core::Core;
use crate::error::{Error, Result};
use crate::types::{Durability, KeyBounds, KeyspaceRef, SeqNo, Slice};

pub(crate) use self::exclusive::transact_exclusive;
pub use self::iter::TransactionIter;
pub use self::keyspace::KeyspaceTransaction;
pub(crate) use self::state::ConflictCheck;

/// The maximum number of attempts of [`transact`].
const TRIES: usize = 1000;

/// Reads and writes that take effect together, as if nothing else happened between the first of them and the commit; or not at all.
///
/// A transaction reads the database as it was when the transaction began, and its own writes, which others do not see before the commit.
/// [`Transaction::commit`] writes all of them in one batch, unless another write has changed something that was read: a key, present or not, or any
/// key in the part of a range that was read. In that case the commit returns an [`Error::Conflict`], and nothing is written. A key that existed and
/// has expired by the commit counts as changed; keys that were only written do not conflict. So all transactions, and all other writes, are *strictly
/// serializable*: they have the effect of running one after the other, in the order of their sequence numbers, and all writes acknowledged before a
/// transaction began come before it.
///
/// A read of many entries that expire soon causes a conflict as soon as the first of them expires: such a range is better read in a
/// [`Snapshot`](crate::Snapshot).
///
/// A transaction holds no lock, and waits for no other thread before its commit. If it is dropped without a commit, it has no effect. As long as it
/// exists it keeps versions, like a [`Snapshot`](crate::Snapshot). Its reads and writes take memory, at most
/// [`Options::max_transaction_bytes`](crate::Options::max_transaction_bytes): a method that would need more returns [`Error::Full`], and has no
/// effect. [`Db::transact`](crate::Db::transact) repeats a transaction until it succeeds.
///
/// A transaction of a closed handle returns [`Error::Closed`] from every method that reads, and from its commit.
///
/// ```
/// # fn main() -> mini_engine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = mini_engine::Db::open(dir.path())?;
/// use mini_engine::{Durability, Error};
///
/// let (one, other) = (db.transaction(), db.transaction());
/// for (transaction, doctor) in [(&one, "on call/Ann"), (&other, "on call/Bob")] {
///     if transaction.prefix("on call/").next().is_none() {
///         transaction.insert(doctor, "")?;
///     }
/// }
/// one.commit(Durability::Buffered)?;
/// assert!(matches!(other.commit(Durability::Buffered), Err(Error::Conflict { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction {
    state: TransactionState,
}

impl Transaction {
    /// A transaction that reads at the number that is visible now.
    pub(crate) fn begin(core: &Arc<Core>) -> Transaction {
        Transaction {
            state: TransactionState::now(core, core.store.options.max_transaction_bytes, ConflictCheck::InRecord),
        }
    }

    /// The same, for one read and one write, without a limit on their size.
    fn begin_small(core: &Arc<Core>, check: ConflictCheck) -> Transaction {
        Transaction { state: TransactionState::now(core, usize::MAX, check) }
    }

    /// The value of `key`. Costs a [`Keyspace::get`](crate::Keyspace::get), unless the transaction has written the key.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] of the tables searched; [`Error::Full`]; [`Error::NoKeyspace`]; [`Error::Closed`]. The same holds for all
    /// other reads.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.default().get(key)
    }

    /// Whether `key` has a value; the value is not copied.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default().contains_key(key)
    }

    /// The values of `keys`, in the order of `keys`: cheaper than separate reads, see [`Keyspace::get_many`](crate::Keyspace::get_many).
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        self.default().get_many(keys)
    }

    /// The entry with the smallest key.
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.default().first()
    }

    /// The entry with the largest key.
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.default().last()
    }

    /// Returns the entry with the smallest key, and removes it when the transaction is committed. Costs [`Transaction::first`] and
    /// [`Transaction::remove`].
    ///
    /// Transactions that pop from the same end conflict with each other, and with writes that insert an entry before the popped one: use
    /// [`Db::transact`](crate::Db::transact).
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// let (waiting, done) = (db.keyspace("waiting")?, db.keyspace("done")?);
    /// waiting.insert("1", "job")?;
    /// let moved = db.transact(|tx| {
    ///     let Some((key, job)) = tx.keyspace(&waiting).pop_first()? else { return Ok(false) };
    ///     tx.keyspace(&done).insert(key, job)?;
    ///     Ok(true)
    /// })?;
    /// assert!(moved && waiting.first()?.is_none() && done.contains_key("1")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn pop_first(&self) -> Result<Option<(Slice, Slice)>> {
        self.default().pop_first()
    }

    /// The same for the entry with the largest key.
    pub fn pop_last(&self) -> Result<Option<(Slice, Slice)>> {
        self.default().pop_last()
    }

    /// All entries in key order, from both ends. The iterator yields errors.
    pub fn iter(&self) -> TransactionIter<'_> {
        self.default().iter()
    }

    /// The entries whose keys lie in `bounds`. Inverted bounds are empty. The iterator yields errors.
    pub fn range(&self, bounds: impl KeyBounds) -> TransactionIter<'_> {
        self.default().range(bounds)
    }

    /// The entries whose keys start with `prefix`. The iterator yields errors.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> TransactionIter<'_> {
        self.default().prefix(prefix)
    }

    /// Sets `key` to `value` when the transaction is committed. O(log n) in the number of the transaction's writes, without reading the database. The
    /// same holds for all other writes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key or value past its limit; [`Error::Full`]. The transaction is unchanged then.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default().insert(key, value)
    }

    /// Like [`Transaction::insert`], but the entry expires at the [`SystemTime`] `at`; with `None` it never expires, as with
    /// [`Keyspace::insert_with_expiry`](crate::Keyspace::insert_with_expiry). If that time had passed when the transaction began, the key is removed.
    /// If no entry of the database expired when the transaction began, the time of its first such call is used instead.
    ///
    /// # Errors
    /// The errors of [`Transaction::insert`]; a value that expires may have 8 bytes less. [`Error::Closed`].
    pub fn insert_with_expiry(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: impl Into<Option<SystemTime>>,
    ) -> Result<()> {
        self.default().insert_with_expiry(key, value, at)
    }

    /// Removes `key`, whether or not it has a value. Errors are those of [`Transaction::insert`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default().remove(key)
    }

    /// Removes all keys within `bounds`, whether or not there are any, including those that other transactions add before the commit. Inverted bounds
    /// remove nothing.
    ///
    /// Costs are those of [`Keyspace::remove_range`](crate::Keyspace::remove_range); the transaction's own scans of the range step over the keys in
    /// it.
    ///
    /// # Errors
    /// The errors of [`Transaction::insert`], for either bound; [`Error::InvalidArgument`] if the transaction already removes
    /// [`MAX_BATCH_RANGES`](crate::MAX_BATCH_RANGES) ranges that do not touch.
    pub fn remove_range(&self, bounds: impl KeyBounds) -> Result<()> {
        self.default().remove_range(bounds)
    }

    /// Removes all keys that begin with `prefix`, like [`Transaction::remove_range`].
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.default().remove_prefix(prefix)
    }

    /// Marks the present state of the writes; [`Transaction::roll_back_to`] returns to it. O(1). From then on the transaction also keeps what later
    /// writes replace, as part of its memory, until the commit, a rollback or [`Transaction::release`].
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// # let is_valid = |row: &str| row != "bad";
    /// db.transact(|tx| {
    ///     for (key, row) in [("1", "good"), ("2", "bad")] {
    ///         let before = tx.savepoint();
    ///         tx.insert(key, row)?;
    ///         if !is_valid(row) {
    ///             tx.roll_back_to(&before)?;
    ///         }
    ///     }
    ///     Ok::<_, mini_engine::Error>(())
    /// })?;
    /// assert!(db.contains_key("1")? && !db.contains_key("2")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn savepoint(&self) -> Savepoint {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only the numbers must differ.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        self.state.pending.borrow_mut().writes.add_savepoint(id);
        Savepoint { id }
    }

    /// Undoes all writes since `savepoint`, in all keyspaces. The savepoint stays, and those made after it end. Reads stay: a commit checks them too.
    /// An open iterator continues behind its last entry, and may leave out entries that are back. O(n log m) for n undone writes among m, and O(log s)
    /// for s savepoints.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the savepoint is of another transaction, or has ended; then nothing changes.
    pub fn roll_back_to(&self, savepoint: &Savepoint) -> Result<()> {
        self.state.pending.borrow_mut().roll_back_to(savepoint.id)
    }

    /// Ends `savepoint`, and those made after it, and keeps all writes. If it was the oldest one, what later writes have replaced is forgotten: O(m) for
    /// m writes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the savepoint is of another transaction, or has ended; then nothing changes.
    pub fn release(&self, savepoint: &Savepoint) -> Result<()> {
        self.state.pending.borrow_mut().writes.release(savepoint.id)
    }

    /// Fails if something that was read has changed or expired by now: then a commit would fail too. A long transaction may call this before it
    /// continues. Costs the first part of a commit, and waits for no write.
    ///
    /// # Errors
    /// [`Error::Conflict`], with the key that was changed; the errors of reading tables.
    pub fn check(&self) -> Result<()> {
        self.state.snapshot.check()?;
        let (core, read_at, pending) = (&self.state.core, self.state.snapshot.seqno(), self.state.pending.borrow());
        let checked = validate(core, (&pending.reads, read_at), read_at);
        let checked = checked.and_then(|_| validate_expiries(core, (&pending.reads, read_at)));
        self.state.has_conflict.set(matches!(checked, Err(Error::Conflict { .. })));
        checked
    }

    /// Writes all operations, if nothing that was read has changed or expired. Returns the sequence number of the last operation, at which the writes
    /// become visible; they are as durable as those of [`Db::write`](crate::Db::write).
    ///
    /// A transaction that has written nothing succeeds without a check, because its reads saw one moment, and returns the number at which it has
    /// read. It syncs nothing then. A transaction that has read nothing writes without a check.
    ///
    /// The check costs O(w log r) for w operations that were written since the transaction began and r keys and ranges that it has read. Other writes
    /// wait for the part of the check that concerns writes made during the check. The check searches the database for each key and range only if the
    /// record of newer writes does not go back far enough: after a [`Keyspace::ingest`](crate::Keyspace::ingest), or when the record took more than
    /// [`Options::max_transaction_bytes`](crate::Options::max_transaction_bytes). Like every conditional write, a commit waits for the writes that
    /// have begun.
    ///
    /// # Errors
    /// [`Error::Conflict`], with the key that was changed; the errors of [`Db::write`](crate::Db::write), and of reading tables.
    pub fn commit(self, durability: Durability) -> Result<SeqNo> {
        let TransactionState { core, snapshot, pending, .. } = self.state;
        snapshot.check()?;
        let (batch, reads) = pending.into_inner().finish()?;
        match batch.is_empty() {
            true => Ok(snapshot.seqno()),
            false => commit(&core, &batch, (&reads, snapshot.seqno()), durability),
        }
    }

    /// The transaction's reads and writes in `keyspace`.
    pub(crate) fn of_keyspace(&self, keyspace: &KeyspaceRef) -> KeyspaceTransaction<'_> {
        self.state.pending.borrow_mut().reads.note_keyspace(keyspace);
        KeyspaceTransaction::new(&self.state, keyspace.clone())
    }

    fn has_written(&self) -> bool {
        !self.state.pending.borrow().writes.is_empty()
    }

    fn default(&self) -> KeyspaceTransaction<'_> {
        KeyspaceTransaction::new(&self.state, KeyspaceRef::DEFAULT)
    }
}

/// A state of the writes of a [`Transaction`], made by [`Transaction::savepoint`].
#[derive(Debug)]
pub struct Savepoint {
    id: SavepointId,
}

/// Runs `body` on new transactions until one is committed, or until `body` fails for another reason than a conflict.
pub(crate) fn transact<T, E: From<Error>>(
    core: &Arc<Core>,
    durability: Durability,
    body: impl FnMut(&Transaction) -> Result<T, E>,
) -> Result<T, E> {
    repeat(|| Transaction::begin(core), TRIES, durability, body)
}

/// Runs `body`, which reads and writes one entry of `keyspace`, on new transactions until one is committed, whatever the number of conflicts.
pub(crate) fn update<T>(
    core: &Arc<Core>,
    keyspace: &KeyspaceRef,
    check: ConflictCheck,
    mut body: impl FnMut(&KeyspaceTransaction<'_>) -> Result<T>,
) -> Result<T> {
    let begin = || Transaction::begin_small(core, check);
    repeat(begin, usize::MAX, core.store.options.durability, |transaction| body(&transaction.of_keyspace(keyspace)))
}

fn repeat<T, E: From<Error>>(
    begin: impl Fn() -> Transaction,
    mut tries: usize,
    durability: Durability,
    mut body: impl FnMut(&Transaction) -> Result<T, E>,
) -> Result<T, E> {
    loop {
        let transaction = begin();
        let result = body(&transaction);
        tries -= 1;
        let (has_conflict, done) = match result {
            // The error type of `body` may hide that the cause was a conflict.
            Err(error) => (transaction.state.has_conflict.get(), Err(error)),
            Ok(result) => match transaction.commit(durability) {
                Ok(_) => return Ok(result),
                Err(error) => (matches!(error, Error::Conflict { .. }), Err(error.into())),
            },
        };
        if !has_conflict || tries == 0 {
            return done;
        }
        // The writer that caused the conflict may have more to do.
        std::thread::yield_now();
    }
}
