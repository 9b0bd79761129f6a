//! The positions that belong to the numbers which SCAN returns as cursors.
//!
//! A client expects a decimal number, and a key does not fit into one. So the server stores, for each cursor, the key at which it continues. A
//! position is a key, not an index in a table, so every key that exists during a whole scan is returned exactly once, whatever is written meanwhile.
//!
//! The number and the bytes of the positions are limited; the oldest one is dropped first. A cursor can be used again, so a client can repeat a
//! request whose reply was lost. A number is unknown if its position was dropped or it belongs to an earlier server; then the reply is an error, and
//! the client starts again at 0. A server's numbers begin at the time of its start, so those of an earlier server are not mistaken for its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of stored cursors.
const MOST: usize = 10_000;
/// The maximum number of bytes of the stored keys.
const MOST_BYTES: usize = 16 << 20;

/// The cursors of a server. A cheap handle: clones share the same cursors.
#[derive(Clone, Debug)]
pub struct ScanCursors(Arc<Mutex<Cursors>>);

impl ScanCursors {
    /// Creates cursors whose numbers begin at `first`.
    pub(crate) fn new(first: u64) -> Self {
        Self(Arc::new(Mutex::new(Cursors::new(first))))
    }

    /// Returns a new cursor that continues at the first key at or after `position`.
    pub(crate) fn hand_out(&self, position: Vec<u8>) -> u64 {
        self.lock().hand_out(position)
    }

    /// The position at which a cursor continues, if it is known.
    pub(crate) fn position(&self, number: u64) -> Option<Vec<u8>> {
        self.lock().positions.get(&number).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Cursors> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Cursors {
    positions: HashMap<u64, Vec<u8>>,
    /// The numbers, in the order in which they were assigned.
    order: VecDeque<u64>,
    bytes: usize,
    next: u64,
}

impl Cursors {
    fn new(first: u64) -> Self {
        // Zero is excluded, because it begins a scan. Some clients store cursors in signed numbers, so the two highest bits stay free.
        Self { positions: HashMap::new(), order: VecDeque::new(), bytes: 0, next: (first & (u64::MAX >> 2)).max(1) }
    }

    fn hand_out(&mut self, position: Vec<u8>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.bytes += position.len();
        self.order.push_back(number);
        self.positions.insert(number, position);
        while self.order.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.positions.remove(&oldest).map_or(0, |position| position.len());
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_can_be_used_again_until_newer_ones_have_taken_its_place() {
        // Catches a table that grows without bound, one that forgets a cursor at its first use, and one that drops the newest cursor.
        let cursors = ScanCursors::new(0);
        let first = cursors.hand_out(b"key".to_vec());
        for _ in 0..2 {
            assert_eq!(cursors.position(first).as_deref(), Some(&b"key"[..]));
        }
        let others: Vec<u64> = (0..MOST).map(|_| cursors.hand_out(b"other".to_vec())).collect();
        assert_eq!(cursors.position(first), None);
        assert!(others.iter().all(|&number| cursors.position(number).as_deref() == Some(b"other")));
        let long = cursors.hand_out(vec![7; MOST_BYTES]);
        assert!(cursors.position(long).is_some());
        let left = cursors.lock();
        assert_eq!((left.positions.len(), left.order.len(), left.bytes), (1, 1, MOST_BYTES));
    }
}
