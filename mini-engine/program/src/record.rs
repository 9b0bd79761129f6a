//! One record per line: `scan` prints the form that `import` reads.
//!
//! * Tab: key, TAB, value. The first TAB separates, so this form loses a key that contains a TAB, and a key or value that contains a newline.
//! * Hex: the same, with key and value in hexadecimal digits; every byte survives.
//! * JSON: `{"key":"..","value":".."}`. JSON strings are text, so bytes that are not UTF-8 are written as hexadecimal digits under `key_hex` or
//!   `value_hex`; every byte survives. A record that expires has its time, in milliseconds since 1970, under `expires_at`; the other forms lose it.
//!   `export` adds the name of the record's keyspace under `keyspace`.
//!   `dump --json` adds the sequence number and prints removals; `import` refuses these lines, since it would store old versions as new ones.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::str;
use std::time::SystemTime;

use mini_engine::dump::Entry;
use mini_engine::{MAX_KEY_LEN, MAX_KEYSPACE_NAME_LEN, MAX_VALUE_LEN};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::{bytes, expiry, keyspace};

/// The format of a record in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Tab,
    Hex,
    Json,
    /// JSON with every field in hexadecimal digits; read like `Json`.
    JsonHex,
}

impl Format {
    pub(crate) fn new(json: bool, hex: bool) -> Self {
        match (json, hex) {
            (false, false) => Self::Tab,
            (false, true) => Self::Hex,
            (true, false) => Self::Json,
            (true, true) => Self::JsonHex,
        }
    }

    /// The maximum length of a valid line, without its newline.
    ///
    /// A longer tab-separated line must have a key or a value beyond its limit. JSON may need six bytes for a byte, but such a
    /// record has a shorter hexadecimal form.
    pub(crate) fn longest_line(self) -> usize {
        const RECORD: usize = MAX_KEY_LEN + MAX_VALUE_LEN;
        const JSON_FRAME: usize = 1024 + 6 * MAX_KEYSPACE_NAME_LEN;
        match self {
            Self::Tab => RECORD + 1,
            Self::Hex => 2 * RECORD + 1,
            Self::Json | Self::JsonHex => 2 * RECORD + JSON_FRAME,
        }
    }
}

/// The record of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// The keyspace, if the line names one.
    pub(crate) keyspace: Option<String>,
    pub(crate) key: Cow<'a, [u8]>,
    pub(crate) value: Cow<'a, [u8]>,
    /// The time from which on the key is absent.
    pub(crate) expiry: Option<SystemTime>,
}

/// Reads a line without its newline. The error describes the fault.
pub(crate) fn parse(line: &[u8], format: Format) -> Result<Record<'_>, String> {
    if matches!(format, Format::Json | Format::JsonHex) {
        return parse_json(line);
    }
    let Some(tab) = line.iter().position(|&byte| byte == b'\t') else {
        return Err("expected a tab between key and value, found none".into());
    };
    let (key, value) = (&line[..tab], &line[tab + 1..]);
    if format == Format::Tab {
        return Ok(Record { keyspace: None, key: Cow::Borrowed(key), value: Cow::Borrowed(value), expiry: None });
    }
    let decode = |name, digits| match bytes::decode(digits) {
        Ok(bytes) => Ok(Cow::Owned(bytes)),
        Err(why) => Err(format!("{name} is not hexadecimal: {why}")),
    };
    Ok(Record { keyspace: None, key: decode("key", key)?, value: decode("value", value)?, expiry: None })
}

/// The members of a JSON object in their order, including repeated names.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

fn parse_json(line: &[u8]) -> Result<Record<'static>, String> {
    let Members(members) = serde_json::from_slice(line).map_err(|error| match error.is_data() {
        true => "expected a JSON object, found another value".into(),
        false => format!("not JSON: {error}"),
    })?;
    let (mut keyspace, mut key, mut value, mut expiry) = (None, None, None, None);
    for (name, field) in members {
        let name = name.as_str();
        let twice = || format!("expected one field {name}, found two");
        let (slot, hex) = match name {
            "expires_at" => {
                let millis =
                    field.as_u64().ok_or("expected milliseconds since 1970 as expires_at, found another value")?;
                match expiry.replace(expiry::of_millis(millis)?) {
                    Some(_) => return Err(twice()),
                    None => continue,
                }
            }
            "keyspace" => {
                let name = field.as_str().ok_or("expected a string as keyspace, found another value")?;
                match keyspace.replace(keyspace::parse_name(name)?) {
                    Some(_) => return Err(twice()),
                    None => continue,
                }
            }
            "key" => (&mut key, false),
            "key_hex" => (&mut key, true),
            "value" => (&mut value, false),
            "value_hex" => (&mut value, true),
            _ => return Err(format!("expected the fields key and value, found \"{}\"", name.escape_debug())),
        };
        let Value::String(text) = field else {
            return Err(format!("expected a string as {name}, found another value"));
        };
        let bytes = match hex {
            true => bytes::decode(text.as_bytes()).map_err(|why| format!("{name} is not hexadecimal: {why}"))?,
            false => text.into_bytes(),
        };
        match slot.replace((hex, Cow::Owned(bytes))) {
            None => {}
            Some((earlier, _)) if earlier == hex => return Err(twice()),
            Some(_) => return Err(format!("expected one of text and hexadecimal, found both beside {name}")),
        }
    }
    let (_, value) = value.ok_or("expected a field value, found none")?;
    let (_, key) = key.ok_or("expected a field key, found none")?;
    Ok(Record { keyspace, key, value, expiry })
}

