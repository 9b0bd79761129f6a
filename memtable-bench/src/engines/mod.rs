//! The engines: a [`Engine`] around each.

mod engine;
mod fjall;
mod floors;
#[cfg(feature = "leveldb")]
mod leveldb;
mod lmdb;
mod mini;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sled;

pub(crate) use engine::{Done, Engine, Settings};
pub(crate) use fjall::Fjall;
pub(crate) use floors::{InMemory, Log};
#[cfg(feature = "leveldb")]
pub(crate) use leveldb::Leveldb;
pub(crate) use lmdb::Lmdb;
pub(crate) use mini::Mini;
pub(crate) use redb::Redb;
#[cfg(feature = "rocksdb")]
pub(crate) use rocksdb::Rocksdb;
pub(crate) use sled::Sled;
