//! Programs that break a rule of the storage. Each must panic; if one does not, the models above it see nothing.

use crate::check::{Depth, Program, observe};
use crate::mem::storage::Storage;
use crate::sync::Ordering;

/// Thread 0 does `first`, then raises a flag, which thread 1 waits for without acquiring what led to it; then it does
/// `second`. So `second` comes later, and does not happen after.
struct Misuse<S: Steps>(Storage, S);

/// What is done to the storage, whose words from `FLAG` on are free.
trait Steps: Default + 'static {
    fn first(&self, storage: &Storage);
    fn second(&self, storage: &Storage);
}

const FLAG: u32 = 0;
const FREE: u32 = 1;

impl<S: Steps> Program for Misuse<S> {
    const THREADS: usize = 2;

    fn new() -> Self {
        let storage = Storage::reserve(64, 64, false, None).expect("the model's storage refuses nothing");
        // SAFETY: word `FLAG` is only ever an atomic.
        unsafe { storage.word(FLAG) }.store(0, Ordering::Relaxed);
        Self(storage, S::default())
    }

    fn thread(&self, number: usize) -> String {
        // SAFETY: word `FLAG` is only ever an atomic.
        let flag = unsafe { self.0.word(FLAG) };
        if number == 0 {
            self.1.first(&self.0);
            flag.store(1, Ordering::Relaxed);
        } else if flag.load(Ordering::Relaxed) == 1 {
            self.1.second(&self.0);
        }
        String::new()
    }

    fn at_rest(&self) -> String {
        String::new()
    }
}

macro_rules! misuses {
    ($($(#[$about:meta])* $name:ident: $first:expr, $second:expr;)*) => {$(
        $(#[$about])*
        ///
        /// # Panics
        /// As it must.
        pub fn $name() {
            #[derive(Default)]
            struct Breach;
            impl Steps for Breach {
                fn first(&self, storage: &Storage) {
                    ($first)(storage);
                }
                fn second(&self, storage: &Storage) {
                    ($second)(storage);
                }
            }
            observe::<Misuse<Breach>>(Depth::ALL, |_| ());
        }
    )*};
}

fn write(storage: &Storage, at: usize, bytes: &[u8]) {
    // SAFETY: inside the range; what else would make it unsound is noticed, or the model fails to show it.
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

misuses! {
    /// Writes a byte again.
    write_twice: |s| write(s, 0, b"abc"), |s| write(s, 2, b"c");
    /// Reads one byte more than was written.
    read_too_far: |s| write(s, 0, b"abc"), |s| read(s, 0, 4);
    /// Reads what another thread wrote and did not publish.
    read_unpublished: |s| write(s, 0, b"abc"), |s| read(s, 0, 3);
    /// Writes into a word that another thread writes to, and does not happen after it.
    write_beside_unpublished: |s| write(s, 0, b"abc"), |s| write(s, 3, b"d");
    /// Uses an atomic that another thread made and did not publish.
    load_unpublished: store, load;
    /// Uses bytes as an atomic.
    bytes_as_atomic: |s| write(s, 0, b"abc"), load;
    /// Uses an atomic as bytes.
    atomic_as_bytes: store, |s| write(s, 7, b"a");
}
