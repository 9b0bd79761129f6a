//! Commands that move groups and leaders between nodes.

use super::client::Client;
use super::nodes::Cluster;
use crate::support::{check_says, names, wait_for};

const KEYS: usize = 200;

/// The groups that a node stores.
fn groups_of(cluster: &Cluster, node: usize) -> Vec<usize> {
    let numbers = names(&cluster.nodes[node].directory).into_iter().filter_map(|name| {
        name.to_string_lossy().strip_prefix("state-").map(|number| number.parse().expect("a number"))
    });
    let mut groups: Vec<usize> = numbers.collect();
    groups.sort_unstable();
    groups
}

fn check(mut client: Client) {
    (0..KEYS).for_each(|n| assert_eq!(client.get(&format!("key{n}")), Some(n.to_string())));
}

#[test]
fn groups_and_leaders_move_to_a_new_node() {
    // Catches a command that names other groups than it was given, or moves when it should not; a moved group that does not arrive, is lost in a kill, or
    // whose space is not freed; and a status that does not show it.
    let mut cluster = Cluster::started(3);
    cluster.init("--groups 3 --replicas 2");
    let mut client = cluster.client();
    (0..KEYS).for_each(|n| client.set(&format!("key{n}"), &n.to_string()));
    assert_eq!([0, 1, 2].map(|node| groups_of(&cluster, node)), [[0, 2], [0, 1], [1, 2]]);
    let fourth = cluster.make_node();
    cluster.start(fourth);
    let (new, old, any) = (cluster.nodes[fourth].advertised, cluster.nodes[1].advertised, cluster.nodes[0].advertised);
    check_says(&cluster.admin(&format!("add {new} --to {any}")).refused(4), "expected --groups");
    let added = cluster.admin(&format!("add {new} --to {any} --groups 1")).text();
    let id = added.split(' ').nth(1).expect("a number");
    check_says(&cluster.admin(&format!("remove {old} --from {any} --groups 1")).text(), "removed; it frees the space");
    wait_for("the space is freed", || groups_of(&cluster, 1) == [0]);
    assert_eq!(groups_of(&cluster, fourth), [1]);
    check(cluster.client());

    let moved = |to: &str, expected: &str| {
        assert_eq!(cluster.admin(&format!("move-leader {any} --to {to}")).text(), expected);
    };
    moved(&format!("{id} --groups 1"), &format!("node {id} leads group 1\n"));
    moved(&any.to_string(), "node 1 leads group 0\nnode 1 leads group 2\n");
    for node in [1, fourth] {
        let expected = format!("4 nodes, 3 groups|group 1: slots 5461-10921, nodes 3 {id}, leader node {id}");
        wait_for(&expected, || expected.split('|').all(|part| cluster.status(node).contains(part)));
    }
    let plan = cluster.admin(&format!("rebalance {any} --dry-run")).text();
    assert!(plan.starts_with("let node ") && !plan.contains("no single move"), "{plan}");
    check_says(&cluster.status(1), "leader of 0 2");
    let moves = cluster.admin(&format!("rebalance {any}")).text();
    check_says(&moves, "let node |no single move helps any more");

    (0..=fourth).for_each(|node| cluster.kill(node));
    (0..=fourth).for_each(|node| cluster.start(node));
    check(cluster.client());
    assert_eq!((groups_of(&cluster, 1), groups_of(&cluster, fourth)), (vec![0], vec![1]));
}
