//! Runs the models, and checks that they would find mistakes. One test program, so that it is linked once.

mod canaries;
mod memory_ordering;
mod models;
mod storage_rules;
