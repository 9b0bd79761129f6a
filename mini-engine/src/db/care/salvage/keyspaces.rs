//! [`FoundKeyspaces`]: the keyspaces of a damaged database, and which of their keys the new one has.
//!
//! The names are in the manifest. If it is damaged, some may be lost: then the keyspaces of the keys that are found get new names. A keyspace that was
//! dropped stays so: its keys are left out. If the edit that dropped it is lost, it comes back, under a new name if its own is lost too.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::manifest::SalvagedManifest;
use crate::manifest::{KeyspaceEdit, KeyspaceMeta, KeyspaceSet};
use crate::options::KeyspaceOptions;
use crate::types::{KeyspaceId, split_stored};

/// The keyspaces of the keys so far.
pub(super) struct FoundKeyspaces<'a> {
    manifest: &'a SalvagedManifest,
    /// Those whose names are lost.
    unnamed: BTreeSet<KeyspaceId>,
    /// Keys of keyspaces that were dropped.
    pub(super) dropped: u64,
    /// Keys that belong to no keyspace, which only damage leads to.
    pub(super) strays: u64,
}

impl<'a> FoundKeyspaces<'a> {
    pub(super) fn new(manifest: &'a SalvagedManifest) -> Self {
        Self { manifest, unnamed: BTreeSet::new(), dropped: 0, strays: 0 }
    }

    /// Whether the new database has this stored key of the damaged one.
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

    /// The names for those whose own are lost.
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

    /// All keyspaces.
    pub(super) fn set(&self) -> Result<Arc<KeyspaceSet>, String> {
        let known = &self.manifest.keyspaces;
        let made = |id: &KeyspaceId| KeyspaceMeta {
            id: *id,
            name: self.made_name(*id).into(),
            options: KeyspaceOptions::default(),
        };
        let mut set: Vec<KeyspaceMeta> = known.named().cloned().chain(self.unnamed.iter().map(made)).collect();
        // In ascending order: a number below an earlier one would count as given before.
        set.sort_unstable_by_key(|meta| meta.id);
        let last = known.last().max(self.unnamed.last().copied());
        Arc::<KeyspaceSet>::default().apply(&KeyspaceEdit { set, dropped: Vec::new(), last })
    }
}
