//! Places for a group of nodes, all searched for at once.

use super::List;
use super::splice::Splice;
use crate::node::NIL;
use crate::search::{Schema, Target};
use crate::tuning::LANES;

/// The most nodes of a group. What one of them links, those searched with it have not seen: they find it as they find
/// what other threads linked meanwhile.
pub(super) const GROUP: usize = LANES;

/// The splices of a group, or the nodes that stand in their places already.
pub(super) struct Group {
    splices: [Splice; GROUP],
    present: [u32; GROUP],
    len: usize,
}

impl Group {
    pub(super) const fn new() -> Self {
        Self { splices: [const { Splice::new() }; GROUP], present: [NIL; GROUP], len: 0 }
    }

    /// Searches `targets`, at most [`GROUP`].
    pub(super) fn locate<'k, S: Schema>(&mut self, list: &List<S>, targets: impl ExactSizeIterator<Item = Target<'k>>) {
        self.len = targets.len();
        let top = list.top();
        self.splices.iter_mut().for_each(|splice| splice.top = top);
        let (splices, present) = (&mut self.splices, &mut self.present);
        list.descend_many(
            targets,
            top,
            |index, level, step| splices[index].steps[level] = step,
            |index, landing| present[index] = if landing.found { landing.first } else { NIL },
        );
    }

    /// What was found, in the order of the targets.
    pub(super) fn places(&self) -> impl Iterator<Item = Result<&Splice, u32>> {
        let present = self.present[..self.len].iter();
        self.splices.iter().zip(present).map(|(splice, &off)| if off == NIL { Ok(splice) } else { Err(off) })
    }
}
