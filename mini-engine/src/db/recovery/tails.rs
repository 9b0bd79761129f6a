//! Bounds how many torn tails are kept: a process that is killed often would else fill the disk with them.
//!
//! Only tails without a whole batch go, the oldest first: nothing in them can be read back. All others stay until somebody removes
//! them. It happens at the end of an open, and what a crash leaves of it is for the next one.

use super::report::RecoveryReport;
use crate::compaction::TableStore;
use crate::error::{Error, Result};
use crate::manifest::{FileKind, TAIL_ASIDE};
use crate::wal;

/// Torn tails that are kept, whatever is in them.
const KEPT: usize = 16;

/// Removes the oldest torn tails that hold no whole batch, down to [`KEPT`] in all.
pub(super) fn bound_tails(store: &TableStore, report: &mut RecoveryReport) -> Result<()> {
    let Some(torn) = report.torn.as_ref().and_then(|torn| torn.kept.as_ref()) else { return Ok(()) };
    let names = store.fs.read_dir(&store.dir).map_err(Error::io("list", &store.dir))?;
    let number = |name: &std::ffi::OsString| match FileKind::of(name) {
        FileKind::Aside(number) if name.to_string_lossy().ends_with(TAIL_ASIDE) => Some(number),
        _ => None,
    };
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    let mut left = numbers.len();
    for number in numbers {
        let path = store.dir.join(wal::file_name(number) + TAIL_ASIDE);
        if left <= KEPT || path == *torn {
            break;
        }
        // One that cannot be read is kept too.
        let is_empty = wal::salvage(&*store.fs, &path, number, None, |_, _| Ok(())).is_ok_and(|log| log.is_empty());
        if is_empty {
            store.unlink(&path);
            left -= 1;
        }
    }
    Ok(())
}
