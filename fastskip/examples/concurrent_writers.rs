//! Several threads write one list while others read it, without a lock. `cargo run -p fastskip --example concurrent_writers`

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use fastskip::{ConcurrentSkipList, InsertError};

const WRITERS: u64 = 4;
const KEYS: u64 = 50_000;

/// The numbers from 0 to `KEYS`, in a different order for each writer.
fn shuffled(writer: u64) -> impl Iterator<Item = u64> {
    (0..KEYS).map(move |n| (n * 7_919 + writer * 12_345) % KEYS)
}

/// Scans the list while it grows: each scan yields sorted keys, and a later scan yields no fewer keys than an earlier one.
fn read_until(done: &AtomicBool, list: &ConcurrentSkipList) -> usize {
    let mut seen = 0;
    while !done.load(Ordering::Acquire) {
        let mut walk = list.iter().peekable();
        let mut count = 0;
        while let Some(entry) = walk.next() {
            assert!(walk.peek().is_none_or(|next| entry.key < next.key));
            count += 1;
        }
        assert!(count >= seen);
        seen = count;
    }
    seen
}

fn main() {
    let list = ConcurrentSkipList::new();
    let (won, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read_until(&done, &list));
        let (list, won, lost) = (&list, &won, &lost);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    for number in shuffled(writer) {
                        // Every writer tries to insert every key; each key is stored once.
                        match list.try_insert(&number.to_be_bytes(), &writer.to_le_bytes()) {
                            Ok(()) => won.fetch_add(1, Ordering::Relaxed),
                            Err(InsertError::DuplicateKey) => lost.fetch_add(1, Ordering::Relaxed),
                            Err(refusal) => panic!("{refusal}"),
                        };
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        done.store(true, Ordering::Release);
        println!("the last walk beside the writers saw {} entries", reader.join().expect("the reader"));
    });

    let (won, lost) = (won.into_inner() as u64, lost.into_inner() as u64);
    assert_eq!((won, lost), (KEYS, (WRITERS - 1) * KEYS));
    assert!(list.iter().map(|entry| entry.key.to_vec()).eq((0..KEYS).map(|n| n.to_be_bytes().to_vec())));
    // Counts links that another writer changed between a read and the compare-and-swap; each one costs a repeated step.
    println!("{won} keys of {} offered; {} swaps had to be repeated", won + lost, list.stats().cas_failures);
}
