//! I6: exactly the limit of entries can be taken, even while leases of it move between shards.

use crate::check::Program;
use crate::mem::quota::{Lease, Quota};

/// A limit, and the parts that two shards have leased of it.
pub(super) type Leased = (Quota, [Lease; 2]);

fn take((quota, leases): &Leased, shard: usize) -> bool {
    quota.take(1, shard, |shard| &leases[shard])
}

/// Thread 0 takes entries until its shard has leased twice. Thread 1 takes one entry or, with `all`, entries until it is refused, which happens
/// only if nothing is left.
pub(super) fn share(all: bool) -> Program<Leased> {
    // Limits so small that thread 0 leases twice, or once.
    let (limit, first) = if all { (9, 1) } else { (13, 3) };
    let takes = [first, if all { limit - first } else { 1 }];
    Program::new(move || (Quota::new(limit, 2), Default::default()))
        .threads(2, move |leased, number| {
            (0..takes[number]).for_each(|_| assert!(take(leased, number), "I6 broken: refused, and entries are left"));
        })
        .at_rest(|leased| format!("{} left", (0..).take_while(|_| take(leased, 0)).count()))
        .expects(if all { &["0 left"] } else { &["9 left"] })
}
