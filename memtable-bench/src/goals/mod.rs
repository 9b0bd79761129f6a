//! The project's goals for its tables and its engine: `list` has the goals, `measure` their measurements, and `checks` compares a run with the
//! goals.

mod checks;
mod list;
mod measure;

pub(crate) use checks::{checks, concerned, outcome, sheet, summary};
pub(crate) use measure::Goal;
