//! Reads tables, as described in "Table" of the page `formats.md`.

use std::cmp::Reverse;
use std::ops::Range;

use crate::formats::bytes::{Bytes, Entry, Read, checksum, need, seed};

const FOOTER_LEN: usize = 80;
const TRAILER_LEN: usize = 13;
const BLOCK_FOOTER_LEN: usize = 16;
const LINE_LEN: usize = 64;

/// The complete contents of a table.
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
    /// Whether ranges overlap.
    pub(crate) overlap: bool,
    /// Range tombstones, and the number of ranges that they represent.
    pub(crate) ranges: Vec<Entry>,
    pub(crate) distinct_ranges: u64,
    pub(crate) properties: Properties,
    /// The filter of each partition.
    filters: Vec<PartitionFilter>,
    /// The compression of each data block.
    pub(crate) compressions: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Properties {
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) keys: u64,
    pub(crate) smallest_seqno: u64,
    pub(crate) largest_seqno: u64,
    pub(crate) first_key: Vec<u8>,
    pub(crate) last_key: Vec<u8>,
    /// The number of entries that expire, and the instants at which one to eight eighths of them have expired.
    pub(crate) expiring: (u64, [u64; 8]),
}

struct Fence {
    key: Vec<u8>,
    seqno: u64,
    /// The position of the fence's block.
    block: Range<usize>,
}

impl Fence {
    fn place(&self) -> (&[u8], Reverse<u64>) {
        (&self.key, Reverse(self.seqno))
    }
}

/// The filter and the fences of a group of data blocks.
struct Partition {
    filter: Option<Filter>,
    fences: Vec<Fence>,
}

struct PartitionFilter {
    /// The last fence pointer of the group.
    reaches: (Vec<u8>, u64),
    filter: Option<Filter>,
}

/// Reads table `number`, ignoring keys below `from`, and checks all rules of the page.
pub(crate) fn read(number: u64, file: &[u8], from: &[u8]) -> Read<Table> {
    let footer = footer(number, file)?;
    let partitions = partitions(number, file, &footer, from)?;
    let properties = read_properties(&block(number, file, footer.properties.clone())?.1)?;
    let Ranges { ranges, distinct: distinct_ranges, overlap } = match footer.ranges() {
        place if place.is_empty() => Ranges::default(),
        place => range_tombstones(&block(number, file, place)?.1)?,
    };
    let (mut entries, mut compressions): (Vec<Entry>, Vec<u8>) = Default::default();
    // In a narrowed table, nothing is checked before the first partition with keys from `from` on.
    let skips = !from.is_empty();
    let first = partitions.first().and_then(|first| first.fences.first()).map_or(0, |fence| fence.block.start);
    let (mut at, mut before, mut is_whole) = (if skips { first } else { 0 }, None, !skips || first == 0);
    for partition in &partitions {
        let mut group = Vec::new();
        for fence in &partition.fences {
            need(fence.block.start == at && fence.block.end <= footer.partitions.start, "a gap between data blocks")?;
            if fence.place() < (from, Reverse(u64::MAX)) {
                (at, before, is_whole) = (fence.block.end, Some(fence.place()), false);
                continue;
            }
            let (compression, contents) = block(number, file, fence.block.clone())?;
            compressions.push(compression);
            let block = data_block(&contents)?;
            let (first, last) = (block.first().ok_or("no entry")?, block.last().ok_or("no entry")?);
            need(last.place() <= fence.place(), "an entry behind its block's fence")?;
            need(
                before.is_none_or(|before| before < first.place()),
                "an entry that is not behind the fence before it",
            )?;
            before = Some(fence.place());
            group.extend(block);
            at = fence.block.end;
        }
        let finds = |filter: &Filter| group.iter().all(|entry| filter.may_contain(&entry.key));
        need(partition.filter.as_ref().is_none_or(finds), "a filter that denies a key of its group")?;
        entries.append(&mut group);
    }
    need(at == footer.partitions.start, "bytes behind the data blocks")?;
    need(entries.is_sorted_by(|a, b| a.place() < b.place()), "entries out of order")?;
    let found = counted(&entries, &ranges);
    let agrees = if is_whole { properties == found } else { properties.last_key == found.last_key };
    need(agrees, "other properties than its entries have")?;
    let filter = |mut partition: Partition| {
        let last = partition.fences.pop().map(|fence| (fence.key, fence.seqno));
        PartitionFilter { reaches: last.unwrap_or_default(), filter: partition.filter }
    };
    let filters = partitions.into_iter().map(filter).collect();
    Ok(Table { entries, overlap, ranges, distinct_ranges, properties, filters, compressions })
}