/// Writes an operation of a log, or an entry of a table, as a JSON line.
pub(crate) fn print_entry(out: &mut dyn Write, entry: &Entry<'_>) -> io::Result<()> {
    write!(out, "{{\"seqno\":{},", entry.seqno)?;
    if entry.keyspace > 0 {
        write!(out, "\"keyspace\":{},", entry.keyspace)?;
    }
    print_field(out, Format::Json, "key", entry.key)?;
    if let Some(end) = entry.end {
        out.write_all(b",")?;
        print_field(out, Format::Json, "to", end)?;
    }
    match entry.value {
        Some(value) => {
            out.write_all(b",")?;
            print_field(out, Format::Json, "value", value)?;
            print_expiry(out, entry.expiry)?;
        }
        None => out.write_all(b",\"removed\":true")?,
    }
    out.write_all(if entry.is_behind_damage { b",\"behind_damage\":true}\n" } else { b"}\n" })
}

/// The fields of a record to print, in their order. Only JSON has a keyspace.
#[derive(Default)]
pub(crate) struct Fields<'a> {
    pub(crate) keyspace: Option<&'a str>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    /// The time at which the record expires, if it does.
    pub(crate) expiry: Option<Option<SystemTime>>,
}

/// Writes a record as a line.
pub(crate) fn print(out: &mut dyn Write, format: Format, fields: &Fields<'_>) -> io::Result<()> {
    let is_json = matches!(format, Format::Json | Format::JsonHex);
    let (mut before, between) = if is_json { ("{", ",") } else { ("", "\t") };
    for (name, bytes) in
        [("keyspace", fields.keyspace.map(str::as_bytes)), ("key", fields.key), ("value", fields.value)]
    {
        if let Some(bytes) = bytes {
            out.write_all(std::mem::replace(&mut before, between).as_bytes())?;
            print_field(out, format, name, bytes)?;
        }
    }
    match fields.expiry {
        Some(at) if is_json => print_expiry(out, at)?,
        Some(Some(at)) => write!(out, "\t{}", expiry::as_millis(at))?,
        Some(None) => out.write_all(b"\t-")?,
        None => {}
    }
    out.write_all(if is_json { b"}\n" } else { b"\n" })
}

fn print_expiry(out: &mut dyn Write, expiry: Option<SystemTime>) -> io::Result<()> {
    expiry.map_or(Ok(()), |at| write!(out, ",\"expires_at\":{}", expiry::as_millis(at)))
}

