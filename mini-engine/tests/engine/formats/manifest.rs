//! Reads `CURRENT` and manifests, as described in "Manifest" of the page `formats.md`.

use std::collections::{BTreeMap, BTreeSet};

use crate::formats::bytes::{Bytes, Read, checksum, need, seed};

const HEADER_LEN: usize = 32;
const FRAME_HEADER_LEN: usize = 16;
const LEVELS: usize = 8;
const MAX_NUMBER: u64 = u64::MAX >> 1;

/// A table as an edit describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableLine {
    pub(crate) level: usize,
    /// The number of its run.
    pub(crate) run: u64,
    pub(crate) number: u64,
    pub(crate) size: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) smallest_seqno: u64,
    pub(crate) largest_seqno: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    pub(crate) range_tombstones: u64,
    /// The number of entries that expire, and the instants at which one to eight eighths of them have expired.
    pub(crate) expiring: (u64, [u64; 8]),
    /// Whether keys below `smallest` are ignored.
    pub(crate) narrowed: bool,
}

/// The bytes that arrived at a level, that compactions read there, and that they wrote there.
pub(crate) type Work = [u64; 3];

/// The combined state of the edits.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) log: u64,
    /// A number greater than those of all files.
    pub(crate) next_file: u64,
    pub(crate) last_seqno: u64,
    pub(crate) policy: Option<u64>,
    pub(crate) user_bytes: u64,
    pub(crate) work: [Work; LEVELS],
    /// The tables on levels, in the order in which a read searches them; within a run by key.
    pub(crate) tables: Vec<TableLine>,
    pub(crate) quarantined: Vec<TableLine>,
    /// The unfinished compactions, by number.
    pub(crate) pointers: BTreeSet<u64>,
    /// The names of keyspaces, by number.
    pub(crate) keyspaces: BTreeMap<u32, String>,
    last_keyspace: u32,
    /// Every tag that occurred.
    pub(crate) tags: BTreeSet<u8>,
    pub(crate) edits: usize,
    /// The latest recorded time of the database's clock.
    pub(crate) clock: u64,
}

/// The number of the manifest that `CURRENT` names.
pub(crate) fn current(text: &[u8]) -> Read<u64> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let line = text.strip_suffix('\n').ok_or("no newline")?;
    let (named, sum) = line.rsplit_once(' ').ok_or("no checksum")?;
    need(sum == format!("{:016x}", checksum(named.as_bytes(), 0)), "checksum of the pointer")?;
    let number = named.strip_prefix("mini-engine 1 MANIFEST-").ok_or("another pointer")?;
    let number = number.parse().map_err(|_| "no number")?;
    need(named == format!("mini-engine 1 MANIFEST-{number:06}"), "another spelling")?;
    Ok(number)
}

/// Combines the edits of manifest `number`.
pub(crate) fn read(number: u64, file: &[u8]) -> Read<Manifest> {
    header(number, file)?;
    let mut manifest = Manifest::default();
    let mut at = HEADER_LEN;
    while let Some((payload, next)) = frame(number, file, at) {
        manifest.apply(payload)?;
        at = next;
    }
    let mut later = (at + 8..file.len()).step_by(8);
    need(later.all(|later| frame(number, file, later).is_none()), "an edit before the last one is damaged")?;
    need(manifest.edits > 0, "not one edit")?;
    need(manifest.policy.is_none_or(|policy| (1..=4).contains(&policy)), "an unknown policy")?;
    Ok(manifest)
}

fn header(number: u64, file: &[u8]) -> Read {
    let mut bytes = Bytes::new(file.get(..HEADER_LEN).ok_or("no room for a header")?);
    need(bytes.take(8)? == b"mini-mft", "another magic")?;
    let (version, zero, own_number, sum) = (bytes.u32()?, bytes.u32()?, bytes.u64()?, bytes.u64()?);
    need(sum == checksum(&file[..24], 0), "checksum of the header")?;
    need(version == 2 && zero == 0 && own_number == number, "another version or number")
}

