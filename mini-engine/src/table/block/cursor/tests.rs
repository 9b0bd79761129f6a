//! Blocks compared with a sorted vector, and blocks with false contents.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use super::*;
use crate::iter::EntryIter;
use crate::iter::model::{Entry, Move, SortedVec, entries, keys, moves};
use crate::table::block::lookup::{Found, lookup};
use crate::types::{MAX_SEQNO, MAX_STORED_KEY_LEN};

/// The block with these contents, once without heads, and once with the heads that it has in the cache, if any.
fn blocks_of(contents: &[u8]) -> Vec<Block> {
    let block = Block::from_contents(contents);
    let headed = Block::from_contents(contents);
    if let Block::Own(own) = &headed {
        own.make_heads();
    }
    vec![block, headed]
}

fn apply(cursor: &mut Cursor, step: &Move) -> Decoded {
    match step {
        Move::First => cursor.seek_to_first(),
        Move::Last => cursor.seek_to_last(),
        Move::Seek(key, seqno) => cursor.seek(key, *seqno),
        Move::SeekForPrev(key, seqno) => cursor.seek_for_prev(key, *seqno),
        Move::Next if cursor.valid() => cursor.next(),
        Move::Prev if cursor.valid() => cursor.prev(),
        Move::Next | Move::Prev => Ok(()),
    }
}

fn contents_of(model: &SortedVec) -> Vec<u8> {
    // As if an entry that expires had been added before.
    let all_have_values = model.entries().iter().any(|entry| entry.kind == Kind::Expiring);
    let mut builder = BlockBuilder { all_have_values, ..BlockBuilder::default() };
    for entry in model.entries() {
        assert!(builder.takes(entry.kind));
        let bound = builder.len() + entry_len_bound(&entry.key, &entry.value);
        builder.add(&entry.key, entry.seqno, entry.kind, &entry.value);
        assert!(builder.len() <= bound, "the bound of an entry's length");
    }
    let len = builder.len();
    let contents = builder.finish(<[u8]>::to_vec);
    assert_eq!(contents.len(), len);
    contents
}

