//! A node on a file system that is actually full.

use super::client::{get, reader};
use super::nodes::Cluster;
use crate::support::mount::Mount;
use crate::support::{check_says, wait_for};

const DISK: u64 = 96 << 20;
const ENOUGH: u64 = 1 << 30;
const VALUE: usize = 100_000;
/// The number of values that are together larger than the disk.
const MOST: usize = 4000;

#[test]
fn a_node_with_a_full_disk_ends_and_the_others_go_on() {
    // Catches a node that hangs, one that acknowledges entries which it could not store, and one that cannot rejoin when there is room.
    let Some(mount) = Mount::new(DISK, "a_node_with_a_full_disk_ends_and_the_others_go_on") else { return };
    let mut cluster = Cluster::started(2);
    let small = cluster.make_node();
    cluster.nodes[small].directory = mount.path("node");
    cluster.start(small);
    cluster.init("");
    let (mut client, mut written) = (cluster.client(), 0);
    let (mut ended, value) = (None, "v".repeat(VALUE));
    while ended.is_none() {
        assert!(written < MOST, "it went on without space, and said: {}", cluster.nodes[small].said());
        client.set(&format!("k{written}"), &format!("{written} {value}"));
        written += 1;
        ended = cluster.ended(small);
    }
    let status = ended.expect("it has ended");
    assert_eq!(status.code(), Some(4), "{}", cluster.nodes[small].said());
    check_says(&cluster.nodes[small].said(), "No space left");
    client.set("after", "v");

    mount.resize(ENOUGH);
    cluster.start(small);
    let mut reader = reader(cluster.nodes[small].address);
    wait_for("the node has the last value", || get(&mut reader, "after").is_ok_and(|found| found.is_some()));
    for n in (0..written).step_by(37) {
        assert_eq!(get(&mut reader, &format!("k{n}")).expect("a reply"), Some(format!("{n} {value}")));
    }
    // The node is killed before its disk is unmounted.
    cluster.kill(small);
}
