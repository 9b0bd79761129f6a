//! What runs have measured: the file of a run, the figures in it, and how they are printed.

mod figures;
mod run;
mod text;

pub(crate) use figures::{Figure, Overhead, Turn};
#[cfg(test)]
pub(crate) use run::testing::measured;
pub(crate) use run::{CellResults, Run};
pub(crate) use text::{by_threads, cell_text, heading};