proptest! {
    #[test]
    fn a_block_holds_its_entries_in_both_directions(all in entries(80), moves in moves()) {
        // Catches a prefix taken from the wrong key, and restarts that a search or a backward step misses.
        prop_assume!(!all.is_empty());
        for block in blocks_of(&contents_of(&SortedVec::new(all.clone()))) {
            let mut model = SortedVec::new(all.clone());
            let mut cursor = Cursor::new(block).expect("own encoding");
            for step in &moves {
                apply(&mut cursor, step).expect("own encoding");
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
    }

    #[test]
    fn a_lookup_finds_what_a_cursor_finds(
        all in entries(80), others in prop::collection::vec(keys(), 0..20), seqnos in prop::collection::vec(0u64..52, 1..5),
    ) {
        // Catches a shortcut over shared prefixes that passes the key, or confuses it with another.
        prop_assume!(!all.is_empty());
        let model = SortedVec::new(all);
        let contents = contents_of(&model);
        let blocks = blocks_of(&contents);
        let mut cursor = Cursor::new(blocks[0].clone()).expect("own encoding");
        for key in model.entries().iter().map(|entry| &entry.key).chain(&others) {
            for &seqno in &seqnos {
                cursor.seek(key, seqno).expect("own encoding");
                let here = cursor.valid() && cursor.key() == *key;
                let expected = here.then(|| (cursor.kind(), cursor.seqno(), cursor.value()));
                for block in &blocks {
                    let found = lookup(block.parts(), key, seqno).expect("own encoding");
                    let found = found.as_ref().map(|found| (found.kind, found.seqno, &contents[found.value.clone()]));
                    prop_assert_eq!(found, expected, "{:?} at {}", key, seqno);
                }
            }
        }
    }

    #[test]
    fn a_batch_has_the_entries_of_single_steps_whatever_the_length_of_keys(
        keys in prop::collection::btree_map((0usize..200, prop::collection::vec(0u8..3, 0..40)), (any::<bool>(), 0usize..40), 1..80),
        at in any::<prop::sample::Index>(), is_forward in any::<bool>(),
    ) {
        // Catches keys, which are copied in chunks of 16 bytes, that are cut off or get bytes of their neighbours, and values of other entries.
        let entry = |((prefix, tail), (is_value, value_len)): ((usize, Vec<u8>), (bool, usize))| Entry {
            key: [vec![1; prefix], tail].concat(),
            seqno: 7,
            kind: if is_value { Kind::Value } else { Kind::Tombstone },
            value: if is_value { vec![prefix as u8; value_len] } else { Vec::new() },
        };
        let unique: BTreeMap<_, _> = keys.into_iter().map(entry).map(|entry| (entry.key.clone(), entry)).collect();
        let model = SortedVec::new(unique.into_values().collect());
        let mut single = Cursor::new(Block::from_contents(&contents_of(&model))).expect("own encoding");
        single.seek(&model.entries()[at.index(model.entries().len())].key, 7).expect("own encoding");
        let (mut batch, mut filled) = (Batch::default(), single.clone());
        let wanted = Wanted::new(8, Bound::Unbounded);
        let mut is_left = match is_forward {
            true => filled.fill(&mut batch, &Wanted { count: 64, ..wanted }),
            false => filled.fill_back(&mut batch, &wanted, None),
        };
        while is_left {
            if is_forward {
                single.next().expect("own encoding");
            }
            prop_assert_eq!((batch.key(), batch.value(), Kind::Value), (single.key(), single.value(), single.kind()));
            is_left = if is_forward { batch.next() } else { batch.prev() };
            if !is_forward {
                single.prev().expect("own encoding");
            }
        }
        let place = |cursor: &Cursor| (cursor.key().to_vec(), cursor.value().to_vec(), cursor.seqno(), cursor.kind(), cursor.offset());
        prop_assert_eq!(place(&filled), place(&single));
    }

    #[test]
    fn damaged_and_random_blocks_never_panic_or_loop(
        all in entries(40), at in any::<prop::sample::Index>(), byte in any::<u8>(), moves in moves(),
        random in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        // Catches lengths and restarts that are used without a check: a block may be false although its checksum matched, and yet mostly plausible.
        prop_assume!(!all.is_empty());
        let mut damaged = contents_of(&SortedVec::new(all));
        let at = at.index(damaged.len());
        damaged[at] = byte;
        for bytes in [damaged, random] {
            for block in blocks_of(&bytes) {
                look_up(&block, &moves)?;
                if let Ok(cursor) = Cursor::new(block) {
                    walk(cursor, bytes.len(), &moves)?;
                }
            }
        }
    }
}

/// Looks up the targets of the moves; results must lie within the block.
fn look_up(block: &Block, moves: &[Move]) -> Result<(), TestCaseError> {
    let contents = block.contents();
    for step in moves {
        let (Move::Seek(key, seqno) | Move::SeekForPrev(key, seqno)) = step else { continue };
        if let Ok(Some(Found { seqno: found, value, .. })) = lookup(block.parts(), key, *seqno) {
            prop_assert!(found <= *seqno && value.start <= value.end && value.end <= contents.len());
        }
    }
    Ok(())
}

/// Makes the moves, then walks to both ends: there must be no more steps than bytes, and no key or value outside the block.
fn walk(mut cursor: Cursor, len: usize, moves: &[Move]) -> Result<(), TestCaseError> {
    for step in moves {
        // After an error the cursor may be anywhere, but still within the block.
        let failed = apply(&mut cursor, step).is_err();
        prop_assert!(failed || !cursor.valid() || cursor.key().len() <= MAX_STORED_KEY_LEN);
        prop_assert!(cursor.value().len() <= len && cursor.value_slice().len() <= len);
        let (mut batch, wanted) = (Batch::default(), Wanted { count: 64, ..Wanted::new(30, Bound::Unbounded) });
        if !failed && cursor.clone().fill(&mut batch, &wanted) {
            while batch.next() {
                prop_assert!(batch.key().len() <= len && batch.value().len() <= len);
            }
        }
        if !failed && cursor.clone().fill_back(&mut batch, &wanted, Some(b"a")) {
            while batch.prev() {
                prop_assert!(batch.key().len() <= len && batch.value().len() <= len);
            }
        }
    }
    type Call = fn(&mut Cursor) -> Decoded;
    let walks: [(Call, Call); 2] = [(Cursor::seek_to_first, Cursor::next), (Cursor::seek_to_last, Cursor::prev)];
    for (start, step) in walks {
        let mut steps = 0;
        let mut result = start(&mut cursor);
        while result.is_ok() && cursor.valid() {
            steps += 1;
            prop_assert!(steps <= len, "more entries than bytes");
            result = step(&mut cursor);
        }
    }
    Ok(())
}

#[test]
fn a_block_without_entries_is_refused() {
    // Catches an empty block that ends an iteration early, as if the table ended there.
    for bytes in [&[][..], &[0; 3], &[0; 4], &[0; 8], &[1, 0, 0, 0], &u32::MAX.to_le_bytes()] {
        assert!(Cursor::new(Block::from_contents(bytes)).is_err(), "{bytes:?}");
    }
}

/// A block of one restart with exactly these entries.
fn forged(entries: &[&[u8]]) -> Cursor {
    let mut contents = entries.concat();
    codec::put_u32(&mut contents, 0);
    codec::put_u32(&mut contents, 1);
    Cursor::new(Block::from_contents(&contents)).expect("an entry and a restart")
}

#[test]
fn an_entry_that_lies_is_an_error() {
    // Catches a key that is shorter than its entry claims, and a seqno or length past its limit, which later arithmetic would use unchecked.
    let tag = |seqno: SeqNo| {
        let mut out = Vec::new();
        codec::put_varint(&mut out, seqno << 1);
        out
    };
    let sound = [&[0, 1][..], &tag(1), b"k"].concat();
    let mut too_long = vec![0];
    codec::put_varint(&mut too_long, MAX_STORED_KEY_LEN as u64 + 1);
    let lies = [
        ("shares more than the key before has", [&[2, 1][..], &tag(0), b"x"].concat()),
        ("seqno too large", [&[0, 1][..], &tag(MAX_SEQNO + 1), b"x"].concat()),
        ("key too long", [&too_long[..], &tag(0), &[b'x'; MAX_STORED_KEY_LEN + 1]].concat()),
        ("key beyond the block", [&[0, 100][..], &tag(0), b"x"].concat()),
        ("value beyond the block", [&[0, 1, 1, 100][..], b"x"].concat()),
    ];
    for (lie, entry) in lies {
        let mut cursor = forged(&[&sound, &entry]);
        cursor.seek_to_first().expect("the first entry is sound");
        assert_eq!((cursor.key(), cursor.seqno()), (&b"k"[..], 1));
        let error = cursor.next().expect_err(lie);
        assert!(error.offset >= sound.len(), "{lie}: {error:?}");
    }
    // In a block whose tombstones have values.
    for (value_len, is_sound) in [(0, true), (7, false), (8, true)] {
        let mut contents = [&[0, 1][..], &tag(1), &[value_len], b"k", &vec![0; value_len.into()]].concat();
        codec::put_u32(&mut contents, 0);
        codec::put_u32(&mut contents, 1 | ALL_HAVE_VALUES);
        let mut cursor = Cursor::new(Block::from_contents(&contents)).expect("an entry and a restart");
        assert_eq!(cursor.seek_to_first().is_ok(), is_sound, "an instant of {value_len} bytes");
    }
    let mut sound_only = forged(&[&sound, &[&[1, 1][..], &tag(MAX_SEQNO), b"x"].concat()]);
    sound_only.seek_to_last().expect("sound");
    assert_eq!((sound_only.key(), sound_only.seqno()), (&b"kx"[..], MAX_SEQNO));
}

#[test]
fn a_block_without_entries_that_expire_has_no_bytes_for_them() {
    // Catches tombstones that need one byte more, and an entry that expires in a block whose readers would read it as a tombstone.
    let mut builder = BlockBuilder::default();
    builder.add(b"a", 3, Kind::Tombstone, b"");
    assert!(!builder.takes(Kind::Expiring) && builder.takes(Kind::Value));
    assert_eq!(builder.finish(<[u8]>::to_vec), [0, 1, 6, b'a', 0, 0, 0, 0, 1, 0, 0, 0]);
    builder.add(b"b", 3, Kind::Expiring, &[7; 8]);
    builder.add(b"c", 3, Kind::Tombstone, b"");
    let with_values = [&[0, 1, 6, 8, b'b', 7, 7, 7, 7, 7, 7, 7, 7, 0, 1, 6, 0, b'c', 0, 0, 0, 0][..], &[1, 0, 0, 0x80]];
    assert_eq!(builder.finish(<[u8]>::to_vec), with_values.concat());
    builder.add(b"d", 3, Kind::Value, b"v");
    assert!(builder.takes(Kind::Expiring));
}

#[test]
fn a_restart_stands_at_every_sixteenth_entry() {
    // Catches an interval other than the documented one: blocks would grow, or searches would slow down.
    for (entries, restarts) in [(1, 1), (16, 1), (17, 2), (48, 3), (49, 4)] {
        let mut builder = BlockBuilder::default();
        (0..entries).for_each(|i: u8| builder.add(&[i], 1, Kind::Tombstone, b""));
        let block = Block::from_contents(&builder.finish(<[u8]>::to_vec));
        assert_eq!(Cursor::new(block).expect("sound").parts.restarts, restarts);
    }
}
