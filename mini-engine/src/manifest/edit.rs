//! A version edit as bytes: a list of fields, each a tag byte and its contents.
//!
//! Numbers are varints, and byte strings follow a varint length. An unknown tag is an error: a field that this build does not understand may change
//! the contents of the database, so a new field needs a new format version.

use crate::codec::{Malformed, Reader, put_prefixed, put_varint};
use crate::error::Error;
use crate::manifest::compaction_stats::{CompactionStats, LevelStats};
use crate::manifest::keyspaces::{KeyspaceMeta, MAX_KEYSPACE_NAME_LEN, is_name};
use crate::manifest::names::MAX_FILE_NUMBER;
use crate::manifest::version::{CompactPointer, MAX_LEVELS, RunId, VersionEdit};
use crate::options::{KeyspaceOptions, compression_number, compression_of_number};
use crate::table::{Expiring, TableMeta};
use crate::types::{KeyspaceId, MAX_SEQNO, MAX_STORED_KEY_LEN, Millis, Slice};

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
const KEYSPACE: u8 = 13;
const KEYSPACE_DROPPED: u8 = 14;
const LAST_KEYSPACE: u8 = 15;
const CLOCK: u8 = 16;
const EXPIRING_KEYSPACE: u8 = 17;

/// Bits of the first byte of a table.
const NARROWED: u8 = 1;
const EXPIRING: u8 = 2;

/// Encodes `edit`.
///
/// # Errors
/// [`Error::InvalidArgument`] for a number or key that [`decode`] rejects: an edit that cannot be decoded would make the whole manifest unreadable.
pub(crate) fn encode(edit: &VersionEdit) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let numbers = [
        (LOG_NUMBER, edit.log_number),
        (NEXT_FILE_NUMBER, edit.next_file_number),
        (LAST_SEQNO, edit.last_seqno),
        (POLICY, edit.policy),
        (USER_BYTES, Some(edit.stats.user_bytes).filter(|&bytes| bytes > 0)),
        (CLOCK, Some(edit.clock).filter(|&instant| instant > 0)),
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
    for KeyspaceMeta { id, name, options } in &edit.keyspaces.set {
        let numbers = [u64::from(*id), compression_number(options.compression)];
        match options.expire_after {
            None => put(&mut out, KEYSPACE, numbers),
            Some(after) => put(&mut out, EXPIRING_KEYSPACE, [after, numbers[0], numbers[1]]),
        }
        put_prefixed(&mut out, name.as_bytes());
    }
    edit.keyspaces.dropped.iter().for_each(|id| put(&mut out, KEYSPACE_DROPPED, [u64::from(*id)]));
    edit.keyspaces.last.iter().for_each(|id| put(&mut out, LAST_KEYSPACE, [u64::from(*id)]));
    decode(&out).map_err(|Malformed { offset, expected }| {
        let found = Reader::new(&out[offset..]).varint().unwrap_or_default();
        Error::InvalidArgument(format!("version edit: expected {expected} within its limit, found {found}"))
    })?;
    Ok(out)
}

fn put<const N: usize>(out: &mut Vec<u8>, tag: u8, numbers: [u64; N]) {
    out.push(tag);
    numbers.into_iter().for_each(|number| put_varint(out, number));
}

fn put_table(out: &mut Vec<u8>, table: &TableMeta) {
    let TableMeta { number, size, entries, tombstones, range_tombstones, min_seqno, max_seqno, .. } = *table;
    let numbers = [number, size, entries, tombstones, range_tombstones, min_seqno, max_seqno];
    let narrowed = if table.narrowed { NARROWED } else { 0 };
    let expiring = if table.expiring.count() > 0 { EXPIRING } else { 0 };
    // This byte takes the place of the tag that other fields have.
    put(out, narrowed | expiring, numbers);
    put_prefixed(out, &table.smallest);
    put_prefixed(out, &table.largest);
    table.expiring.encode(out);
}

