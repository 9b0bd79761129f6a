//! The range tombstones of a table form a separate block, between the root and the properties.
//!
//! ```text
//! block      for each range: varint length and first key, varint length and end, varint number of seqnos, the seqnos as varints
//! ```
//!
//! Ranges ascend by first key, then by end, and may overlap. A table has such a block only if it has range tombstones. Like the root, it is kept in
//! memory while the table is open. All ranges lie within the key range that the version records for the table. So all code that uses this key range,
//! in particular the planning of compactions, considers range tombstones.

use crate::codec::{Malformed, Reader, put_prefixed, put_varint};
use crate::types::{MAX_END_LEN, MAX_SEQNO, MAX_STORED_KEY_LEN, RangeTombstone, RangeTombstones, SeqNo, Slice, is_end};

/// Encodes the contents of the block.
pub(crate) fn encode(tombstones: &RangeTombstones) -> Vec<u8> {
    let mut out = Vec::new();
    for part in tombstones.parts() {
        put_prefixed(&mut out, part.start);
        put_prefixed(&mut out, part.end);
        put_varint(&mut out, part.seqnos().len() as u64);
        part.seqnos().for_each(|seqno| put_varint(&mut out, seqno));
    }
    out
}

/// Decodes the output of [`encode`], and checks the order of ranges and numbers, and that each range has an end.
pub(crate) fn decode(contents: &[u8]) -> Result<RangeTombstones, Malformed> {
    let mut reader = Reader::new(contents);
    let mut tombstones = Vec::new();
    let mut last = (Slice::default(), Slice::default());
    while !reader.is_empty() {
        let (start, end) =
            range(&mut reader, (&last.0, &last.1)).ok_or(reader.malformed("a range behind the one before it"))?;
        let seqnos = seqnos(&mut reader).ok_or(reader.malformed("descending sequence numbers"))?;
        let tombstone = |seqno| RangeTombstone { start: start.clone(), end: end.clone(), seqno };
        tombstones.extend(seqnos.into_iter().map(tombstone));
        last = (start, end);
    }
    match tombstones.is_empty() {
        true => Err(reader.malformed("a range")),
        false => Ok(RangeTombstones::new(tombstones)),
    }
}

fn range(reader: &mut Reader<'_>, last: (&[u8], &[u8])) -> Option<(Slice, Slice)> {
    let start = reader.prefixed(MAX_STORED_KEY_LEN)?;
    let end = reader.prefixed(MAX_END_LEN).filter(|end| is_end(end))?;
    (start < end && last < (start, end)).then(|| (Slice::from(start), Slice::from(end)))
}

fn seqnos(reader: &mut Reader<'_>) -> Option<Vec<SeqNo>> {
    let count = reader.varint()?;
    let mut seqnos = Vec::new();
    // Each number has at least one byte, so there are no more numbers than bytes, whatever `count` is.
    for _ in 0..count {
        seqnos.push(reader.varint().filter(|&seqno| seqno <= MAX_SEQNO)?);
    }
    (count > 0 && seqnos.is_sorted_by(|newer, older| newer > older)).then_some(seqnos)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tombstone(start: &[u8], end: &[u8], seqno: SeqNo) -> RangeTombstone {
        RangeTombstone { start: start.into(), end: end.into(), seqno }
    }

    #[test]
    fn range_tombstones_come_back_as_they_were_and_a_cut_block_is_malformed() {
        // Catches a field that is written and read in a different order, and an end of the bytes that is treated as the end of a list.
        let all = [tombstone(b"", b"c", 5), tombstone(b"b", &[b'k'; 300], 300), tombstone(b"x", b"x\0", MAX_SEQNO)];
        for all in [&all[..], &all[1..]] {
            let tombstones = RangeTombstones::new(all.to_vec());
            let bytes = encode(&tombstones);
            assert_eq!(decode(&bytes), Ok(tombstones.clone()));
            for len in 0..bytes.len() {
                assert_ne!(decode(&bytes[..len]), Ok(tombstones.clone()), "{len} bytes");
            }
        }
    }

    #[test]
    fn ranges_out_of_order_or_empty_and_numbers_out_of_order_are_malformed() {
        // Catches a block with a valid checksum whose binary search would miss a tombstone.
        let block = |parts: &[(&[u8], &[u8], &[u64])]| {
            let mut out = Vec::new();
            for (start, end, seqnos) in parts {
                put_prefixed(&mut out, start);
                put_prefixed(&mut out, end);
                put_varint(&mut out, seqnos.len() as u64);
                seqnos.iter().for_each(|&seqno| put_varint(&mut out, seqno));
            }
            out
        };
        assert!(decode(&block(&[(b"a", b"b", &[2, 1]), (b"b", b"c", &[1])])).is_ok());
        assert!(decode(&block(&[(b"a", b"c", &[1]), (b"a", b"d", &[1]), (b"b", b"d", &[1])])).is_ok());
        for bad in [
            block(&[(b"b", b"c", &[1]), (b"a", b"b", &[1])]),
            block(&[(b"a", b"c", &[1]), (b"a", b"b", &[1])]),
            block(&[(b"a", b"c", &[2]), (b"a", b"c", &[1])]),
            block(&[(b"a", b"a", &[1])]),
            block(&[(b"a", b"", &[1])]),
            block(&[(b"a", b"b", &[])]),
            block(&[(b"a", b"b", &[1, 2])]),
            block(&[(b"a", b"b", &[1, 1])]),
            block(&[(b"a", b"b", &[MAX_SEQNO + 1])]),
            block(&[(b"a", &[b'k'; MAX_END_LEN], &[1])]),
            Vec::new(),
        ] {
            assert!(decode(&bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            // Catches an unchecked length or count.
            if let Ok(tombstones) = decode(&bytes) {
                prop_assert!(encode(&tombstones).len() <= bytes.len());
            }
        }
    }
}
