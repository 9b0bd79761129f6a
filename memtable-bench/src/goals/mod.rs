//! The project's goals for its tables: what each asks for, the cells that it needs, and what a run says of it.

mod check;
mod table;

pub(crate) use check::{checks, outcome, sheet, summary, verdict, word};
pub(crate) use table::{GOALS, Goal, cells, published};
