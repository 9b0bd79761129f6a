//! What can be measured: which subjects do which workloads on tables or databases of which shape.

mod cell;
mod shape;
mod subject;
mod workload;

pub(crate) use cell::Cell;
pub(crate) use shape::{Access, KEY_LEN, KeySet, SHORTEST_KEY, Shape, Store, VALUE_LEN};
pub(crate) use subject::{Role, Subject, subjects};
pub(crate) use workload::Workload;
