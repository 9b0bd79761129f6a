//! [`Typed`]: keys and values of Rust types, in place of bytes.
//!
//! Keys are encoded in the order of their types (`key.rs`). Values are encoded by `serde` as MessagePack with the names of fields: so a field that has
//! a default can be added later.

mod key;

use std::any::type_name;
use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::db::{Iter, Keyspace, KeyspaceBatch, KeyspaceTransaction, Snapshot, Transaction, TransactionIter};
use crate::error::{Error, Result};
use crate::types::{OwnedBounds, Slice, WriteBatch, prefix_bounds};

pub use self::key::{DecodeKey, EncodeKey, LeadingFields};

type Entry = (Slice, Slice);

/// A keyspace whose keys are `K` and whose values are `V`, encoded as bytes; made by [`Keyspace::typed`]. `S` is a [`Keyspace`], or its view in a
/// [`Snapshot`], a [`Transaction`] or a [`WriteBatch`]. Costs are those of `S`, and the encoding.
///
/// Once there are entries, the type of the keys must stay the same; a value may get new fields that have a default.
///
/// ```
/// # fn main() -> mini_engine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = mini_engine::Db::open(dir.path())?;
/// let visits = db.keyspace("visits")?.typed::<(String, u64), Vec<String>>();
/// visits.insert(&("ada".into(), 2), &vec!["/home".into(), "/cart".into()])?;
/// db.transact(|tx| visits.within(tx).insert(&("ada".into(), 10), &vec![]))?;
/// let times: mini_engine::Result<Vec<u64>> = visits.prefix(&("ada".to_owned(),)).map(|entry| Ok(entry?.0.1)).collect();
/// assert_eq!(times?, [2, 10]);
/// # Ok(())
/// # }
/// ```
pub struct Typed<S, K, V> {
    store: S,
    types: PhantomData<fn() -> (K, V)>,
}

/// Bytes that [`Typed`] reads: a [`Keyspace`], a [`Snapshot`] or a [`KeyspaceTransaction`]. This trait is sealed.
pub trait TypedRead: sealed::Sealed {
    /// The iterator over bytes.
    type Iter: DoubleEndedIterator<Item = Result<Entry>>;

    #[doc(hidden)]
    fn get_bytes(&self, key: &[u8]) -> Result<Option<Slice>>;

    #[doc(hidden)]
    fn get_many_bytes(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Slice>>>;

    #[doc(hidden)]
    fn range_bytes(&self, bounds: OwnedBounds) -> Self::Iter;
}

/// Bytes that [`Typed`] writes: a [`Keyspace`] or a [`KeyspaceTransaction`]. This trait is sealed.
pub trait TypedWrite: TypedRead {
    #[doc(hidden)]
    fn insert_bytes(&self, key: &[u8], value: &[u8]) -> Result<()>;

    #[doc(hidden)]
    fn remove_bytes(&self, key: &[u8]) -> Result<()>;

    #[doc(hidden)]
    fn remove_range_bytes(&self, bounds: OwnedBounds) -> Result<()>;
}

impl Keyspace {
    /// The keyspace with keys `K` and values `V` in place of bytes. Needs the feature `typed`.
    ///
    /// A byte string as a value is compact as `serde_bytes::ByteBuf`; a `Vec<u8>` is a list of numbers to `serde`.
    pub fn typed<K: DecodeKey, V: Serialize + DeserializeOwned>(self) -> Typed<Keyspace, K, V> {
        Typed::new(self)
    }
}

impl<K: DecodeKey, V: Serialize + DeserializeOwned> Typed<Keyspace, K, V> {
    /// The keyspace as the snapshot sees it.
    pub fn at(&self, snapshot: &Snapshot) -> Typed<Snapshot, K, V> {
        Typed::new(snapshot.keyspace(&self.store))
    }

    /// The keyspace in a transaction.
    pub fn within<'t>(&self, transaction: &'t Transaction) -> Typed<KeyspaceTransaction<'t>, K, V> {
        Typed::new(transaction.keyspace(&self.store))
    }

    /// The keyspace in a batch: operations added there become part of it.
    pub fn in_batch<'b>(&self, batch: &'b mut WriteBatch) -> Typed<KeyspaceBatch<'b>, K, V> {
        Typed::new(batch.keyspace(&self.store))
    }
}

impl<S, K, V> Typed<S, K, V> {
    fn new(store: S) -> Self {
        Self { store, types: PhantomData }
    }
}

