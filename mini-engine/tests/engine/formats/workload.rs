//! Writes that give the files every feature that the page describes.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use mini_engine::{Db, Durability, WriteBatch};
use proof::noise;

use crate::formats::database::{Files, Map};

/// Keys that share prefixes, are prefixes of others, or are empty, binary or long.
fn key(n: u64) -> Vec<u8> {
    match n % 7 {
        0 => format!("user/{:03}", n % 60).into_bytes(),
        1 => format!("user/{:03}/name", n % 60).into_bytes(),
        2 => (n % 90).to_be_bytes().to_vec(),
        3 => [&[b'k'; 300][..], &(n % 40).to_le_bytes()].concat(),
        4 if n.is_multiple_of(5) => Vec::new(),
        _ => format!("path/{}/{}", n % 4, n % 50).into_bytes(),
    }
}

/// Empty values, text, noise, and some longer than a block.
fn value(n: u64) -> Vec<u8> {
    match n % 9 {
        0 => Vec::new(),
        1..=4 => format!("the text of {n}, ").repeat(1 + n as usize % 12).into_bytes(),
        5 => noise(1500, n),
        6 => format!("long text of {n}, ").repeat(80).into_bytes(),
        _ => noise(40, n),
    }
}

/// The `n`th batch: up to 12 operations, a third of them removals, some of these of ranges; some entries expire, or have expired.
pub(crate) fn batch(n: u64, map: &mut Map) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for i in 0..1 + n % 12 {
        let draw = (n * 31 + i * 17).wrapping_mul(2_654_435_761) >> 7;
        let key = key(draw);
        if draw.is_multiple_of(31) {
            let end = [&key[..], b"5"].concat();
            batch.remove_range(key.clone()..end.clone()).unwrap();
            map.retain(|held, _| *held < key || *held >= end);
        } else if draw.is_multiple_of(37) {
            batch.remove_range([u8::MAX - 1]..).unwrap();
        } else if draw.is_multiple_of(3) {
            batch.remove(&key).unwrap();
            map.remove(&key);
        } else if draw.is_multiple_of(11) {
            // The entry expires in a century, or has expired long ago.
            let (value, is_there) = (value(draw + n), !draw.is_multiple_of(4));
            let seconds = if is_there { 4_800_000_000 + draw % 1000 } else { 1_000_000_000 };
            batch.insert_with_expiry(&key, &value, SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
            if is_there {
                map.insert(key, value)
            } else {
                map.remove(&key)
            };
        } else {
            let value = value(draw + n);
            batch.insert(&key, &value).unwrap();
            map.insert(key, value);
        }
    }
    batch
}

/// Writes the batches `from` to `to - 1`, every fifth one synced.
pub(crate) fn write(db: &Db, from: u64, to: u64, map: &mut Map) {
    for n in from..to {
        let durability = if n % 5 == 4 { Durability::Synced } else { Durability::Buffered };
        db.write(batch(n, map), durability).unwrap();
    }
}

/// The files of a directory.
pub(crate) fn files(dir: &Path) -> Files {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}
