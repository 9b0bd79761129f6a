//! Values on disk: postcard encodings of openraft's types.
//!
//! Postcard is compact, and its format is specified and stable. It stores no field names, so the stored bytes change with the types. A test below
//! compares them with fixed bytes, and so shows whether another version of openraft can still read old databases.

use std::fmt::Display;
use std::io::{Error, ErrorKind, Result};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes of a value.
///
/// # Errors
/// The errors of the value's own implementation of `Serialize`.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|error| Error::new(ErrorKind::InvalidInput, format!("cannot encode: {error}")))
}

/// The value of these bytes. `what` is their name in the error.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if they are not exactly one value. The engine has verified their checksum, so another version of openraft, or another
/// type of requests, has written them.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], what: impl Display) -> Result<T> {
    let invalid = |found: String| Error::new(ErrorKind::InvalidData, format!("cannot decode {what}: {found}"));
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(invalid(format!("expected {} bytes, found {}", bytes.len() - rest.len(), bytes.len()))),
        Err(error) => Err(invalid(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use openraft::impls::leader_id_adv::LeaderId;
    use openraft::{BasicNode, Entry, EntryPayload, LogId, Membership, StoredMembership, Vote};

    use super::*;

    type Id = LeaderId<u64, u64>;

    fn id(index: u64) -> LogId<Id> {
        LogId::new(LeaderId { term: 3, node_id: 1 }, index)
    }

    #[test]
    fn the_stored_bytes_are_those_of_earlier_versions() {
        // Catches a version of openraft, or of the encoding, that can no longer read stored values.
        type AnEntry = Entry<Id, EntryPayload<String, u64, BasicNode>>;
        let request = AnEntry { log_id: id(300), payload: EntryPayload::Normal("x".into()) };
        let stored = encode(&request).unwrap();
        assert_eq!(stored, [3, 1, 0xac, 2, 1, 1, b'x']);
        assert_eq!(decode::<AnEntry>(&stored, "it").unwrap(), request);
        assert_eq!(
            encode(&Vote::<Id> { leader_id: LeaderId { term: 3, node_id: 1 }, committed: true }).unwrap(),
            [3, 1, 1]
        );
        let nodes = BTreeMap::from([(1u64, BasicNode::new("a:1"))]);
        let membership = Membership::new(vec![[1].into()], nodes).unwrap();
        let stored = encode(&StoredMembership::new(Some(id(2)), membership)).unwrap();
        assert_eq!(stored, [1, 3, 1, 2, 1, 1, 1, 1, 1, 3, b'a', b':', b'1']);
    }

    #[test]
    fn bytes_that_are_not_one_value_are_refused() {
        // Catches a value that is decoded from only a part of the bytes, and a panic on bytes of another type.
        for bytes in [&[3, 1][..], &[3, 1, 1, 0], &[3, 1, 7], &[]] {
            let error = decode::<Vote<Id>>(bytes, "the vote of group 0").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{bytes:?}");
            assert!(error.to_string().contains("the vote of group 0"), "{error}");
        }
    }
}