impl<S: TypedRead, K: DecodeKey, V: Serialize + DeserializeOwned> Typed<S, K, V> {
    /// The keyspace of bytes.
    pub fn untyped(&self) -> &S {
        &self.store
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// Those of the read; [`Error::InvalidArgument`] if what is stored cannot be of the type, because it was written as bytes, or with another type.
    /// Some other types look alike: a `u64` as a key is also an `i64`. The same holds for all reads.
    pub fn get<Q: EncodeKey + ?Sized>(&self, key: &Q) -> Result<Option<V>>
    where
        K: Borrow<Q>,
    {
        let key = encode_key(key);
        self.store.get_bytes(&key)?.map(|value| decode_value(&key, &value)).transpose()
    }

    /// The values of `keys`, read together: quicker than one by one.
    ///
    /// # Errors
    /// Those of [`Typed::get`].
    pub fn get_many<'k, Q: EncodeKey + ?Sized + 'k>(
        &self,
        keys: impl IntoIterator<Item = &'k Q>,
    ) -> Result<Vec<Option<V>>>
    where
        K: Borrow<Q>,
    {
        let keys: Vec<_> = keys.into_iter().map(encode_key).collect();
        let values = self.store.get_many_bytes(&keys)?.into_iter().zip(&keys);
        values.map(|(value, key)| value.map(|value| decode_value(key, &value)).transpose()).collect()
    }

    /// The entry with the smallest key.
    pub fn first(&self) -> Result<Option<(K, V)>> {
        self.iter().next().transpose()
    }

    /// The entry with the largest key.
    pub fn last(&self) -> Result<Option<(K, V)>> {
        self.iter().next_back().transpose()
    }

    /// All entries in the order of their keys, from both ends.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Result<(K, V)>> + use<S, K, V> {
        self.store.range_bytes((Bound::Unbounded, Bound::Unbounded)).map(decode_entry)
    }

    /// The entries whose keys lie in `bounds`, from both ends. Inverted bounds are empty.
    pub fn range<R: RangeBounds<K>>(
        &self,
        bounds: R,
    ) -> impl DoubleEndedIterator<Item = Result<(K, V)>> + use<S, K, V, R> {
        self.store.range_bytes(encode_bounds(&bounds)).map(decode_entry)
    }

    /// The entries whose keys begin with these fields, from both ends.
    pub fn prefix<P: LeadingFields<K>>(
        &self,
        fields: &P,
    ) -> impl DoubleEndedIterator<Item = Result<(K, V)>> + use<S, K, V, P> {
        self.store.range_bytes(prefix_bounds(&encode_key(fields))).map(decode_entry)
    }
}

impl<S: TypedWrite, K: DecodeKey, V: Serialize + DeserializeOwned> Typed<S, K, V> {
    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// Those of the write; [`Error::InvalidArgument`] if the value refuses to be encoded.
    pub fn insert<Q: EncodeKey + ?Sized>(&self, key: &Q, value: &V) -> Result<()>
    where
        K: Borrow<Q>,
    {
        self.store.insert_bytes(&encode_key(key), &encode_value(value)?)
    }

    /// Removes `key`, whether or not it has a value. Errors are those of [`Typed::insert`].
    pub fn remove<Q: EncodeKey + ?Sized>(&self, key: &Q) -> Result<()>
    where
        K: Borrow<Q>,
    {
        self.store.remove_bytes(&encode_key(key))
    }

    /// Removes all keys within `bounds`, in one operation. Inverted bounds remove nothing.
    pub fn remove_range(&self, bounds: impl RangeBounds<K>) -> Result<()> {
        self.store.remove_range_bytes(encode_bounds(&bounds))
    }

    /// Removes all keys that begin with these fields, in one operation.
    pub fn remove_prefix<P: LeadingFields<K>>(&self, fields: &P) -> Result<()> {
        self.store.remove_range_bytes(prefix_bounds(&encode_key(fields)))
    }
}

/// In a batch. Errors are those of [`KeyspaceBatch`], and of a value that refuses to be encoded.
impl<K: DecodeKey, V: Serialize + DeserializeOwned> Typed<KeyspaceBatch<'_>, K, V> {
    /// Adds the insertion of `value` under `key`.
    pub fn insert<Q: EncodeKey + ?Sized>(&mut self, key: &Q, value: &V) -> Result<()>
    where
        K: Borrow<Q>,
    {
        self.store.insert(encode_key(key), encode_value(value)?)
    }

    /// Adds the removal of `key`, whether or not it exists.
    pub fn remove<Q: EncodeKey + ?Sized>(&mut self, key: &Q) -> Result<()>
    where
        K: Borrow<Q>,
    {
        self.store.remove(encode_key(key))
    }

    /// Adds the removal of all keys within `bounds`.
    pub fn remove_range(&mut self, bounds: impl RangeBounds<K>) -> Result<()> {
        self.store.remove_range(encode_bounds(&bounds))
    }
}

