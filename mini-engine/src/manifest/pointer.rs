//! [`CompactPointer`]: where a merge that took a piece is to go on.
//!
//! LevelDB's manifest has a compact pointer for each level: the key from which its next compaction starts. This is the same for a
//! merge that ended before its last key. It decides what is merged next and never what is right: each piece is planned on the
//! version as it is by then, under the rules of all plans, and without the pointer the tables are merged when a policy wants them
//! merged. So nothing has to be checked of a pointer but that it can be read.

use crate::manifest::version::RunId;
use crate::types::Slice;

/// The rest of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompactPointer {
    /// A file number that no file has.
    pub(crate) id: u64,
    /// The newest run with tables that are left; those above it came later and wait for the next merge. On level 0, where each
    /// table is a run, its newest sequence number.
    pub(crate) top: RunId,
    /// Where the rest goes, as what was merged has.
    pub(crate) output: RunId,
    /// The first key that is left.
    pub(crate) from: Slice,
    /// The last key of the whole merge.
    pub(crate) upto: Slice,
    /// Bytes of the tables of the whole merge.
    pub(crate) bytes: u64,
}
