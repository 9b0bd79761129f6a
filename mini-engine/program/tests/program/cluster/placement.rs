//! Groups that are on some of the nodes: the groups of each node, a killed node, and a moved group.

use super::client::Reply;
use super::nodes::Cluster;
use super::path::id_of;
use super::wait_for;
use crate::support::{check_says, names};

const NODES: usize = 5;
const GROUPS: usize = 5;
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

#[test]
fn five_nodes_hold_three_groups_each_and_a_group_moves_to_a_sixth() {
    // Catches a node that stores more than its groups, or that redirects clients wrongly; a group that stops with one node; and a moved group that
    // does not arrive, or whose space is not freed; and a dry run that moves.
    let mut cluster = Cluster::spread(NODES, GROUPS, 3);
    let mut client = cluster.client();
    let check = |cluster: &Cluster, value: &str| {
        let mut client = cluster.client();
        for n in 0..KEYS {
            assert_eq!(client.must(&["GET", &format!("key{n}")]), Reply::value(&format!("{n} {value}")));
        }
    };
    (0..KEYS).for_each(|n| _ = client.must(&["SET", &format!("key{n}"), &format!("{n} first")]));
    for node in 0..NODES {
        let mut expected = [node, node + NODES - 1, node + NODES - 2].map(|group| group % GROUPS);
        expected.sort_unstable();
        assert_eq!(groups_of(&cluster, node), expected, "node {node}");
    }
    check(&cluster, "first");

    cluster.kill(1);
    (0..KEYS).for_each(|n| _ = client.must(&["SET", &format!("key{n}"), &format!("{n} second")]));
    check(&cluster, "second");
    cluster.start(1);

    let sixth = cluster.make_node();
    cluster.start(sixth);
    let (new, any) = (cluster.nodes[sixth].advertised, cluster.nodes[4].advertised);
    check_says(&cluster.admin(&format!("add {new} --to {any}")).refused(4), "expected --groups");
    cluster.admin(&format!("add {new} --to {any} --groups 1")).text();
    let (old, id) = (cluster.nodes[1].advertised, id_of(&cluster, sixth));
    check_says(&cluster.admin(&format!("remove {old} --from {any} --groups 1")).text(), "removed; it frees the space");
    wait_for("the space is freed", || groups_of(&cluster, 1) == [0, 4]);
    assert_eq!(groups_of(&cluster, sixth), [1]);
    check(&cluster, "second");
    for node in [0, 1, sixth] {
        check_says(
            &cluster.status(node),
            &format!("6 nodes, 5 groups|group 1: slots 3276-6552, nodes 3 4 {id}, leader"),
        );
    }

    (0..=NODES).for_each(|node| cluster.kill(node));
    (0..=NODES).for_each(|node| cluster.start(node));
    check(&cluster, "second");
    assert_eq!((groups_of(&cluster, 1), groups_of(&cluster, sixth)), (vec![0, 4], vec![1]));
    for (option, groups) in [(" --dry-run", 1), ("", 2)] {
        let moves = cluster.admin(&format!("rebalance {any}{option}")).text();
        check_says(&moves, &format!("move group |to node {id}\n"));
        assert_eq!(groups_of(&cluster, sixth).len(), groups);
    }
    cluster.check_running();
}
