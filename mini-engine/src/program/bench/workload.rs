//! What can be timed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::ValueEnum;
use indicatif::ProgressBar;
use mini_engine::{Cursor, Db, Durability, Error, WriteBatch};

use super::BenchArgs;
use super::data::{Data, Random};

/// Operations between two steps of the progress bar.
const STEP: u64 = 1024;

/// The names, as `db_bench` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    Fillseq,
    Fillrandom,
    Overwrite,
    Readrandom,
    Readmissing,
    Readseq,
    Readreverse,
    Seekrandom,
    Readwhilewriting,
}

/// What a workload works on.
pub(crate) struct Run<'a> {
    pub(crate) db: &'a Db,
    pub(crate) data: &'a Data,
    pub(crate) args: &'a BenchArgs,
    pub(crate) bar: &'a ProgressBar,
    pub(crate) path: &'a Path,
}

/// What a workload did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) operations: u64,
    /// Of keys and values.
    pub(crate) bytes: u64,
    /// Of reads that may miss: how many did not.
    pub(crate) found: Option<u64>,
}

impl Workload {
    pub(crate) fn run(self, run: &Run<'_>) -> Result<Done, Error> {
        let seed = run.args.seed ^ (self as u64) << 32;
        match self {
            Self::Fillseq => run.fill(0..),
            Self::Fillrandom | Self::Overwrite => run.fill(run.random(seed)),
            Self::Readrandom => run.read_random(seed),
            Self::Readmissing => run.read_missing(seed),
            Self::Readseq => run.read_in_order(Cursor::seek_to_first, Cursor::advance),
            Self::Readreverse => run.read_in_order(Cursor::seek_to_last, Cursor::retreat),
            Self::Seekrandom => run.seek_random(seed),
            Self::Readwhilewriting => run.read_while_writing(seed),
        }
    }
}

impl Run<'_> {
    fn operations(&self) -> u64 {
        self.args.num.get()
    }

    /// Numbers of random keys, without end.
    fn random(&self, seed: u64) -> impl Iterator<Item = u64> + use<> {
        let (mut random, keys) = (Random::new(seed), self.data.keys);
        std::iter::repeat_with(move || random.below(keys))
    }

    fn step(&self, done: u64) {
        if done.is_multiple_of(STEP) {
            self.bar.set_position(done);
        }
    }

    fn fill(&self, numbers: impl Iterator<Item = u64>) -> Result<Done, Error> {
        let durability = if self.args.synced { Durability::Synced } else { Durability::Buffered };
        let (mut batch, mut value) = (WriteBatch::new(), Vec::new());
        let operations = self.operations();
        for (number, done) in numbers.zip(1..=operations) {
            self.data.fill(number, &mut value);
            batch.insert(Data::key(number), &value)?;
            if batch.len() >= self.args.batch as usize || done == operations {
                self.db.write(std::mem::take(&mut batch), durability)?;
            }
            self.step(done);
        }
        Ok(Done { operations, bytes: operations * self.data.entry_len(), found: None })
    }

    fn read_random(&self, seed: u64) -> Result<Done, Error> {
        let (operations, mut found, mut expected) = (self.operations(), 0, Vec::new());
        for (number, done) in self.random(seed).zip(1..=operations) {
            let key = Data::key(number);
            if let Some(value) = self.db.get(key)? {
                self.check(&key, &value, &mut expected)?;
                found += 1;
            }
            self.step(done);
        }
        Ok(Done { operations, bytes: found * self.data.entry_len(), found: Some(found) })
    }

    /// Keys that lie between those that are written.
    fn read_missing(&self, seed: u64) -> Result<Done, Error> {
        let operations = self.operations();
        for (number, done) in self.random(seed).zip(1..=operations) {
            let mut key = Data::key(number).to_vec();
            key.push(b'.');
            if self.db.contains_key(&key)? {
                return Err(self.wrong(&key, "expected no value, found one"));
            }
            self.step(done);
        }
        Ok(Done { operations, bytes: 0, found: Some(0) })
    }

    fn read_in_order(
        &self,
        start: fn(&mut Cursor) -> Result<(), Error>,
        go_on: fn(&mut Cursor) -> Result<(), Error>,
    ) -> Result<Done, Error> {
        let (mut cursor, mut operations, mut expected) = (self.db.cursor(), 0, Vec::new());
        start(&mut cursor)?;
        let mut bytes = 0;
        while cursor.valid() && operations < self.operations() {
            self.check(cursor.key(), cursor.value(), &mut expected)?;
            bytes += (cursor.key().len() + cursor.value().len()) as u64;
            operations += 1;
            go_on(&mut cursor)?;
            self.step(operations);
        }
        Ok(Done { operations, bytes, found: None })
    }

    fn seek_random(&self, seed: u64) -> Result<Done, Error> {
        let (operations, mut found, mut expected) = (self.operations(), 0, Vec::new());
        let mut cursor = self.db.cursor();
        for (number, done) in self.random(seed).zip(1..=operations) {
            let key = Data::key(number);
            cursor.seek(key)?;
            if cursor.valid() {
                if *cursor.key() < key[..] {
                    return Err(self.wrong(cursor.key(), "expected a key at or after the one sought, found one before"));
                }
                self.check(cursor.key(), cursor.value(), &mut expected)?;
                found += u64::from(*cursor.key() == key[..]);
            }
            self.step(done);
        }
        Ok(Done { operations, bytes: found * self.data.entry_len(), found: Some(found) })
    }

    fn read_while_writing(&self, seed: u64) -> Result<Done, Error> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| self.overwrite_until(&stop, !seed));
            let done = self.read_random(seed);
            stop.store(true, Ordering::Relaxed);
            let written = writer.join().unwrap_or_else(|_| {
                Err(Error::ReadOnly { cause: "the writing thread of the benchmark panicked".into() })
            });
            written.and(done)
        })
    }

    fn overwrite_until(&self, stop: &AtomicBool, seed: u64) -> Result<(), Error> {
        let mut value = Vec::new();
        for number in self.random(seed).take_while(|_| !stop.load(Ordering::Relaxed)) {
            self.data.fill(number, &mut value);
            self.db.insert(Data::key(number), &value)?;
        }
        Ok(())
    }

    fn check(&self, key: &[u8], value: &[u8], expected: &mut Vec<u8>) -> Result<(), Error> {
        let Some(number) = Data::number(key) else {
            return Err(self.wrong(key, "expected a key of 16 digits: use a directory that nothing else is in"));
        };
        self.data.fill(number, expected);
        if value == expected.as_slice() {
            return Ok(());
        }
        let what = format!(
            "expected its {} bytes, found {} others: written with another --value-size?",
            expected.len(),
            value.len()
        );
        Err(self.wrong(key, &what))
    }

    fn wrong(&self, key: &[u8], what: &str) -> Error {
        let what = format!("key \"{}\": {what}", key.escape_ascii());
        Error::Corruption { file: self.path.to_path_buf(), offset: 0, what }
    }
}
