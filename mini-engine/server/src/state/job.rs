//! Jobs: commands that take long. A separate thread carries them out, so that the loop can serve other clients.

use std::fmt::Write;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use mini_engine::{Db, Durability, WriteBatch};

use super::databases::Database;
use crate::protocol::numbers::{encode_key, push_pair};
use crate::protocol::reply::{Outcome, Refusal, Reply};

/// The number of newest checkpoints that are kept.
const KEPT: usize = 2;
const CHECKPOINT_PREFIX: &str = "checkpoint-";
/// The number of pairs of a loaded file that are written together.
const LOADED_TOGETHER: usize = 10_000;
/// The maximum number of pairs that `s` prints.
const MOST_SHOWN: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Counts the keys of a database.
    Count(usize),
    /// Creates a database.
    Create(usize),
    /// Makes a checkpoint in the directory.
    Save(PathBuf),
    /// Stores the pairs of a binary file.
    Load(PathBuf),
    /// Describes the database in the format of the coursework.
    Statistics,
}

impl Job {
    /// Carries the job out, unless `is_over` is set because the server ends. A checkpoint is always completed.
    pub(crate) fn run(&self, db: &Db, is_over: &AtomicBool) -> Outcome {
        match self {
            Self::Count(number) => count(&Database::create(db, *number)?, is_over).map(|n| Reply::Integer(n as i64)),
            Self::Create(number) => Ok(Database::create(db, *number).map(|_| Reply::OK)?),
            Self::Save(directory) => save(db, directory).map(|()| Reply::OK),
            Self::Load(file) => load(db, file, is_over).map(|()| Reply::Nothing),
            Self::Statistics => statistics(db, is_over).map(Reply::Text),
        }
    }
}

/// Returns an error once the server ends.
fn go_on(is_over: &AtomicBool) -> Result<(), Refusal> {
    // ORDERING: Relaxed; pairs with the store in `worker.rs`; the flag is a hint that publishes nothing.
    match is_over.load(Ordering::Relaxed) {
        true => Err(Refusal::new("ERR the server ends")),
        false => Ok(()),
    }
}

fn count(database: &Database, is_over: &AtomicBool) -> Result<u64, Refusal> {
    let mut cursor = database.stored.cursor();
    let mut keys = 0;
    cursor.seek_to_first()?;
    while cursor.valid() {
        keys += 1;
        go_on(is_over)?;
        cursor.advance()?;
    }
    Ok(keys)
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Refusal {
    move |error| Refusal::new(format!("IOERR cannot {action} {}: {error}", path.display()))
}

/// Makes the next checkpoint, and removes all but the newest ones; it touches only names of checkpoints. Incomplete checkpoints of a crash, which
/// have no CURRENT, are not counted; they are removed when they are older than the kept ones.
fn save(db: &Db, directory: &Path) -> Result<(), Refusal> {
    fs::create_dir_all(directory).map_err(io("make", directory))?;
    let numbers = checkpoints(directory)?;
    let next = numbers.last().map_or(1, |newest| newest + 1);
    db.checkpoint(directory.join(name(next)))?;
    let mut kept = 1;
    for &number in numbers.iter().rev() {
        let path = directory.join(name(number));
        if kept == KEPT {
            fs::remove_dir_all(&path).map_err(io("remove", &path))?;
        } else if path.join("CURRENT").try_exists().map_err(io("look into", &path))? {
            kept += 1;
        }
    }
    Ok(())
}

fn name(number: u64) -> String {
    format!("{CHECKPOINT_PREFIX}{number:06}")
}

/// The numbers of the checkpoints in `directory`, ascending.
fn checkpoints(directory: &Path) -> Result<Vec<u64>, Refusal> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory).map_err(io("list", directory))? {
        let found = entry.map_err(io("list", directory))?.file_name();
        let number = found.to_str().and_then(|found| found.strip_prefix(CHECKPOINT_PREFIX)?.parse().ok());
        numbers.extend(number.filter(|&number| found.to_str() == Some(&name(number))));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Stores pairs of little-endian 32-bit numbers, which the coursework's generator writes on most machines. An incomplete pair at the end gives an
/// error, after the complete pairs were stored. The pairs are synced when this returns.
fn load(db: &Db, path: &Path, is_over: &AtomicBool) -> Result<(), Refusal> {
    let file = fs::File::open(path).map_err(io("open", path))?;
    let mut reader = io::BufReader::with_capacity(1 << 16, file);
    let mut batch = WriteBatch::new();
    loop {
        go_on(is_over)?;
        let mut pair = [0; 8];
        let len = fill(&mut reader, &mut pair).map_err(io("read", path))?;
        if len == pair.len() {
            let [k0, k1, k2, k3, v0, v1, v2, v3] = pair;
            let (key, value) = (i32::from_le_bytes([k0, k1, k2, k3]), i32::from_le_bytes([v0, v1, v2, v3]));
            batch.insert(encode_key(key.into()), value.to_string())?;
        }
        if batch.len() == LOADED_TOGETHER || len < pair.len() {
            db.write(std::mem::take(&mut batch), Durability::Buffered)?;
        }
        match len {
            8 => {}
            0 => break,
            _ => return Err(Refusal::new(format!("ERR {} ends within a pair", path.display()))),
        }
    }
    db.persist(Durability::Synced)?;
    Ok(())
}

/// Reads until `buffer` is full or the input ends.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// The output of `s`: the number of pairs, the bytes of each level, and the pairs of a small database.
fn statistics(db: &Db, is_over: &AtomicBool) -> Result<String, Refusal> {
    let mut pairs = 0;
    let mut shown = String::new();
    for entry in db.iter() {
        go_on(is_over)?;
        let (key, value) = entry?;
        pairs += 1;
        if pairs <= MOST_SHOWN {
            push_pair(&mut shown, &key, &value);
        }
    }
    let levels = db.metrics().levels;
    let levels = levels.iter().enumerate().filter(|(_, level)| level.tables > 0);
    let levels: Vec<String> = levels.map(|(number, level)| format!("LVL{number}: {} bytes", level.bytes)).collect();
    let mut text = format!("Logical Pairs: {pairs}\n{}\n{shown}", levels.join(", "));
    if pairs > MOST_SHOWN {
        write!(text, " ..").ok();
    }
    Ok(text)
}
