//! What can be measured: which subjects do which workloads on tables of which shape.

mod cell;
mod shape;
mod subject;
mod workload;

pub(crate) use cell::{Cell, repeated};
pub(crate) use shape::{Access, KEY_LEN, Shape, VALUE_LEN};
pub(crate) use subject::{Role, Subject};
pub(crate) use workload::Workload;
