//! [`KeyspaceSet`]: the keyspaces of a database, by number.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::error::{Error, Result};
use crate::options::{Compressions, KeyspaceOptions};
use crate::types::{DEFAULT_KEYSPACE, KeyspaceId, Shown};

/// The maximum length of a keyspace's name, in bytes. The minimum is one.
pub const MAX_KEYSPACE_NAME_LEN: usize = 255;
/// The maximum number of keyspaces of a database at one time, besides the default one.
const MAX_KEYSPACES: usize = 65_535;

/// The properties of a keyspace that the manifest records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyspaceMeta {
    pub(crate) id: KeyspaceId,
    pub(crate) name: Arc<str>,
    pub(crate) options: KeyspaceOptions,
}

/// The difference between two sets of keyspaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyspaceEdit {
    /// The keyspaces that are new or have new options.
    pub(crate) set: Vec<KeyspaceMeta>,
    /// The keyspaces that were dropped.
    pub(crate) dropped: Vec<KeyspaceId>,
    /// The greatest number that was ever assigned.
    pub(crate) last: Option<KeyspaceId>,
}

/// The keyspaces of a database, except the default one. A clone is cheap: an edit of a set copies one path of each map, and shares the rest with the
/// previous set, which flushes and compactions may still use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyspaceSet {
    by_id: RedBlackTreeMapSync<KeyspaceId, KeyspaceMeta>,
    by_name: RedBlackTreeMapSync<Arc<str>, KeyspaceId>,
    compressions: Compressions,
    /// The greatest number that was ever assigned. No number is assigned again: keys of a dropped keyspace may remain in tables.
    last: KeyspaceId,
}

impl KeyspaceSet {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &KeyspaceMeta> {
        self.by_id.values()
    }

    pub(crate) fn named(&self, name: &str) -> Option<&KeyspaceMeta> {
        self.by_name.get(name).and_then(|id| self.by_id.get(id))
    }

    /// Whether the number belongs to an existing keyspace. Otherwise its keyspace was dropped.
    pub(crate) fn is_live(&self, id: KeyspaceId) -> bool {
        !self.are_dropped(id, id)
    }

    /// Whether the numbers from `first` to `last` all belonged to keyspaces that were dropped. A number that was not assigned yet may belong to a
    /// keyspace that is created meanwhile.
    pub(crate) fn are_dropped(&self, first: KeyspaceId, last: KeyspaceId) -> bool {
        let is_given = DEFAULT_KEYSPACE < first && first <= last && last <= self.last;
        is_given && self.by_id.range(first..=last).next().is_none()
    }

    /// Whether any number from `first` to `last` belonged to a keyspace that was dropped. O(keyspaces in between).
    pub(crate) fn some_are_dropped(&self, first: KeyspaceId, last: KeyspaceId) -> bool {
        let (first, last) = (first.max(DEFAULT_KEYSPACE + 1), last.min(self.last));
        first <= last && self.by_id.range(first..=last).count() <= (last - first) as usize
    }

    /// Whether any keyspace was ever dropped. O(1).
    pub(crate) fn has_dropped(&self) -> bool {
        self.by_id.size() < self.last as usize
    }

    /// The compression of the keyspaces that set their own.
    pub(crate) fn compressions(&self) -> &Compressions {
        &self.compressions
    }

    /// Whether there ever was a keyspace.
    pub(crate) fn is_used(&self) -> bool {
        self.last > DEFAULT_KEYSPACE
    }

    /// Creates a keyspace.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a name that is empty or too long; [`Error::Full`] if there are too many.
    pub(crate) fn create(&self, name: &str, options: KeyspaceOptions) -> Result<KeyspaceMeta> {
        if !is_name(name) {
            let what = format!("the name of a keyspace has 1 to {MAX_KEYSPACE_NAME_LEN} bytes, found {}", name.len());
            return Err(Error::InvalidArgument(what));
        }
        let id = self.last.checked_add(1).filter(|_| self.by_id.size() < MAX_KEYSPACES);
        let full = || Error::Full(format!("a database has at most {MAX_KEYSPACES} keyspaces"));
        Ok(KeyspaceMeta { id: id.ok_or_else(full)?, name: name.into(), options })
    }

    /// The keyspaces after `edit`, or a description of the fault in the edit. O(log keyspaces) for each keyspace of the edit.
    pub(crate) fn apply(mut self: Arc<Self>, edit: &KeyspaceEdit) -> Result<Arc<Self>, String> {
        if *edit == KeyspaceEdit::default() {
            return Ok(self);
        }
        let set = Arc::make_mut(&mut self);
        for &id in &edit.dropped {
            set.remove(id).ok_or_else(|| format!("edit drops keyspace {id}, which there is not"))?;
        }
        for meta in &edit.set {
            set.insert(meta)?;
        }
        set.last = set.last.max(edit.last.unwrap_or(0));
        Ok(self)
    }

