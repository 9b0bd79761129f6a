//! The slots of keys, as in Redis Cluster: computed from a checksum of 16 bits, of the whole key or of its hash tag.
//!
//! A hash tag is the text between the first `{` of a key and the next `}`, unless that text is empty. Keys with the same tag have the same slot. The
//! first `{` of a prefix is also the first one of every key with this prefix; so a prefix with a complete tag has one slot.

use super::key_names::Named;
use crate::protocol::reply::Refusal;

/// The number of slots.
pub const SLOTS: u16 = 16_384;

/// The polynomial of the checksum CRC-16/XMODEM, whose initial value is zero and which reflects nothing.
const POLYNOMIAL: u16 = 0x1021;

/// The checksums of single bytes.
const CHECKSUMS: [u16; 256] = {
    let (mut table, mut byte) = ([0; 256], 0);
    while byte < table.len() {
        let (mut checksum, mut bit) = ((byte as u16) << 8, 0);
        while bit < u8::BITS {
            let is_set = checksum & (1 << (u16::BITS - 1)) != 0;
            checksum = (checksum << 1) ^ if is_set { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte] = checksum;
        byte += 1;
    }
    table
};

fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |checksum, &byte| {
        let [high, _] = checksum.to_be_bytes();
        (checksum << 8) ^ CHECKSUMS[usize::from(high ^ byte)]
    })
}

/// The slot of a key.
pub fn slot_of(key: &[u8]) -> u16 {
    checksum(tag(key).unwrap_or(key)) % SLOTS
}

/// The hash tag of a key.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let begin = key.iter().position(|&byte| byte == b'{')? + 1;
    let len = key[begin..].iter().position(|&byte| byte == b'}')?;
    (len > 0).then(|| &key[begin..begin + len])
}

/// The slot of the keys that a request names; `None` if any node with keys may carry the request out.
///
/// # Errors
/// Refuses the request if its keys are in several slots, or may be. All slots of a group are in one place; so with only one group, a range may span
/// slots.
pub(crate) fn slot_of_named(named: &Named<'_>, is_one_group: bool) -> Result<Option<u16>, Refusal> {
    let of_prefix = |prefix: &[u8]| match tag(prefix) {
        Some(_) => Ok(Some(slot_of(prefix))),
        None if is_one_group => Ok(None),
        None => Err(Refusal::new(
            "CROSSSLOT Keys of a range hash to many slots, which are in several groups: begin its bounds with the same hash tag, as {tag}",
        )),
    };
    match named {
        Named::Keys(keys) => slot_of_all(keys.iter().map(|key| Some(slot_of(key)))),
        Named::Range(from, to) => {
            let len = from.iter().zip(*to).take_while(|(a, b)| a == b).count();
            of_prefix(&from[..len])
        }
        Named::Prefix(prefix) => of_prefix(prefix),
        Named::Any if is_one_group => Ok(None),
        Named::Any => {
            Err(Refusal::new("ERR keys of all slots are in several groups, which this command does not visit"))
        }
    }
}

/// The slot that all parts of a request have; `None` if no part has one.
pub(crate) fn slot_of_all(slots: impl Iterator<Item = Option<u16>>) -> Result<Option<u16>, Refusal> {
    let mut slots = slots.flatten();
    let first = slots.next();
    match slots.all(|slot| Some(slot) == first) {
        true => Ok(first),
        false => Err(Refusal::new("CROSSSLOT Keys in request don't hash to the same slot")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // Catches a wrong checksum, and a tag that is cut at the wrong braces. The slots are those that `redis-cli cluster keyslot` prints.
        assert_eq!(checksum(b"123456789"), 0x31c3);
        let slots = [("", 0), ("foo", 12_182), ("bar", 5061), ("somekey", 11_058), ("foo{hash_tag}", 2515)];
        for (key, slot) in slots {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        let same = [
            ("{user1000}.following", "user1000"),
            ("a{user1000}b{c}", "user1000"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
        ];
        for (key, tag) in same {
            assert_eq!(slot_of(key.as_bytes()), checksum(tag.as_bytes()) % SLOTS, "{key}");
        }
        for whole in ["foo{}{bar}", "foo}bar{", "{", "}{"] {
            assert_eq!(slot_of(whole.as_bytes()), checksum(whole.as_bytes()) % SLOTS, "{whole}");
        }
    }

    #[test]
    fn keys_of_several_slots_are_refused_and_ranges_need_a_tag_if_there_are_several_groups() {
        // Catches a request that is carried out on a node that has only some of its keys.
        let of = |named: Named<'_>, is_one_group| slot_of_named(&named, is_one_group).map_err(Refusal::into_reply);
        let keys = |keys: &[&'static [u8]]| Named::Keys(keys.to_vec());
        assert_eq!(of(keys(&[]), false), Ok(None));
        assert_eq!(of(keys(&[b"{a}1", b"{a}2", b"a"]), false), Ok(Some(slot_of(b"a"))));
        assert!(of(keys(&[b"{a}1", b"{b}1"]), true).is_err());
        let tagged = [
            Named::Prefix(b"{a}"),
            Named::Prefix(b"x{a}y"),
            Named::Range(b"{a}1", b"{a}2"),
            Named::Range(b"{a}", b"{a}\xff"),
        ];
        for named in tagged {
            for is_one_group in [true, false] {
                assert_eq!(slot_of_named(&named, is_one_group).ok(), Some(Some(slot_of(b"a"))));
            }
        }
        let wide = [
            Named::Prefix(b""),
            Named::Prefix(b"{a"),
            Named::Prefix(b"{}"),
            Named::Range(b"{a}1", b""),
            Named::Range(b"{a}1", b"{b}1"),
            Named::Range(b"{a}1", b"{a|"),
            Named::Any,
        ];
        for named in wide {
            assert_eq!(slot_of_named(&named, true).ok(), Some(None));
            assert!(slot_of_named(&named, false).is_err());
        }
    }
}
