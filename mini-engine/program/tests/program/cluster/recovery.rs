//! A cluster whose nodes are all lost, and its backup.

use super::client::Reply;
use super::nodes::Cluster;
use crate::support::{Room, check_says, run};

const KEYS: usize = 50;

#[test]
fn a_lost_cluster_comes_back_from_its_backup_and_its_nodes_do_not() {
    // Catches a step of the page that does not work, a backup that lacks something, and an old node that joins the new cluster.
    let (mut cluster, room) = (Cluster::new(3, 2), Room::new());
    let mut client = cluster.client();
    (0..KEYS).for_each(|n| _ = client.must(&["SET", &format!("key{n}"), &format!("{n} saved")]));
    let (backup, old) = (room.path("backup"), cluster.nodes[0].advertised);
    let (said, copied) = cluster.admin(&format!("backup {old} {}", backup.display())).ended(0);
    check_says(&(copied + &said), "group 0: up to log entry |group 1: up to log entry |is complete");
    check_says(&cluster.admin(&format!("backup {old} {}", backup.display())).refused(2), "found that it exists");
    check_says(&run(&format!("verify {}", backup.join("state-1/state-000001").display())).text(), "no damage");
    (0..KEYS).for_each(|n| _ = client.must(&["SET", &format!("key{n}"), "later"]));
    (0..3).for_each(|node| cluster.kill(node));

    let (first, second) = (cluster.make_node(), cluster.make_node());
    let new = cluster.nodes[first].directory.display().to_string();
    let addresses = (cluster.nodes[first].address, cluster.nodes[first].advertised);
    let addresses = format!("--advertise {} --cluster-advertise {}", addresses.0, addresses.1);
    let (said, warned) = cluster.admin(&format!("recover --from {} {new} {addresses}", backup.display())).ended(0);
    check_says(&said, &format!("{new} is the only node of the new cluster"));
    let expected =
        "group 0: up to log entry |group 1: up to |warning: later writes|lost|next: `mini-engine serve --cluster ";
    check_says(&warned, &format!("{expected}{new}`"));
    cluster.start(first);
    cluster.start(second);
    let member = cluster.nodes[first].advertised;
    cluster.admin(&format!("add {} --to {member}", cluster.nodes[second].advertised)).text();
    let mut client = cluster.client();
    let mut check = |value: &str| {
        for n in 0..KEYS {
            assert_eq!(client.must(&["GET", &format!("key{n}")]), Reply::value(&format!("{n} {value}")));
        }
    };
    check("saved");

    cluster.start(0);
    check_says(&cluster.admin(&format!("add {old} --to {member}")).refused(4), "is a node of cluster|already");
    let status = cluster.status(second);
    check_says(&status, &format!("2 nodes, 2 groups|{member}"));
    assert!(!status.contains(&old.to_string()), "{status}");
    check("saved");
}
