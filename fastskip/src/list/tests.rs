//! What reads of a table do not show: coins, trails, a list in which every level is in use.

use std::collections::HashSet;

use super::*;
use crate::node::{Kind, MAX_HEIGHT, NewNode, Target};
use crate::sync::Ordering;
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
    let writer = list.enter(0, 1).unwrap();
    let new = NewNode { key, value: b"", kind: Kind::Value, version: 0 };
    assert!(matches!(writer.insert(0, &new, &mut ArenaAlloc(&writer)), Ok(Outcome::New(_))));
}

/// Catches a coin that is tossed for two nodes: of one writer, of two, or of two shards.
#[test]
fn each_node_has_coins_of_its_own() {
    let list = list(3);
    let mut seen = HashSet::new();
    for number in 0..300 {
        let writer = list.enter(number, 8).unwrap();
        assert!((0..8).all(|index| seen.insert(writer.coins(index))), "writer {number}");
    }
}

/// Catches a trail that is not followed where it could be, or where it must not.
#[test]
fn what_belongs_behind_the_last_node_is_known_without_a_search() {
    let list = list(1);
    let is_next = |key: &[u8]| list.is_next(list.enter(0, 0).unwrap().trail(), target(key));
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
    let found = list.lower_bound(target(b"b")).with_key();
    assert_eq!(found.map(|id| list.node(id).key()), Some(&b"b"[..]));
    let mut places = Vec::new();
    // In a large table they are searched for at once.
    list.arena.alloc(0, LARGE_WORDS as u32, 0).unwrap();
    assert!(list.is_large());
    list.lower_bounds(&[target(b"c"), target(b"d")], |index, found| places.push((index, found.first, found.has_key)));
    let first = list.lower_bound(target(b"c")).with_key();
    assert!(first.is_some());
    assert_eq!(places, [(0, first, true), (1, None, false)]);
}
