//! The states that a disk in memory goes through.

use mini_engine::fs::{Disk, MemFs, Operation, Step};

/// The states of the disk of `mem` during `work`, each with the operation that led to it: what a process leaves that is killed there.
pub(crate) fn states_during(mem: &MemFs, work: impl FnOnce()) -> impl Iterator<Item = (Operation, Disk)> {
    let mut disk = mem.disk();
    mem.record();
    work();
    mem.take_record().into_iter().filter_map(move |step| {
        let Step::Operation(operation) = step else { return None };
        disk.apply(&operation).unwrap();
        Some((operation, disk.clone()))
    })
}

/// Whether this makes an edit of the manifest durable.
pub(crate) fn is_edit(operation: &Operation) -> bool {
    operation.to_string().starts_with("sync MANIFEST")
}
