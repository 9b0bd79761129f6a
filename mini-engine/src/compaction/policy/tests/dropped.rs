//! Tables of dropped keyspaces are removed, and no others.

use super::super::*;
use crate::compaction::in_progress::InProgress;
use crate::compaction::plan::Action;
use crate::manifest::test_tables::table;
use crate::manifest::{KeyspaceEdit, KeyspaceMeta, KeyspaceSet, MAX_LEVELS, RunId, Version, VersionEdit};
use crate::options::Options;
use crate::table::TableMeta;
use crate::types::{KeyPrefix, KeyspaceId, Slice};
use std::sync::Arc;

/// Keyspaces 1 to 6 were created, and only `left` are not dropped.
fn keyspaces(left: &[KeyspaceId]) -> Arc<KeyspaceSet> {
    let options = crate::options::KeyspaceOptions::default();
    let meta = |&id: &KeyspaceId| KeyspaceMeta { id, name: id.to_string().into(), options: options.clone() };
    let edit = KeyspaceEdit { set: left.iter().map(meta).collect(), dropped: Vec::new(), last: Some(6) };
    Arc::<KeyspaceSet>::default().apply(&edit).unwrap()
}

/// A table with keys from a keyspace to another one.
fn spanning(number: u64, first: KeyspaceId, last: KeyspaceId) -> TableMeta {
    TableMeta { smallest: stored(first, "a"), largest: stored(last, "b"), ..table(number, number, number) }
}

fn stored(id: KeyspaceId, key: &str) -> Slice {
    KeyPrefix::of(id).with_stored(key.as_bytes(), |stored| Slice::from(stored))
}

#[test]
fn tables_whose_keyspaces_are_all_dropped_go_first_and_unread() {
    // Catches a removed table with keys of a live keyspace, a table of dropped keyspaces that stays, and a removal that waits for other compactions.
    let below = RunId { level: MAX_LEVELS - 1, run: 1 };
    let added = vec![
        (RunId::LEVEL_0, spanning(20, 2, 2)),
        (RunId::LEVEL_0, spanning(21, 1, 2)),
        (below, spanning(10, 0, 0)),
        (below, spanning(11, 1, 3)),
        (below, TableMeta { smallest: stored(3, "c"), largest: stored(3, "d"), ..spanning(12, 3, 3) }),
        (below, spanning(13, 4, 6)),
    ];
    let version = Version::default().apply(&VersionEdit { added, ..VersionEdit::default() }).unwrap();
    let (options, in_progress) = (Options::default().l0_trigger(1), InProgress::default());
    let picked = |left: &[KeyspaceId], work: Work| {
        let keyspaces = keyspaces(left);
        let context = Context {
            version: &version,
            options: &options,
            in_progress: &in_progress,
            is_scanned_often: false,
            is_tight: false,
            keyspaces: &keyspaces,
            instant: 0,
        };
        let plan = pick(&context, work).filter(|plan| plan.action == Action::Remove);
        plan.map(|plan| plan.tables().collect::<Vec<_>>())
    };
    assert_eq!(picked(&[1, 3, 5], Work::Level0), Some(vec![20]));
    assert_eq!(picked(&[1, 3, 5], Work::Deeper), None);
    assert_eq!(picked(&[1], Work::Any), Some(vec![20]));
    assert_eq!(picked(&[1], Work::Deeper), Some(vec![12, 13]));
    assert_eq!(picked(&[], Work::Level0), Some(vec![21, 20]));
    assert_eq!(picked(&[], Work::Deeper), Some(vec![11, 12, 13]));
    assert_eq!(picked(&[1, 2, 3, 4, 5, 6], Work::Any), None);
}