/// The partitions to which the root leads, except those that cannot have a key from `from` on.
fn partitions(number: u64, file: &[u8], footer: &Footer, from: &[u8]) -> Read<Vec<Partition>> {
    let root = fences(&block(number, file, footer.root.clone())?.1, footer.partitions.start)?;
    need(root.last().is_some_and(|last| last.block.end == footer.root.start), "bytes behind the partitions")?;
    let mut partitions = Vec::new();
    for fence in root.iter().filter(|fence| fence.place() >= (from, Reverse(u64::MAX))) {
        let (_, contents) = block(number, file, fence.block.clone())?;
        let tail = contents.len().checked_sub(12).ok_or("a partition without a tail")?;
        let mut bytes = Bytes::new(&contents[tail..]);
        let (start, filter_len) = (bytes.u64()? as usize, bytes.u32()? as usize);
        let parts = contents[..tail].split_at_checked(filter_len).ok_or("a filter longer than its partition")?;
        let filter = if filter_len > 0 { Some(Filter::read(parts.0.to_vec())?) } else { None };
        let fences = fences(parts.1, start)?;
        need(fences.last().is_some_and(|last| last.place() == fence.place()), "another last fence than the root says")?;
        partitions.push(Partition { filter, fences });
    }
    Ok(partitions)
}

impl Table {
    /// The newest version of `key` at or below `wanted`.
    pub(crate) fn newest(&self, key: &[u8], wanted: u64) -> Option<&Entry> {
        let from = self.entries.partition_point(|entry| entry.place() < (key, Reverse(wanted)));
        let entry = self.entries.get(from).filter(|entry| entry.key == key);
        let ranges = self.ranges.iter().filter(|range| range.is_of(key) && range.seqno <= wanted);
        ranges.chain(entry).max_by_key(|version| version.seqno)
    }

    /// The number of partitions.
    pub(crate) fn partitions(&self) -> usize {
        self.filters.len()
    }

    /// Whether the table has filters.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filters.iter().all(|part| part.filter.is_some())
    }

    /// Whether the filter passes a read of the newest version of `key`.
    pub(crate) fn may_contain(&self, key: &[u8]) -> bool {
        let place = (key, Reverse(u64::MAX));
        let part = self.filters.iter().find(|part| (&part.reaches.0[..], Reverse(part.reaches.1)) >= place);
        part.is_some_and(|part| part.filter.as_ref().is_none_or(|filter| filter.may_contain(key)))
    }
}

/// The positions of the table's parts.
struct Footer {
    partitions: Range<usize>,
    root: Range<usize>,
    properties: Range<usize>,
}

impl Footer {
    /// The position of the range tombstones, which may be empty.
    fn ranges(&self) -> Range<usize> {
        self.root.end..self.properties.start
    }
}

