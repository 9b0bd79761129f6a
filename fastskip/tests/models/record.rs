//! A cheap record of the operations and refusals that occurred in a run.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use fastskip::InsertError;

use super::Met;

/// Operations and their refusals. The flag of a refusal is set if lack of memory was its only cause.
#[derive(Debug)]
pub(crate) struct Record<Op>(HashSet<(Op, Option<(InsertError, bool)>)>);

impl<Op: Copy + Eq + Hash + Debug> Record<Op> {
    pub(crate) fn new() -> Self {
        Self(HashSet::new())
    }

    pub(crate) fn meet(&mut self, op: Op) {
        self.0.insert((op, None));
    }

    /// Notes a refused write.
    pub(crate) fn end(&mut self, op: Op, foretold: Result<(), InsertError>, found: Result<(), InsertError>) {
        if let Err(refusal) = found {
            self.0.insert((op, Some((refusal, foretold.is_ok()))));
        }
    }

    pub(crate) fn names(&self) -> Met {
        let name = |(op, refusal): &(Op, Option<(InsertError, bool)>)| match refusal {
            None => format!("{op:?}"),
            Some((refusal, false)) => format!("{op:?}: {refusal:?}"),
            Some((refusal, true)) => format!("{op:?}: {refusal:?}, memory"),
        };
        self.0.iter().map(name).collect()
    }
}
