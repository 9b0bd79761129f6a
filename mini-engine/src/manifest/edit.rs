//! A version edit as bytes: a list of fields, each a tag byte and its contents.
//!
//! Numbers are varints, and byte strings follow a varint length. An unknown tag is an error: a field that this build does not understand may change
//! the contents of the database, so a new field needs a new format version.

use crate::codec::{Malformed, Reader, put_prefixed, put_varint};
use crate::error::Error;
use crate::manifest::compaction_stats::{CompactionStats, LevelStats};
use crate::manifest::names::MAX_FILE_NUMBER;
use crate::manifest::version::{CompactPointer, MAX_LEVELS, RunId, VersionEdit};
use crate::table::TableMeta;
use crate::types::{MAX_KEY_LEN, MAX_SEQNO, Slice};

const LOG_NUMBER: u8 = 1;
const NEXT_FILE_NUMBER: u8 = 2;
const LAST_SEQNO: u8 = 3;
const ADDED: u8 = 4;
const REMOVED: u8 = 5;
const POLICY: u8 = 6;
const USER_BYTES: u8 = 7;
const LEVEL_STATS: u8 = 8;
const POINTER: u8 = 9;
const POINTER_DONE: u8 = 10;
const QUARANTINED: u8 = 11;
const DROPPED: u8 = 12;

/// Encodes `edit`.
///
/// # Errors [`Error::InvalidArgument`] for a number or key that [`decode`] refuses: an edit that cannot be read back would make the whole manifest
/// unreadable.
pub(crate) fn encode(edit: &VersionEdit) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let numbers = [
        (LOG_NUMBER, edit.log_number),
        (NEXT_FILE_NUMBER, edit.next_file_number),
        (LAST_SEQNO, edit.last_seqno),
        (POLICY, edit.policy),
        (USER_BYTES, Some(edit.stats.user_bytes).filter(|&bytes| bytes > 0)),
    ];
    for (tag, number) in numbers {
        number.into_iter().for_each(|number| put(&mut out, tag, [number]));
    }
    for (level, number) in &edit.removed {
        put(&mut out, REMOVED, [*level as u64, *number]);
    }
    for (level, stats) in edit.stats.levels.iter().enumerate().filter(|(_, stats)| **stats != LevelStats::default()) {
        put(&mut out, LEVEL_STATS, [level as u64, stats.arrived, stats.read, stats.written]);
    }
    for (RunId { level, run }, table) in &edit.added {
        put(&mut out, ADDED, [*level as u64, *run]);
        put_table(&mut out, table);
    }
    for table in &edit.quarantined {
        put(&mut out, QUARANTINED, []);
        put_table(&mut out, table);
    }
    edit.dropped.iter().for_each(|number| put(&mut out, DROPPED, [*number]));
    for CompactPointer { id, top, output, from, upto, bytes } in &edit.pointers {
        put(&mut out, POINTER, [*id, top.level as u64, top.run, output.level as u64, output.run, *bytes]);
        put_prefixed(&mut out, from);
        put_prefixed(&mut out, upto);
    }
    edit.pointers_done.iter().for_each(|id| put(&mut out, POINTER_DONE, [*id]));
    match decode(&out) {
        Ok(_) => Ok(out),
        Err(Malformed { expected, .. }) => Err(Error::InvalidArgument(format!(
            "version edit: expected {expected}, found one that is too large or too long"
        ))),
    }
}

fn put<const N: usize>(out: &mut Vec<u8>, tag: u8, numbers: [u64; N]) {
    out.push(tag);
    numbers.into_iter().for_each(|number| put_varint(out, number));
}

fn put_table(out: &mut Vec<u8>, table: &TableMeta) {
    let TableMeta { number, size, entries, tombstones, range_tombstones, min_seqno, max_seqno, .. } = *table;
    let numbers = [number, size, entries, tombstones, range_tombstones, min_seqno, max_seqno];
    // This byte is in the place of a tag.
    put(out, u8::from(table.narrowed), numbers);
    put_prefixed(out, &table.smallest);
    put_prefixed(out, &table.largest);
}

