//! Cells, the unit of measurement: subjects, the workloads that they do, and the shapes of tables or databases.

mod cell;
mod shape;
mod subject;
mod workload;

pub(crate) use bench_keys::{KeySet, SHORTEST_KEY};
pub(crate) use cell::Cell;
pub(crate) use shape::{Access, KEY_LEN, Shape, Store, VALUE_LEN};
pub(crate) use subject::{Role, Subject, subjects};
pub(crate) use workload::Workload;
