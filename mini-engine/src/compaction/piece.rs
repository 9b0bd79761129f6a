//! Compactions in pieces: a compaction may end at a key that it has not read yet, and goes on from there later.
//!
//! A compaction of X bytes needs X bytes of space until its inputs go, and all of its work is lost if the process ends before it. So a
//! compaction takes a *piece*: with the table with which its outputs reach `Options::max_compaction_bytes`, or when the engine stops, it
//! ends before the first key K of which it has read no version. It never ends between two versions of a key. Its edit then
//! * adds the outputs, whose keys all lie below K;
//! * removes the inputs that end before K;
//! * narrows the inputs that reach over K: they stay in their runs with K as lower bound (`manifest/version.rs`);
//! * leaves a compact pointer, which says where the compaction goes on. Inputs that begin at K or after it stay as they are.
//!
//! Why a piece is as right as the whole compaction: the version after it is, for keys below K, the version after the whole compaction, and
//! for the other keys the version before it. What V4 says it says of each key by itself, and it holds in both. V2: a narrowed table keeps
//! its sequence numbers and its place. A compaction into level 0 could not be cut, since its output's numbers would interleave with those
//! of what is left: there a compaction is whole or nothing. V3: outputs end below K, and narrowed tables of the same run begin there; a
//! table's versions of one key are not separated, so all that a run has of a key stays in one table.
//!
//! Tombstones: one is dropped if no table that is older than the output can hold its key, by the version at the time of the plan.
//! The next piece is a plan of its own, made on the version as it is then, so nothing that came in between is overlooked. What a
//! narrowed table held below its bound does not count as held: nothing reads it any more, and no later version shows it, since
//! bounds only rise until the table goes. Nor do keys return when it goes: its file is not in any version then.
//!
//! Crashes: the edit is one record of the manifest, after its outputs are durable (rule 6). Before it the inputs are whole and the
//! outputs are orphans; after it the rest is as described here, in the version and in the pointer.
//!
//! It ends: a piece takes at least one key, its pointer moves up with each, and a piece without the last key writes at least
//! `max_compaction_bytes`, or its share when the engine stops. Newer runs than those of the first piece wait for the next compaction, or
//! the upper keys of the old ones would wait for ever while new ones come in below ([`Context::resume`](super::Context)). What a compaction
//! achieves by its end is in `plan.rs`.
//!
//! Space: beside the data there is at most what one piece has written, and of each run of the compaction the one table that K lies in.
//! Pieces end with a full table, so the outputs are cut as those of the whole compaction would be.

use std::collections::HashSet;

use crate::compaction::plan::{Input, Plan};
use crate::manifest::{CompactPointer, RunId};
use crate::table::TableMeta;
use crate::types::Slice;

/// A compaction that is told to stop goes on until it has done its share, one part in so many of its bytes: so that so many processes
/// that each live shortly finish a compaction, and there are about as many new tables by then.
const SHARES: u64 = 16;
/// More than this no compaction has to do when it is told to stop.
const MAX_SHARE_BYTES: u64 = 16 << 20;

/// What becomes of the inputs of a plan.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Consumed {
    /// Out of their places, each as level and number: those that are done, and the narrowed ones, which come back in.
    pub(crate) removed: Vec<(usize, u64)>,
    /// Where they were, with their new bounds.
    pub(crate) narrowed: Vec<(RunId, TableMeta)>,
    /// Those that are done.
    pub(crate) obsolete: HashSet<u64>,
    /// The newest run with a table that is left.
    top: Option<RunId>,
}

impl Consumed {
    /// Of the inputs of `plan`, as `meta` describes them, with all keys below `next` compacted; all keys if it is `None`.
    pub(crate) fn of(plan: &Plan, meta: impl Fn(u64) -> TableMeta, next: Option<&Slice>) -> Consumed {
        let mut consumed = Consumed::default();
        for Input { level, run, tables } in &plan.inputs {
            for &number in tables {
                let (meta, level) = (meta(number), *level);
                let left = next.filter(|next| **next <= meta.largest);
                match left {
                    None => {
                        consumed.removed.push((level, number));
                        consumed.obsolete.insert(number);
                    }
                    Some(next) if *next > meta.smallest => {
                        let place = RunId { level, run: if level == 0 { 0 } else { *run } };
                        consumed.removed.push((level, number));
                        consumed.narrowed.push((place, meta.narrowed_to(next.clone())));
                    }
                    Some(_) => {}
                }
                if left.is_some() {
                    consumed.top.get_or_insert(RunId { level, run: *run });
                }
            }
        }
        consumed
    }

    /// The pointer to the rest of `plan`, which begins at `next`.
    pub(crate) fn pointer(&self, plan: &Plan, id: u64, next: Option<Slice>) -> Option<CompactPointer> {
        let (from, upto) = (next?, plan.key_range.largest.clone());
        Some(CompactPointer { id, top: self.top?, output: plan.output, from, upto, bytes: plan.bytes })
    }
}

/// Whether a compaction into `output` may take a piece.
pub(crate) fn is_divisible(output: RunId) -> bool {
    output.level > 0
}

/// Bytes of entries that a compaction of `bytes` reads before it stops when it is told to. One that cannot be cut is small as a rule, and
/// goes on to its end if it is.
pub(crate) fn share(bytes: u64, is_divisible: bool) -> u64 {
    match is_divisible {
        true => (bytes / SHARES).min(MAX_SHARE_BYTES),
        false if bytes <= MAX_SHARE_BYTES => u64::MAX,
        false => 0,
    }
}
