//! Tests of the public API. One test program, so that it is linked once.

/// Whether arenas are fixed: all tables have at most 2 GiB.
const FEW_ADDRESSES: bool = cfg!(any(not(target_pointer_width = "64"), not(feature = "std"), fastskip_fixed_arena));

/// Whether all operations of a thread use one shard. Without `std`, the shard depends on the page of the stack.
const THREADS_KEEP_SHARDS: bool = cfg!(feature = "std");

mod batches;
mod budget;
// About reserved addresses, which fixed arenas do not have.
#[cfg(all(target_pointer_width = "64", feature = "std", not(fastskip_fixed_arena)))]
mod cheap;
mod concurrent;
mod debug;
mod duplicates;
mod estimates;
mod freezing;
mod full;
mod layers;
mod limits;
mod long_walks;
mod maps;
#[path = "../models/mod.rs"]
mod models;
mod orders;
mod owned;
mod patterns;
mod published_defects;
mod room;
mod scrambled;
mod shards;
