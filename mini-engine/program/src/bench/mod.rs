//! The parts of the benchmark: the amounts, the data, the directory, and the timed workloads.

pub(crate) mod amounts;
pub(crate) mod bench_dir;
pub(crate) mod data;
pub(crate) mod workload;
