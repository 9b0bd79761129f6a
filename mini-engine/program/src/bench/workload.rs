//! Workloads that can be timed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use hdrhistogram::Histogram;
use indicatif::ProgressBar;
use mini_engine::{Cursor, Db, Durability, Error, WriteBatch};

use super::amounts::Amounts;
use super::data::{self, Data};

/// Operations between two steps of the progress bar.
const STEP: u64 = 1024;

/// The names of `db_bench`.
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

/// The input of a workload.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) db: &'a Db,
    pub(crate) data: &'a Data,
    pub(crate) amounts: &'a Amounts,
    pub(crate) bar: &'a ProgressBar,
    pub(crate) path: &'a Path,
    /// The number of the thread.
    pub(crate) thread: u64,
}

/// The result of a workload.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) operations: u64,
    /// Bytes of keys and values.
    pub(crate) bytes: u64,
    /// The number of hits, for reads that may miss.
    pub(crate) found: Option<u64>,
    /// The time of each operation.
    pub(crate) nanos: Histogram<u64>,
}

/// The precision of percentiles: 3 digits, in at most 432 KiB.
const DIGITS: u8 = 3;

impl Done {
    pub(crate) fn new() -> Self {
        let nanos = Histogram::new(DIGITS).expect("1 to 5 digits are allowed");
        Self { operations: 0, bytes: 0, found: None, nanos }
    }

    /// Whether the workload reads, and found no entry.
    pub(crate) fn found_nothing(&self) -> bool {
        self.operations == 0 || self.found == Some(0)
    }

    /// Does one operation, and records its time.
    fn time<T>(&mut self, operation: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = operation();
        self.note(begun.elapsed());
        done
    }

    fn note(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // `record` grows the histogram; its other recording methods stay within the initial bounds of a few nanoseconds.
        self.nanos.record(nanos).expect("without an upper bound, the histogram grows to any duration");
    }

    fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.found = self.found.or(other.found.map(|_| 0)).map(|found| found + other.found.unwrap_or(0));
        self.nanos += &other.nanos;
    }
}

impl Workload {
    /// Runs the workload on all threads.
    pub(crate) fn run(self, run: &Run<'_>) -> Result<Done, Error> {
        let shares: Vec<Result<Done, Error>> = thread::scope(|scope| {
            let share = |thread| scope.spawn(move || self.run_share(&Run { thread, ..*run }));
            let threads: Vec<_> = (0..run.threads()).map(share).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
        });
        let mut all = Done::new();
        shares.into_iter().try_for_each(|share| share.map(|done| all.add(&done)))?;
        Ok(all)
    }

    fn run_share(self, run: &Run<'_>) -> Result<Done, Error> {
        match self {
            Self::Fillseq => run.fill((run.thread..).step_by(run.amounts.threads as usize)),
            Self::Fillrandom | Self::Overwrite => run.fill(run.random(self as usize)),
            Self::Readrandom => run.read_random(self as usize),
            Self::Readmissing => run.read_missing(self as usize),
            Self::Readseq => run.read_in_order(Cursor::seek_to_first, Cursor::advance),
            Self::Readreverse => run.read_in_order(Cursor::seek_to_last, Cursor::retreat),
            Self::Seekrandom => run.seek_random(self as usize),
            Self::Readwhilewriting => run.read_while_writing(self as usize),
        }
    }
}

/// The random stream of the writing thread in [`Workload::Readwhilewriting`]; workloads use their own numbers as streams.
const WRITER: usize = Workload::Readwhilewriting as usize + 1;
const STREAMS: usize = WRITER + 1;

fn panicked() -> Error {
    Error::ReadOnly { cause: "a thread of the benchmark panicked".into() }
}

