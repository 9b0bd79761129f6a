//! Keys that sort like the values they encode: text, signed numbers, and times with the newest first. `cargo run -p fastskip --example key_encoding`

use fastskip::{InsertError, Memtable};

/// A measurement of a sensor.
#[derive(Debug, PartialEq)]
struct Reading {
    place: String,
    /// Seconds since 1970; negative before.
    time: i64,
    celsius: f64,
}

/// Appends a field of any length: a zero byte becomes `00 ff`, and `00 01` ends the field. The end sorts before every byte that could continue the
/// field.
fn push_text(key: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(0xff);
        }
    }
    key.extend([0, 1]);
}

fn pop_text(key: &mut &[u8]) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let [byte, rest @ ..] = *key else { return None };
        *key = rest;
        if *byte == 0 {
            let [escape, rest @ ..] = *key else { return None };
            *key = rest;
            if *escape == 1 {
                return String::from_utf8(text).ok();
            }
        }
        text.push(*byte);
    }
}

/// Flips the sign bit, so that negative numbers come first; then flips all bits, so that the newest time comes first.
fn newest_first(time: i64) -> [u8; 8] {
    (!(time ^ i64::MIN)).to_be_bytes()
}

fn key_of(reading: &Reading) -> Vec<u8> {
    let mut key = Vec::new();
    push_text(&mut key, &reading.place);
    key.extend(newest_first(reading.time));
    key
}

fn decode(mut key: &[u8], value: &[u8]) -> Option<Reading> {
    let place = pop_text(&mut key)?;
    let time = !i64::from_be_bytes(key.try_into().ok()?) ^ i64::MIN;
    Some(Reading { place, time, celsius: f64::from_le_bytes(value.try_into().ok()?) })
}

fn main() -> Result<(), InsertError> {
    let table = Memtable::new();
    let readings =
        [("roof", 100, 21.5), ("roof", -5, -3.0), ("roof\0east", 7, 19.0), ("roof", 200, 22.0), ("cellar", 50, 9.5)];
    for (seqno, (place, time, celsius)) in (1..).zip(readings) {
        let reading = Reading { place: place.into(), time, celsius };
        table.put(&key_of(&reading), seqno, &reading.celsius.to_le_bytes())?;
    }

    // All readings of one place, the newest first. "roof\0east" is another place, so its readings are not among them.
    let mut roof = Vec::new();
    push_text(&mut roof, "roof");
    let found: Vec<Reading> = table.prefix(&roof, 5).filter_map(|version| decode(version.key, version.value)).collect();
    println!("{found:#?}");
    assert_eq!(found.iter().map(|reading| reading.time).collect::<Vec<_>>(), [200, 100, -5]);
    assert!(found.iter().all(|reading| reading.place == "roof"));
    Ok(())
}