    fn remove(&mut self, id: KeyspaceId) -> Option<KeyspaceMeta> {
        let meta = self.by_id.get(&id)?.clone();
        self.by_id.remove_mut(&id);
        self.by_name.remove_mut(&meta.name);
        self.compressions.remove_mut(&id);
        Some(meta)
    }

    fn insert(&mut self, meta: &KeyspaceMeta) -> Result<(), String> {
        let id = meta.id;
        let others = self.named(&meta.name).is_some_and(|named| named.id != id);
        let is_again = id <= self.last && !self.by_id.contains_key(&id);
        if id == DEFAULT_KEYSPACE || others || is_again {
            let name = Shown(meta.name.as_bytes());
            return Err(format!("edit adds keyspace {id}, {name}: its number or its name was given before"));
        }
        self.remove(id);
        if let Some(compression) = meta.options.compression {
            self.compressions.insert_mut(id, compression);
        }
        self.by_name.insert_mut(Arc::clone(&meta.name), id);
        self.by_id.insert_mut(id, meta.clone());
        self.last = self.last.max(id);
        Ok(())
    }

    /// An edit that turns an empty set into this one.
    pub(crate) fn as_edit(&self) -> KeyspaceEdit {
        let last = Some(self.last).filter(|_| self.is_used());
        KeyspaceEdit { set: self.iter().cloned().collect(), dropped: Vec::new(), last }
    }
}

pub(super) fn is_name(name: &str) -> bool {
    (1..=MAX_KEYSPACE_NAME_LEN).contains(&name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adding(set: &Arc<KeyspaceSet>, name: &str) -> KeyspaceEdit {
        let meta = set.create(name, KeyspaceOptions::default()).unwrap();
        KeyspaceEdit { set: vec![meta], ..KeyspaceEdit::default() }
    }

    fn dropping(id: KeyspaceId) -> KeyspaceEdit {
        KeyspaceEdit { dropped: vec![id], ..KeyspaceEdit::default() }
    }

    #[test]
    fn numbers_are_never_given_again_also_after_a_rollover() {
        // Catches a number that is assigned again after its keyspace was dropped: the new keyspace would begin with the keys of the old one.
        let set = Arc::<KeyspaceSet>::default();
        assert!(!set.is_used() && set.is_live(0) && !set.has_dropped());
        let set = set.clone().apply(&adding(&set, "a")).unwrap();
        let set = set.clone().apply(&adding(&set, "b")).unwrap();
        assert_eq!(set.named("b").map(|meta| meta.id), Some(2));
        assert!(!set.has_dropped());
        let dropped = set.clone().apply(&dropping(2)).unwrap();
        assert!(dropped.has_dropped());
        assert!(dropped.is_live(1) && !dropped.is_live(2) && dropped.named("b").is_none());
        assert!(dropped.is_live(3), "it may be the next one's");
        assert!(dropped.are_dropped(2, 2) && !dropped.are_dropped(1, 2) && !dropped.are_dropped(2, 3));
        assert!(dropped.some_are_dropped(0, 9) && !dropped.some_are_dropped(0, 1) && !dropped.some_are_dropped(3, 9));
        let rolled = Arc::<KeyspaceSet>::default().apply(&dropped.as_edit()).unwrap();
        assert_eq!(rolled, dropped);
        assert_eq!(rolled.create("b", KeyspaceOptions::default()).unwrap().id, 3);
        assert!(rolled.clone().apply(&adding(&set, "b")).is_ok());
        let again = KeyspaceEdit { set: vec![set.named("b").unwrap().clone()], ..KeyspaceEdit::default() };
        assert!(rolled.clone().apply(&again).is_err());
    }

    #[test]
    fn readers_of_an_older_set_keep_theirs() {
        // Catches an edit that changes a set that was already published.
        let set = Arc::<KeyspaceSet>::default();
        let set = set.clone().apply(&adding(&set, "a")).unwrap();
        let set = set.clone().apply(&adding(&set, "b")).unwrap();
        let published = set.clone();
        let set = set.apply(&dropping(1)).unwrap();
        assert!(published.named("a").is_some() && set.named("a").is_none());
        assert!(published.named("b").is_some() && set.named("b").is_some());
    }

    #[test]
    fn edits_that_name_a_keyspace_twice_or_drop_none_are_refused() {
        // Catches two keyspaces of the same name, one of which could never be reached again, and a damaged manifest that is used.
        let set = Arc::<KeyspaceSet>::default();
        let set = set.clone().apply(&adding(&set, "a")).unwrap();
        assert!(set.clone().apply(&adding(&set, "a")).unwrap_err().contains("given before"));
        assert!(set.clone().apply(&dropping(7)).unwrap_err().contains("there is not"));
        let default = KeyspaceMeta { id: 0, name: "b".into(), options: KeyspaceOptions::default() };
        assert!(set.clone().apply(&KeyspaceEdit { set: vec![default], ..KeyspaceEdit::default() }).is_err());
    }
}
