//! Range tombstones compared with a plain list of them.

use proptest::prelude::*;

use super::*;
use crate::types::range_tombstone::{place_after, start_and_end};
use crate::types::{MAX_SEQNO, MAX_STORED_KEY_LEN};

fn tombstone((start, end): (&[u8], &[u8]), seqno: SeqNo) -> RangeTombstone {
    RangeTombstone { start: start.into(), end: end.into(), seqno }
}

fn one_stripe(_: SeqNo) -> RangeInclusive<SeqNo> {
    0..=MAX_SEQNO
}

#[test]
fn the_last_covered_key_is_known_where_the_end_is_right_after_a_key() {
    // Catches a table whose keys seem to overlap the next table of its run.
    for (end, largest) in [(&b"k\0"[..], &b"k"[..]), (b"k\0\0", b"k\0"), (b"k", b"k")] {
        assert_eq!(RangeTombstones::new([tombstone((b"a", end), 1)]).largest(), Some(largest));
    }
    let inner = [tombstone((b"a", b"x"), 1), tombstone((b"b", b"c"), 2)];
    assert_eq!(RangeTombstones::new(inner).largest(), Some(&b"x"[..]));
}

#[test]
fn what_is_cut_behind_the_longest_key_begins_with_the_next_one() {
    // Catches a range whose first key is longer than any key, so that its table cannot be read.
    let longest = vec![b'k'; MAX_STORED_KEY_LEN];
    let end = place_after(&longest);
    let cut = RangeTombstones::new([tombstone((b"", b"z"), 2), tombstone((b"", &end), 3)]).reduced(one_stripe);
    let next = [&longest[1..], b"l"].concat();
    let bounds: Vec<_> = cut.parts().map(|part| (part.start.clone(), part.end.clone())).collect();
    assert_eq!(bounds, [(&b""[..], &end[..]), (&next, b"z")].map(|(a, b)| (Slice::from(a), Slice::from(b))));
    assert_eq!((cut.covering(&longest, 9), cut.covering(&next, 9)), (Some(3), Some(2)));
    assert_eq!(cut.within(&Slice::from(&end[..]), &Slice::default()).len(), 1);
    let last = place_after(&[u8::MAX; MAX_STORED_KEY_LEN]);
    let all = RangeTombstones::new([tombstone((b"", b""), 2), tombstone((b"", &last), 3)]);
    assert_eq!(all.reduced(one_stripe).len(), 1, "there is no key behind the last one");
}

#[test]
fn parts_of_one_tombstone_become_one_again() {
    // Catches parts of a range that each compaction cuts at the ends of its tables and that are never joined again.
    let parts = [tombstone((b"a", b"c"), 7), tombstone((b"c", b"m"), 7), tombstone((b"m", b""), 7)];
    assert_eq!(RangeTombstones::new(parts).reduced(one_stripe), RangeTombstones::new([tombstone((b"a", b""), 7)]));
}

fn place() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..3, 0..4)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![Just(Bound::Unbounded), place().prop_map(Bound::Included), place().prop_map(Bound::Excluded)]
}

fn tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
    let range = (place(), place())
        .prop_filter_map("an empty range", |(start, end)| is_before_end(&start, &end).then_some((start, end)));
    prop::collection::vec((range, 1u64..30), 0..12)
        .prop_map(|all| all.into_iter().map(|((start, end), seqno)| tombstone((&start, &end), seqno)).collect())
}

fn covering(all: &[RangeTombstone], key: &[u8], seqno: SeqNo) -> Option<SeqNo> {
    let covers = |t: &&RangeTombstone| *t.start <= *key && is_before_end(key, &t.end) && t.seqno <= seqno;
    all.iter().filter(covers).map(|t| t.seqno).max()
}

proptest! {
    #[test]
    fn range_tombstones_cover_what_each_of_them_does(
        all in tombstones(), more in tombstones(), mut keys in prop::collection::vec(place(), 1..6), seqno in 0u64..31,
        from in place(), end in place(), snapshot in 0u64..31,
    ) {
        // Catches a range that is lost or grows when it is stored, united, clipped or cut at others, and a lost sequence number.
        let [one, other] = [&all, &more].map(|all| RangeTombstones::new(all.clone()));
        let united = RangeTombstones::union([&one, &other, &one]);
        let both = [all.clone(), more].concat();
        let clipped = one.within(&Slice::from(&from[..]), &Slice::from(&end[..]));
        // Two stripes, with the snapshot between them.
        let stripe = |seqno: SeqNo| if seqno <= snapshot { 0..=snapshot } else { snapshot + 1..=MAX_SEQNO };
        let reduced = united.reduced(stripe);
        prop_assert!(reduced.len() <= 2 * united.len());
        let mut near = 0;
        for key in &keys {
            prop_assert_eq!(one.covering(key, seqno), covering(&all, key, seqno));
            prop_assert_eq!(one.covering_near(&mut near, key, seqno), covering(&all, key, seqno));
            prop_assert_eq!(united.covering(key, seqno), covering(&both, key, seqno));
            let is_within = from <= *key && is_before_end(key, &end);
            prop_assert_eq!(clipped.covering(key, seqno), covering(&all, key, seqno).filter(|_| is_within));
            for seqno in [snapshot, MAX_SEQNO] {
                prop_assert_eq!(reduced.covering(key, seqno), covering(&both, key, seqno));
            }
            let span = one.span_near(&mut near, key, seqno);
            prop_assert!(span.contains(key));
            prop_assert_eq!(span.newest, covering(&all, key, seqno));
            for other in keys.iter().filter(|other| span.contains(other)) {
                prop_assert_eq!(span.newest, covering(&all, other, seqno));
            }
        }
        keys.sort();
        if let [smallest, .., largest] = &keys[..] {
            let is_covered = one.cover_all(smallest, largest, (9, seqno));
            prop_assert!(!is_covered || keys.iter().all(|key| covering(&all, key, seqno) > Some(9)));
            let by_one = |t: &RangeTombstone| *t.start <= **smallest && is_before_end(largest, &t.end) && (10..=seqno).contains(&t.seqno);
            prop_assert!(is_covered || !all.iter().any(by_one));
        }
        for part in united.parts() {
            let seqnos: Vec<SeqNo> = part.seqnos().collect();
            prop_assert!(is_before_end(part.start, part.end) && seqnos.is_sorted_by(|a, b| a > b) && !seqnos.is_empty());
        }
        prop_assert!(united.parts().collect::<Vec<_>>().is_sorted_by_key(|part| part.start.clone()));
        let seqnos: usize = united.parts().map(|part| part.seqnos().len()).sum();
        prop_assert_eq!(seqnos, united.len());
    }

    #[test]
    fn a_newer_tombstone_is_found_where_it_shares_places_with_the_bounds(
        all in tombstones(), lower in bound(), upper in bound(), since in 0u64..31,
    ) {
        // Catches a removal that a transaction overlooks, one that only adjoins what the transaction has read, and one that it already saw.
        let bounds = (lower, upper);
        let shared = start_and_end(&bounds);
        let shares = |t: &RangeTombstone| {
            shared.as_ref().is_some_and(|(start, end)| is_before_end(&t.start, end) && is_before_end(start, &t.end))
        };
        let expected = all.iter().any(|t| t.seqno > since && shares(t));
        let found = RangeTombstones::new(all).newer_within(&bounds, since);
        prop_assert!(found.as_ref().is_none_or(|t| t.seqno > since && (shares(t) || shared.is_none())), "{:?}", found);
        prop_assert_eq!(found.is_some() && shared.is_some(), expected);
    }
}
