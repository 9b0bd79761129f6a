//! Searches for several targets at once: they descend side by side, level by level, so that their cache misses overlap.

use super::List;
use super::index::{Probe, Ties};
use super::schema::Schema;
use super::search::{LowerBound, Seek};
use crate::node::Target;
use crate::tuning::GROUP;

impl<S: Schema> List<S> {
    /// Searches `targets`, at most [`GROUP`]. The nodes that come up are asked for together.
    #[inline]
    pub(super) fn seek_group(&self, targets: &[Target<'_>], seeks: &mut [Option<Seek>; GROUP]) {
        let mut probes: [Option<Probe>; GROUP] = [None; GROUP];
        self.probe_group(targets, &mut probes);
        for ((target, probe), seek) in targets.iter().zip(probes).zip(&mut *seeks) {
            *seek = probe.and_then(|probe| self.verify(probe, *target, &mut ()));
            seek.iter().for_each(|seek| self.prefetch_next(&seek.splice, *target));
        }
        for (target, seek) in targets.iter().zip(seeks) {
            *seek = Some(self.finish(*seek, *target, &mut ()));
        }
    }

    /// As [`probe`](List::probe) for each target.
    #[inline]
    pub(super) fn probe_group(&self, targets: &[Target<'_>], probes: &mut [Option<Probe>; GROUP]) {
        let Some((root, level)) = self.probe_start() else { return };
        let mut descents = [(Some(root), 0); GROUP];
        for _ in 0..level {
            for ((at, prefix), target) in descents.iter_mut().zip(targets) {
                *at = at.and_then(|at| self.probe_down(at, *target, prefix, Ties::Guess, &mut ()));
            }
        }
        for (((at, prefix), target), probe) in descents.into_iter().zip(targets).zip(probes) {
            *probe = at.and_then(|at| self.probe_end(at, *target, prefix, Ties::Guess, &mut ()));
            if let Some(probe) = probe {
                self.prefetch_probe(probe);
            }
        }
    }

    /// [`lower_bound`](Self::lower_bound) of each target, told to `found` with its index.
    pub(crate) fn lower_bounds(&self, targets: &[Target<'_>], mut found: impl FnMut(usize, LowerBound)) {
        let mut seeks = [None; GROUP];
        for (group, targets) in targets.chunks(GROUP).enumerate() {
            self.seek_group(targets, &mut seeks);
            for (index, seek) in seeks[..targets.len()].iter().flatten().enumerate() {
                self.mend_after_read(seek);
                found(group * GROUP + index, seek.lower_bound());
            }
        }
    }
}
