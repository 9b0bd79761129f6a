//! Both tables under real threads, for sanitizers: `stress [SECONDS [SEED]]`.
//!
//! Thread sanitizer follows only code that is built for it, and the standard library is not. So this program has a `main` of its own. From
//! the library it uses only joined threads, `Arc`, atomics, and the lock that a freezing thread shares with the last writer. Tables reserve
//! their memory when they are built, because a table that is made at first use needs the library's `OnceLock`; without the feature `std` the tables
//! use no lock of the library. Each value contains its key, so the program is a test without a sanitizer too.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastskip::{BuildTable, Builder, ConcurrentSkipList, Duplicates, InsertError, Lookup, Memtable, Op, Version};

const WRITERS: u64 = 2;
const READERS: u64 = 2;
/// Writes of a batch.
const BATCH: usize = 24;
/// The sequence number of all writes that replace each other.
const REPLACED: u64 = 7;

/// The data that the threads of a round share.
struct Round {
    memtable: Memtable,
    /// The last write of a key wins.
    replacing: Memtable,
    list: Arc<ConcurrentSkipList>,
    next: AtomicU64,
    done: AtomicBool,
    seed: u64,
    /// Writes of each writer.
    writes: u64,
    /// Whether a reader freezes both tables in the middle.
    freezes: bool,
}

/// The generator splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
}

/// A key of 8 to 15 bytes that shares its beginning with many others.
fn key(number: u64) -> Vec<u8> {
    let mut key = (number % 5000).to_be_bytes().to_vec();
    key.resize(8 + number as usize % 8, 7);
    key
}

/// A value that begins with its key and continues with a byte of the key.
fn value(key: &[u8], number: u64) -> Vec<u8> {
    let mut value = key.to_vec();
    value.resize(key.len() + number as usize % 40, key[7]);
    value
}

fn check(key: &[u8], value: &[u8]) {
    assert!(value.starts_with(key) && value[key.len()..].iter().all(|byte| *byte == key[7]), "a value nobody wrote");
}

fn check_version(version: Version<'_>) {
    if !version.value.is_empty() {
        check(version.key, version.value);
    }
}

fn is_open<T>(result: Result<T, InsertError>) -> bool {
    match result {
        Ok(_) | Err(InsertError::DuplicateKey) => true,
        Err(refusal) => {
            assert_eq!(refusal, InsertError::Frozen);
            false
        }
    }
}

#[cfg(feature = "std")]
fn built<T: BuildTable>(builder: Builder<T>) -> T {
    builder.try_build().expect("addresses for a table")
}

#[cfg(not(feature = "std"))]
fn built<T: BuildTable>(builder: Builder<T>) -> T {
    builder.build()
}

impl Round {
    fn new(random: &mut Random) -> Self {
        let shape = random.next();
        let shards = 1 + shape as usize % 3;
        // One round in four grows beyond the size from which searches are interleaved.
        let writes = if shape >> 8 & 3 == 0 { 12_000 } else { 1500 };
        let memtable = Memtable::builder().shards(shards).arena_bytes_per_shard(256);
        let list = ConcurrentSkipList::builder().shards(shards).arena_bytes_per_shard(256);
        Self {
            memtable: built(memtable.clone()),
            replacing: built(memtable.duplicates(Duplicates::Replace)),
            list: Arc::new(built(list)),
            next: AtomicU64::new(1),
            done: AtomicBool::new(false),
            seed: random.next(),
            writes,
            freezes: shape >> 16 & 1 == 0,
        }
    }

    fn numbers(&self, count: usize) -> u64 {
        self.next.fetch_add(count as u64, Ordering::Relaxed)
    }

    /// Writes until all entries are written, or refused.
    fn write(&self, number: u64) {
        let mut random = Random(self.seed ^ number);
        let mut written = 0;
        while written < self.writes && self.write_some(&mut random) {
            written += BATCH as u64 + 2;
        }
    }

    /// A batch and single writes to either table; false if they are frozen.
    fn write_some(&self, random: &mut Random) -> bool {
        let in_order = random.next().is_multiple_of(4);
        let first = random.next();
        let keys: Vec<_> = (0..BATCH as u64).map(|i| key(if in_order { first + i } else { random.next() })).collect();
        let values: Vec<_> = keys.iter().map(|key| value(key, random.next())).collect();
        let entries: Vec<_> = keys.iter().zip(&values).collect();
        let ops: Vec<_> = entries.iter().map(|(key, value)| Op::Put { key, value }).collect();
        match self.memtable.reserve(&ops) {
            Err(_) => return false,
            Ok(dropped) if first.is_multiple_of(8) => drop(dropped),
            Ok(reservation) => assert_eq!(reservation.apply(self.numbers(BATCH)).stored, BATCH),
        }
        // A refused write is a duplicate, or the table is frozen and refuses the next write as well.
        let _ = self.list.insert_batch(&entries);
        let (one, other) = (key(random.next()), &keys[0]);
        // Few keys, so that threads often replace the same entry at once.
        let hot = key(random.next() % 16);
        is_open(self.replacing.apply_at(&ops, REPLACED))
            && is_open(self.replacing.put(&hot, REPLACED, &value(&hot, first)))
            && is_open(self.replacing.delete(&key(first % 16), REPLACED))
            && is_open(self.memtable.put(&one, self.numbers(1), &value(&one, first)))
            && is_open(self.memtable.delete(other, self.numbers(1)))
            && is_open(self.list.try_insert(&one, &value(&one, first)))
            && is_open(self.list.try_delete(other).map(|_| ()))
            && is_open(self.list.insert_tombstone(&keys[1]))
    }