fn footer(number: u64, file: &[u8]) -> Read<Footer> {
    let at = file.len().checked_sub(FOOTER_LEN).ok_or("no room for a footer")?;
    let mut bytes = Bytes::new(&file[at..]);
    let mut handle = || Ok::<_, String>((bytes.u64()?, bytes.u64()?));
    let (partitions, root, properties) = (handle()?, handle()?, handle()?);
    let (own_number, version, zero, sum) = (bytes.u64()?, bytes.u32()?, bytes.u32()?, bytes.u64()?);
    need(bytes.rest() == b"mini-sst", "another magic")?;
    need(sum == checksum(&file[at..at + 64], seed(&[number, at as u64])), "footer checksum")?;
    need(version == 2 && own_number == number && zero == 0, "another version or number")?;
    let meets = |(offset, len): (u64, u64), next: u64| offset.checked_add(len) == Some(next);
    let root_end = root.0.checked_add(root.1).ok_or("a part that has no end")?;
    let meet = meets(partitions, root.0) && root_end <= properties.0 && meets(properties, at as u64);
    need(meet, "parts with gaps between them")?;
    let [partitions, root, root_end, properties] =
        [partitions.0, root.0, root_end, properties.0].map(|offset| offset as usize);
    Ok(Footer { partitions: partitions..root, root: root..root_end, properties: properties..at })
}

/// The compression and the contents of a block.
fn block(number: u64, file: &[u8], place: Range<usize>) -> Read<(u8, Vec<u8>)> {
    let offset = place.start as u64;
    let bytes = file.get(place).ok_or("a block outside the file")?;
    let stored_len = bytes.len().checked_sub(TRAILER_LEN).ok_or("a block shorter than its trailer")?;
    let (stored, trailer) = bytes.split_at(stored_len);
    let mut trailer = Bytes::new(trailer);
    let (compression, len, sum) = (trailer.u8()?, trailer.u32()? as usize, trailer.u64()?);
    need(sum == checksum(&bytes[..stored_len + 5], seed(&[number, offset])), "block checksum")?;
    let room = |expansion: usize| need(len <= (stored_len + 1) * expansion, "contents longer than they can be");
    let contents = match compression {
        0 => stored.to_vec(),
        1 => {
            room(255)?;
            lz4_flex::block::decompress(stored, len).map_err(|error| error.to_string())?
        }
        2 => {
            room(32_768)?;
            zstd::bulk::decompress(stored, len).map_err(|error| error.to_string())?
        }
        newer => return Err(format!("compression {newer}")),
    };
    need(contents.len() == len, "contents of another length")?;
    need(compression == 0 || stored_len * 100 <= len * 88, "a compressed block that saves less than 12 %")?;
    Ok((compression, contents))
}