/// Decodes an edit. The bytes come from disk: any of them may be wrong.
pub(crate) fn decode(bytes: &[u8]) -> Result<VersionEdit, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut edit = VersionEdit::default();
    while let Some(tag) = reader.u8() {
        match tag {
            LOG_NUMBER => edit.log_number = Some(number(&mut reader)?),
            NEXT_FILE_NUMBER => edit.next_file_number = Some(number(&mut reader)?),
            LAST_SEQNO => edit.last_seqno = Some(seqno(&mut reader)?),
            ADDED => {
                let run_id = RunId { level: level(&mut reader)?, run: number(&mut reader)? };
                edit.added.push((run_id, table(&mut reader)?));
            }
            POLICY => edit.policy = Some(number(&mut reader)?),
            USER_BYTES => edit.stats.user_bytes = number(&mut reader)?,
            LEVEL_STATS => level_stats(&mut reader, &mut edit.stats)?,
            REMOVED => edit.removed.push((level(&mut reader)?, number(&mut reader)?)),
            QUARANTINED => edit.quarantined.push(table(&mut reader)?),
            DROPPED => edit.dropped.push(number(&mut reader)?),
            POINTER => edit.pointers.push(pointer(&mut reader)?),
            POINTER_DONE => edit.pointers_done.push(number(&mut reader)?),
            _ => return Err(reader.malformed("a known tag of an edit")),
        }
    }
    Ok(edit)
}

fn table(reader: &mut Reader<'_>) -> Result<TableMeta, Malformed> {
    let narrowed = reader.u8().filter(|&narrowed| narrowed <= 1).ok_or(reader.malformed("0 or 1"))?;
    Ok(TableMeta {
        narrowed: narrowed == 1,
        number: number(reader)?,
        size: number(reader)?,
        entries: number(reader)?,
        tombstones: number(reader)?,
        range_tombstones: number(reader)?,
        min_seqno: seqno(reader)?,
        max_seqno: seqno(reader)?,
        smallest: key(reader)?,
        largest: key(reader)?,
    })
}

fn pointer(reader: &mut Reader<'_>) -> Result<CompactPointer, Malformed> {
    Ok(CompactPointer {
        id: number(reader)?,
        top: RunId { level: level(reader)?, run: number(reader)? },
        output: RunId { level: level(reader)?, run: number(reader)? },
        bytes: number(reader)?,
        from: key(reader)?,
        upto: key(reader)?,
    })
}

fn level_stats(reader: &mut Reader<'_>, stats: &mut CompactionStats) -> Result<(), Malformed> {
    let level = level(reader)?;
    let read = LevelStats { arrived: number(reader)?, read: number(reader)?, written: number(reader)? };
    *stats.levels.get_mut(level).ok_or(reader.malformed("a level"))? = read;
    Ok(())
}

fn number(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    // Like file numbers, sizes and counts never use the highest bit.
    reader.varint().filter(|&number| number <= MAX_FILE_NUMBER).ok_or(reader.malformed("a number"))
}

fn seqno(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    number(reader).ok().filter(|&seqno| seqno <= MAX_SEQNO).ok_or(reader.malformed("a sequence number"))
}

fn level(reader: &mut Reader<'_>) -> Result<usize, Malformed> {
    let level = reader.varint().and_then(|level| usize::try_from(level).ok()).filter(|&level| level < MAX_LEVELS);
    level.ok_or(reader.malformed("a level"))
}

