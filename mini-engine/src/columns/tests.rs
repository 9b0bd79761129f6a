//! The layout of blocks, and blocks that lie.

use proptest::prelude::*;

use super::layout::{FOOTER_LEN, ONE_BUNDLE, PLAIN, SHORT_BUNDLES, WHOLE};
use super::*;
use crate::types::{KeyPrefix, Kind, MAX_SEQNO, SeqNo, entry_order};

fn block(entries: &[(&[u8], SeqNo, Kind, &[u8])]) -> Vec<u8> {
    let mut builder = BlockBuilder::default();
    entries.iter().for_each(|(key, seqno, kind, value)| builder.add(key, *seqno, *kind, value));
    builder.finish(<[u8]>::to_vec)
}

/// Whether the block is one whose entries may be read.
fn is_sound(contents: &[u8]) -> bool {
    Columns::of(contents).is_ok_and(|columns| columns.check(contents).is_ok())
}

#[test]
fn a_block_has_the_bytes_that_the_formats_page_describes() {
    // Catches another layout than the documented one, for example a tag that is not relative to the smallest.
    let contents = block(&[(b"ka", 5, Kind::Value, b"v"), (b"kbc", 3, Kind::Tombstone, b"")]);
    let columns = [
        &b"v"[..],
        b"kakbc",
        &[5, 0],
        &[0, 0, 1, 0, 1, 0],
        &[0, 0, 2, 0, 5, 0],
        &[2, 0, 0, 0, WHOLE, 2, 2, 1],
        &[6, 0, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(contents, columns.concat());
    // Keys that share much; the same numbers and lengths, and values only: no tags, no offsets, and the flag.
    let plain = block(&[(b"the same/a", 5, Kind::Value, b"v"), (b"the same/b", 5, Kind::Value, b"w")]);
    let columns = [
        &b"vw"[..],
        b"the same/ab",
        &[1, 0, 0, 0],
        &[0, 0, 9, 0, 10, 0, 11, 0],
        &[2, 0, 0, 0, ONE_BUNDLE, 2, 0, PLAIN],
        &[11, 0, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(plain, columns.concat());
}

#[test]
fn a_search_and_a_walk_read_the_same_keys_in_every_form() {
    // Catches a form that no writer uses, and that a search reads otherwise: parts of one length in a block with bundles.
    let footer = [&[2, 0, 0, 0, ONE_BUNDLE, 0, 0, PLAIN][..], &[11, 0, 0, 0, 0, 0, 0, 0]].concat();
    let contents = [&b"vw"[..], b"aab", &[1, 0, 0, 0], &[1, 0, 0, 0], &footer].concat();
    assert!(is_sound(&contents));
    let columns = Columns::of(&contents).expect("sound");
    for (at, key) in [b"aa", b"ab"].into_iter().enumerate() {
        let mut buffer = KeyBuffer::default();
        buffer.move_to(&columns, || &contents, at);
        assert_eq!(buffer.key(&columns, &contents, at), key);
        assert_eq!(columns.find(&contents, key, 9), Place { at, is_key: true });
    }
}

#[test]
fn only_single_versions_that_are_values_make_a_block_plain() {
    // Catches a scan that shows tombstones, expired entries or old versions, because it examines none.
    let value = (&b"a"[..], 5, Kind::Value, &b"v"[..]);
    let seconds = [
        ((&b"b"[..], 4, Kind::Value, &b""[..]), true),
        ((b"a", 4, Kind::Value, b""), false),
        ((b"b", 4, Kind::Tombstone, b""), false),
        ((b"b", 4, Kind::Expiring, &[7; 9]), false),
    ];
    for (second, is_plain) in seconds {
        let contents = block(&[value, second]);
        let columns = Columns::of(&contents).expect("own encoding");
        assert_eq!((columns.is_plain(), columns.kind(&contents, 1)), (is_plain, second.2), "{second:?}");
        assert!(is_sound(&contents));
    }
}

#[test]
fn a_block_that_lies_is_refused() {
    // Catches lengths and numbers past their limits, which later arithmetic would use unchecked, and a tombstone that a plain block hides.
    let sound = block(&[(b"ka", 5, Kind::Value, b"v"), (b"kb", 3, Kind::Tombstone, b"")]);
    assert!(is_sound(&sound));
    let footer = sound.len() - FOOTER_LEN;
    let lies: [(&str, usize, u8); 10] = [
        ("more entries", footer, 3),
        ("no entry", footer, 0),
        ("bundles of too many entries", footer + 4, ONE_BUNDLE + 1),
        // A partition of a table without a footer would have this form.
        ("bundles of one entry", footer + 4, 0),
        ("offsets of three bytes", footer + 5, 3),
        ("values of one length that do not fill the column", footer + 6, 0),
        ("tags of nine bytes", footer + 7, 9),
        ("a plain block with a tombstone", footer + 7, PLAIN | 1),
        ("offsets that descend", footer - 4, 9),
        ("a seqno past the limit", footer + 15, 0xff),
    ];
    for (lie, at, byte) in lies {
        let mut contents = sound.clone();
        contents[at] = byte;
        assert!(!is_sound(&contents), "{lie}");
    }
    for (len, is_expiry) in [(0, true), (7, false), (8, true)] {
        let contents = block(&[(b"k", 1, Kind::Expiring, &[0; 8][..len])]);
        assert_eq!(is_sound(&contents), is_expiry, "an instant of {len} bytes");
    }
}

#[test]
fn the_shorter_form_of_keys_is_used() {
    // Catches paths whose directories are stored for each entry, and random keys whose few shared bytes are stored for every sixteen.
    type Key = fn(usize) -> Vec<u8>;
    let path: Key = |i| format!("/home/user/{:02}/documents/of/the/year/{i:04}", i / 16).into_bytes();
    let random: Key = |i| [7, i as u8].repeat(8);
    let uneven: Key = |i| [7, i as u8].repeat(8 + i % 2);
    for (key, shift) in [(path, SHORT_BUNDLES), (random, WHOLE), (uneven, ONE_BUNDLE)] {
        let keys: Vec<Vec<u8>> = (0..64).map(key).collect();
        let entries: Vec<_> = keys.iter().map(|key| (&key[..], 1, Kind::Value, &b""[..])).collect();
        let contents = block(&entries);
        assert_eq!(contents[contents.len() - FOOTER_LEN + 4], shift);
        assert!(contents.len() < 64 * 20, "{}", contents.len());
    }
}

#[test]
fn an_empty_key_before_bytes_like_a_prefix_is_no_short_one() {
    // Catches a key that is made of its neighbour's bytes: those that follow an empty key look like the prefix of a keyspace.
    let [stored, value] = [&[0xff, 0, 0xff, b'k'][..], &[7; 40]];
    let contents = block(&[(b"", 1, Kind::Value, value), (stored, 1, Kind::Value, value)]);
    let (columns, buffer) = (Columns::of(&contents).expect("own encoding"), KeyBuffer::default());
    assert!(columns.is_whole());
    let chunk = |at| buffer.chunk((&columns, &contents, at), &KeyPrefix::DEFAULT);
    assert_eq!(chunk(0), None);
    let skipped = KeyPrefix::DEFAULT.len_in(stored);
    assert_eq!(chunk(1).map(|(chunk, len)| &chunk[..len]), Some(&stored[skipped..]));
}

#[test]
fn offsets_grow_with_the_block() {
    // Catches offsets that overflow in a block with a long key or value.
    for (key_len, value_len, lens) in
        [(60_000, 60_000, [2, 2]), (65_000, 0, [2, 0]), (65_535, 1 << 20, [4, 4]), (2, 65_536, [2, 4])]
    {
        let (key, value) = (vec![b'k'; key_len], vec![b'v'; value_len]);
        let contents = block(&[(b"a", 0, Kind::Value, b""), (&key, MAX_SEQNO, Kind::Value, &value)]);
        let (columns, footer) = (Columns::of(&contents).expect("own encoding"), contents.len() - FOOTER_LEN);
        assert_eq!(contents[footer + 5..footer + 7], lens);
        assert!(is_sound(&contents) && columns.value(&contents, 1) == (0..value_len));
        assert_eq!((columns.seqno(&contents, 0), columns.seqno(&contents, 1)), (0, MAX_SEQNO));
        let mut buffer = KeyBuffer::default();
        buffer.move_to(&columns, || &contents, 1);
        assert!(buffer.key(&columns, &contents, 1) == key);
    }
}

#[test]
fn samples_lead_to_the_place_of_nearly_every_key() {
    // Catches samples of the wrong entries: searches would still be right, but read more.
    for entries in [2, 31, 32, 33, 200] {
        let keys: Vec<Vec<u8>> =
            (0..entries as u64).map(|i| (i * 0x0101_0101_0101 + i % 7).to_be_bytes().to_vec()).collect();
        let all: Vec<_> = keys.iter().map(|key| (&key[..], 1, Kind::Value, &b""[..])).collect();
        let contents = block(&all);
        let columns = Columns::of(&contents).expect("own encoding");
        let samples = KeySamples::of(&columns, &contents);
        let is_near = |(at, key): &(usize, &Vec<u8>)| {
            samples.near(&columns, &contents, key).is_some_and(|(first, last)| (first..=last).contains(at))
        };
        assert!(keys.iter().enumerate().filter(is_near).count() >= entries - 1, "of {entries}");
    }
}

proptest! {
    #[test]
    fn the_length_is_known_before_an_entry_is_added(
        entries in prop::collection::btree_map(
            ("[ab]{0,3}", prop_oneof![Just(0), 0u64..1 << 40]), (0u8..3, 0usize..70), 1..60,
        ),
        long in any::<bool>(), within in [any::<prop::sample::Index>(), any::<prop::sample::Index>()],
    ) {
        // Catches a block that outgrows its limit, because a key that shares nothing lengthens all others.
        let mut sorted: Vec<_> = entries.iter().map(|((key, seqno), (kind, len))| {
            let kind = [Kind::Value, Kind::Tombstone, Kind::Expiring][usize::from(*kind)];
            let key = if long { key.repeat(40) } else { key.clone() };
            (key.into_bytes(), *seqno, kind, if kind == Kind::Tombstone { Vec::new() } else { vec![1; len + 8] })
        }).collect();
        sorted.sort_by(|a, b| entry_order((&a.0, a.1), (&b.0, b.1)));
        let mut builder = BlockBuilder::default();
        for (key, seqno, kind, value) in &sorted {
            let expected = builder.sizes_with(key, *seqno, *kind, value).len();
            builder.add(key, *seqno, *kind, value);
            prop_assert_eq!(builder.len(), expected);
        }
        let len = builder.len();
        let contents = builder.finish(<[u8]>::to_vec);
        prop_assert_eq!(contents.len(), len);
        let columns = Columns::of(&contents).expect("own encoding");
        prop_assert!(columns.check(&contents).is_ok());
        for (at, (key, seqno, kind, value)) in sorted.iter().enumerate() {
            prop_assert_eq!(columns.find(&contents, key, *seqno), Place { at, is_key: true });
            for near in [0, at, at + 1, sorted.len() / 2, sorted.len(), usize::MAX] {
                prop_assert_eq!(columns.find_near(&contents, key, *seqno, near), Place { at, is_key: true });
            }
            // Any part of the block, an absent key behind this one, and version 0 of a key at the end of a bundle.
            let [a, b] = within.map(|within| within.index(sorted.len() + 1));
            let part = a.min(b)..a.max(b);
            for key in [key, &[&key[..], b"\0"].concat()] {
                let count = |is_before: fn(&Vec<u8>, &Vec<u8>) -> bool| {
                    part.start + sorted[part.clone()].iter().filter(|entry| is_before(&entry.0, key)).count()
                };
                for near in [part.start, part.end.saturating_sub(1), usize::MAX] {
                    prop_assert_eq!(columns.start_of(&contents, part.clone(), key, near), count(|at, key| at < key));
                    prop_assert_eq!(columns.end_of(&contents, part.clone(), key, near), count(|at, key| at <= key));
                }
            }
            prop_assert_eq!((columns.seqno(&contents, at), columns.kind(&contents, at)), (*seqno, *kind));
            prop_assert_eq!(&contents[columns.value(&contents, at)], &value[..]);
        }
    }
}
