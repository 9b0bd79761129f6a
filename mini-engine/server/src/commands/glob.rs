//! Patterns of SCAN's MATCH, with the same meaning as in Redis: `*`, `?`, `[abc]`, `[^a-z]`, and `\` before a character that is meant literally.
//!
//! A match takes at most (length of the pattern) * (length of the key) steps: only the last star that was passed is tried at other places.

/// The longest pattern.
pub(crate) const LONGEST_PATTERN: usize = 1024;

/// The bytes with which every matching key begins.
pub(crate) fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    while let Some((&byte, behind)) = rest.split_first() {
        match (byte, behind.split_first()) {
            (b'*' | b'?' | b'[', _) => break,
            (b'\\', Some((&escaped, behind))) => {
                prefix.push(escaped);
                rest = behind;
            }
            _ => {
                prefix.push(byte);
                rest = behind;
            }
        }
    }
    prefix
}

pub(crate) fn matches(pattern: &[u8], key: &[u8]) -> bool {
    let (mut pattern, mut key) = (pattern, key);
    // The pattern after the last star, and the place where it was tried last.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some((b'*', behind)) = pattern.split_first() {
            pattern = behind;
            retry = Some((pattern, key));
            continue;
        }
        let stepped = match key.split_first() {
            None if pattern.is_empty() => return true,
            None => return false,
            Some((&byte, rest)) => one(pattern, byte).map(|behind| (behind, rest)),
        };
        (pattern, key) = match (stepped, retry) {
            (Some(next), _) => next,
            (None, None) => return false,
            (None, Some((behind, tried))) => {
                let Some((_, tried)) = tried.split_first() else { return false };
                retry = Some((behind, tried));
                (behind, tried)
            }
        };
    }
}

/// Matches one byte. Returns the pattern after the matching part.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (&first, behind) = pattern.split_first()?;
    match first {
        b'?' => Some(behind),
        b'[' => {
            let (is_in, behind) = class(behind, byte);
            is_in.then_some(behind)
        }
        b'\\' if !behind.is_empty() => (behind[0] == byte).then(|| &behind[1..]),
        _ => (first == byte).then_some(behind),
    }
}

/// Whether `byte` is in the class whose inside begins `pattern`, and the pattern after the class. A class without an end goes to the end of the
/// pattern.
fn class(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let is_negated = pattern.first() == Some(&b'^');
    let mut rest = if is_negated { &pattern[1..] } else { pattern };
    let mut is_in = false;
    loop {
        rest = match rest {
            [] => break,
            [b']', behind @ ..] => {
                rest = behind;
                break;
            }
            [b'\\', escaped, behind @ ..] => {
                is_in |= *escaped == byte;
                behind
            }
            [low, b'-', high, behind @ ..] => {
                is_in |= (*low.min(high)..=*low.max(high)).contains(&byte);
                behind
            }
            [one, behind @ ..] => {
                is_in |= *one == byte;
                behind
            }
        };
    }
    (is_in != is_negated, rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_redis() {
        // Catches a different meaning of each construct. Each row was tried with `redis-cli keys`.
        let yes = r"= *= *=a h?llo=hello h*llo=hllo h*llo=heeello h[ae]llo=hallo h[^e]llo=hallo h[a-b]llo=hbllo
            h[b-a]llo=hallo h\*llo=h*llo [\]]=] a*b*c=axxbxxbyc *a=aaa **=x [abc=b \\=\ \=\";
        let no =
            r"=a ?= h?llo=hllo h[ae]llo=hillo h[^e]llo=hello h\*llo=hxllo a*b*c=axxcxxb *a=ab a=ab ab=a []=] [^a]=a";
        for (rows, expected) in [(yes, true), (no, false)] {
            for row in rows.split_whitespace() {
                let (pattern, key) = row.split_once('=').expect("a pattern and a key");
                assert_eq!(matches(pattern.as_bytes(), key.as_bytes()), expected, "{row}");
            }
        }
    }

    proptest! {
        #[test]
        fn keys_that_match_begin_with_the_literal_prefix(pattern in "[ab*?\\[\\]^\\\\-]{0,8}", key in "[ab*\\[\\]\\\\-]{0,8}") {
            // Catches a scan that leaves out keys because it treats a special character as a literal.
            if matches(pattern.as_bytes(), key.as_bytes()) {
                prop_assert!(key.as_bytes().starts_with(&literal_prefix(pattern.as_bytes())));
            }
        }
    }
}
