//! Results of runs: the file of a run, the figures of its cells, and the tables in which people read them.

mod all;
mod cell;
mod run;
mod sheets;
#[cfg(test)]
mod testing;

pub(crate) use all::Results;
pub(crate) use cell::{CellResults, Figure, Turn, failures};
pub(crate) use run::Run;
pub(crate) use sheets::{cell_text, facts, heading, latencies, origin, ratios};
#[cfg(test)]
pub(crate) use testing::{measured, measured_run};
