//! [`Budget`]: the memory that the requests and replies of all clients take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A connection may always have so much.
const ALWAYS: usize = 64 << 10;

/// The bytes of all connections, and how many there may be.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// The bytes of one connection. They are given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub(super) fn new(most: usize) -> Self {
        Self { taken: Arc::default(), most }
    }

    pub(super) fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

impl Share {
    /// Says how many bytes the connection has now. False if it has to end, because all together have too many.
    pub(super) fn set(&mut self, bytes: usize) -> bool {
        // ORDERING: Relaxed; a sum, which orders nothing.
        let taken = &self.budget.taken;
        let all = match bytes.checked_sub(self.bytes) {
            Some(more) => taken.fetch_add(more, Ordering::Relaxed) + more,
            None => taken.fetch_sub(self.bytes - bytes, Ordering::Relaxed) - (self.bytes - bytes),
        };
        self.bytes = bytes;
        all <= self.budget.most || bytes <= ALWAYS
    }

    /// Whether all together have fewer bytes than this.
    pub(super) fn is_below(&self, bytes: usize) -> bool {
        // ORDERING: Relaxed; a sum, which orders nothing.
        self.budget.taken.load(Ordering::Relaxed) < bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_beyond_the_budget_ends_and_gives_back_what_it_had() {
        // Catches bytes that are counted twice, or still after their connection has gone; and a small connection that ends because of a large one.
        let budget = Budget::new(1 << 20);
        let (mut large, mut small) = (budget.share(), budget.share());
        assert!(large.set(1 << 20) && large.set(1 << 19) && large.set(1 << 20));
        assert!(small.set(ALWAYS) && !small.set(ALWAYS + 1));
        drop(large);
        assert!(small.set(1 << 20) && !small.set((1 << 20) + 1));
        drop(small);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }
}
