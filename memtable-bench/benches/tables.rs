//! How fast are the tables? A group for each workload of the preset `own-tables`, asked of both tables, one by one and in batches.
//!
//! `cargo bench -p memtable-bench [-- FILTER]`, ten minutes; reports and plots are in `target/criterion`. Keys have 16 bytes (paths more), values 100; 480,000
//! entries fill a memtable of 64 MiB. `cargo compare` runs the same workloads beside the peers.

fn main() {
    memtable_bench::criterion("own-tables");
}
