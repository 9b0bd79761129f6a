//! Programs that break a rule of the storage. Each must panic; if one does not, the other models would miss such defects.

use crate::check::{Depth, Program};
use crate::mem::storage::Storage;
use crate::sync::Ordering;

/// A program in which thread 0 does `first` and then raises a flag. Thread 1 waits for the flag without acquiring the writes before it; then it
/// does `second`. So `second` comes later, but does not happen after `first`.
#[derive(Debug, Clone, Copy)]
pub struct Misuse {
    /// The rule that the misuse breaks.
    pub name: &'static str,
    /// The expected panic message.
    pub complaint: &'static str,
    first: fn(&Storage),
    second: fn(&Storage),
}

const FLAG: u32 = 0;
const FREE: u32 = 1;

impl Misuse {
    /// Runs it.
    ///
    /// # Panics
    /// Always, as expected.
    pub fn run(self) {
        let _ = Program::new(|| {
            let storage = Storage::reserve(64, 64, false, None).expect("the model's storage refuses nothing");
            // SAFETY: word `FLAG` is only ever an atomic.
            unsafe { storage.word(FLAG) }.store(0, Ordering::Relaxed);
            storage
        })
        .thread(move |storage| {
            (self.first)(storage);
            // SAFETY: word `FLAG` is only ever an atomic.
            unsafe { storage.word(FLAG) }.store(1, Ordering::Relaxed);
        })
        .thread(move |storage| {
            // SAFETY: word `FLAG` is only ever an atomic.
            if unsafe { storage.word(FLAG) }.load(Ordering::Relaxed) == 1 {
                (self.second)(storage);
            }
        })
        .observe(Depth::ALL, |_| ());
    }
}

fn write(storage: &Storage, at: usize, bytes: &[u8]) {
    // SAFETY: inside the range; the storage panics at any other unsound access before it happens, or this program fails.
    unsafe { storage.write(FREE, at, bytes) };
}

fn read(storage: &Storage, at: usize, len: usize) {
    // SAFETY: as for `write`.
    let bytes = unsafe { storage.read(FREE, at, len) };
    assert_eq!(bytes.len(), len);
}

fn load(storage: &Storage) {
    // SAFETY: as for `write`.
    let word = unsafe { storage.word(FREE) };
    assert_eq!(word.load(Ordering::Relaxed), 1);
}

fn store(storage: &Storage) {
    // SAFETY: as for `write`.
    unsafe { storage.word(FREE) }.store(1, Ordering::Relaxed);
}

macro_rules! misuses {
    ($($name:literal, $complaint:literal: $first:expr, $second:expr;)*) => {
        /// Every misuse.
        pub static ALL: &[Misuse] = &[
            $(Misuse { name: $name, complaint: $complaint, first: $first, second: $second },)*
        ];
    };
}

misuses! {
    "nodes that overlap, or bytes that change after they were published", "are written twice":
        |s| write(s, 0, b"abc"), |s| write(s, 2, b"c");
    "a length that leads past a node's end", "are read and were never written":
        |s| write(s, 0, b"abc"), |s| read(s, 0, 4);
    "a link that does not publish bytes", "Causality violation: Concurrent read and write accesses":
        |s| write(s, 0, b"abc"), |s| read(s, 0, 3);
    "two writers in one word", "Causality violation: Concurrent write accesses":
        |s| write(s, 0, b"abc"), |s| write(s, 3, b"d");
    "a link that does not publish meta words, or a hint that does not publish a block",
    "Causality violation: Concurrent load and mut accesses": store, load;
    "an offset that is off by a word, to bytes", "holds bytes and is used as an atomic": |s| write(s, 0, b"abc"), load;
    "an offset that is off by a word, to an atomic", "is an atomic and is used as bytes": store, |s| write(s, 7, b"a");
}
