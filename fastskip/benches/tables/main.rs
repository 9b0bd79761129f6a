//! Single calls, each group of benches answering one question. `cargo bench -p fastskip-benches -- insert` runs one of them.

mod common;
mod freeze;
mod insert;
mod reserve;
mod search;

use criterion::{criterion_group, criterion_main};

criterion_group!(benches, reserve::reserve, insert::insert, search::search, freeze::freeze);
criterion_main!(benches);
