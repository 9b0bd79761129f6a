//! What is measured: subjects, the workloads that they do, and the shapes of tables or databases.

mod shape;
mod subject;
mod workload;

use clap::ValueEnum;

pub(crate) use bench_keys::{KeySet, SHORTEST_KEY};
pub(crate) use shape::{Access, KEY_LEN, Shape, Store, VALUE_LEN, short};
pub(crate) use subject::{Role, Subject, subjects};
pub(crate) use workload::Workload;

/// The name of a variant in arguments, tables and files.
pub(crate) fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