fn key(reader: &mut Reader<'_>) -> Result<Slice, Malformed> {
    reader.prefixed(MAX_KEY_LEN).map(Slice::from).ok_or(reader.malformed("a key within its limit"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::manifest::test_tables::table as test_table;

    fn pointer_at(from: &str) -> CompactPointer {
        let (from, upto) = (Slice::from(from.as_bytes()), Slice::from(&b"zz"[..]));
        let (top, output) = (RunId { level: 0, run: MAX_SEQNO }, RunId { level: 6, run: 3 });
        CompactPointer { id: 302, top, output, from, upto, bytes: 1 << 40 }
    }

    fn edit() -> VersionEdit {
        let mut stats = CompactionStats { user_bytes: 17, ..CompactionStats::default() };
        stats.levels[0] = LevelStats { arrived: 1, read: 2, written: 300 };
        stats.levels[MAX_LEVELS - 1].read = 1 << 50;
        let deep = RunId { level: 6, run: 1 << 33 };
        VersionEdit {
            added: vec![
                (RunId::LEVEL_0, test_table(3, 5, 9)),
                (deep, TableMeta { range_tombstones: 1 << 20, ..test_table(300, 1, 4) }),
                (RunId::LEVEL_0, test_table(4, 10, 12).narrowed_to(Slice::from(&b"k"[..]))),
                (deep, test_table(301, 1, 4).narrowed_to(Slice::from(&b"k"[..]))),
            ],
            pointers: vec![pointer_at("k")],
            pointers_done: vec![17, 1 << 33],
            policy: Some(3),
            stats,
            removed: vec![(0, 1), (0, 2)],
            quarantined: vec![TableMeta { range_tombstones: 3, ..test_table(2, 1, 3) }],
            dropped: vec![7],
            log_number: Some(8),
            next_file_number: Some(1 << 40),
            last_seqno: Some(9),
        }
    }

    #[test]
    fn edits_round_trip() {
        // Catches a field written and read in a different order or width.
        for edit in [VersionEdit::default(), edit()] {
            assert_eq!(decode(&encode(&edit).unwrap()), Ok(edit));
        }
    }

    #[test]
    fn what_decode_refuses_encode_refuses() {
        // Catches an edit that is written and acknowledged, but makes the next open fail.
        let past = MAX_FILE_NUMBER + 1;
        let added = |table: TableMeta| VersionEdit { added: vec![(RunId::LEVEL_0, table)], ..VersionEdit::default() };
        let long = Slice::from(vec![b'k'; MAX_KEY_LEN + 1]);
        let good = test_table(3, 5, 9);
        let refused = [
            VersionEdit { log_number: Some(past), ..edit() },
            VersionEdit { next_file_number: Some(past), ..edit() },
            VersionEdit { last_seqno: Some(MAX_SEQNO + 1), ..edit() },
            VersionEdit { removed: vec![(0, past)], ..edit() },
            VersionEdit { policy: Some(past), ..edit() },
            VersionEdit { stats: CompactionStats { user_bytes: past, ..CompactionStats::default() }, ..edit() },
            VersionEdit { added: vec![(RunId { level: 1, run: past }, good.clone())], ..edit() },
            added(TableMeta { number: past, ..good.clone() }),
            added(TableMeta { size: past, ..good.clone() }),
            added(TableMeta { entries: past, ..good.clone() }),
            added(TableMeta { tombstones: past, ..good.clone() }),
            added(TableMeta { range_tombstones: past, ..good.clone() }),
            added(TableMeta { max_seqno: MAX_SEQNO + 1, ..good.clone() }),
            added(TableMeta { largest: long.clone(), ..good }),
            VersionEdit { pointers: vec![CompactPointer { id: past, ..pointer_at("k") }], ..edit() },
            VersionEdit { pointers: vec![CompactPointer { upto: long, ..pointer_at("k") }], ..edit() },
            VersionEdit { pointers: vec![CompactPointer { bytes: past, ..pointer_at("k") }], ..edit() },
            VersionEdit { pointers_done: vec![past], ..edit() },
        ];
        for edit in refused {
            assert!(matches!(encode(&edit), Err(Error::InvalidArgument(_))), "{:?}", edit.last_seqno);
        }
        let limits = VersionEdit {
            log_number: Some(MAX_FILE_NUMBER),
            next_file_number: Some(MAX_FILE_NUMBER),
            last_seqno: Some(MAX_SEQNO),
            ..VersionEdit::default()
        };
        assert_eq!(decode(&encode(&limits).unwrap()), Ok(limits));
    }

    #[test]
    fn a_cut_edit_never_decodes_to_the_whole() {
        // Catches a decoder that takes the end of the bytes for the end of a table.
        let bytes = encode(&edit()).unwrap();
        for len in 0..bytes.len() {
            assert_ne!(decode(&bytes[..len]), Ok(edit()), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            // Catches unchecked lengths: what decodes must encode to something that decodes to the same.
            if let Ok(edit) = decode(&bytes) {
                prop_assert_eq!(decode(&encode(&edit).unwrap()), Ok(edit));
            }
        }
    }
}
