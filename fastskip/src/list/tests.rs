//! What reads of a table do not show: coins, trails, a list in which every level is in use.

use std::collections::HashSet;

use super::*;
use crate::node::{Draft, Kind};
use crate::search::{NodeRef, Target};
use crate::tuning::LARGE_WORDS;

/// Entries that are keys and no more.
struct Plain;

impl Schema for Plain {
    const META_WORDS: usize = 0;

    fn meta(_: u64) -> impl AsRef<[u64]> {
        [0_u64; 0]
    }

    fn version(_: NodeRef<'_, Self>) -> u64 {
        0
    }
}

fn list(shards: usize) -> List<Plain> {
    List::new(Config { shards, ..Config::default() }).unwrap()
}

fn target(key: &[u8]) -> Target<'_> {
    Target { key, version: 0 }
}

fn insert(list: &List<Plain>, key: &[u8]) {
    let pass = list.enter(0, 1).unwrap();
    let draft = Draft { key, value: b"", kind: Kind::Value, version: 0 };
    assert!(matches!(pass.insert(0, &draft, &mut Fresh(&pass)), Ok(Outcome::New(_))));
}

/// Catches a coin that is tossed for two nodes: of one stay, of two, or of two shards.
#[test]
fn each_node_has_coins_of_its_own() {
    let list = list(3);
    let mut seen = HashSet::new();
    for stay in 0..300 {
        let pass = list.enter(stay, 8).unwrap();
        assert!((0..8).all(|index| seen.insert(pass.coins(index))), "stay {stay}");
    }
}

/// Catches a trail that is not followed where it could be, or where it must not.
#[test]
fn what_belongs_behind_the_last_node_is_known_without_a_search() {
    let list = list(1);
    let is_next = |key: &[u8]| list.enter(0, 0).unwrap().is_next(target(key));
    assert!(!is_next(b"a"));
    insert(&list, b"d");
    insert(&list, b"b");
    assert_eq!([b"a", b"b", b"c", b"d", b"e"].map(|key| is_next(key)), [false, false, true, false, false]);
    insert(&list, b"e");
    assert_eq!([b"c", b"e", b"f"].map(|key| is_next(key)), [false, false, true]);
}

/// Catches searches that begin above the highest level, where the head has no link.
#[test]
fn every_level_may_be_in_use() {
    let list = list(1);
    list.levels.store(MAX_HEIGHT as u32, Ordering::Relaxed);
    for key in [b"b", b"a", b"c"] {
        insert(&list, key);
    }
    assert!(list.top() < MAX_HEIGHT);
    let (node, found) = list.lower_bound(target(b"b"));
    assert!(found && list.node(node).key() == b"b");
    let mut places = Vec::new();
    // In a large table they are searched for at once.
    list.arena.alloc(0, LARGE_WORDS as u32, 0).unwrap();
    assert!(list.is_large());
    list.lower_bounds(&[target(b"c"), target(b"d")], |index, place| places.push((index, place)));
    assert_eq!(places, [(0, list.lower_bound(target(b"c"))), (1, (NIL, false))]);
}