/// Decodes an edit. The bytes come from disk: any of them may be damaged.
pub(crate) fn decode(bytes: &[u8]) -> Result<VersionEdit, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut edit = VersionEdit::default();
    while let Some(tag) = reader.u8() {
        match tag {
            LOG_NUMBER => edit.log_number = Some(number(&mut reader, "a log number")?),
            NEXT_FILE_NUMBER => edit.next_file_number = Some(number(&mut reader, "the next file number")?),
            LAST_SEQNO => edit.last_seqno = Some(seqno(&mut reader, "the last sequence number")?),
            ADDED => edit.added.push((run_id(&mut reader, "a run")?, table(&mut reader)?)),
            POLICY => edit.policy = Some(number(&mut reader, "a policy")?),
            CLOCK => edit.clock = number(&mut reader, "the clock")?,
            USER_BYTES => edit.stats.user_bytes = number(&mut reader, "bytes of writes")?,
            LEVEL_STATS => level_stats(&mut reader, &mut edit.stats)?,
            REMOVED => edit.removed.push((level(&mut reader)?, number(&mut reader, "the number of a removed table")?)),
            QUARANTINED => edit.quarantined.push(table(&mut reader)?),
            DROPPED => edit.dropped.push(number(&mut reader, "the number of a dropped table")?),
            POINTER => edit.pointers.push(pointer(&mut reader)?),
            POINTER_DONE => edit.pointers_done.push(number(&mut reader, "the number of a pointer that is done")?),
            KEYSPACE => edit.keyspaces.set.push(keyspace(&mut reader, None)?),
            EXPIRING_KEYSPACE => {
                let malformed = reader.malformed("a lifetime of entries");
                let after = number(&mut reader, "the lifetime of a keyspace's entries")?;
                let after = Some(after).filter(|&after| after > 0).ok_or(malformed)?;
                edit.keyspaces.set.push(keyspace(&mut reader, Some(after))?);
            }
            KEYSPACE_DROPPED => edit.keyspaces.dropped.push(keyspace_id(&mut reader)?),
            LAST_KEYSPACE => edit.keyspaces.last = Some(keyspace_id(&mut reader)?),
            _ => return Err(reader.malformed("a known tag of an edit")),
        }
    }
    Ok(edit)
}

fn table(reader: &mut Reader<'_>) -> Result<TableMeta, Malformed> {
    let what = reader.u8().filter(|&what| what <= NARROWED | EXPIRING).ok_or(reader.malformed("0 to 3"))?;
    Ok(TableMeta {
        narrowed: what & NARROWED != 0,
        number: number(reader, "a table number")?,
        size: number(reader, "a table's size")?,
        entries: number(reader, "a table's entries")?,
        tombstones: number(reader, "a table's tombstones")?,
        range_tombstones: number(reader, "a table's range tombstones")?,
        min_seqno: seqno(reader, "a table's smallest sequence number")?,
        max_seqno: seqno(reader, "a table's largest sequence number")?,
        smallest: key(reader, "the length of a table's smallest key")?,
        largest: key(reader, "the length of a table's largest key")?,
        expiring: match what & EXPIRING {
            0 => Expiring::default(),
            _ => Expiring::decode(reader).ok_or(reader.malformed("a table's entries that expire"))?,
        },
    })
}

fn pointer(reader: &mut Reader<'_>) -> Result<CompactPointer, Malformed> {
    Ok(CompactPointer {
        id: number(reader, "a pointer's number")?,
        top: run_id(reader, "a pointer's top run")?,
        output: run_id(reader, "a pointer's output run")?,
        bytes: number(reader, "a pointer's bytes")?,
        from: key(reader, "the length of a pointer's first key")?,
        upto: key(reader, "the length of a pointer's last key")?,
    })
}

fn keyspace(reader: &mut Reader<'_>, expire_after: Option<Millis>) -> Result<KeyspaceMeta, Malformed> {
    let id = keyspace_id(reader)?;
    let malformed = reader.malformed("a keyspace's compression");
    let compression = reader.varint().and_then(compression_of_number).ok_or(malformed)?;
    let malformed = reader.malformed("a keyspace's name");
    let name = reader.prefixed(MAX_KEYSPACE_NAME_LEN).and_then(|name| std::str::from_utf8(name).ok());
    let name = name.filter(|name| is_name(name)).ok_or(malformed)?;
    Ok(KeyspaceMeta { id, name: name.into(), options: KeyspaceOptions { compression, expire_after } })
}

