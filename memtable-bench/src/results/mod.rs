//! What runs have measured: the file of a run, the figures in it, and how they are printed.

mod engines;
mod figures;
mod run;
#[cfg(test)]
mod testing;
mod text;

pub(crate) use engines::{facts, ratios, ratios_sheet};
pub(crate) use figures::{Figure, Overhead, Turn};
pub(crate) use run::{CellResults, Run};
#[cfg(test)]
pub(crate) use testing::{measured, measured_run};
pub(crate) use text::{by_threads, cell_text, heading, latencies};
