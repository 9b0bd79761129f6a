//! Comparisons of replicas.

use std::fs::{self, File};
use std::io::Write;

use futures_util::future::join;
use mini_engine_server::replicated::{KEYSPACE, slot_of};
use tokio::time::timeout;

use super::support::{Cluster, LONG};
use crate::checks::Checked;
use crate::control::Check;

async fn check(cluster: &Cluster, node: u64) -> Vec<Check> {
    let mut checks = Vec::new();
    cluster.control.check(&cluster.address(node), |check| checks.push(check)).await.unwrap();
    checks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_are_equal_while_keys_are_written_and_expire() {
    // Catches hashes at different entries or instants, or of keys that have expired on one node only.
    let cluster = Cluster::new(3, 2).await;
    let write = async {
        for n in 0..150 {
            cluster.talk(&format!("SET key{n} {n} PX {} => +OK", 1 + n % 40)).await;
            cluster.talk(&format!("INCR count{} => :{}", n % 7, n / 7 + 1)).await;
        }
    };
    let compare = async {
        for _ in 0..10 {
            let checks = check(&cluster, 1).await;
            assert!(checks.iter().map(|check| check.group).eq(0..2));
            let are_equal = |check: &Check| check.differences.is_empty() && check.unchecked.is_empty();
            assert!(checks.iter().all(|check| are_equal(check) && check.nodes.len() == 3), "{checks:?}");
        }
    };
    join(write, compare).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_difference_is_found_with_its_node_and_slots() {
    // Catches a check that cannot fail: in keys, values and times of expiry, and one that takes a node that is away for an equal one.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.make_leader(1).await;
    cluster.talk("SET a 1 EX 1000 => +OK | SET b 1 => +OK").await;
    let stored = |node| cluster.groups(node).get(0).unwrap().db().keyspace(KEYSPACE).unwrap();
    // After a value of this length, a new iterator continues at `a`.
    (1..=3).for_each(|node| stored(node).insert("0", vec![0; 2 << 20]).unwrap());
    let first = check(&cluster, 1).await.remove(0);
    assert_eq!(first.differences, []);
    let differences = async || check(&cluster, 1).await.remove(0).differences;
    let range = |key: &str| {
        let first = slot_of(key.as_bytes()) / 256 * 256;
        (first, first + 255)
    };
    stored(3).set_expiry("a", None).unwrap();
    assert_eq!(differences().await, [(range("a"), vec![3])]);
    stored(3).insert("b", "2").unwrap();
    let mut expected = vec![(range("a"), vec![3]), (range("b"), vec![3])];
    expected.sort_unstable();
    assert_eq!(differences().await, expected);
    let checked = cluster.groups(3).get(0).unwrap().checked(first.position.index);
    assert!(matches!(checked, Checked::Done(Err(_))), "a command that waits for an earlier check ends: {checked:?}");

    cluster.stop(2).await;
    let found = check(&cluster, 1).await.remove(0);
    assert!(found.unchecked.len() == 1 && found.unchecked[0].0 == 2 && found.nodes == [1, 3], "{found:?}");
    assert!(found.differences.iter().all(|(_, nodes)| *nodes == [1, 3]) && found.differences.len() == 2, "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_read_its_data_is_not_compared_and_ends() {
    // Catches damage that a check finds, and after which the node continues.
    let cluster = Cluster::new(3, 1).await;
    cluster.talk("SET a 1 => +OK").await;
    cluster.wait_for_stale(3, "GET a", "$1").await;
    let group = cluster.groups(3).get(0).unwrap();
    group.db().flush().unwrap();
    for file in fs::read_dir(cluster.dir.path().join("3/state-0/state-000000")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sst") {
            File::options().write(true).open(path).unwrap().write_all(&[0; 64]).unwrap();
        }
    }
    let found = check(&cluster, 1).await.remove(0);
    assert!(found.nodes == [1, 2] && found.unchecked[0].0 == 3, "{found:?}");
    let (_, ended) = timeout(LONG, cluster.nodes[&3].local().parts.ended.wait()).await.unwrap();
    assert!(ended.contains("block checksum"), "{ended}");
}
