//! The models, and whether they would find what is wrong: one program, so that it is linked once.

mod canaries;
mod memory_ordering;
mod models;
mod storage_rules;
