//! Runs one plan, or a piece of it: reads its inputs, writes its output, and returns the edit that replaces the inputs by the output.
//!
//! The run changes nothing but the output files. The caller records the edit, installs the version and then unlinks the inputs (rule 6). After an
//! error the inputs are unchanged and the output is removed, so the plan can be tried again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::compaction::inputs::Inputs;
use crate::compaction::output_sizes::OutputSizes;
use crate::compaction::piece::{self, Consumed};
use crate::compaction::plan::{Action, Plan};
use crate::compaction::retention::{Retention, Tombstones};
use crate::compaction::store::{Limits, OutputSpec, TableStore, Written};
use crate::error::Result;
use crate::manifest::{CompactionStats, VersionEdit};
use crate::table::{OpenRun, RunTable, Table, TableMeta};
use crate::types::{Millis, SeqNo};

/// The result of a plan that is not installed yet.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) edit: VersionEdit,
    /// The new tables; none after a move, or if no entry had to be kept.
    pub(crate) outputs: Vec<Arc<Table>>,
    /// The tables that no version refers to once the edit is installed.
    pub(crate) obsolete: Vec<Arc<Table>>,
}

impl Done {
    pub(crate) fn read_bytes(&self) -> u64 {
        self.edit.stats.levels.iter().map(|level| level.read).sum()
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.edit.stats.levels.iter().map(|level| level.written).sum()
    }
}

/// Runs `plan`, or a piece of it, on its `inputs`. The outputs have the sizes `sizes`, and their filters have `filter_bits` for each key. `None` if
/// the plan was cancelled before it had a result. `retention` has the snapshots and instants.
pub(crate) fn run(
    store: &TableStore,
    plan: &Plan,
    (sizes, filter_bits): (OutputSizes, f64),
    inputs: &[OpenRun],
    (snapshots, instants): (&[SeqNo], &[Millis]),
    cancel: &AtomicBool,
) -> Result<Option<Done>> {
    // A plan with a missing input would drop that table with its data.
    let given = inputs.iter().flat_map(OpenRun::tables).map(RunTable::number);
    assert!(given.eq(plan.tables()), "a plan names other tables than its inputs");
    match plan.action {
        Action::Move => return Ok(Some(moved(plan, inputs))),
        Action::Remove => return Ok(Some(removed(plan, inputs))),
        Action::Rewrite => {}
    }
    let retention = Retention { snapshots, instants, tombstones: Tombstones::KeepOf(&plan.below) };
    let spec = match plan.output.level {
        // A flush makes a single table, since the sequence numbers of several would interleave (V2).
        0 => OutputSpec::flush(filter_bits),
        level => OutputSpec { level, table_bytes: sizes.table_bytes, filter_bits },
    };
    let is_divisible = piece::is_divisible(plan.output);
    let limits = Limits {
        cancel,
        share_bytes: piece::share(plan.bytes, is_divisible),
        piece_bytes: is_divisible.then_some(sizes.piece_bytes),
    };
    let (copied, covered) = Inputs::of_runs(inputs, retention, &store.keyspaces())?;
    let Some(written) = store.write(copied, retention, spec, limits)? else { return Ok(None) };
    finish(store, plan, inputs, written, &covered).map(Some)
}

/// The edit that replaces the inputs, as far as they were read, by the tables that were written. The tables `covered` were left out of the inputs.
fn finish(
    store: &TableStore,
    plan: &Plan,
    inputs: &[OpenRun],
    written: Written,
    covered: &HashSet<u64>,
) -> Result<Done> {
    let tables = || inputs.iter().flat_map(OpenRun::tables);
    let metas: HashMap<u64, TableMeta> = tables().map(|table| (table.number(), table.meta())).collect();
    let consumed = Consumed::of(plan, |number| metas[&number].clone(), written.next.as_ref());
    let pointer = match &written.next {
        Some(next) => {
            let id = store.numbers.allocate().inspect_err(|_| written.remove_from(store))?;
            consumed.pointer(plan, id, Some(next.clone()))
        }
        None => None,
    };
    let read = |table: &RunTable| match &written.next {
        _ if covered.contains(&table.number()) => 0,
        Some(next) if **next <= *table.largest() => table.bytes_before(next),
        Some(_) | None => table.bytes(),
    };
    let outputs = written.tables.iter().map(|output| (plan.output, output.meta().clone()));
    let edit = VersionEdit {
        removed: consumed.removed,
        added: outputs.chain(consumed.narrowed).collect(),
        pointers: pointer.into_iter().collect(),
        pointers_done: plan.pointers_done(),
        stats: stats(plan, inputs, read, written.table_bytes()),
        ..VersionEdit::default()
    };
    let is_done = |table: &&RunTable| consumed.obsolete.contains(&table.number());
    let obsolete = tables().filter(is_done).map(RunTable::table).cloned().collect();
    Ok(Done { edit, outputs: written.tables, obsolete })
}

/// The result of a move: the same tables in another run.
fn moved(plan: &Plan, inputs: &[OpenRun]) -> Done {
    let added = inputs.iter().flat_map(OpenRun::tables).map(|table| (plan.output, table.meta())).collect();
    let mut stats = stats(plan, inputs, RunTable::bytes, 0);
    stats.levels.iter_mut().for_each(|level| level.read = 0);
    Done { edit: VersionEdit { added, stats, ..removal(plan) }, outputs: Vec::new(), obsolete: Vec::new() }
}

/// The result of a removal: no tables replace the inputs.
fn removed(plan: &Plan, inputs: &[OpenRun]) -> Done {
    let obsolete = inputs.iter().flat_map(OpenRun::tables).map(RunTable::table).cloned().collect();
    Done { edit: removal(plan), outputs: Vec::new(), obsolete }
}

/// The edit that removes the inputs of `plan` from their runs.
fn removal(plan: &Plan) -> VersionEdit {
    let removed = plan.inputs.iter().flat_map(|input| input.tables.iter().map(|&number| (input.level, number)));
    VersionEdit { removed: removed.collect(), pointers_done: plan.pointers_done(), ..VersionEdit::default() }
}

/// The statistics of a compaction that reads `read` bytes of each input table and writes `written` bytes.
fn stats(plan: &Plan, inputs: &[OpenRun], read: impl Fn(&RunTable) -> u64, written: u64) -> CompactionStats {
    let mut stats = CompactionStats::default();
    let mut arrived = 0;
    for (input, run) in plan.inputs.iter().zip(inputs) {
        let bytes: u64 = run.tables().iter().map(&read).sum();
        if let Some(level) = stats.levels.get_mut(input.level) {
            level.read += bytes;
        }
        arrived += if input.level < plan.output.level { bytes } else { 0 };
    }
    if let Some(level) = stats.levels.get_mut(plan.output.level) {
        level.arrived = arrived;
        level.written = written;
    }
    stats
}
