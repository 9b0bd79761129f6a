//! [`SalvagedKeyspaces`]: the keyspaces that are named in manifests, which may be damaged.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{KeyspaceEdit, KeyspaceMeta};
use crate::types::{DEFAULT_KEYSPACE, KeyspaceId};

/// The known facts about the keyspaces of a database.
#[derive(Debug, Default)]
pub(crate) struct SalvagedKeyspaces {
    named: BTreeMap<KeyspaceId, KeyspaceMeta>,
    dropped: BTreeSet<KeyspaceId>,
    last: Option<KeyspaceId>,
    /// Whether no edit of keyspaces is missing.
    pub(super) are_complete: bool,
}

impl SalvagedKeyspaces {
    /// The keyspaces whose names are known.
    pub(crate) fn named(&self) -> impl Iterator<Item = &KeyspaceMeta> {
        self.named.values()
    }

    /// Whether the name of the keyspace is known. The default keyspace has no name.
    pub(crate) fn is_named(&self, id: KeyspaceId) -> bool {
        id == DEFAULT_KEYSPACE || self.named.contains_key(&id)
    }

    pub(crate) fn is_dropped(&self, id: KeyspaceId) -> bool {
        self.dropped.contains(&id) || self.are_complete && !self.is_named(id)
    }

    /// The greatest known number that was assigned.
    pub(crate) fn last(&self) -> Option<KeyspaceId> {
        self.last
    }

    /// Applies an edit; earlier edits may be missing.
    pub(super) fn take(&mut self, edit: KeyspaceEdit) {
        for id in edit.dropped {
            self.named.remove(&id);
            self.dropped.insert(id);
        }
        for meta in edit.set {
            // A missing edit has dropped the older keyspace of that name.
            self.named.retain(|_, named| named.name != meta.name);
            self.last = self.last.max(Some(meta.id));
            self.named.insert(meta.id, meta);
        }
        self.last = self.last.max(edit.last);
    }
}
