//! I6: a limit on entries is handed out to the last one and no further, though shares of it are on their way.

use crate::check::Program;
use crate::mem::quota::{Lease, Quota};

/// Thread 0 takes entries until its shard has leased twice; thread 1 takes one or, with `ALL`, as many as it gets: it is refused
/// only if nothing is left.
pub(super) struct Share<const ALL: bool> {
    quota: Quota,
    leases: [Lease; 2],
}

impl<const ALL: bool> Share<ALL> {
    /// So few that thread 0 leases twice, or once.
    const LIMIT: usize = if ALL { 9 } else { 13 };
    const FIRST: usize = if ALL { 1 } else { 3 };

    fn take(&self, shard: usize) -> bool {
        self.quota.take(1, shard, |shard| &self.leases[shard])
    }
}

impl<const ALL: bool> Program for Share<ALL> {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self { quota: Quota::new(Self::LIMIT, 2), leases: Default::default() }
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            (0..Self::FIRST).for_each(|_| assert!(self.take(0), "I6 broken: refused, and entries are left"));
            return String::new();
        }
        let most = if ALL { Self::LIMIT - Self::FIRST } else { 1 };
        (0..most).for_each(|_| assert!(self.take(1), "I6 broken: refused, and entries are left"));
        String::new()
    }

    fn at_rest(&self) -> String {
        let rest = (0..).take_while(|_| self.take(0)).count();
        format!("{rest} left")
    }
}

pub(super) const TWICE: &[&str] = &["9 left"];
pub(super) const ALL_OF_IT: &[&str] = &["0 left"];
