//! Blocks compared with a sorted vector, and blocks with false contents.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use super::*;
use crate::columns::KeySamples;
use crate::iter::EntryIter;
use crate::iter::model::{Entry, Move, SortedVec, entries, keys, moves};
use crate::table::block::lookup::{Found, lookup};
use crate::types::{is_above, is_below};

fn apply(cursor: &mut Cursor, step: &Move) {
    match step {
        Move::First => cursor.seek_to_first(),
        Move::Last => cursor.seek_to_last(),
        Move::Seek(key, seqno) => cursor.seek(key, *seqno),
        Move::SeekForPrev(key, seqno) => cursor.seek_for_prev(key, *seqno),
        Move::Next if cursor.valid() => cursor.next(),
        Move::Prev if cursor.valid() => cursor.prev(),
        Move::Next | Move::Prev => {}
    }
}

proptest! {
    #[test]
    fn a_block_holds_its_entries_in_both_directions(all in entries(80), moves in moves()) {
        // Catches a prefix taken from the wrong bundle, and bundles that a search misses.
        prop_assume!(!all.is_empty());
        let mut model = SortedVec::new(all);
        let mut cursor = Cursor::checked(Block::from_contents(&model.block().0)).expect("own encoding");
        for step in &moves {
            apply(&mut cursor, step);
            crate::iter::model::apply(&mut model, step).expect("a vector");
            prop_assert_eq!(cursor.valid(), model.valid(), "{:?} of {:?}", step, moves);
            if matches!(step, Move::Next) && cursor.valid() {
                prop_assert_eq!(cursor.repeats(), model.repeats(), "{:?}", moves);
            }
            if model.valid() {
                let found = (cursor.key(), cursor.seqno(), cursor.kind());
                prop_assert_eq!(found, (model.key(), model.seqno(), model.kind()));
                prop_assert_eq!(cursor.value(), model.value());
                prop_assert_eq!(&*cursor.value_slice(), model.value());
            }
        }
    }

    #[test]
    fn a_lookup_finds_what_a_cursor_finds(
        all in entries(80), others in prop::collection::vec(keys(), 0..20), seqnos in prop::collection::vec(0u64..52, 1..5),
    ) {
        // Catches a search that passes the key at the end of a bundle, or confuses it with another.
        prop_assume!(!all.is_empty());
        let model = SortedVec::new(all);
        let contents = model.block().0;
        let mut cursor = Cursor::checked(Block::from_contents(&contents)).expect("own encoding");
        for key in model.entries().iter().map(|entry| &entry.key).chain(&others) {
            for &seqno in &seqnos {
                cursor.seek(key, seqno);
                let here = cursor.valid() && cursor.key() == *key;
                let expected = here.then(|| (cursor.kind(), cursor.seqno(), cursor.value()));
                let columns = model.block().1;
                let samples = [KeySamples::default(), KeySamples::of(&columns, &contents)];
                for samples in samples {
                    let found = lookup((&columns, &samples), &contents, key, seqno);
                    let found = found.as_ref().map(|found| (found.kind, found.seqno, &contents[found.value.clone()]));
                    prop_assert_eq!(found, expected, "{:?} at {}", key, seqno);
                }
            }
        }
    }

    #[test]
    fn a_batch_has_the_entries_of_single_steps_whatever_the_length_of_keys(
        keys in prop::collection::btree_map((0usize..200, prop::collection::vec(0u8..3, 0..40)), (0u8..9, 0usize..40), 1..80),
        at in any::<prop::sample::Index>(), below in prop_oneof![Just(7u64), Just(8), Just(SeqNo::MAX)], way in 0u8..3,
        bound in prop::option::of((any::<prop::sample::Index>(), 0u8..3)),
    ) {
        // Catches keys, which are copied in chunks of 16 bytes, that are cut off or get bytes of their neighbours, values of other entries, and a
        // batch that does not begin or end where it should.
        let (is_forward, from_here) = (way > 0, way > 1);
        let entry = |((prefix, tail), (kind, value_len)): ((usize, Vec<u8>), (u8, usize))| Entry {
            key: [vec![1; prefix], tail].concat(),
            seqno: if kind == 1 { 7 } else { 6 },
            kind: if kind > 0 { Kind::Value } else { Kind::Tombstone },
            value: if kind > 0 { vec![prefix as u8; value_len] } else { Vec::new() },
        };
        let unique: BTreeMap<_, _> = keys.into_iter().map(entry).map(|entry| (entry.key.clone(), entry)).collect();
        let model = SortedVec::new(unique.into_values().collect());
        let bound = bound.map(|(at, kind)| (&model.entries()[at.index(model.entries().len())].key, kind));
        let behind = bound.map(|(key, _)| [key, &b"\0"[..]].concat());
        let bound = match (bound, &behind) {
            (Some((key, 0)), _) => Bound::Included(&key[..]),
            (Some((key, 1)), _) => Bound::Excluded(&key[..]),
            (Some(_), Some(absent)) => Bound::Included(&absent[..]),
            _ => Bound::Unbounded,
        };
        let is_within = |key: &[u8]| if is_forward { is_below(key, bound) } else { is_above(key, bound) };
        let is_shown = |entry: &Entry| entry.kind == Kind::Value && entry.seqno < below && is_within(&entry.key);
        let mut single = Cursor::checked(Block::from_contents(&model.block().0)).expect("own encoding");
        let at = at.index(model.entries().len());
        single.seek(&model.entries()[at].key, 7);
        let (mut batch, mut filled, mut steps) = (Batch::default(), single.clone(), 0);
        let wanted = Wanted { below, bound, is_near: at % 2 == 0 };
        let mut is_left = match is_forward {
            true if from_here => filled.fill(&mut batch, &wanted),
            true if filled.is_last() => false,
            true => filled.next_batch(&mut batch, &wanted) || {
                single.next();
                false
            },
            false => filled.fill_back(&mut batch, &wanted, None),
        };
        while is_left {
            if is_forward && !(from_here && steps == 0) {
                single.next();
            }
            prop_assert_eq!((batch.key(), batch.value(), Kind::Value), (single.key(), single.value(), single.kind()));
            steps += 1;
            is_left = if is_forward { batch.next() } else { batch.prev() };
            if !is_forward {
                single.prev();
            }
        }
        let place = |cursor: &Cursor| (cursor.key().to_vec(), cursor.value().to_vec(), cursor.seqno(), cursor.kind(), cursor.offset());
        prop_assert_eq!(place(&filled), place(&single));
        let expected = match is_forward {
            true => model.entries()[at + usize::from(!from_here)..].iter().take_while(|entry| is_shown(entry)).count(),
            false => model.entries()[1..=at.max(1).min(model.entries().len() - 1)].iter().take(at).rev().take_while(|entry| is_shown(entry)).count(),
        };
        prop_assert_eq!(steps, expected);
    }

    #[test]
    fn damaged_and_random_blocks_never_panic_or_loop(
        all in entries(40), at in any::<prop::sample::Index>(), byte in any::<u8>(), moves in moves(),
        random in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        // Catches offsets that are used without a check: a block may be false although its checksum matched, and yet mostly plausible.
        prop_assume!(!all.is_empty());
        let mut damaged = SortedVec::new(all).block().0;
        let at = at.index(damaged.len());
        damaged[at] = byte;
        for bytes in [damaged, random] {
            let block = Block::from_contents(&bytes);
            for step in &moves {
                let (Move::Seek(key, seqno) | Move::SeekForPrev(key, seqno)) = step else { continue };
                let Ok(columns) = Columns::of(&bytes) else { continue };
                if let Some(Found { value, .. }) = lookup((&columns, &KeySamples::of(&columns, &bytes)), &bytes, key, *seqno) {
                    drop(block.slice(value));
                }
            }
            // Also if the block was not checked.
            if let Ok(cursor) = Cursor::new(block) {
                walk(cursor, bytes.len(), &moves)?;
            }
        }
    }
}

