//! The subjects: a [`Store`](store::Store) around each table and each engine.

#[cfg(feature = "peers")]
pub(crate) mod fjall;
#[cfg(feature = "leveldb")]
pub(crate) mod leveldb;
#[cfg(feature = "peers")]
pub(crate) mod lists;
#[cfg(feature = "peers")]
pub(crate) mod lmdb;
pub(crate) mod log;
pub(crate) mod maps;
pub(crate) mod mini;
pub(crate) mod own;
#[cfg(feature = "peers")]
pub(crate) mod redb;
#[cfg(any(feature = "rocksdb", feature = "speedb"))]
pub(crate) mod rocksdb;
#[cfg(feature = "skl")]
pub(crate) mod skl;
#[cfg(feature = "peers")]
pub(crate) mod sled;
pub(crate) mod store;
#[cfg(feature = "surrealkv")]
pub(crate) mod surrealkv;
#[cfg(feature = "tidesdb")]
pub(crate) mod tidesdb;
#[cfg(feature = "wiredtiger")]
pub(crate) mod wiredtiger;
