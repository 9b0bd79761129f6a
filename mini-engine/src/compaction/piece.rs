//! Compactions in pieces: a compaction may stop before a key that it has not read yet, and continue from there later.
//!
//! A compaction of X bytes needs X bytes of space until its inputs are removed, and all of its work is lost if the process ends before it. So a
//! compaction is divided into *pieces*. When a full table makes the outputs reach `Options::max_compaction_bytes`, or when the engine stops, the
//! piece ends before the first key K of which no version was read. It never ends between two versions of a key. The edit of a piece
//! * adds the outputs, whose keys all lie below K;
//! * removes the inputs that end before K;
//! * narrows the inputs that have keys on both sides of K: they stay in their runs with K as lower bound (`manifest/version.rs`);
//! * leaves a compact pointer, the key at which the compaction continues. Inputs whose first key is K or greater stay unchanged.
//!
//! Why a piece is as correct as the whole compaction: after it, the version is the same as after the whole compaction for keys below K, and the same
//! as before it for the other keys. V4 is a statement about each key by itself, and it holds in both versions. V2: a narrowed table keeps its
//! sequence numbers and its place. A compaction into level 0 is never cut, because the sequence numbers of its output would interleave with those of
//! the remaining inputs. V3: outputs end below K, and narrowed tables of the same run begin there. A piece does not separate a table's versions of
//! one key, so all versions of a key in a run stay in one table.
//!
//! Tombstones: one is dropped if, in the version for which the plan was made, no table older than the output can hold its key. The next piece is a
//! separate plan, made for the version at that time, so every change in between is considered. Entries of a narrowed table below its bound are
//! ignored: no read returns them, and no later version includes them, since bounds only rise until the table is removed. Keys do not return after the
//! removal either: then no version refers to the file.
//!
//! Crashes: the edit is one record of the manifest, after its outputs are durable (rule 6). Before the edit the inputs are whole and the outputs are
//! orphans; after it, the version and the pointer are as described here.
//!
//! Termination: a piece takes at least one key, its pointer rises with each piece, and a piece without the last key writes at least
//! `max_compaction_bytes`, or its share when the engine stops. Runs newer than those of the first piece wait for the next compaction; otherwise new
//! runs could join the lower keys for ever, and the upper keys of the old runs would never be compacted ([`Context::resume`](super::Context)).
//! `plan.rs` describes what a whole compaction achieves.
//!
//! Space: besides the data there is at most the output of one piece, and for each run of the compaction the one table that contains K. Pieces end
//! with a full table, so the outputs are cut in the same way as those of the whole compaction.

use std::collections::HashSet;

use crate::compaction::plan::{Input, Plan};
use crate::manifest::{CompactPointer, RunId};
use crate::table::TableMeta;
use crate::types::Slice;

/// A compaction that must stop first completes its share: its bytes divided by this number. So 16 short-lived processes together finish a compaction,
/// and have written about 16 tables by then.
const SHARES: u64 = 16;
/// The maximum share, in bytes.
const MAX_SHARE_BYTES: u64 = 16 << 20;

/// The effect of a piece on the inputs of its plan.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Consumed {
    /// Tables removed from their runs, each as level and number: finished tables, and narrowed ones, which are added again.
    pub(crate) removed: Vec<(usize, u64)>,
    /// The narrowed tables with their runs and their new bounds.
    pub(crate) narrowed: Vec<(RunId, TableMeta)>,
    /// The finished tables.
    pub(crate) obsolete: HashSet<u64>,
    /// The newest run with a remaining input.
    top: Option<RunId>,
}

impl Consumed {
    /// The state of the inputs of `plan` after all keys below `next` (all if it is `None`) are compacted; `meta` returns a table's metadata.
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

    /// The compact pointer to the rest of `plan`, which begins at `next`.
    pub(crate) fn pointer(&self, plan: &Plan, id: u64, next: Option<Slice>) -> Option<CompactPointer> {
        let (from, upto) = (next?, plan.key_range.largest.clone());
        Some(CompactPointer { id, top: self.top?, output: plan.output, from, upto, bytes: plan.bytes })
    }
}

/// Whether a compaction into `output` may be cut into pieces.
pub(crate) fn is_divisible(output: RunId) -> bool {
    output.level > 0
}

/// Bytes of entries that a compaction of `bytes` reads before it may be cancelled. A compaction that cannot be cut is usually small, and then
/// continues to its end.
pub(crate) fn share(bytes: u64, is_divisible: bool) -> u64 {
    match is_divisible {
        true => (bytes / SHARES).min(MAX_SHARE_BYTES),
        false if bytes <= MAX_SHARE_BYTES => u64::MAX,
        false => 0,
    }
}