fn keyspace_id(reader: &mut Reader<'_>) -> Result<KeyspaceId, Malformed> {
    up_to(KeyspaceId::MAX.into(), reader, "a keyspace's number").map(|id| id as KeyspaceId)
}

fn level_stats(reader: &mut Reader<'_>, stats: &mut CompactionStats) -> Result<(), Malformed> {
    let level = level(reader)?;
    let [arrived, read, written] =
        ["a level's arrived bytes", "a level's read bytes", "a level's written bytes"].map(|what| number(reader, what));
    let read = LevelStats { arrived: arrived?, read: read?, written: written? };
    *stats.levels.get_mut(level).ok_or(reader.malformed("a level"))? = read;
    Ok(())
}

fn run_id(reader: &mut Reader<'_>, what: &'static str) -> Result<RunId, Malformed> {
    Ok(RunId { level: level(reader)?, run: number(reader, what)? })
}

/// Sizes and counts are limited to 63 bits, like file numbers.
fn number(reader: &mut Reader<'_>, what: &'static str) -> Result<u64, Malformed> {
    up_to(MAX_FILE_NUMBER, reader, what)
}

fn seqno(reader: &mut Reader<'_>, what: &'static str) -> Result<u64, Malformed> {
    up_to(MAX_SEQNO, reader, what)
}

fn level(reader: &mut Reader<'_>) -> Result<usize, Malformed> {
    up_to(MAX_LEVELS as u64 - 1, reader, "a level").map(|level| level as usize)
}

fn key(reader: &mut Reader<'_>, what: &'static str) -> Result<Slice, Malformed> {
    let malformed = reader.malformed(what);
    reader.prefixed(MAX_STORED_KEY_LEN).map(Slice::from).ok_or(malformed)
}

