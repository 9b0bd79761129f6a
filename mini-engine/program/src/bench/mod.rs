//! The parts of the benchmark: how much, of which data, in which directory, and what is timed.

pub(crate) mod amounts;
pub(crate) mod bench_dir;
pub(crate) mod data;
pub(crate) mod workload;
