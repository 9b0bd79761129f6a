//! Runs one plan: reads its inputs, writes its output, and says by which edit the output takes their place.
//!
//! It changes nothing but the output file. Whoever runs it records the edit, installs the version and then unlinks the
//! inputs (rule 6); after an error the inputs are as before and the output is gone, so that it can be tried again.

use std::sync::atomic::AtomicBool;

use crate::compaction::plan::Plan;
use crate::compaction::retention::Retention;
use crate::compaction::store::{OpenTable, TableStore, Written};
use crate::error::Result;
use crate::iter::EntryIter;
use crate::manifest::VersionEdit;
use crate::types::SeqNo;

/// A merge that is done and not installed.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) edit: VersionEdit,
    /// The output; `None` if nothing had to be kept.
    pub(crate) output: Option<OpenTable>,
}

/// Merges those of `tables` that `plan` names. `None` if it was cancelled.
pub(crate) fn run(
    store: &TableStore,
    plan: &Plan,
    tables: &[OpenTable],
    snapshots: &[SeqNo],
    cancel: &AtomicBool,
) -> Result<Option<Merged>> {
    let inputs: Vec<&OpenTable> = tables.iter().filter(|table| plan.inputs.contains(&table.meta.number)).collect();
    let iters = inputs.iter().map(|input| Box::new(input.table.iter_uncached()) as Box<dyn EntryIter>).collect();
    let retention = Retention { snapshots, drop_tombstones: plan.drop_tombstones };
    let output = match store.write(iters, retention, cancel)? {
        Written::Table(output) => Some(output),
        Written::Nothing => None,
        Written::Cancelled => return Ok(None),
    };
    let read: u64 = inputs.iter().map(|input| input.meta.size).sum();
    let written = output.as_ref().map_or(0, |output| output.meta.size);
    store.counters.compactions.add(1);
    store.counters.compaction_bytes_read.add(read);
    store.counters.compaction_bytes_written.add(written);
    tracing::debug!(inputs = inputs.len(), read, written, "merged tables");
    let edit = VersionEdit {
        removed: inputs.iter().map(|input| (0, input.meta.number)).collect(),
        added: output.iter().map(|output| (0, output.meta.clone())).collect(),
        ..VersionEdit::default()
    };
    Ok(Some(Merged { edit, output }))
}