impl<K: DecodeKey, V: Serialize + DeserializeOwned> Typed<KeyspaceTransaction<'_>, K, V> {
    /// Returns the entry with the smallest key, and removes it when the transaction is committed.
    pub fn pop_first(&self) -> Result<Option<(K, V)>> {
        self.pop(self.first()?)
    }

    /// The same for the entry with the largest key.
    pub fn pop_last(&self) -> Result<Option<(K, V)>> {
        self.pop(self.last()?)
    }

    fn pop(&self, entry: Option<(K, V)>) -> Result<Option<(K, V)>> {
        entry.iter().try_for_each(|(key, _)| self.remove(key))?;
        Ok(entry)
    }
}

fn encode_key<K: EncodeKey + ?Sized>(key: &K) -> Vec<u8> {
    let mut encoded = Vec::new();
    key.encode(&mut encoded);
    encoded
}

fn encode_bounds<K: EncodeKey>(bounds: &impl RangeBounds<K>) -> OwnedBounds {
    let encoded = |bound: Bound<&K>| bound.map(|key| Slice::from(encode_key(key)));
    (encoded(bounds.start_bound()), encoded(bounds.end_bound()))
}

fn encode_value<V: Serialize>(value: &V) -> Result<Vec<u8>> {
    rmp_serde::to_vec_named(value).map_err(|error| {
        Error::InvalidArgument(format!("a value of type {} cannot be encoded: {error}", type_name::<V>()))
    })
}

fn decode_value<V: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<V> {
    let mut rest = value;
    let decoded = rmp_serde::from_read(&mut rest).map_err(|error| error.to_string());
    let decoded = decoded.and_then(|value| match rest.len() {
        0 => Ok(value),
        more => Err(format!("{more} bytes more")),
    });
    decoded.map_err(|error| {
        let (key, expected) = (key.escape_ascii(), type_name::<V>());
        Error::InvalidArgument(format!("the value of key \"{key}\" is not of type {expected}: {error}"))
    })
}

fn decode_entry<K: DecodeKey, V: DeserializeOwned>(entry: Result<Entry>) -> Result<(K, V)> {
    let (key, value) = entry?;
    let mut rest = &key[..];
    let decoded = K::decode(&mut rest).filter(|_| rest.is_empty()).ok_or_else(|| {
        Error::InvalidArgument(format!("the key \"{}\" is not of type {}", key.escape_ascii(), type_name::<K>()))
    });
    Ok((decoded?, decode_value(&key, &value)?))
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! impl_typed_read {
    ($($store:ty, $iter:ty $(, $lifetime:lifetime)?;)+) => {
        $(
            impl$(<$lifetime>)? sealed::Sealed for $store {}
            impl$(<$lifetime>)? TypedRead for $store {
                type Iter = $iter;

                fn get_bytes(&self, key: &[u8]) -> Result<Option<Slice>> {
                    self.get(key)
                }

                fn get_many_bytes(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Slice>>> {
                    self.get_many(keys)
                }

                fn range_bytes(&self, bounds: OwnedBounds) -> $iter {
                    self.range(bounds)
                }
            }
        )+
    };
}

macro_rules! impl_typed_write {
    ($($store:ty),+) => {
        $(impl TypedWrite for $store {
            fn insert_bytes(&self, key: &[u8], value: &[u8]) -> Result<()> {
                self.insert(key, value)
            }

            fn remove_bytes(&self, key: &[u8]) -> Result<()> {
                self.remove(key)
            }

            fn remove_range_bytes(&self, bounds: OwnedBounds) -> Result<()> {
                self.remove_range(bounds)
            }
        })+
    };
}

impl_typed_read!(Keyspace, Iter; Snapshot, Iter; KeyspaceTransaction<'a>, TransactionIter<'a>, 'a;);
impl_typed_write!(Keyspace, KeyspaceTransaction<'_>);

impl<S: Clone, K, V> Clone for Typed<S, K, V> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), types: PhantomData }
    }
}

impl<S: fmt::Debug, K, V> fmt::Debug for Typed<S, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").field("store", &self.store).finish_non_exhaustive()
    }
}
