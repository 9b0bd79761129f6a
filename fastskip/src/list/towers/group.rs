//! Places for a group of nodes, all searched for at once.

use super::splice::Splice;
use crate::list::List;
use crate::list::schema::Schema;
use crate::node::{NodeId, Target};
use crate::tuning::LANES;

/// The most nodes of a group. What one of them links, those searched with it have not seen: they find it as they find
/// what other threads linked meanwhile.
pub(in crate::list) const GROUP: usize = LANES;

/// The splices of a group, or the nodes that stand in their places already.
pub(in crate::list) struct Group {
    splices: [Splice; GROUP],
    present: [Option<NodeId>; GROUP],
    len: usize,
}

impl Group {
    pub(in crate::list) const fn new() -> Self {
        Self { splices: [const { Splice::new() }; GROUP], present: [None; GROUP], len: 0 }
    }

    /// Searches `targets`, at most [`GROUP`].
    pub(in crate::list) fn locate<'k, S: Schema>(
        &mut self,
        list: &List<S>,
        targets: impl ExactSizeIterator<Item = Target<'k>>,
    ) {
        self.len = targets.len();
        let top = list.top();
        self.splices.iter_mut().for_each(|splice| splice.top = top);
        let (splices, present) = (&mut self.splices, &mut self.present);
        list.descend_many(
            targets,
            top,
            |index, level, step| splices[index].steps[level] = step,
            |index, found| present[index] = found.absent().err(),
        );
    }

    /// What was found, in the order of the targets.
    pub(in crate::list) fn places(&self) -> impl Iterator<Item = Result<&Splice, NodeId>> {
        let present = self.present[..self.len].iter();
        self.splices.iter().zip(present).map(|(splice, present)| present.map_or(Ok(splice), Err))
    }
}