fn data_block(contents: &[u8]) -> Read<Vec<Entry>> {
    let footer_at = contents.len().checked_sub(BLOCK_FOOTER_LEN).ok_or("no footer")?;
    let mut footer = Bytes::new(&contents[footer_at..]);
    let (count, shift) = (footer.u32()? as usize, footer.u8()?);
    let (key_len, value_len, tag_form, smallest) = (footer.u8()?, footer.u8()?, footer.u8()?, footer.u64()?);
    let (tag_len, plain) = (usize::from(tag_form & 0x7f), tag_form >> 7 == 1);
    need(count > 0 && count <= contents.len(), "no entries, or more than bytes")?;
    need((shift == 255 || (1..=31).contains(&shift)) && tag_len <= 8, "an unknown form")?;
    let per_bundle = if shift == 255 { usize::MAX } else { 1usize << shift };
    let bundles = if shift == 255 { 0 } else { count.div_ceil(per_bundle) };
    // From the end to the start: the length of each column is known from the number of entries.
    let mut end = footer_at;
    let mut column = |len: usize| {
        end = end.checked_sub(len).ok_or("more columns than bytes")?;
        Ok::<_, String>(&contents[end..end + len])
    };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let mut offsets = |len: u8, parts: usize| -> Read<Vec<usize>> {
        Ok(match usize::from(len) {
            0 => {
                let stride = number(column(4)?) as usize;
                (0..=parts).map(|part| part * stride).collect()
            }
            len @ (2 | 4) => column(len * (parts + 1))?.chunks(len).map(|bytes| number(bytes) as usize).collect(),
            _ => return Err("offsets of another length".into()),
        })
    };
    let (key_offsets, value_offsets) = (offsets(key_len, count + bundles)?, offsets(value_len, count)?);
    let tags = column(tag_len * count)?;
    let (keys_len, values_len) = (key_offsets[count + bundles], value_offsets[count]);
    let keys = column(keys_len)?;
    need(end == values_len, "bytes before the keys that are no values")?;
    let part =
        |offsets: &[usize], bytes: &'_ [u8], at: usize| bytes.get(offsets[at]..offsets[at + 1]).map(<[u8]>::to_vec);
    need(key_offsets[0] == 0 && value_offsets[0] == 0, "a column that does not begin at 0")?;
    let mut entries: Vec<Entry> = Vec::new();
    for at in 0..count {
        let (prefix, rest) = match shift {
            255 => (Some(Vec::new()), part(&key_offsets, keys, at)),
            _ => {
                let bundle = at / per_bundle;
                (part(&key_offsets, keys, bundle * (per_bundle + 1)), part(&key_offsets, keys, at + bundle + 1))
            }
        };
        let (prefix, rest) = (prefix.ok_or("a prefix outside the keys")?, rest.ok_or("a key outside the keys")?);
        let value = part(&value_offsets, &contents[..values_len], at).ok_or("a value outside the values")?;
        let above = if tag_len == 0 { 0 } else { number(&tags[tag_len * at..tag_len * (at + 1)]) };
        let tag = smallest.checked_add(above).ok_or("a tag past its limit")?;
        let (key, seqno) = ([prefix, rest].concat(), tag / 2);
        let repeats = entries.last().is_some_and(|last| last.key == key);
        need(!plain || tag % 2 == 1 && !repeats, "a plain block with another entry")?;
        entries.push(match tag % 2 {
            1 => Entry::new(&key, seqno, Some(&value))?,
            _ if value.is_empty() => Entry::new(&key, seqno, None)?,
            _ => Entry::expiring(&key, seqno, &value)?,
        });
    }
    Ok(entries)
}

/// The fence pointers of blocks; the first block is at `start`.
fn fences(contents: &[u8], start: usize) -> Read<Vec<Fence>> {
    let count_at = contents.len().checked_sub(4).ok_or("no number of fences")?;
    let marked = Bytes::new(&contents[count_at..]).u32()?;
    let (count, shares) = ((marked & !(1 << 31)) as usize, marked >> 31 == 1);
    let fences_end = count_at.checked_sub(4 * count).ok_or("more fences than there is room for")?;
    let mut offsets = Bytes::new(&contents[fences_end..count_at]);
    let mut bytes = Bytes::new(&contents[..fences_end]);
    let prefix = if shares { bytes.prefixed()? } else { &[] };
    let (mut fences, mut at) = (Vec::new(), start);
    for _ in 0..count {
        need(offsets.u32()? as usize == fences_end - bytes.len(), "a fence that is not where its offset says")?;
        let (key, seqno, end) = ([prefix, bytes.prefixed()?].concat(), bytes.varint()?, bytes.varint()? as usize);
        need(key.len() <= 65_535, "a fence longer than a key")?;
        let end = start.checked_add(end).filter(|&end| end > at).ok_or("a block that ends before it begins")?;
        fences.push(Fence { key, seqno, block: at..end });
        at = end;
    }
    need(count > 0 && bytes.is_empty(), "no fence, or bytes behind the fences")?;
    Ok(fences)
}

#[derive(Default)]
struct Ranges {
    ranges: Vec<Entry>,
    distinct: u64,
    overlap: bool,
}

fn range_tombstones(contents: &[u8]) -> Read<Ranges> {
    let (mut bytes, mut ranges, mut distinct) = (Bytes::new(contents), Vec::<Entry>::new(), 0);
    let mut overlap = false;
    while !bytes.is_empty() {
        let (start, end, count) = (bytes.prefixed()?, bytes.prefixed()?, bytes.varint()?);
        let before = ranges.last().and_then(|range| Some((&range.key[..], range.end.as_deref()?)));
        need(before.is_none_or(|before| before < (start, end)), "ranges out of order")?;
        need(!end.is_empty() && count > 0, "a range without an end or a seqno")?;
        overlap |= before.is_some_and(|before| before.1 > start);
        let first = ranges.len();
        for _ in 0..count {
            ranges.push(Entry::range(start, end, bytes.varint()?)?);
        }
        need(ranges[first..].is_sorted_by(|a, b| a.seqno > b.seqno), "seqnos of a range out of order")?;
        distinct += 1;
    }
    need(distinct > 0, "no range")?;
    Ok(Ranges { ranges, distinct, overlap })
}

