//! [`FoundKeyspaces`]: the keyspaces of a damaged database, and the choice of the keys that the new database gets.
//!
//! The names of keyspaces are in the manifest. If it is damaged, some names may be lost: then these keyspaces get new names. A keyspace that was
//! dropped stays dropped: its keys are left out. If the edit that dropped it is lost, it returns, under a new name if its own is lost too.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::manifest::SalvagedManifest;
use crate::manifest::{KeyspaceEdit, KeyspaceMeta, KeyspaceSet};
use crate::options::KeyspaceOptions;
use crate::types::{KeyspaceId, split_stored};

/// Collects the keyspaces of the keys that were read so far.
pub(super) struct FoundKeyspaces<'a> {
    manifest: &'a SalvagedManifest,
    /// The keyspaces whose names are lost.
    unnamed: BTreeSet<KeyspaceId>,
    /// The number of keys of dropped keyspaces.
    pub(super) dropped: u64,
    /// The number of keys without a keyspace, which only damage can cause.
    pub(super) strays: u64,
}

impl<'a> FoundKeyspaces<'a> {
    pub(super) fn new(manifest: &'a SalvagedManifest) -> Self {
        Self { manifest, unnamed: BTreeSet::new(), dropped: 0, strays: 0 }
    }

    /// Whether the new database gets this stored key.
    pub(super) fn keep(&mut self, stored: &[u8]) -> bool {
        let Some((id, _)) = split_stored(stored) else {
            self.strays += 1;
            return false;
        };
        if self.manifest.keyspaces.is_dropped(id) {
            self.dropped += 1;
            return false;
        }
        if !self.manifest.keyspaces.is_named(id) {
            self.unnamed.insert(id);
        }
        true
    }

    /// The new names of keyspaces whose own are lost.
    pub(super) fn made_names(&self) -> Vec<String> {
        self.unnamed.iter().map(|id| self.made_name(*id)).collect()
    }

    fn made_name(&self, id: KeyspaceId) -> String {
        let mut name = format!("recovered-{id}");
        while self.manifest.keyspaces.named().any(|meta| *meta.name == *name) {
            name.push('+');
        }
        name
    }

    /// The set of all keyspaces of the new database.
    pub(super) fn set(&self) -> Result<Arc<KeyspaceSet>, String> {
        let known = &self.manifest.keyspaces;
        let made = |id: &KeyspaceId| KeyspaceMeta {
            id: *id,
            name: self.made_name(*id).into(),
            options: KeyspaceOptions::default(),
        };
        let mut set: Vec<KeyspaceMeta> = known.named().cloned().chain(self.unnamed.iter().map(made)).collect();
        // In ascending order: otherwise a lower number would count as already assigned.
        set.sort_unstable_by_key(|meta| meta.id);
        let last = known.last().max(self.unnamed.last().copied());
        Arc::<KeyspaceSet>::default().apply(&KeyspaceEdit { set, dropped: Vec::new(), last })
    }
}
