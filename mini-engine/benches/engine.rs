//! How fast is the engine? A group for each workload of the preset `own-engine`.
//!
//! `cargo bench -p mini-engine --bench engine [-- FILTER]`, ten minutes; reports and plots are in `target/criterion`. Keys have 16 bytes, values 100; the
//! cache of 128 MiB holds all data, nothing is compressed, and only `synced-put` syncs. Databases are made in `TMPDIR`. Reads are measured in a database
//! at rest, scans after many others. `cargo compare` runs the same workloads beside the peers.

fn main() {
    memtable_bench::criterion("own-engine");
}