    /// Reads until the writers are done.
    fn read(&self, number: u64) {
        let mut random = Random(self.seed ^ number);
        let mut looks = 0;
        while !self.done.load(Ordering::Acquire) || looks == 0 {
            self.read_memtable(&mut random);
            self.read_replacing(&mut random);
            self.read_list(&mut random);
            looks += 1;
            if self.freezes && number == WRITERS && looks == 3 {
                drop(self.memtable.freeze());
                drop(self.replacing.freeze());
                self.list.freeze();
            }
        }
    }

    fn read_memtable(&self, random: &mut Random) {
        let keys: Vec<_> = (0..BATCH).map(|_| key(random.next())).collect();
        for (key, found) in keys.iter().zip(self.memtable.get_many(&keys, u64::MAX)) {
            if let Lookup::Value(value) = found {
                check(key, value);
            }
        }
        let mut last: Option<(Vec<u8>, u64)> = None;
        for version in self.memtable.range(&keys[0][..4].., u64::MAX).take(1000) {
            assert!(last.is_none_or(|(key, _)| &key[..] < version.key), "keys out of order");
            check_version(version);
            last = Some((version.key.to_vec(), version.seqno));
        }
        let back: Vec<_> = self.memtable.all_versions().rev().take(300).map(|version| version.key).collect();
        assert!(back.is_sorted_by(|a, b| a >= b), "keys out of order");
    }

    /// Reads through types that own their table: iterators, with counted and lent entries at either end, and a cursor.
    fn read_replacing(&self, random: &mut Random) {
        let hot = key(random.next() % 16);
        if let Some(version) = self.replacing.get_owned(&hot, REPLACED) {
            check_version(version.as_version());
        }
        let mut versions = self.replacing.owned_range(&key(random.next()).., REPLACED);
        for _ in 0..200 {
            let (Some(first), Some(last)) = (versions.next(), versions.next_back_ref()) else { break };
            assert!(first.key() < last.key, "keys out of order");
            check_version(first.as_version());
            check_version(last);
        }
        let mut cursor = self.replacing.owned_cursor();
        if cursor.seek_for_prev(&key(random.next()), 0) {
            for _ in 0..100 {
                let kept = cursor.version_owned();
                let Some(version) = cursor.prev_key() else { break };
                check_version(version);
                assert!(kept.is_none_or(|kept| version.key <= kept.key()), "keys out of order");
            }
        }
    }

    fn read_list(&self, random: &mut Random) {
        let snapshot = self.list.snapshot();
        let from = key(random.next());
        let look = || {
            let entries = snapshot.range(&from[..]..).take(500);
            entries.map(|entry| (entry.key.len() + entry.value.len()) << 1 | usize::from(entry.is_tombstone)).sum()
        };
        let (first, second): (usize, usize) = (look(), look());
        assert_eq!(first, second, "a snapshot changed");
        let mut entries = self.list.owned_range(..);
        for _ in 0..200 {
            let Some(entry) = entries.next_back() else { break };
            if !entry.value().is_empty() {
                check(entry.key(), entry.value());
            }
        }
        let stats = self.list.stats();
        assert_eq!(stats.memory_usage + stats.memory_idle, stats.memory_reserved);
    }
}

/// Runs a round; returns how many entries the tables hold.
fn run(round: Round) -> usize {
    let round = Arc::new(round);
    let spawn = |number: u64| {
        let round = Arc::clone(&round);
        thread::spawn(move || if number < WRITERS { round.write(number) } else { round.read(number) })
    };
    let mut threads: Vec<_> = (0..WRITERS + READERS).map(spawn).collect();
    let readers = threads.split_off(WRITERS as usize);
    threads.into_iter().for_each(|writer| writer.join().expect("a writer found nothing wrong"));
    round.done.store(true, Ordering::Release);
    readers.into_iter().for_each(|reader| reader.join().expect("a reader found nothing wrong"));
    round.memtable.validate();
    round.replacing.validate();
    round.list.validate();
    round.memtable.len() + round.replacing.len() + round.list.len()
}

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Ok(seconds), Ok(seed), None) =
        (numbers.next().unwrap_or(Ok(5)), numbers.next().unwrap_or(Ok(1)), numbers.next())
    else {
        eprintln!("usage: stress [SECONDS [SEED]]");
        return ExitCode::from(2);
    };
    // Printed before anything can fail, so that a failed run can be repeated: the same seed draws the same rounds.
    println!("stress {seconds} {seed}");
    let began = Instant::now();
    let mut random = Random(seed);
    let (mut rounds, mut entries) = (0, 0);
    while began.elapsed() < Duration::from_secs(seconds) || rounds == 0 {
        entries += run(Round::new(&mut random));
        rounds += 1;
    }
    println!("{rounds} rounds, {entries} entries stored, nothing wrong");
    ExitCode::SUCCESS
}
