//! Tests of properties that no read of a table shows: runs of ordered keys, and the cost of searches.

use std::thread::JoinHandle;

use super::*;
use crate::builder::Config;
use crate::index::{Stopper, Ties, counted};
use crate::mem::arena::Layout;
use crate::node::{Kind, NewNode, NodeRef, Schema, Target};
use crate::order::Bytewise;
use crate::sync::Arc;
use crate::tuning::GROUP;

/// A schema whose entries consist of keys only.
struct Plain;

impl Schema for Plain {
    type Order = Bytewise;

    const META_WORDS: usize = 0;
    const HAS_VERSIONS: bool = false;

    fn meta(_: u64) -> impl AsRef<[u64]> {
        [0_u64; 0]
    }

    fn version(_: NodeRef<'_, Self>) -> u64 {
        0
    }
}

fn config(shards: usize, max_memory_bytes: usize) -> Config {
    let config = Config::new();
    Config { arena: Layout { shards, max_memory_bytes, ..config.arena }, ..config }
}

fn list(shards: usize) -> List<Plain> {
    List::new(config(shards, 0)).unwrap()
}

fn target(key: &[u8]) -> Target<'_> {
    Target { key, version: 0 }
}

fn insert(list: &List<Plain>, key: &[u8]) {
    insert_by(0, list, key);
}

fn insert_by(shard: usize, list: &List<Plain>, key: &[u8]) {
    let writer = list.enter(shard, 1).unwrap();
    let new = NewNode::new(key, &[], Kind::Value, 0, 0);
    assert!(writer.insert::<false>(&new, &mut ArenaAlloc::new(&writer)).is_ok());
}

/// A list of keys, inserted in the order of the iterator.
pub(crate) fn list_of(keys: impl Iterator<Item = Vec<u8>>) -> List<impl Schema> {
    let list = list(1);
    keys.for_each(|key| insert(&list, &key));
    list
}

/// A list of `count` keys that were inserted in order.
pub(crate) fn ascending(count: u64) -> List<impl Schema> {
    list_of((0..count).map(|key| key.to_be_bytes().to_vec()))
}

/// A list of a few keys with a limit on memory, in bytes.
pub(crate) fn small(max_memory_bytes: usize) -> List<impl Schema> {
    let list = List::<Plain>::new(config(1, max_memory_bytes)).unwrap();
    (0..100_u64).for_each(|key| insert(&list, &key.to_be_bytes()));
    list
}

/// Catches a run that is not followed although it could be, or is followed although it must not be.
#[test]
fn what_belongs_behind_the_last_node_is_known_without_a_search() {
    let list = list(1);
    let is_next = |key: &[u8]| {
        let writer = list.enter(0, 0).unwrap();
        writer.run().is_some_and(|run| run.follow(&list.index, target(key)).is_some())
    };
    assert!(!is_next(b"a"));
    insert(&list, b"d");
    insert(&list, b"b");
    assert_eq!([b"a", b"b", b"c", b"d", b"e"].map(|key| is_next(key)), [true, false, true, false, false], "descending");
    insert(&list, b"e");
    assert!(![b"a", b"c", b"f"].iter().any(|key| is_next(*key)), "neither");
    insert(&list, b"f");
    assert_eq!([b"a", b"e", b"f", b"g"].map(|key| is_next(key)), [false, false, false, true], "ascending");
}

/// Catches a run that uses partial keys although they do not fit, or does not use them although they fit.
#[test]
fn a_run_knows_whether_the_prefix_of_its_leaf_fits() {
    let list = list(1);
    let key = |number: u64| [&b"prefix"[..], &number.to_be_bytes()].concat();
    (0..200).for_each(|number| insert(&list, &key(number)));
    let follow = |key: &[u8]| {
        let writer = list.enter(0, 0).unwrap();
        writer.run().and_then(|run| run.follow(&list.index, target(key))).unwrap().0
    };
    let prefix = follow(&key(200)).prefix as usize;
    assert!(prefix > 0 && !follow(&key(200)).is_misled);
    let [fits, lacks] = [prefix, prefix - 1].map(|shared| [&key(199)[..shared], &[255]].concat());
    assert!(!follow(&fits).is_misled && follow(&lacks).is_misled);
}

/// The finaliser of splitmix64.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number of nodes and blocks that a lookup of one of the keys visits: the maximum and the mean.
fn cost(list: &List<Plain>, keys: &[impl AsRef<[u8]>]) -> (usize, f64) {
    let costs = keys.iter().map(|key| list.search_cost(target(key.as_ref())));
    let costs: Vec<_> = costs.map(|cost| cost.nodes + cost.blocks).collect();
    (*costs.iter().max().unwrap(), costs.iter().sum::<usize>() as f64 / costs.len() as f64)
}

/// Catches a group whose searches begin without the index, or at another place than each search alone: the results would be right, but each search
/// would need another descent.
#[test]
fn searches_of_a_group_begin_where_each_alone_begins() {
    let patterns: [fn(u64) -> Vec<u8>; 2] = [
        |i| mix(i).to_be_bytes().to_vec(),
        |i| [&mix(i / 8).to_be_bytes()[..4], b"common", &mix(i).to_be_bytes()].concat(),
    ];
    for pattern in patterns {
        let list = list(1);
        let keys: Vec<_> = (0..6000).map(pattern).collect();
        keys.iter().for_each(|key| insert(&list, key));
        for keys in keys.chunks(GROUP) {
            let targets: Vec<_> = keys.iter().map(|key| target(key)).collect();
            let mut probes = [None; GROUP];
            list.probe_group(&targets, &mut probes);
            for (target, probe) in targets.into_iter().zip(probes) {
                assert!(probe.is_some());
                assert_eq!(probe, list.index.probe(target, Ties::Guess(None), &mut ()));
            }
        }
    }
}

