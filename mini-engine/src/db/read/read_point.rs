//! [`ReadPoint`]: what a read sees.

use crate::db::core::{Core, View};
use crate::table::TableMeta;
use crate::types::SeqNo;

/// Of a view, what is not newer than a sequence number.
#[derive(Clone, Copy)]
pub(super) struct ReadPoint<'a> {
    pub(super) core: &'a Core,
    pub(super) view: &'a View,
    pub(super) seqno: SeqNo,
    /// The tables that reads must not pass.
    pub(super) quarantined: &'a [TableMeta],
}
