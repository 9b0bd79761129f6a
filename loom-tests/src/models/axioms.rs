//! I5, for executions that loom cannot run: a thread that sees an entry and then takes a snapshot finds the entry in the snapshot.
//!
//! loom runs steps one after the other. So a thread that reads a stamp and then increments the clock always gets a value beyond the one that the
//! stamp holds. C++ and the processors guarantee this only if the orderings demand it. So this model does not run executions. It enumerates them:
//! every order of the clock's increments, and every value that the load may return. The model keeps an execution if the axioms of C++ allow it
//! (happens-before has no cycle and does not contradict the reads-from relation of a word's steps). Its three threads do the steps of `stamp.rs`,
//! with the orderings that are parsed from the text of that file:
//!
//! ```text
//!   someone: clock +1               writer: a = clock +0       reader: s = load stamp
//!                                           stamp: 0 -> a              u = clock +1       s seen: s <= u
//! ```

use std::collections::BTreeSet;
use std::time::Instant;

use crate::check::{Depth, Report};
use crate::sources::{ordering, sites};
use crate::sync::Ordering;
use crate::weaken::ord;

const SNAPSHOT: usize = 0;
const READ_CLOCK: usize = 1;
const SET: usize = 2;
const READ_STAMP: usize = 3;
const OWN_SNAPSHOT: usize = 4;
const STEPS: usize = 5;

/// A relation between steps: `relation[a][b]` if step `a` comes before step `b`.
type Relation = [[bool; STEPS]; STEPS];

/// The clock's first value; a stamp that is not set yet is 0.
const FIRST: u64 = 2;
const UNSTAMPED: u64 = 0;

/// The model.
pub(super) struct SeenEntry;

impl SeenEntry {
    /// Enumerates all executions, at any depth.
    ///
    /// # Panics
    /// If an execution that the axioms allow has a snapshot that lacks an entry which its thread saw before.
    pub(super) fn explore(self, _: Depth) -> Report {
        let began = Instant::now();
        let orderings = orderings();
        let (mut executions, mut outcomes) = (0, BTreeSet::new());
        for clock in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let clock = clock.map(|step| [SNAPSHOT, READ_CLOCK, OWN_SNAPSHOT][step]);
            for sees_stamp in [false, true] {
                if is_allowed(&orderings, clock, sees_stamp) {
                    executions += 1;
                    outcomes.insert(outcome(clock, sees_stamp));
                }
            }
        }
        assert!(outcomes.contains("seen") && outcomes.contains("not seen"), "an outcome was never observed");
        Report { executions, outcomes, elapsed: began.elapsed() }
    }
}

/// The orderings in the sources for each step, unless one is weakened.
fn orderings() -> [Ordering; STEPS] {
    let sites = sites();
    ["clock.snapshot", "clock.read", "stamp.set", "stamp.read", "clock.snapshot"].map(|site| {
        let promise = sites.iter().find(|named| named.name == site).expect("the sources name the site");
        ord(site, ordering(&promise.ordering).expect("an ordering"))
    })
}

fn releases(ordering: Ordering) -> bool {
    matches!(ordering, Ordering::Release | Ordering::AcqRel)
}

fn acquires(ordering: Ordering) -> bool {
    matches!(ordering, Ordering::Acquire | Ordering::AcqRel)
}

/// Whether the axioms allow this order of the clock's increments together with a load that sees the stamp or does not.
fn is_allowed(orderings: &[Ordering; STEPS], clock: [usize; 3], sees_stamp: bool) -> bool {
    let (mut happens, mut communicates): (Relation, Relation) = Default::default();
    happens[READ_CLOCK][SET] = true;
    happens[READ_STAMP][OWN_SNAPSHOT] = true;
    // Every increment of the clock reads the value of the one before it, so a release reaches all later increments.
    for (place, earlier) in clock.into_iter().enumerate() {
        for later in clock.into_iter().skip(place + 1) {
            communicates[earlier][later] = true;
            happens[earlier][later] |= releases(orderings[earlier]) && acquires(orderings[later]);
        }
    }
    if sees_stamp {
        communicates[SET][READ_STAMP] = true;
        happens[SET][READ_STAMP] = releases(orderings[SET]) && acquires(orderings[READ_STAMP]);
    } else {
        communicates[READ_STAMP][SET] = true;
    }
    close(&mut happens);
    let contradicts = |a: usize, b: usize| happens[a][b] && (a == b || communicates[b][a]);
    !(0..STEPS).any(|a| (0..STEPS).any(|b| contradicts(a, b)))
}

/// Makes a relation transitive.
fn close(relation: &mut Relation) {
    for through in 0..STEPS {
        for from in 0..STEPS {
            for to in 0..STEPS {
                relation[from][to] |= relation[from][through] && relation[through][to];
            }
        }
    }
}

/// The reader's observation.
fn outcome(clock: [usize; 3], sees_stamp: bool) -> String {
    let mut now = FIRST;
    let mut read = [UNSTAMPED; STEPS];
    for step in clock {
        read[step] = now;
        now += u64::from(step != READ_CLOCK);
    }
    if !sees_stamp {
        return "not seen".to_owned();
    }
    let (stamp, snapshot) = (read[READ_CLOCK], read[OWN_SNAPSHOT]);
    assert!(
        stamp <= snapshot,
        "I5 broken: seen with stamp {stamp}, and not in the snapshot {snapshot} taken afterwards"
    );
    "seen".to_owned()
}
