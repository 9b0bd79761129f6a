//! The tables that are measured.

#[cfg(feature = "peers")]
pub(crate) mod lists;
pub(crate) mod maps;
pub(crate) mod own;
#[cfg(feature = "skl")]
pub(crate) mod skl;
pub(crate) mod table;

pub(crate) use table::{Record, Table};