fn up_to(most: u64, reader: &mut Reader<'_>, what: &'static str) -> Result<u64, Malformed> {
    let malformed = reader.malformed(what);
    reader.varint().filter(|&number| number <= most).ok_or(malformed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::manifest::keyspaces::KeyspaceEdit;
    use crate::manifest::test_tables::table as test_table;
    use crate::options::Compression;

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
        let expiring = Expiring::new(300, [1, 1, 2, 3, 1 << 40, 1 << 40, 1 << 41, 1 << 41]);
        VersionEdit {
            added: vec![
                (RunId::LEVEL_0, test_table(3, 5, 9)),
                (deep, TableMeta { range_tombstones: 1 << 20, ..test_table(300, 1, 4) }),
                (RunId::LEVEL_0, test_table(4, 10, 12).narrowed_to(Slice::from(&b"k"[..]))),
                (deep, test_table(301, 1, 4).narrowed_to(Slice::from(&b"k"[..]))),
                (deep, TableMeta { expiring: expiring.clone(), ..test_table(302, 1, 4) }),
                (deep, TableMeta { expiring, ..test_table(303, 1, 4).narrowed_to(Slice::from(&b"k"[..])) }),
            ],
            pointers: vec![pointer_at("k")],
            pointers_done: vec![17, 1 << 33],
            policy: Some(3),
            stats,
            removed: vec![(0, 1), (0, 2)],
            quarantined: vec![TableMeta { range_tombstones: 3, ..test_table(2, 1, 3) }],
            dropped: vec![7],
            clock: 1 << 41,
            log_number: Some(8),
            next_file_number: Some(1 << 40),
            last_seqno: Some(9),
            keyspaces: KeyspaceEdit {
                set: vec![
                    keyspace_named("a"),
                    keyspace_named(&"n".repeat(MAX_KEYSPACE_NAME_LEN)),
                    with_lifetime(1 << 40),
                ],
                dropped: vec![7, KeyspaceId::MAX],
                last: Some(9),
            },
        }
    }

    fn keyspace_named(name: &str) -> KeyspaceMeta {
        let options = KeyspaceOptions::default().compression(Compression::Zstd { level: 22 });
        KeyspaceMeta { id: KeyspaceId::MAX, name: name.into(), options }
    }

    fn with_lifetime(millis: u64) -> KeyspaceMeta {
        let KeyspaceMeta { id, name, options } = keyspace_named("b");
        KeyspaceMeta { id, name, options: options.expire_after(Duration::from_millis(millis)) }
    }

    #[test]
    fn edits_round_trip() {
        // Catches a field that is written and read in a different order or width.
        for edit in [VersionEdit::default(), edit()] {
            assert_eq!(decode(&encode(&edit).unwrap()), Ok(edit));
        }
    }

    #[test]
    fn what_decode_refuses_encode_refuses() {
        // Catches an edit that is written and acknowledged, but makes the next open fail.
        let past = MAX_FILE_NUMBER + 1;
        let added = |table: TableMeta| VersionEdit { added: vec![(RunId::LEVEL_0, table)], ..VersionEdit::default() };
        let long = Slice::from(vec![b'k'; MAX_STORED_KEY_LEN + 1]);
        let good = test_table(3, 5, 9);
        let (seqno, stats) = (MAX_SEQNO + 1, |stats| VersionEdit { stats, ..edit() });
        let mut levels = [LevelStats::default(); MAX_LEVELS];
        levels[2].read = past;
        let pointer = |pointer: CompactPointer| VersionEdit { pointers: vec![pointer], ..edit() };
        let run = RunId { level: 1, run: past };
        let refused = [
            ("a log number", past, VersionEdit { log_number: Some(past), ..edit() }),
            ("the next file number", past, VersionEdit { next_file_number: Some(past), ..edit() }),
            ("the last sequence number", seqno, VersionEdit { last_seqno: Some(seqno), ..edit() }),
            ("the number of a removed table", past, VersionEdit { removed: vec![(0, past)], ..edit() }),
            ("the number of a dropped table", past, VersionEdit { dropped: vec![1, past], ..edit() }),
            ("a level", MAX_LEVELS as u64, VersionEdit { removed: vec![(MAX_LEVELS, 1)], ..edit() }),
            ("the clock", past, VersionEdit { clock: past, ..edit() }),
            ("a policy", past, VersionEdit { policy: Some(past), ..edit() }),
            ("bytes of writes", past, stats(CompactionStats { user_bytes: past, ..CompactionStats::default() })),
            ("a level's read bytes", past, stats(CompactionStats { levels, ..CompactionStats::default() })),
            ("a run", past, VersionEdit { added: vec![(run, good.clone())], ..edit() }),
            ("a table number", past, added(TableMeta { number: past, ..good.clone() })),
            ("a table's size", past, added(TableMeta { size: past, ..good.clone() })),
            ("a table's entries", past, added(TableMeta { entries: past, ..good.clone() })),
            ("a table's tombstones", past, added(TableMeta { tombstones: past, ..good.clone() })),
            ("a table's range tombstones", past, added(TableMeta { range_tombstones: past, ..good.clone() })),
            ("a table's largest sequence number", seqno, added(TableMeta { max_seqno: seqno, ..good.clone() })),
            (
                "the length of a table's largest key",
                MAX_STORED_KEY_LEN as u64 + 1,
                added(TableMeta { largest: long.clone(), ..good }),
            ),
            ("a pointer's number", past, pointer(CompactPointer { id: past, ..pointer_at("k") })),
            (
                "the length of a pointer's last key",
                MAX_STORED_KEY_LEN as u64 + 1,
                pointer(CompactPointer { upto: long, ..pointer_at("k") }),
            ),
            ("a pointer's bytes", past, pointer(CompactPointer { bytes: past, ..pointer_at("k") })),
            ("a pointer's output run", past, pointer(CompactPointer { output: run, ..pointer_at("k") })),
            ("the lifetime of a keyspace's entries", past, {
                let keyspaces = KeyspaceEdit { set: vec![with_lifetime(past)], ..KeyspaceEdit::default() };
                VersionEdit { keyspaces, ..edit() }
            }),
            ("the number of a pointer that is done", past, VersionEdit { pointers_done: vec![past], ..edit() }),
        ];
        for (field, value, edit) in refused {
            let Err(Error::InvalidArgument(text)) = encode(&edit) else { panic!("{field}: accepted") };
            assert_eq!(text, format!("version edit: expected {field} within its limit, found {value}"));
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
            // Catches unchecked lengths: an edit that decodes must encode to bytes that decode to the same edit.
            if let Ok(edit) = decode(&bytes) {
                prop_assert_eq!(decode(&encode(&edit).unwrap()), Ok(edit));
            }
        }
    }
}
