//! The project's goals for its tables and its engine: `list` has them, `measure` has the measurements that they may ask for, `checks` compares a
//! run with them.

mod checks;
mod list;
mod measure;

pub(crate) use checks::{checks, concerned, outcome, sheet, summary};
pub(crate) use measure::Goal;
