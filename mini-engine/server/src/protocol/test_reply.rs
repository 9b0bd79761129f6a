use proptest::prelude::*;
use redis_protocol::resp2::decode::decode as decode2;
use redis_protocol::resp2::types::OwnedFrame as Frame2;
use redis_protocol::resp3::decode::complete::decode as decode3;
use redis_protocol::resp3::types::{OwnedFrame as Frame3, VerbatimStringFormat};

use super::*;

/// The value that the library's decoder should return for this reply in version 2.
fn frame2(reply: &Reply) -> Frame2 {
    match reply {
        Reply::Simple(text) => Frame2::SimpleString(text.as_bytes().to_vec()),
        Reply::Integer(n) => Frame2::Integer(*n),
        Reply::Bulk(bytes) => Frame2::BulkString(bytes.to_vec()),
        Reply::Text(text) => Frame2::BulkString(text.clone().into_bytes()),
        Reply::Error(text) => Frame2::Error(text.clone()),
        Reply::Null | Reply::NullArray => Frame2::Null,
        Reply::Array(parts) => Frame2::Array(parts.iter().map(frame2).collect()),
        Reply::Map(pairs) => {
            Frame2::Array(pairs.iter().flat_map(|(key, value)| [frame2(key), frame2(value)]).collect())
        }
        Reply::Nothing => unreachable!("it has no bytes"),
    }
}

/// The value that the library's decoder should return for this reply in version 3.
fn frame3(reply: &Reply) -> Frame3 {
    let attributes = None;
    match reply {
        Reply::Simple(text) => Frame3::SimpleString { data: text.as_bytes().to_vec(), attributes },
        Reply::Integer(n) => Frame3::Number { data: *n, attributes },
        Reply::Bulk(bytes) => Frame3::BlobString { data: bytes.to_vec(), attributes },
        Reply::Text(text) => {
            let (data, format) = (text.clone().into_bytes(), VerbatimStringFormat::Text);
            Frame3::VerbatimString { data, format, attributes }
        }
        Reply::Error(text) => Frame3::SimpleError { data: text.clone(), attributes },
        Reply::Null | Reply::NullArray => Frame3::Null,
        Reply::Array(parts) => Frame3::Array { data: parts.iter().map(frame3).collect(), attributes },
        Reply::Map(pairs) => {
            let data = pairs.iter().map(|(key, value)| (frame3(key), frame3(value))).collect();
            Frame3::Map { data, attributes }
        }
        Reply::Nothing => unreachable!("it has no bytes"),
    }
}

/// Checks that the library decodes `reply` in both versions, and that the reply ends where the bytes end.
#[track_caller]
fn check(reply: &Reply) {
    let encoded = |version| {
        let (mut output, mut bytes) = (Output::default(), Vec::new());
        reply.encode(version, &mut output);
        assert_eq!(output.len(), {
            output.copy_into(&mut bytes);
            bytes.len()
        });
        bytes
    };
    let bytes = encoded(Version::Resp2);
    let found = decode2(&bytes).unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()));
    assert_eq!(found, Some((frame2(reply), bytes.len())), "{}", bytes.escape_ascii());
    let bytes = encoded(Version::Resp3);
    let found = decode3(&bytes).unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()));
    assert_eq!(found, Some((frame3(reply), bytes.len())), "{}", bytes.escape_ascii());
}

#[test]
fn numbers_and_lengths_beside_the_powers_of_ten_have_their_digits_and_nothing_else() {
    // Catches digits that are counted by a logarithm, which rounds: a zero byte after the reply, or a missing digit.
    for power in 0..=18 {
        for below in [-1, 0, 1, 2, 3, 20, 21, 22, 406, 407, 408, 4159, 4160, 4161] {
            let n = 10i64.pow(power) - below;
            check(&Reply::Array(vec![Reply::Integer(n), Reply::Integer(-n)]));
        }
    }
    check(&Reply::Map(vec![(Reply::Integer(i64::MIN), Reply::Integer(i64::MAX))]));
    for len in [0, 9, 10, 99, 100, 995, 996, 999, 1000, 9999, 10_000, 32_767, 32_768, 99_999, 100_000] {
        check(&Reply::Bulk(vec![b'v'; len].into()));
        check(&Reply::Text("t".repeat(len)));
        check(&Reply::Array(vec![Reply::Null; len]));
        check(&Reply::Map((0..len).map(|n| (Reply::Integer(n as i64), Reply::NullArray)).collect()));
    }
}

fn replies() -> impl Strategy<Value = Reply> {
    let leaf = prop_oneof![
        Just(Reply::OK),
        Just(Reply::Null),
        Just(Reply::NullArray),
        (any::<i64>(), 0..63u32).prop_map(|(n, shift)| Reply::Integer(n >> shift)),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Reply::Bulk(bytes.into())),
        "\\PC{0,30}".prop_map(Reply::Text),
        "[A-Z]{1,8} \\PC{0,30}".prop_map(Reply::Error),
    ];
    leaf.prop_recursive(3, 40, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Reply::Array),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..12)
                .prop_map(|map| Reply::Map(map.into_iter().map(|(key, value)| (Reply::text(key), value)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_reply_is_read_by_another_decoder_to_its_last_byte(reply in replies()) {
        // Catches a length or a type that is wrong in one version, and extra bytes after a reply.
        check(&reply);
    }
}
