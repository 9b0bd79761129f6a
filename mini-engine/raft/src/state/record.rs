//! [`Applied`]: the record of the applied entries in the database. Each batch that changes the database ends with a write of this record. So the
//! record always matches the other data, and a range deletion by the application in the same batch cannot remove it.

use std::io::Result;

use mini_engine::{Db, WriteBatch};
use openraft::RaftTypeConfig;
use openraft::type_config::alias::{LogIdOf, SnapshotMetaOf, StoredMembershipOf};

use crate::codec::{decode, encode};

/// The prefix of the keys that a state machine reserves in the application's database. They sort after most other keys. A full scan shows them.
pub const RESERVED: &[u8] = b"\xff\xffopenraft/";
/// The key of the record.
const APPLIED: &[u8] = b"\xff\xffopenraft/applied";

/// The last entry that was applied, and the last membership.
#[derive(Clone, Debug)]
pub(super) struct Applied<C: RaftTypeConfig> {
    pub(super) last: Option<LogIdOf<C>>,
    pub(super) membership: StoredMembershipOf<C>,
}

impl<C: RaftTypeConfig> Applied<C> {
    /// The record of a database; a default record if the database has none.
    pub(super) fn of(db: &Db) -> Result<Self> {
        let (last, membership) = match db.get(APPLIED)? {
            Some(bytes) => decode(&bytes, "the record of what was applied")?,
            None => (None, StoredMembershipOf::<C>::default()),
        };
        Ok(Self { last, membership })
    }

    pub(super) fn add_to(&self, batch: &mut WriteBatch) -> Result<()> {
        Ok(batch.insert(APPLIED, encode(&(&self.last, &self.membership))?)?)
    }

    pub(super) fn into_meta(self) -> SnapshotMetaOf<C> {
        SnapshotMetaOf::<C> { last_log_id: self.last, last_membership: self.membership }
    }
}