/// Makes the moves, then walks to both ends: there must be no more steps than bytes, and no value outside the block.
fn walk(mut cursor: Cursor, len: usize, moves: &[Move]) -> Result<(), TestCaseError> {
    for step in moves {
        apply(&mut cursor, step);
        prop_assert!(cursor.key().len() <= 2 * len + 32);
        prop_assert!(cursor.value().len() <= len && cursor.value_slice().len() <= len);
        let (mut batch, wanted) =
            (Batch::default(), Wanted { below: 30, bound: Bound::Excluded(&[1, 1]), is_near: true });
        if cursor.clone().fill(&mut batch, &wanted) {
            while batch.next() {
                prop_assert!(batch.value().len() <= len && batch.value_slice().len() <= len);
            }
        }
        if cursor.valid() && !cursor.is_last() && cursor.clone().next_batch(&mut batch, &wanted) {
            while batch.next() {
                prop_assert!(batch.value().len() <= len && batch.value_slice().len() <= len);
            }
        }
        let mut entered = cursor.clone();
        if entered.enter(cursor.block.clone()).is_ok() && entered.first_batch(&mut batch, &wanted) {
            while batch.next() {
                prop_assert!(batch.key().len() <= 2 * len + 32 && batch.value().len() <= len);
            }
        }
        if cursor.clone().fill_back(&mut batch, &wanted, Some(b"a")) {
            while batch.prev() {
                prop_assert!(batch.value().len() <= len && batch.value_slice().len() <= len);
            }
        }
    }
    type Call = fn(&mut Cursor);
    let walks: [(Call, Call); 2] = [(Cursor::seek_to_first, Cursor::next), (Cursor::seek_to_last, Cursor::prev)];
    for (start, step) in walks {
        let mut steps = 0;
        start(&mut cursor);
        while cursor.valid() {
            steps += 1;
            prop_assert!(steps <= len, "more entries than bytes");
            step(&mut cursor);
        }
    }
    Ok(())
}

#[test]
fn a_block_without_entries_is_refused() {
    // Catches an empty block that ends an iteration early, as if the table ended there.
    for bytes in [&[][..], &[0; 3], &[0; 14], &[0; 20], &[1; 14], &[u8::MAX; 40]] {
        assert!(Cursor::new(Block::from_contents(bytes)).is_err(), "{bytes:?}");
    }
}