/// The payload of the valid frame at `at` and where the next one begins.
fn frame(number: u64, file: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (head, rest) = file.get(at..)?.split_at_checked(FRAME_HEADER_LEN)?;
    let mut bytes = Bytes::new(head);
    let (len, len_sum, sum) = (bytes.u32().ok()?, bytes.u32().ok()?, bytes.u64().ok()?);
    let (place, len_place) = (seed(&[number, at as u64]), seed(&[number, at as u64, 0]));
    if len_sum != checksum(&head[..4], len_place) as u32 || len > 1 << 30 {
        return None;
    }
    let payload = rest.get(..len as usize)?;
    let next = (at + FRAME_HEADER_LEN + payload.len()).next_multiple_of(8);
    (sum == checksum(payload, place) && next <= file.len()).then_some((payload, next))
}

impl Manifest {
    fn apply(&mut self, edit: &[u8]) -> Read {
        let mut bytes = Bytes::new(edit);
        let (mut added, mut removed, mut dropped, mut quarantined) = (vec![], vec![], vec![], vec![]);
        let (mut pointers, mut pointers_done) = (vec![], vec![]);
        let (mut keyspaces, mut dropped_keyspaces, mut last_keyspace) = (vec![], vec![], 0);
        let (mut user_bytes, mut work) = (0, [Work::default(); LEVELS]);
        let (log, last_seqno) = (self.log, self.last_seqno);
        while !bytes.is_empty() {
            let tag = bytes.u8()?;
            self.tags.insert(tag);
            match tag {
                1 => self.log = number(&mut bytes)?,
                2 => self.next_file = number(&mut bytes)?,
                3 => self.last_seqno = number(&mut bytes)?,
                4 => {
                    let (level, run) = (level(&mut bytes)?, number(&mut bytes)?);
                    added.push(TableLine { level, run, ..table(&mut bytes)? });
                }
                5 => removed.push((level(&mut bytes)?, number(&mut bytes)?)),
                6 => self.policy = Some(number(&mut bytes)?),
                7 => user_bytes = number(&mut bytes)?,
                8 => {
                    let level = level(&mut bytes)?;
                    work[level] = [number(&mut bytes)?, number(&mut bytes)?, number(&mut bytes)?];
                }
                9 => {
                    pointers.push(number(&mut bytes)?);
                    for _ in 0..2 {
                        level(&mut bytes)?;
                        number(&mut bytes)?;
                    }
                    number(&mut bytes)?;
                    bytes.prefixed()?;
                    bytes.prefixed()?;
                }
                10 => pointers_done.push(number(&mut bytes)?),
                11 => quarantined.push(table(&mut bytes)?),
                12 => dropped.push(number(&mut bytes)?),
                13 | 17 => {
                    if tag == 17 {
                        need(number(&mut bytes)? > 0, "no lifetime")?;
                    }
                    let id = keyspace_id(&mut bytes)?;
                    need(bytes.varint()? <= 24, "an unknown compression of a keyspace")?;
                    let name = String::from_utf8(bytes.prefixed()?.to_vec()).map_err(|error| error.to_string())?;
                    need((1..=255).contains(&name.len()), "a name that is too short or too long")?;
                    keyspaces.push((id, name));
                }
                14 => dropped_keyspaces.push(keyspace_id(&mut bytes)?),
                15 => last_keyspace = keyspace_id(&mut bytes)?,
                16 => self.clock = self.clock.max(number(&mut bytes)?),
                unknown => return Err(format!("tag {unknown}")),
            }
        }
        need(log <= self.log && last_seqno <= self.last_seqno, "an edit that goes back")?;
        self.change(&removed, added, quarantined, &dropped)?;
        self.change_keyspaces(keyspaces, &dropped_keyspaces, last_keyspace)?;
        self.pointers.retain(|id| !pointers_done.contains(id));
        self.pointers.extend(pointers);
        let add = |sum: &mut u64, more: u64| *sum = (*sum + more).min(MAX_NUMBER);
        add(&mut self.user_bytes, user_bytes);
        for (sum, more) in self.work.iter_mut().flatten().zip(work.into_iter().flatten()) {
            add(sum, more);
        }
        self.edits += 1;
        Ok(())
    }