fn read_properties(contents: &[u8]) -> Read<Properties> {
    let mut bytes = Bytes::new(contents);
    let mut properties = Properties {
        entries: bytes.varint()?,
        tombstones: bytes.varint()?,
        keys: bytes.varint()?,
        smallest_seqno: bytes.varint()?,
        largest_seqno: bytes.varint()?,
        first_key: bytes.prefixed()?.to_vec(),
        last_key: bytes.prefixed()?.to_vec(),
        expiring: (0, [0; 8]),
    };
    if !bytes.is_empty() {
        properties.expiring = bytes.expiring()?;
        need(properties.expiring.0 > 0, "a count of entries that expire, where there are none")?;
    }
    need(bytes.is_empty(), "bytes behind the properties")?;
    Ok(properties)
}

/// The expected properties of a table with `entries`, which are sorted and not empty, and with the range tombstones `ranges`.
fn counted(entries: &[Entry], ranges: &[Entry]) -> Properties {
    let seqnos = || entries.iter().chain(ranges).map(|entry| entry.seqno);
    let end = ranges.iter().filter_map(|range| range.end.as_deref()).max();
    let last_covered = end.map(|end| end.strip_suffix(&[0]).unwrap_or(end)).unwrap_or_default();
    let last_key = entries.last().map_or(&[][..], |entry| &entry.key).max(last_covered);
    let mut instants: Vec<u64> = entries.iter().filter_map(|entry| entry.expires).collect();
    instants.sort_unstable();
    // The tables here have few entries, so each recorded instant is the earliest possible.
    let passed_by = |parts: usize| (instants.len() * parts).div_ceil(8).checked_sub(1).map_or(0, |at| instants[at]);
    Properties {
        entries: entries.len() as u64,
        tombstones: entries.iter().filter(|entry| entry.value.is_none()).count() as u64,
        keys: entries.chunk_by(|a, b| a.key == b.key).count() as u64,
        smallest_seqno: seqnos().min().unwrap_or_default(),
        largest_seqno: seqnos().max().unwrap_or_default(),
        first_key: entries
            .first()
            .into_iter()
            .chain(ranges.first())
            .map(|entry| entry.key.clone())
            .min()
            .unwrap_or_default(),
        last_key: last_key.to_vec(),
        expiring: (instants.len() as u64, [1, 2, 3, 4, 5, 6, 7, 8].map(passed_by)),
    }
}

struct Filter {
    lines: Vec<u8>,
    probes: u8,
}

impl Filter {
    fn read(mut lines: Vec<u8>) -> Read<Filter> {
        let probes = lines.pop().ok_or("an empty filter")?;
        need((1..=16).contains(&probes), "a number of probes out of range")?;
        need(!lines.is_empty() && lines.len().is_multiple_of(LINE_LEN), "a filter that is not of whole lines")?;
        Ok(Filter { lines, probes })
    }

    fn may_contain(&self, key: &[u8]) -> bool {
        let hash = checksum(key, 0);
        let count = (self.lines.len() / LINE_LEN) as u64;
        let start = (((hash >> 32) * count) >> 32) as usize * LINE_LEN;
        let line = &self.lines[start..start + LINE_LEN];
        let mut product = hash as u32;
        (0..self.probes).all(|_| {
            product = product.wrapping_mul(0x9e37_79b9);
            let bit = (product >> 23) as usize;
            line[bit / 8] >> (bit % 8) & 1 == 1
        })
    }
}
