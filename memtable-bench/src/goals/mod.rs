//! The project's goals for its tables and its engine: `list` has them, `measure` says what they may ask for, `checks` holds a run
//! against them.

mod checks;
mod list;
mod measure;

pub(crate) use checks::{checks, concerned, outcome, sheet, summary};
pub(crate) use measure::Goal;
