//! Searches for several targets at once: they descend side by side, level by level, so that their cache misses overlap.

use super::state::List;
use crate::index::{Descent, LowerBound, Probe, Seek, Ties};
use crate::node::{Schema, Target};
use crate::tuning::GROUP;

impl<S: Schema> List<S> {
    /// Searches `targets`, at most [`GROUP`]. The nodes of these targets are prefetched together.
    #[inline(always)]
    pub(super) fn seek_group(&self, targets: &[Target<'_>], seeks: &mut [Option<Seek>; GROUP]) {
        let mut probes: [Option<Probe>; GROUP] = [None; GROUP];
        self.probe_group(targets, &mut probes);
        for ((target, probe), seek) in targets.iter().zip(probes).zip(&mut *seeks) {
            let compared = self.index.compare_hint(probe.as_ref(), *target, &mut ());
            *seek = compared.and_then(|probe| self.index.verify(probe, *target, &mut ()));
            seek.iter().for_each(|seek| self.nodes().prefetch_next(&seek.splice, *target));
        }
        for (target, seek) in targets.iter().zip(seeks) {
            if !seek.as_mut().is_some_and(|seek| self.index.walk_from(seek, *target, &mut ())) {
                *seek = Some(self.index.seek_again(*target, &mut ()));
            }
        }
    }

    /// Like [`probe`](crate::index::Index::probe), for each target.
    #[inline]
    pub(super) fn probe_group(&self, targets: &[Target<'_>], probes: &mut [Option<Probe>; GROUP]) {
        let Some((start, level)) = self.index.probe_start() else { return };
        let mut descents = [start; GROUP];
        let mut are_tied = false;
        for _ in 0..level {
            are_tied = if are_tied {
                let candidates = self.prefetch_candidates(&descents, targets);
                self.probe_down_group(&mut descents, targets, |index| candidates[index])
            } else {
                self.probe_down_group(&mut descents, targets, |_| None)
            };
        }
        let candidates = if are_tied { self.prefetch_candidates(&descents, targets) } else { [None; GROUP] };
        for (((descent, target), candidate), probe) in descents.iter().zip(targets).zip(candidates).zip(probes) {
            *probe = self.index.probe_end(descent, target, Ties::Guess(candidate));
            self.index.prefetch_probe(probe.as_ref());
        }
    }

    /// Makes one step down for each target. Returns whether any of the blocks was tied: then the blocks below most likely are tied too.
    #[inline(always)]
    fn probe_down_group(
        &self,
        descents: &mut [Descent; GROUP],
        targets: &[Target<'_>],
        candidate: impl Fn(usize) -> Option<u8>,
    ) -> bool {
        let mut any_tied = false;
        for (index, (descent, target)) in descents.iter_mut().zip(targets).enumerate() {
            any_tied |= self.index.probe_down(descent, target, Ties::Guess(candidate(index)));
        }
        any_tied
    }

    /// Each descent has reached a block; returns the slot that settles the ties in this block. The nodes of these slots are prefetched.
    #[inline(never)]
    fn prefetch_candidates(&self, descents: &[Descent; GROUP], targets: &[Target<'_>]) -> [Option<u8>; GROUP] {
        let mut candidates = [None; GROUP];
        for ((descent, target), candidate) in descents.iter().zip(targets).zip(&mut candidates) {
            *candidate = descent.at.and_then(|at| self.index.prefetch_candidate(at, *target));
        }
        candidates
    }

    /// Finds the [`lower_bound`](Self::lower_bound) of each target. Calls `found` with the index of each target and the result, in any order.
    pub(crate) fn lower_bounds(&self, targets: &[Target<'_>], mut found: impl FnMut(usize, LowerBound)) {
        for (group, targets) in targets.chunks(GROUP).enumerate() {
            let mut probes: [Option<Probe>; GROUP] = [None; GROUP];
            self.probe_group(targets, &mut probes);
            let mut rest = 0_u64;
            for (index, (target, probe)) in targets.iter().zip(&probes).enumerate() {
                match self.index.hit_of(probe.as_ref(), target) {
                    Some(hit) => found(group * GROUP + index, hit),
                    None => rest |= 1 << index,
                }
            }
            // Prefetches the nodes that the other searches will read next.
            while rest != 0 {
                let index = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                found(group * GROUP + index, self.index.lower_bound_of(probes[index].as_ref(), &targets[index]));
            }
        }
    }
}
