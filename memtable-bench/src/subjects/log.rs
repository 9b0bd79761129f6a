//! A log without a table: not an engine, but an upper bound on the speed of an engine. Records are appended to a file, each with a system call.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::store::{Done, Record, Settings, Store, store};

pub(crate) struct Open {
    path: PathBuf,
    file: Mutex<File>,
    synced: bool,
}

impl Open {
    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        let mut bytes = Vec::new();
        for part in records.flat_map(|record| [record.key, record.value]) {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        let mut file = self.file();
        file.write_all(&bytes)?;
        if self.synced { Ok(file.sync_data()?) } else { Ok(()) }
    }
}

/// Reads the next key or value of a log.
fn decode(log: &mut impl Read) -> Done<Vec<u8>> {
    let mut len = [0; 4];
    log.read_exact(&mut len)?;
    let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
    log.read_exact(&mut bytes)?;
    Ok(bytes)
}

store! {
    Log(Open);
    open(settings) => {
        let path = settings.dir.join("log");
        let file = OpenOptions::new().append(true).create(true).open(&path)?;
        Open { path, file: Mutex::new(file), synced: settings.synced }
    };
    put(log, record) => log.append(std::iter::once(record))?;
    put_batch(log, records) => log.append(records)?;
    // Reads the log back, for the check of the contents.
    scan_all(log, each) => {
        let bytes = fs::read(&log.path)?;
        let (mut rest, mut sorted) = (&bytes[..], BTreeMap::new());
        while !rest.is_empty() {
            sorted.insert(decode(&mut rest)?, decode(&mut rest)?);
        }
        sorted.iter().for_each(|(key, value)| each(key, value));
    };
    flush(log) => log.file().sync_data()?;
}
