//! Nodes that must not start, and clusters that must not be made.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::client::{Connection, Reply};
use super::nodes::{Cluster, serve};
use super::wait_for;
use crate::support::{PATIENCE, Room, check_says, flip, names, run_with};

/// The first file in `directory` whose name ends with `ending`.
fn file(directory: &Path, ending: &str) -> PathBuf {
    let mut paths = names(directory).into_iter().map(|name| directory.join(name));
    let found = paths.find(|path| path.to_string_lossy().ends_with(ending));
    found.unwrap_or_else(|| panic!("no {ending} in {}", directory.display()))
}

#[test]
fn a_second_node_on_a_directory_is_refused_and_the_first_goes_on() {
    // Catches two processes that vote as one node.
    let cluster = Cluster::new(3, 1);
    let second = serve(&cluster.nodes[0].directory, "127.0.0.1:0", "127.0.0.1:0");
    check_says(&run_with(second, b"").refused(4), "node-0|is locked");
    assert_eq!(cluster.client().must(&["SET", "k", "v"]), Reply::Status("OK".into()));
}

#[test]
fn a_node_with_a_damaged_file_is_refused_and_can_be_replaced() {
    // Catches a node that votes, or answers, from a damaged log, and a message that does not name the file.
    let mut cluster = Cluster::new(3, 1);
    let mut client = cluster.client();
    (0..200).for_each(|n| _ = client.must(&["SET", &format!("k{n}"), "v"]));
    let victim = (cluster.leader_of("probe") + 1) % 3;
    cluster.kill(victim);
    // An offset in the part of the log that later writes have recorded as synced.
    const OFFSET: usize = 3000;
    let damaged = file(&cluster.nodes[victim].directory.join("log"), ".log");
    flip(&damaged, OFFSET);
    let said = run_with(cluster.nodes[victim].command(), b"").refused(3);
    check_says(&said, &format!("corruption in |{}|at offset ", damaged.file_name().expect("a name").to_string_lossy()));
    check_says(&said, "next: `mini-engine cluster remove`|empty directory");
    assert!(!said.contains("mini-engine repair"), "{said}");

    let (leader, fresh) = (cluster.leader_of("probe"), cluster.make_node());
    let (at, gone) = (cluster.nodes[leader].advertised, cluster.nodes[victim].advertised);
    cluster.admin(&format!("remove {gone} --from {at}")).text();
    cluster.start(fresh);
    cluster.admin(&format!("add {} --to {at}", cluster.nodes[fresh].advertised)).text();
    let status = cluster.status(leader);
    assert!(status.contains(&cluster.nodes[fresh].advertised.to_string()), "{status}");
    assert!(!status.contains(&gone.to_string()), "{status}");
    let mut reader = Connection::reading(cluster.nodes[fresh].address).expect("connect");
    wait_for("the new node has everything", || {
        (0..200).all(|n| reader.call(&["GET", &format!("k{n}")]).expect("a reply") == Reply::value("v"))
    });
}

#[test]
fn a_cluster_address_that_others_reach_needs_a_secret_and_tls() {
    // Catches a node that accepts log entries from anyone.
    let room = Room::new();
    let directory = room.path("node");
    let said = run_with(serve(&directory, "127.0.0.1:0", "0.0.0.0:0"), b"").refused(2);
    check_says(&said, "0.0.0.0:0|--cluster-secret-file|--cluster-tls-cert");
    assert!(!directory.exists());
}

#[test]
fn at_sighup_a_node_reads_its_secrets_again_and_keeps_them_if_it_cannot() {
    // Catches a node that ends at SIGHUP, or loses its secrets to a file that is being written.
    let (mut cluster, room) = (Cluster::started(0), Room::new());
    let [secrets, ours] = ["node", "ours"].map(|name| room.path(name));
    fs::write(&secrets, "old\n").expect("write");
    let node = cluster.make_node();
    cluster.nodes[node].options = vec!["--cluster-secret-file".into(), secrets.display().to_string()];
    cluster.start(node);
    for (text, logged, admitted, refused) in [
        ("new\r\nold secret of all\n\n", "were read again", "old secret of all", "other"),
        ("\n", "the old secrets and certificates stay", "new", "other"),
        ("other\n                 \n", "the second line counts as a secret too", "new", "other"),
        ("new\nold secret of all\nolder secret of all", "secrets: expected at most 2", "new", "older secret of all"),
        ("new", "were read again", "new", "old secret of all"),
    ] {
        fs::write(&secrets, text).expect("write");
        let begin = cluster.nodes[node].said().len();
        cluster.nodes[node].signal(Signal::HUP);
        wait_for(logged, || cluster.nodes[node].said()[begin..].contains(logged));
        for (secret, said) in [(admitted, "it is in no cluster"), (refused, "the same secret")] {
            fs::write(&ours, secret).expect("write");
            let command = format!("status {} --secret-file {}", cluster.nodes[node].advertised, ours.display());
            check_says(&cluster.admin(&command).refused(4), said);
        }
    }
}

#[test]
fn nodes_that_belong_to_a_cluster_are_not_made_into_another() {
    // Catches an `init` that is accepted twice, or by a node of another cluster, and would let two leaders write one log.
    let mut cluster = Cluster::new(3, 1);
    cluster.client().must(&["SET", "k", "v"]);
    let all: Vec<String> = cluster.nodes.iter().map(|node| node.advertised.to_string()).collect();
    let again = cluster.admin(&format!("init {}", all.join(" ")));
    assert_ne!(again.code, Some(0), "{again:?}");
    let fresh = cluster.make_node();
    cluster.start(fresh);
    let new = cluster.nodes[fresh].advertised.to_string();
    // In the first of these lists, a node keeps its place, and would keep its number.
    for nodes in [[&all[0], &new, &all[1]], [&all[0], &all[1], &new], [&new, &all[0], &all[1]]] {
        let mixed = cluster.admin(&format!("init {} {} {}", nodes[0], nodes[1], nodes[2]));
        assert_ne!(mixed.code, Some(0), "{nodes:?}: {mixed:?}");
    }
    assert_eq!(cluster.client().must(&["GET", "k"]), Reply::value("v"));
    let mut alone = Connection::open(cluster.nodes[fresh].address, PATIENCE).expect("connect");
    let reply = alone.call(&["GET", "k"]).expect("a reply");
    assert!(matches!(&reply, Reply::Error(said) if said.starts_with("CLUSTERDOWN ")), "{reply:?}");
}

#[test]
fn numbers_that_make_no_cluster_and_options_without_an_effect_are_refused() {
    // Catches a group on more nodes than exist, a node without groups, and an option that is silently ignored.
    let cluster = Cluster::started(3);
    let all: Vec<String> = cluster.nodes.iter().map(|node| node.advertised.to_string()).collect();
    let all = all.join(" ");
    check_says(&cluster.admin(&format!("init {all} --replicas 4")).refused(2), "replicas: expected 1 to 3, |found 4");
    check_says(&cluster.admin(&format!("init {all} --replicas 1")).refused(2), "groups: expected at least 3|found 1");
    cluster.admin(&format!("init {all} --replicas 1 --groups 3")).text();
    let room = Room::new();
    for option in [["--durability", "buffered"], ["--checkpoints", "dir"], ["--databases", "5"]] {
        let mut command = serve(&room.path("node"), "127.0.0.1:0", "127.0.0.1:0");
        command.args(option);
        check_says(&run_with(command, b"").refused(2), &format!("--cluster|cannot be used with|{}", option[0]));
    }
}