impl Run<'_> {
    fn threads(&self) -> u64 {
        self.amounts.threads.into()
    }

    /// The number of operations of this thread.
    fn operations(&self) -> u64 {
        let (all, threads) = (self.amounts.num, self.threads());
        all / threads + u64::from(self.thread < all % threads)
    }

    /// An endless sequence of numbers of random keys, from a stream of this thread.
    fn random(&self, stream: usize) -> impl Iterator<Item = u64> + use<> {
        data::draws(self.amounts.seed, stream + STREAMS * self.thread as usize, self.data.keys)
    }

    fn step(&self, done: &mut Done) {
        done.operations += 1;
        if done.operations.is_multiple_of(STEP) {
            self.bar.inc(STEP);
        }
    }

    fn fill(&self, numbers: impl Iterator<Item = u64>) -> Result<Done, Error> {
        let durability = if self.amounts.synced { Durability::Synced } else { Durability::Buffered };
        let (mut batch, mut value, mut done) = (WriteBatch::new(), Vec::new(), Done::new());
        let operations = self.operations();
        for number in numbers.take(usize::try_from(operations).unwrap_or(usize::MAX)) {
            self.data.fill(number, &mut value);
            batch.insert(Data::key(number), &value)?;
            self.step(&mut done);
            if batch.len() >= self.amounts.batch as usize || done.operations == operations {
                done.time(|| self.db.write(&batch, durability))?;
                batch.clear();
            }
        }
        done.bytes = operations * self.data.entry_len();
        Ok(done)
    }

    fn read_random(&self, stream: usize) -> Result<Done, Error> {
        let (mut done, mut found, mut expected) = (Done::new(), 0, Vec::new());
        for number in self.random(stream).take(self.operations() as usize) {
            let key = Data::key(number);
            if let Some(value) = done.time(|| self.db.get(key))? {
                self.check(&key, &value, &mut expected)?;
                found += 1;
            }
            self.step(&mut done);
        }
        Ok(Done { bytes: found * self.data.entry_len(), found: Some(found), ..done })
    }

    /// Reads absent keys, which lie between the written ones.
    fn read_missing(&self, stream: usize) -> Result<Done, Error> {
        let mut done = Done::new();
        for number in self.random(stream).take(self.operations() as usize) {
            let mut key = Data::key(number).to_vec();
            key.push(b'.');
            if done.time(|| self.db.contains_key(&key))? {
                return Err(self.wrong(&key, "expected no value, found one"));
            }
            self.step(&mut done);
        }
        Ok(Done { found: Some(0), ..done })
    }

    fn read_in_order(
        &self,
        start: fn(&mut Cursor) -> Result<(), Error>,
        go_on: fn(&mut Cursor) -> Result<(), Error>,
    ) -> Result<Done, Error> {
        let (mut cursor, mut done, mut expected) = (self.db.cursor(), Done::new(), Vec::new());
        start(&mut cursor)?;
        while cursor.valid() && done.operations < self.operations() {
            self.check(cursor.key(), cursor.value(), &mut expected)?;
            done.bytes += (cursor.key().len() + cursor.value().len()) as u64;
            done.time(|| go_on(&mut cursor))?;
            self.step(&mut done);
        }
        Ok(done)
    }

    fn seek_random(&self, stream: usize) -> Result<Done, Error> {
        let (mut done, mut found, mut expected) = (Done::new(), 0, Vec::new());
        let mut cursor = self.db.cursor();
        for number in self.random(stream).take(self.operations() as usize) {
            let key = Data::key(number);
            done.time(|| cursor.seek(key))?;
            if cursor.valid() {
                if *cursor.key() < key[..] {
                    return Err(self.wrong(cursor.key(), "expected a key at or after the one sought, found one before"));
                }
                self.check(cursor.key(), cursor.value(), &mut expected)?;
                found += u64::from(*cursor.key() == key[..]);
            }
            self.step(&mut done);
        }
        Ok(Done { bytes: found * self.data.entry_len(), found: Some(found), ..done })
    }

    fn read_while_writing(&self, stream: usize) -> Result<Done, Error> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| self.overwrite_until(&stop, WRITER));
            let done = self.read_random(stream);
            stop.store(true, Ordering::Relaxed);
            let written = writer.join().unwrap_or_else(|_| Err(panicked()));
            written.and(done)
        })
    }

    fn overwrite_until(&self, stop: &AtomicBool, stream: usize) -> Result<(), Error> {
        let mut value = Vec::new();
        for number in self.random(stream).take_while(|_| !stop.load(Ordering::Relaxed)) {
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn what_one_workload_or_thread_draws_says_nothing_about_another() {
        // Catches streams that are correlated because their seeds differ only in some bits: reads in the order of the writes, which find nearly
        // all of their keys, close to each other. If as many writes as there are keys draw random ones, 1 - 1/e of the keys exist.
        const KEYS: u64 = 20_000;
        let draw = |stream| data::draws(301, stream, KEYS).take(KEYS as usize).collect::<Vec<u64>>();
        let streams: Vec<Vec<u64>> = (0..2 * STREAMS).map(draw).collect();
        for (number, written) in streams.iter().enumerate() {
            let places: HashMap<u64, usize> = written.iter().enumerate().map(|(place, key)| (*key, place)).collect();
            for read in streams.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, read)| read) {
                let pairs: Vec<(f64, f64)> =
                    read.iter().zip(0..).filter_map(|(key, at)| Some((at as f64, *places.get(key)? as f64))).collect();
                let (found, middle) = (pairs.len() as f64, KEYS as f64 / 2.0);
                let share = found / KEYS as f64;
                assert!((share - 0.632).abs() < 0.02, "{share} of the keys of stream {number} are found");
                // The correlation of two evenly distributed places.
                let together: f64 = pairs.iter().map(|(at, place)| (at - middle) * (place - middle)).sum();
                let correlation = together / found / (KEYS as f64).powi(2) * 12.0;
                assert!(correlation.abs() < 0.05, "order of stream {number}: {correlation}");
            }
        }
    }

    #[test]
    fn durations_from_nanoseconds_to_hours_are_kept_to_three_digits() {
        // Catches a histogram that keeps its first bounds, and so records every duration as a few microseconds at most.
        let (nanoseconds, milliseconds) = (Duration::from_nanos(120), Duration::from_millis(13));
        let [seconds, minutes, hours] = [2, 3 * 60, 5 * 3600].map(Duration::from_secs);
        // One of 10,000 operations took hours, and another thread has recorded half of the operations.
        let (mut done, mut other) = (Done::new(), Done::new());
        for done in [&mut done, &mut other] {
            for (took, times) in [(nanoseconds, 2000), (milliseconds, 2950), (seconds, 40), (minutes, 9)] {
                (0..times).for_each(|_| done.note(took));
            }
        }
        done.note(hours);
        other.note(minutes);
        done.add(&other);
        assert_eq!(done.nanos.len(), 10_000);
        let quantiles =
            [(0.25, nanoseconds), (0.5, milliseconds), (0.99, milliseconds), (0.995, seconds), (0.9995, minutes)];
        for (quantile, expected) in quantiles {
            let found = Duration::from_nanos(done.nanos.value_at_quantile(quantile));
            assert!(found >= expected && found <= expected.mul_f64(1.001), "{quantile}: {expected:?}, {found:?}");
        }
        let longest = Duration::from_nanos(done.nanos.max());
        assert!(longest >= hours && longest <= hours.mul_f64(1.001), "{longest:?}");
        done.note(Duration::MAX);
        assert!(done.nanos.max() > u64::MAX / 2, "{}", done.nanos.max());
    }
}
