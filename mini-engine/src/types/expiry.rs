//! Expiry: an entry may have an instant from which on its key is absent.
//!
//! Such an entry ([`Kind::Expiring`]) is stored as a tombstone that has a value: the instant, followed by the user's value. So entries without expiry
//! are stored and read at no additional cost, and only a reader that finds a tombstone has to check for a value.

use std::time::{Duration, SystemTime};

use super::{Kind, Slice};

/// An instant: milliseconds since 1970.
pub(crate) type Millis = u64;

/// The length of the instant before the value, in bytes.
pub(crate) const EXPIRY_LEN: usize = size_of::<Millis>();

/// Converts `time` to an instant, rounded down; 0 before 1970.
pub(crate) fn millis(time: SystemTime) -> Millis {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

/// The time of an instant; if the system cannot express it, a time in the next century.
pub(crate) fn system_time(at: Millis) -> SystemTime {
    let far = || SystemTime::UNIX_EPOCH + Duration::from_secs(u32::MAX.into());
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at)).unwrap_or_else(far)
}

/// The instant and the value of an entry that expires.
#[inline]
pub(crate) fn split_expiry(stored: &[u8]) -> (Millis, &[u8]) {
    // Memtables and decoders reject entries without an instant.
    stored.split_first_chunk().map_or((0, &[]), |(at, value)| (Millis::from_le_bytes(*at), value))
}

/// The value of an entry whose stored value is `stored`, and its instant, if any, as a read at `now` sees them; `None` if the key is absent then.
#[inline]
pub(crate) fn shown(kind: Kind, stored: &[u8], now: impl FnOnce() -> Millis) -> Option<(&[u8], Option<Millis>)> {
    match kind {
        Kind::Value => Some((stored, None)),
        Kind::Tombstone => None,
        Kind::Expiring => {
            let (at, value) = split_expiry(stored);
            (at > now()).then_some((value, Some(at)))
        }
    }
}

/// Like [`shown`], but the value shares the stored slice.
pub(crate) fn shown_slice(kind: Kind, stored: Slice, now: impl FnOnce() -> Millis) -> Option<(Slice, Option<Millis>)> {
    let (_, at) = shown(kind, &stored, now)?;
    Some(if at.is_some() { (stored.split_at(EXPIRY_LEN).1, at) } else { (stored, None) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_there_until_its_instant_and_not_from_then_on() {
        // Catches a key that is present at its instant or absent before it, a value that still includes its instant, and one that is truncated.
        let stored = [&7u64.to_le_bytes()[..], b"a value that is not held in place"].concat();
        let value = &stored[EXPIRY_LEN..];
        for (now, expected) in [(0, Some((value, Some(7)))), (6, Some((value, Some(7)))), (7, None), (8, None)] {
            assert_eq!(shown(Kind::Expiring, &stored, || now), expected, "at {now}");
            let slice = shown_slice(Kind::Expiring, Slice::from(&*stored), || now);
            assert_eq!(slice.as_ref().map(|(value, at)| (&**value, *at)), expected, "at {now}");
        }
        assert_eq!(shown(Kind::Value, &stored, || panic!("a plain value needs no clock")), Some((&stored[..], None)));
        assert_eq!(shown_slice(Kind::Tombstone, Slice::default(), || panic!("nor does a tombstone")), None);
        let empty = shown_slice(Kind::Expiring, Slice::from(&9u64.to_le_bytes()[..]), || 8);
        assert_eq!(empty, Some((Slice::default(), Some(9))));
    }

    #[test]
    fn instants_are_whole_milliseconds_since_1970_whatever_the_time() {
        // Catches a panic or an overflow at either end, and an instant that changes when it is read back.
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_999_999);
        assert_eq!((millis(time), millis(system_time(1_700_000_000_123))), (1_700_000_000_123, 1_700_000_000_123));
        assert_eq!(millis(SystemTime::UNIX_EPOCH - Duration::from_secs(9)), 0);
        assert!(system_time(Millis::MAX) >= system_time(Millis::from(u32::MAX) * 1000));
    }
}