    fn change_keyspaces(&mut self, set: Vec<(u32, String)>, dropped: &[u32], last: u32) -> Read {
        for id in dropped {
            self.keyspaces.remove(id).ok_or("a keyspace is dropped that is not there")?;
        }
        let before = self.last_keyspace;
        for (id, name) in set {
            need(id > before || self.keyspaces.contains_key(&id), "the number of a keyspace is given again")?;
            let named = self.keyspaces.iter().find(|(_, known)| **known == name);
            need(id > 0 && named.is_none_or(|(known, _)| *known == id), "two keyspaces have one name")?;
            self.keyspaces.insert(id, name);
            self.last_keyspace = self.last_keyspace.max(id);
        }
        self.last_keyspace = self.last_keyspace.max(last);
        Ok(())
    }

    fn change(
        &mut self,
        removed: &[(usize, u64)],
        added: Vec<TableLine>,
        quarantined: Vec<TableLine>,
        dropped: &[u64],
    ) -> Read {
        for &(level, number) in removed {
            let at = self.tables.iter().position(|table| (table.level, table.number) == (level, number));
            self.tables.remove(at.ok_or("a table is removed that is not there")?);
        }
        self.tables.extend(added);
        self.quarantined.extend(quarantined);
        for &number in dropped {
            let at = self.quarantined.iter().position(|table| table.number == number);
            self.quarantined.remove(at.ok_or("a table is dropped that is not quarantined")?);
        }
        // Greater seqnos first on level 0, greater runs first below.
        let newest = |table: &TableLine| if table.level == 0 { table.largest_seqno } else { table.run };
        self.tables.sort_by_key(|table| (table.level, u64::MAX - newest(table), table.smallest.clone()));
        self.check()
    }

    fn check(&self) -> Read {
        let all = || self.tables.iter().chain(&self.quarantined);
        let numbers: BTreeSet<u64> = all().map(|table| table.number).collect();
        need(numbers.len() == all().count(), "a table that is there twice")?;
        let in_order =
            |table: &TableLine| table.smallest <= table.largest && table.smallest_seqno <= table.largest_seqno;
        need(all().all(in_order), "a table with limits in the wrong order")?;
        for (table, next) in self.tables.iter().zip(self.tables.iter().skip(1)) {
            if table.level == 0 && next.level == 0 {
                need(table.run == 0 && table.smallest_seqno > next.largest_seqno, "tables of level 0 interleave")?;
            } else if (table.level, table.run) == (next.level, next.run) {
                need(table.largest < next.smallest, "tables of a run overlap")?;
            }
        }
        Ok(())
    }
}

fn number(bytes: &mut Bytes<'_>) -> Read<u64> {
    let number = bytes.varint()?;
    need(number <= MAX_NUMBER, "a number of more than 63 bits")?;
    Ok(number)
}

fn keyspace_id(bytes: &mut Bytes<'_>) -> Read<u32> {
    number(bytes)?.try_into().map_err(|_| "a number of a keyspace of more than 32 bits".to_owned())
}

fn level(bytes: &mut Bytes<'_>) -> Read<usize> {
    let level = number(bytes)? as usize;
    need(level < LEVELS, "a level that cannot be")?;
    Ok(level)
}

/// A table without its level and run, which the caller sets.
fn table(bytes: &mut Bytes<'_>) -> Read<TableLine> {
    let what = bytes.u8()?;
    need(what <= 3, "what is special about a table is 0 to 3")?;
    Ok(TableLine {
        narrowed: what & 1 != 0,
        number: number(bytes)?,
        size: number(bytes)?,
        entries: number(bytes)?,
        tombstones: number(bytes)?,
        range_tombstones: number(bytes)?,
        smallest_seqno: number(bytes)?,
        largest_seqno: number(bytes)?,
        smallest: bytes.prefixed()?.to_vec(),
        largest: bytes.prefixed()?.to_vec(),
        expiring: if what & 2 != 0 { bytes.expiring()? } else { (0, [0; 8]) },
        ..TableLine::default()
    })
}