fn print_field(out: &mut dyn Write, format: Format, name: &str, bytes: &[u8]) -> io::Result<()> {
    match (format, str::from_utf8(bytes)) {
        (Format::Tab, _) => return out.write_all(bytes),
        (Format::Hex, _) => return bytes::encode(out, bytes),
        (Format::Json, Ok(text)) => {
            write!(out, "\"{name}\":")?;
            return Ok(serde_json::to_writer(out, text)?);
        }
        _ => {}
    }
    write!(out, "\"{name}_hex\":\"")?;
    bytes::encode(out, bytes)?;
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(format: Format, fields: &Fields<'_>) -> String {
        let mut line = Vec::new();
        print(&mut line, format, fields).unwrap();
        String::from_utf8(line).unwrap()
    }

    fn line_of_entry(entry: &Entry<'_>) -> String {
        let mut line = Vec::new();
        print_entry(&mut line, entry).unwrap();
        String::from_utf8(line).unwrap()
    }

    fn entry(value: Option<&[u8]>) -> Entry<'_> {
        Entry { seqno: 7, keyspace: 0, key: b"k", end: None, value, expiry: None, is_behind_damage: false }
    }

    #[test]
    fn what_dump_prints_import_refuses() {
        // Catches a removal that is printed like an empty value, and old versions of a log that are imported as new ones.
        let ranges = [(&b"m"[..], r#""to":"m""#), (b"m\xff", r#""to_hex":"6dff""#), (b"", r#""to":"""#)];
        let removals =
            ranges.map(|(end, to)| (Entry { end: Some(end), ..entry(None) }, format!("{to},\"removed\":true")));
        let keys = [(entry(Some(b"v")), r#""value":"v""#.to_owned()), (entry(None), r#""removed":true"#.to_owned())];
        for (entry, printed) in keys.into_iter().chain(removals) {
            let line = line_of_entry(&Entry { is_behind_damage: true, ..entry });
            assert_eq!(line, format!("{{\"seqno\":7,\"key\":\"k\",{printed},\"behind_damage\":true}}\n"));
            let refused = parse(line.trim_end().as_bytes(), Format::Json).unwrap_err();
            assert!(refused.starts_with("expected the fields key and value, found"), "{refused}");
        }
    }

    #[test]
    fn json_prefers_text_and_says_which_field_is_hexadecimal() {
        // Catches lossy replacement characters, and hexadecimal output that is not marked as such.
        for (format, value, expected) in [
            (Format::Json, &b"\xff"[..], r#"{"key":"k","value_hex":"ff"}"#),
            (Format::JsonHex, b"v", r#"{"key_hex":"6b","value_hex":"76"}"#),
        ] {
            let fields = Fields { key: Some(b"k"), value: Some(value), ..Fields::default() };
            assert_eq!(line_of(format, &fields), format!("{expected}\n"));
        }
    }

    #[test]
    fn json_carries_the_time_at_which_a_record_expires() {
        // Catches a lost expiry, and a time in another unit.
        let line = r#"{"key":"k","value":"v","expires_at":1500}"#;
        let record = parse(line.as_bytes(), Format::Json).unwrap();
        assert_eq!(record.expiry, Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1500)));
        let (key, value, expiry) = (Some(&*record.key), Some(&*record.value), Some(record.expiry));
        assert_eq!(line_of(Format::Json, &Fields { key, value, expiry, ..Fields::default() }), format!("{line}\n"));
        let dumped = line_of_entry(&Entry { expiry: record.expiry, ..entry(Some(b"v")) });
        assert_eq!(dumped, "{\"seqno\":7,\"key\":\"k\",\"value\":\"v\",\"expires_at\":1500}\n");
    }

    #[test]
    fn lines_that_are_no_record_are_refused_with_a_reason() {
        // Catches a malformed line that is accepted as a record, with a guessed key or value, or with the last of two.
        let refuses = |line: &str, format, reason: &str| {
            assert_eq!(parse(line.as_bytes(), format).unwrap_err(), reason, "{line}");
        };
        for (line, format) in [("no separator", Format::Tab), ("", Format::Tab), ("6b 76", Format::Hex)] {
            refuses(line, format, "expected a tab between key and value, found none");
        }
        refuses("6\t76", Format::Hex, "key is not hexadecimal: expected an even number of digits, found 1");
        refuses("6b\tzz", Format::Hex, "value is not hexadecimal: expected a digit at column 1, found 'z'");
        for (line, expected) in [
            ("[]", "a JSON object, found another value"),
            (r#""key""#, "a JSON object, found another value"),
            (r#"{"key":"k"}"#, "a field value, found none"),
            (r#"{"value":"v"}"#, "a field key, found none"),
            (r#"{"key":"k","value":1}"#, "a string as value, found another value"),
            (r#"{"key":null,"value":"v"}"#, "a string as key, found another value"),
            (r#"{"key":["k"],"value":"v"}"#, "a string as key, found another value"),
            (r#"{"key":"k","key":"l","value":"v"}"#, "one field key, found two"),
            (r#"{"key":"k","value":"v","value":"v"}"#, "one field value, found two"),
            (r#"{"key_hex":"6b","value":"v","k\u0065y_hex":"6c"}"#, "one field key_hex, found two"),
            (r#"{"keyspace":"a","key":"k","keyspace":"b","value":"v"}"#, "one field keyspace, found two"),
            (r#"{"key":"k","expires_at":1,"value":"v","expires_at":2}"#, "one field expires_at, found two"),
            (r#"{"key":"k","ttl":"1"}"#, "the fields key and value, found \"ttl\""),
            (r#"{"key":"k","key_hex":"6b","value":""}"#, "one of text and hexadecimal, found both beside key_hex"),
        ] {
            refuses(line, Format::Json, &format!("expected {expected}"));
        }
        for time in [r#""tomorrow""#, "1.5"] {
            let line = format!(r#"{{"key":"k","value":"v","expires_at":{time}}}"#);
            refuses(&line, Format::Json, "expected milliseconds since 1970 as expires_at, found another value");
        }
        for text in ["{\"key\"", r#"{"key":"k","value":"v"}{}"#, r#"{"key":"\ud800","value":"v"}"#] {
            assert!(parse(text.as_bytes(), Format::Json).unwrap_err().starts_with("not JSON: "), "{text}");
        }
    }
}