/// A list of `keys`; a thread is inserting the last key, and is stopped at a step of changing blocks.
fn stopped_in_insert(keys: &[impl AsRef<[u8]>], stop_at: u32) -> (Arc<List<Plain>>, Stopper, JoinHandle<()>) {
    let list = Arc::new(list(2));
    let (last, before) = keys.split_last().unwrap();
    let last = last.as_ref().to_owned();
    before.iter().for_each(|key| insert(&list, key.as_ref()));
    let (stopper, prepare) = Stopper::at(stop_at);
    let other = Arc::clone(&list);
    let writer = std::thread::spawn(move || {
        prepare();
        insert(&other, &last);
    });
    assert!(stopper.wait(), "no step {stop_at}");
    (list, stopper, writer)
}

/// Catches lookups that leave no hints where they had to walk, so that later lookups walk again. A writer is stopped in a leaf, which gets no hints.
#[test]
fn a_lookup_that_walked_leaves_hints_for_the_next() {
    let keys: Vec<_> = (0..20_u64).map(|key| key.to_be_bytes()).collect();
    let dry = list(2);
    let steps: Vec<_> = keys.iter().map(|key| counted(|| insert(&dry, key))).collect();
    let first = steps.iter().position(|&steps| steps > 0).unwrap();
    let cost_at = |stop_at| {
        let (list, stopper, writer) = stopped_in_insert(&keys[..=first], stop_at);
        // Few enough that the writer does not mend.
        keys[first + 1..].iter().for_each(|key| insert_by(1, &list, key));
        stopper.go_on();
        writer.join().unwrap();
        let (before, _) = cost(&list, &keys);
        // The last key is the farthest from any hint.
        assert!(keys.last().is_some_and(|key| list.index.lower_bound(target(key)).has_key));
        (before, cost(&list, &keys).0)
    };
    for (before, after) in (1..=steps[first]).map(cost_at) {
        assert!(before > 15 && after <= 10, "{before} nodes and blocks at first, then {after}");
    }
}

/// Catches lookups that add hints where a walk of one or two steps is enough, or where ties mislead searches, which no hint changes: they would write
/// to blocks that other threads read.
#[test]
fn lookups_leave_an_index_alone_that_is_as_good_as_it_gets() {
    let patterns: [fn(u64) -> Vec<u8>; 4] = [
        |i| mix(i).to_be_bytes().to_vec(),
        |i| i.to_be_bytes().to_vec(),
        |i| [&[b'x'; 300][..], &mix(i).to_be_bytes()].concat(),
        |i| [&[b'x'; 20][if i % 8 == 0 { 20 } else { 0 }..], &mix(i).to_be_bytes()].concat(),
    ];
    for pattern in patterns {
        let list = list(1);
        (0..6000).for_each(|i| insert(&list, &pattern(i)));
        let steps = counted(|| (0..6000).for_each(|i| assert!(list.index.lower_bound(target(&pattern(i))).has_key)));
        assert_eq!(steps, 0, "steps of changing blocks");
    }
}

/// Catches a writer that keeps hints out of a part of the table for as long as it is stopped, at any step of adding a hint and of splitting blocks up
/// to the root. Also catches a writer that breaks the index when it continues.
#[test]
fn lookups_stay_quick_while_a_writer_is_stopped_at_any_step() {
    let more = 1000;
    type Pattern = fn(u64) -> Vec<u8>;
    let patterns: [(&str, Pattern); 4] = [
        ("ascending", |i| i.to_be_bytes().to_vec()),
        ("descending", |i| (u64::MAX - i).to_be_bytes().to_vec()),
        ("random", |i| mix(i).to_be_bytes().to_vec()),
        ("tied", |i| format!("/common/{}/config/{}/{i}.log", mix(i) % 9, mix(i) / 9 % 9).into_bytes()),
    ];
    for (name, key) in patterns {
        let keys: Vec<_> = (0..6000).map(key).collect();
        let dry = list(2);
        let steps: Vec<_> = keys.iter().map(|key| counted(|| insert(&dry, key))).collect();
        // The insert that changes the most blocks: it splits blocks up to the root.
        let first = (1000..keys.len() - more).max_by_key(|&i| steps[i]).unwrap();
        let (_, alone) = cost(&dry, &keys[..first + more]);
        for stop_at in 1..=steps[first] {
            let (list, stopper, writer) = stopped_in_insert(&keys[..=first], stop_at);
            let (most, _) = cost(&list, &keys[..first]);
            assert!(most <= 150, "{name}, stopped at {stop_at}, at once: {most} nodes and blocks");
            keys[first + 1..first + more].iter().for_each(|key| insert_by(1, &list, key));
            let (most, mean) = cost(&list, &keys[..first + more]);
            assert!(most <= 150, "{name}, stopped at {stop_at}: {most} nodes and blocks");
            assert!(mean <= 2.0 * alone, "{name}, stopped at {stop_at}: {mean}, alone {alone}");
            stopper.go_on();
            writer.join().unwrap();
            list.validate(true);
            keys[..first + more].iter().for_each(|key| assert!(list.index.lower_bound(target(key)).has_key));
            let (_, mean) = cost(&list, &keys[..first + more]);
            assert!(mean <= 1.5 * alone, "{name}, stopped at {stop_at} and gone on: {mean}, alone {alone}");
        }
    }
}
