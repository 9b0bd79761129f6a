//! The engines: an [`Engine`](engine::Engine) around each.

pub(crate) mod engine;
#[cfg(feature = "peers")]
pub(crate) mod fjall;
pub(crate) mod floors;
#[cfg(feature = "leveldb")]
pub(crate) mod leveldb;
#[cfg(feature = "peers")]
pub(crate) mod lmdb;
pub(crate) mod mini;
#[cfg(feature = "peers")]
pub(crate) mod redb;
#[cfg(feature = "rocksdb")]
pub(crate) mod rocksdb;
#[cfg(feature = "peers")]
pub(crate) mod sled;
