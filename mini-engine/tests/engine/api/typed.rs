//! Keys and values of Rust types.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::support::*;

type Key = (i64, String, Vec<u8>, u16, Option<u8>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Before {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct After {
    #[serde(default)]
    added: u32,
    name: String,
}

fn key(random: &mut Random) -> Key {
    let text: String = (0..random.below(3)).map(|_| ['\0', '\u{1}', 'a', 'é'][random.below(4) as usize]).collect();
    let bytes = (0..random.below(3)).map(|_| [0, 1, 255][random.below(3) as usize]).collect();
    let number = [i64::MIN, -1, 0, 256, i64::MAX][random.below(5) as usize];
    let small = [0, 1, 255, 256, 511][random.below(5) as usize];
    (number, text, bytes, small, (!random.one_in(3)).then(|| random.below(3) as u8))
}

#[test]
fn typed_keys_sort_as_their_types_and_prefixes_end_at_fields() {
    // Catches an encoding whose order is not that of the type: signs, zero bytes, fields that are prefixes of each other; a prefix of a tuple that
    // also finds longer fields; and an adapter that reads another moment or writes to another place.
    let (_dir, db) = fresh();
    let (typed, mut model) = (db.keyspace("typed").unwrap().typed::<Key, u64>(), BTreeMap::new());
    let mut random = Random(51);
    for number in 0..500 {
        let key = key(&mut random);
        if random.one_in(4) {
            typed.remove(&key).unwrap();
            model.remove(&key);
        } else {
            typed.insert(&key, &number).unwrap();
            model.insert(key, number);
        }
    }
    let all =
        |found: &mut dyn Iterator<Item = Result<(Key, u64), Error>>| found.collect::<Result<Vec<_>, _>>().unwrap();
    let sorted = Vec::from_iter(model.clone());
    assert_eq!(all(&mut typed.iter()), sorted);
    assert_eq!((typed.first().unwrap(), typed.last().unwrap()), (sorted.first().cloned(), sorted.last().cloned()));
    for _ in 0..100 {
        let (from, to) = (key(&mut random), key(&mut random));
        assert_eq!(typed.get(&from).unwrap(), model.get(&from).copied());
        let within: Vec<_> = sorted.iter().filter(|(key, _)| (&from..&to).contains(&key)).cloned().collect();
        assert_eq!(all(&mut typed.range(from.clone()..to.clone())), within);
        let (first, second) = (from.0, from.1);
        let begins: Vec<_> = sorted.iter().filter(|(key, _)| (key.0, &key.1) == (first, &second)).cloned().collect();
        assert_eq!(all(&mut typed.prefix(&(first, second)).rev()), begins.into_iter().rev().collect::<Vec<_>>());
    }
    // Removed by the keyspace, by a transaction and by a batch, which also sets and removes a key.
    let copy = db.keyspace("copy").unwrap().typed::<Key, u64>();
    let mut batch = WriteBatch::new();
    sorted.iter().try_for_each(|(key, number)| copy.in_batch(&mut batch).insert(key, number)).unwrap();
    db.write(&batch, Durability::Buffered).unwrap();
    let (bounds, lead) = (&sorted[20].0..&sorted[30].0, (sorted[50].0.0, sorted[50].0.1.clone()));
    copy.remove_range(bounds.start.clone()..bounds.end.clone()).unwrap();
    db.transact(|tx| copy.within(tx).remove_prefix(&lead)).unwrap();
    batch.clear();
    copy.in_batch(&mut batch).remove_range(..=sorted[3].0.clone()).unwrap();
    copy.in_batch(&mut batch).remove(&sorted[5].0).unwrap();
    copy.in_batch(&mut batch).insert(&sorted[0].0, &1).unwrap();
    db.write(&batch, Durability::Buffered).unwrap();
    let mut left = Vec::from_iter(sorted.iter().skip(4).filter(|(key, _)| *key != sorted[5].0).cloned());
    left.retain(|(key, _)| !bounds.contains(&key) && (key.0, &key.1) != (lead.0, &lead.1));
    left.insert(0, (sorted[0].0.clone(), 1));
    assert_eq!(all(&mut copy.iter()), left);
    let snapshot = db.snapshot();
    let popped = db.transact(|tx| {
        let within = typed.within(tx);
        let popped = within.pop_first()?;
        within.insert(&sorted[1].0, &1000)?;
        Ok::<_, Error>((popped, within.first()?))
    });
    let asked = [&sorted[2].0, &(0, "absent".to_owned(), vec![], 0, None), &sorted[1].0];
    assert_eq!(typed.get_many(asked).unwrap(), [Some(sorted[2].1), None, Some(1000)]);
    let (first, second) = (sorted[0].clone(), (sorted[1].0.clone(), 1000));
    assert_eq!(popped.unwrap(), (Some(first.clone()), Some(second.clone())));
    assert_eq!((typed.first().unwrap(), typed.at(&snapshot).first().unwrap()), (Some(second), Some(first)));
}

#[test]
fn times_sort_before_and_after_1970_and_text_is_looked_up_borrowed() {
    // Catches a time before 1970 that is rounded up, a lookup that needs an owned key, and a pop that removes what it cannot return.
    let (_dir, db) = fresh();
    let times = [-1_500_000_000_i64, -1_000_000_000, -1, 0, 1, 1_500_000_000].map(|nanos| {
        let span = Duration::from_nanos(nanos.unsigned_abs());
        if nanos < 0 { SystemTime::UNIX_EPOCH - span } else { SystemTime::UNIX_EPOCH + span }
    });
    let by_time = db.keyspace("times").unwrap().typed::<SystemTime, u8>();
    times.iter().rev().for_each(|time| by_time.insert(time, &0).unwrap());
    assert_eq!(by_time.iter().map(|entry| entry.unwrap().0).collect::<Vec<_>>(), times);
    let keyspace = db.keyspace("words").unwrap();
    let words = keyspace.clone().typed::<String, u64>();
    words.insert("word", &1).unwrap();
    assert_eq!(words.get("word").unwrap(), Some(1));
    keyspace.insert("a", "rubbish").unwrap();
    assert!(db.transact(|tx| words.within(tx).pop_first().map(drop)).is_err());
    assert_eq!(db.transact(|tx| words.within(tx).pop_last()).unwrap(), Some(("word".to_owned(), 1)));
    assert!(keyspace.contains_key("a").unwrap() && words.get("word").unwrap().is_none());
}

#[test]
fn what_is_not_of_the_type_is_an_error_and_a_new_field_is_none() {
    // Catches bytes that are taken for a value of the type, an error that does not name the key, and values without names of fields.
    let (_dir, db) = fresh();
    let keyspace = db.keyspace("typed").unwrap();
    keyspace.clone().typed::<u32, Before>().insert(&1, &Before { name: "ada".to_owned() }).unwrap();
    let after = keyspace.clone().typed::<u32, After>();
    assert_eq!(after.get(&1).unwrap(), Some(After { added: 0, name: "ada".to_owned() }));
    keyspace.insert("rubbish", "\u{1}").unwrap();
    keyspace.insert([0, 0, 0, 2], "rubbish").unwrap();
    keyspace.insert([0, 0, 0, 3], 1_u64.to_be_bytes()).unwrap();
    let errors = [
        after.get(&2).unwrap_err(),
        after.last().unwrap_err(),
        keyspace.clone().typed::<u32, u8>().get(&1).unwrap_err(),
        keyspace.clone().typed::<String, After>().first().unwrap_err(),
        keyspace.clone().typed::<u32, u64>().get(&3).unwrap_err(),
    ];
    for (error, part) in errors.iter().zip(["\\x00\\x00\\x00\\x02", "rubbish", "u8", "String", "7 bytes more"]) {
        assert!(matches!(error, Error::InvalidArgument(text) if text.contains(part)), "{error}");
    }
    assert_eq!(after.iter().filter(Result::is_err).count(), 3, "the rest can be read");
}
