//! Memory: an address range, its division among shards, and the limit on entries.
//!
//! The loom models in `loom-tests` declare these modules themselves, with their own `storage`.

pub(crate) mod arena;
pub(crate) mod budget;
mod chunk;
pub(crate) mod lanes;
mod poison;
pub(crate) mod quota;
mod range;
mod spares;
pub(crate) mod storage;
