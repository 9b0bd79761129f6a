//! The group to which each slot belongs.
//!
//! Group `g` of `n` has the slots from `g * 16384 / n` up to those of the next group. The number of groups is fixed when the cluster is created. The
//! slot of a key is that of Redis Cluster: `mini_engine_server::replicated::slot_of`.

use std::ops::Range;

use mini_engine_server::replicated::SLOTS;

/// The group to which a slot belongs, in a cluster of `groups` groups.
pub(crate) fn group_of(slot: u16, groups: u32) -> u32 {
    // The last group whose first slot is not after this slot.
    ((u32::from(slot) + 1) * groups - 1) / u32::from(SLOTS)
}

/// The slots of a group.
pub(crate) fn slots_of(group: u32, groups: u32) -> Range<u16> {
    let first = |group: u32| (group * u32::from(SLOTS) / groups) as u16;
    first(group)..first(group + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_the_one_group_whose_range_it_is_in() {
        // Catches a slot at the border of two groups for which requests and CLUSTER SLOTS use different groups, and a slot without a group.
        for groups in [1, 2, 3, 5, 7, 16, 100, 1000] {
            let mut next = 0;
            for group in 0..groups {
                let range = slots_of(group, groups);
                assert_eq!(range.start, next, "group {group} of {groups}");
                for slot in range.clone() {
                    assert_eq!(group_of(slot, groups), group, "slot {slot} of {groups} groups");
                }
                next = range.end;
            }
            assert_eq!(next, SLOTS);
        }
    }
}
