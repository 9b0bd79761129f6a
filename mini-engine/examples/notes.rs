//! A first program: notes on disk. They are written, read, listed with the newest first, changed and removed, and persist after the program ends.
//! `cargo run -p mini-engine --example notes`

use std::path::Path;

use mini_engine::{Db, Durability, Result, Slice, WriteBatch};

struct Notes {
    db: Db,
}

/// Keys are sorted bytewise, so numbers in big-endian form sort by value.
fn key(number: u32) -> Vec<u8> {
    [b"note/", &number.to_be_bytes()[..]].concat()
}

/// The number and the text of a note, from its key and value.
fn decoded((key, text): (Slice, Slice)) -> (u32, String) {
    let number = key.last_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    (number, String::from_utf8_lossy(&text).into_owned())
}

impl Notes {
    /// Makes the directory if there is none. If another process has it open, this returns an error and does not wait.
    fn open(path: &Path) -> Result<Self> {
        // Writes of this program are rare and valuable, so each is on disk when its call returns.
        Ok(Self { db: Db::builder(path).durability(Durability::Synced).open()? })
    }

    /// Stores a note under the next number. Concurrent calls get different numbers.
    fn add(&self, text: &str) -> Result<u32> {
        self.db.transact(|tx| {
            let newest = tx.prefix("note/").next_back().transpose()?;
            let number = newest.map_or(1, |note| decoded(note).0 + 1);
            tx.insert(key(number), text)?;
            Ok(number)
        })
    }

    fn get(&self, number: u32) -> Result<Option<String>> {
        Ok(self.db.get(key(number))?.map(|text| String::from_utf8_lossy(&text).into_owned()))
    }

    /// An iterator shows the state of one moment, and reads blocks from disk as it advances.
    fn newest(&self, count: usize) -> Result<Vec<(u32, String)>> {
        self.db.prefix("note/").rev().take(count).map(|note| note.map(decoded)).collect()
    }

    /// Removes all of these notes or, after a crash, none.
    fn remove(&self, numbers: &[u32]) -> Result<()> {
        let mut batch = WriteBatch::new();
        numbers.iter().try_for_each(|number| batch.remove(key(*number)))?;
        self.db.write(batch, Durability::Synced).map(drop)
    }
}

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("notes.db");
    let notes = Notes::open(&path)?;
    for text in ["buy milk", "call Ada", "water the plants"] {
        println!("note {}: {text}", notes.add(text)?);
    }
    notes.db.insert(key(2), "call Ada after six")?;
    notes.remove(&[1])?;
    println!("a second program: {}", Notes::open(&path).err().expect("only one process writes to a database"));
    notes.db.close()?;

    // The next start finds the written notes.
    let notes = Notes::open(&path)?;
    assert_eq!(notes.get(1)?, None);
    let expected = [(3, "water the plants".to_owned()), (2, "call Ada after six".to_owned())];
    assert_eq!(notes.newest(10)?, expected);
    assert_eq!(notes.add("sleep")?, 4);
    notes.db.close()
}
