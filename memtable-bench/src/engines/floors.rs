//! What is no engine, and shows what one could reach at most: a table in memory without a log, and a log without a table.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::engine::{Done, Engine, Settings};
use crate::spec::{KeySet, Shape, Subject};
use crate::tables::{Record, Table};

/// A table in memory.
pub(crate) struct InMemory<T> {
    table: T,
    is_sorted: bool,
}

impl<T: Table> Engine for InMemory<T> {
    fn open(settings: &Settings) -> Done<Self> {
        Ok(Self { table: T::new(&Shape::new(KeySet::Random, 0)), is_sorted: settings.subject != Subject::Vec })
    }

    fn put(&self, record: Record<'_>) -> Done {
        match self.table.insert(std::iter::once(record)) {
            1 => Ok(()),
            _ => Err("the table refused a record".into()),
        }
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        Ok(self.table.get(key, read))
    }

    fn scan(&self, _from: &[u8], _most: usize, each: impl FnMut(&[u8], &[u8])) -> Done {
        if !self.is_sorted {
            self.table.sort();
        }
        self.table.scan(each);
        Ok(())
    }
}

/// A file that records are appended to, each with a system call.
pub(crate) struct Log {
    path: PathBuf,
    file: Mutex<File>,
    synced: bool,
}

fn encode(record: Record<'_>, out: &mut Vec<u8>) {
    for bytes in [record.key, record.value] {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
}

/// The next bytes of `log` that `encode` wrote.
fn decode(log: &mut impl Read) -> Done<Vec<u8>> {
    let mut len = [0; 4];
    log.read_exact(&mut len)?;
    let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
    log.read_exact(&mut bytes)?;
    Ok(bytes)
}

impl Engine for Log {
    fn open(settings: &Settings) -> Done<Self> {
        let path = settings.dir.join("log");
        let file = OpenOptions::new().append(true).create(true).open(&path)?;
        Ok(Self { path, file: Mutex::new(file), synced: settings.synced })
    }

    fn put(&self, record: Record<'_>) -> Done {
        self.put_batch(std::iter::once(record))
    }

    fn put_batch<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        let mut bytes = Vec::new();
        records.for_each(|record| encode(record, &mut bytes));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes)?;
        if self.synced { Ok(file.sync_data()?) } else { Ok(()) }
    }

    /// Of the whole file, to check it.
    fn scan(&self, _from: &[u8], _most: usize, mut each: impl FnMut(&[u8], &[u8])) -> Done {
        let log = fs::read(&self.path)?;
        let (mut rest, mut sorted) = (&log[..], BTreeMap::new());
        while !rest.is_empty() {
            sorted.insert(decode(&mut rest)?, decode(&mut rest)?);
        }
        sorted.iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }

    fn flush(&self) -> Done {
        Ok(self.file.lock().unwrap_or_else(PoisonError::into_inner).sync_data()?)
    }
}
