use proptest::prelude::*;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;

use super::*;

const WIDE: RequestLimits = RequestLimits { bytes: 1 << 20, parts: 1000 };

/// The parts of a request, and its length.
type Found = (Vec<Vec<u8>>, usize);

/// The first request of `input`, or the reason why there is none.
fn find(input: &[u8], limits: RequestLimits) -> Result<Option<Found>, Malformed> {
    let mut parser = Parser::default();
    let len = parser.find(input, limits)?;
    Ok(len.map(|len| (parser.args(input).from(0).map(<[u8]>::to_vec).collect(), len)))
}

fn request(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        bytes.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        bytes.extend_from_slice(part);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn what_is_no_request_is_refused_and_what_may_become_one_is_waited_for() {
    // Catches a parser that waits for ever for impossible bytes, accepts part of a request, or trusts an announced length.
    // Between requests there is a bar, and a blank is a line end.
    let refused = "*1 +OK |*1 :1 |*x |*1x |*+1 |*01 |*1001 |*9223372036854775808 |*1 $-1 |*1 $1048577 |*1 $99999999999999999999 |*1 $1 abc|*1 *1 |\
        *11111111111111111111111111111111111111|*1 $ ";
    let refused = refused.split('|').map(|bytes| bytes.replace(' ', "\r\n"));
    for bytes in refused.chain(["set \"a b\n".to_owned()]) {
        let Err(malformed) = find(bytes.as_bytes(), WIDE) else { panic!("{bytes:?} was not refused") };
        assert!(malformed.to_string().starts_with("Protocol error: "), "{malformed}");
    }
    let long_line = vec![b'a'; LONGEST_LINE + 1];
    assert!(find(&long_line, WIDE).is_err() && find(&long_line[..LONGEST_LINE], WIDE) == Ok(None));
    for bytes in
        ["", "*", "*1", "*1\r", "*1\r\n", "*1\r\n$", "*1\r\n$1\r\na", "*1\r\n$1\r\na\r", "get a", "*2\r\n$1\r\na\r\n"]
    {
        assert_eq!(find(bytes.as_bytes(), WIDE), Ok(None), "{bytes:?}");
    }
}

#[test]
fn a_request_may_be_words_or_nothing_at_all() {
    // Catches a line with wrong words or a wrong length.
    let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let cases: [(&str, &[&str], usize); 6] = [
        ("get a\r\nget b\r\n", &["get", "a"], 7),
        ("  set  'a b' \"\"\n", &["set", "a b", ""], 16),
        ("\r\n", &[], 2),
        ("\n", &[], 1),
        ("*0\r\nget a\r\n", &[], 4),
        ("*-1\r\n", &[], 5),
    ];
    for (input, parts, len) in cases {
        assert_eq!(find(input.as_bytes(), WIDE), Ok(Some((words(parts), len))), "{input:?}");
    }
}

#[test]
fn words_may_have_quotes_and_escapes_as_in_redis() {
    // Catches escapes that are not replaced, quotes within a word that are read as characters, and a word that continues after its closing quote. The
    // expected values come from Redis: the text that it echoes, or `None` if it refuses the line.
    let words: [(&[u8], Option<&[u8]>); 29] = [
        (br#""a\nb\x41""#, Some(b"a\nbA")),
        (br#""\x4G\x4\q\\\"\t\r\b\a""#, Some(b"x4Gx4q\\\"\t\r\x08\x07")),
        (br#""\xfF\x00""#, Some(b"\xff\0")),
        (br#""\\x41""#, Some(br"\x41")),
        (br#""\X41""#, Some(b"X41")),
        (br"'\x41'", Some(br"\x41")),
        (br"'a\'b'", Some(b"a'b")),
        (br"a\nb", Some(br"a\nb")),
        (br#"a"b""#, Some(b"ab")),
        (b"a'b c'", Some(b"ab c")),
        (br#""it's""#, Some(b"it's")),
        (br#"'say "hi"'"#, Some(br#"say "hi""#)),
        (br#""""#, Some(b"")),
        (b"''", Some(b"")),
        (b"\"a\"\t", Some(b"a")),
        (b"\"a\"\x0b", Some(b"a")),
        (b"\x0b\x0ca", Some(b"a")),
        (b"a\x0bb", Some(b"a\x0bb")),
        (b"a\x0cb", Some(b"a\x0cb")),
        (br#""x"NX"#, None),
        (br#"a"b"c"#, None),
        (br#""a"'b'"#, None),
        (br#""a"#, None),
        (br#""a\""#, None),
        (br#""a\"#, None),
        (br#"a""#, None),
        (b"'a", None),
        (br"'a\", None),
        (br"'a\'", None),
    ];
    for (word, expected) in words {
        let line = [b"echo ", word, b"\r\n"].concat();
        let found = find(&line, WIDE).map(|found| found.map(|(words, len)| (words[1..].to_vec(), len)));
        let unbalanced = || Malformed("unbalanced quotes in request".into());
        let expected = expected.map(|word| Some((vec![word.to_vec()], line.len()))).ok_or_else(unbalanced);
        assert_eq!(found, expected, "{}", word.escape_ascii());
    }
    // A line may be parsed again from its beginning.
    let mut parser = Parser::default();
    let sizes = [(); 3].map(|()| parser.find(b"echo \"a\"\r\n", WIDE).map(|_| parser.size()));
    assert!(sizes[0].is_ok() && sizes[1..] == [sizes[0].clone(), sizes[0].clone()], "{sizes:?}");
    let all = find(b" \"e\\x63ho\"  b\"\" 'c' d\n", WIDE).expect("a request").expect("whole").0;
    assert_eq!(all, ["echo", "b", "c", "d"].map(|word| word.as_bytes().to_vec()));
}

#[test]
fn limits_hold_for_what_is_announced() {
    // Catches a limit that is checked only after the bytes have arrived, or that is off by one.
    let limits = RequestLimits { bytes: 20, parts: 2 };
    assert!(find(b"*3\r\n", limits).is_err());
    // The headers of the array and of the string take nine bytes.
    assert_eq!(find(b"*1\r\n$11\r\n", limits), Ok(None));
    assert!(find(b"*1\r\n$12\r\n", limits).is_err());
}

proptest! {
    #[test]
    fn a_request_is_found_however_it_arrives_and_as_the_library_decodes_it(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        behind in prop::collection::vec(any::<u8>(), 0..10),
    ) {
        // Catches a parser that loses its position between reads, or takes bytes of the next request.
        let mut bytes = request(&parts);
        let len = bytes.len();
        bytes.extend_from_slice(&behind);
        let Ok(Some((OwnedFrame::Array(frames), decoded))) = decode(&bytes) else { panic!("the library refused it") };
        prop_assert_eq!(decoded, len);
        let frames: Vec<Vec<u8>> = frames.into_iter().map(|frame| match frame {
            OwnedFrame::BulkString(bytes) => bytes,
            frame => panic!("{frame:?}"),
        }).collect();
        prop_assert_eq!(&frames, &parts);

        let mut parser = Parser::default();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(len)).collect();
        ends.sort_unstable();
        for end in ends {
            prop_assert_eq!(parser.find(&bytes[..end], WIDE), Ok(None));
        }
        prop_assert_eq!(parser.find(&bytes, WIDE), Ok(Some(len)));
        let found: Vec<Vec<u8>> = parser.args(&bytes).from(0).map(<[u8]>::to_vec).collect();
        prop_assert_eq!(found, parts);
        parser.next();
        prop_assert_eq!(parser.find(b"*0\r\n", WIDE), Ok(Some(4)));
    }

    #[test]
    fn any_bytes_are_a_request_or_refused_or_waited_for(bytes in "[*$0-9a\\r\\n -]{0,60}") {
        // Catches a panic, and a request that is longer than the input.
        if let Ok(Some((parts, len))) = find(bytes.as_bytes(), WIDE) {
            prop_assert!(len <= bytes.len() && parts.iter().map(Vec::len).sum::<usize>() < len);
        }
    }

    #[test]
    fn numbers_are_those_that_are_written_as_they_would_be_printed(text in "[-+0-9 ]{0,20}", n in any::<i64>()) {
        // Catches signs, spaces and zeros that Redis refuses, but that are accepted here.
        let parsed = parse_number(text.as_bytes());
        prop_assert_eq!(parsed, text.parse().ok().filter(|n: &i64| n.to_string() == text));
        prop_assert_eq!(parse_number(n.to_string().as_bytes()), Some(n));
    }
}
