//! Nodes that must not start, clusters that must not be made, and connections without the secret.

use std::fs;

use rustix::process::Signal;

use super::nodes::{Cluster, serve};
use crate::support::{Room, check_says, flip, names, run_with, wait_for};

#[test]
fn a_node_with_a_damaged_log_is_refused() {
    // Catches a node that votes, or answers, from a damaged log, and a message that does not name the file or recommends a repair.
    let mut cluster = Cluster::new(1, 1);
    let mut client = cluster.client();
    (0..200).for_each(|n| client.set(&format!("k{n}"), "v"));
    cluster.kill(0);
    // An offset in the part of the log that later writes have recorded as synced.
    const OFFSET: usize = 3000;
    let log = cluster.nodes[0].directory.join("log");
    let damaged = names(&log).into_iter().find(|name| name.to_string_lossy().ends_with(".log")).expect("a log");
    flip(&log.join(&damaged), OFFSET);
    let said = run_with(cluster.nodes[0].command(), b"").refused(3);
    check_says(&said, &format!("corruption in |{}|at offset ", damaged.to_string_lossy()));
    check_says(&said, "next: `mini-engine cluster remove`|empty directory");
    assert!(!said.contains("mini-engine repair"), "{said}");
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
fn numbers_that_make_no_cluster_and_options_that_do_not_fit_are_refused() {
    // Catches a group on more nodes than exist, a node without groups, an option that is silently ignored, a node that accepts log entries from anyone,
    // and two processes that vote as one node.
    let cluster = Cluster::started(3);
    let all: Vec<String> = cluster.nodes.iter().map(|node| node.advertised.to_string()).collect();
    let all = all.join(" ");
    check_says(&cluster.admin(&format!("init {all} --replicas 4")).refused(2), "replicas: expected 1 to 3, |found 4");
    check_says(&cluster.admin(&format!("init {all} --replicas 1")).refused(2), "groups: expected at least 3|found 1");
    cluster.init("--replicas 1 --groups 3");
    let room = Room::new();
    let (new, used, local) = (room.path("node"), cluster.nodes[0].directory.clone(), "127.0.0.1:0");
    for (directory, peers, option, code, expected) in [
        (&new, local, "--durability=buffered", 2, "--cluster|cannot be used with|--durability"),
        (&new, local, "--checkpoints=dir", 2, "--cluster|cannot be used with|--checkpoints"),
        (&new, local, "--databases=5", 2, "--cluster|cannot be used with|--databases"),
        (&new, "0.0.0.0:0", "--slow=1", 2, "0.0.0.0:0|--cluster-secret-file|--cluster-tls-cert"),
        (&used, local, "--slow=1", 4, "node-0|is locked"),
    ] {
        let mut command = serve(directory, local, peers);
        command.arg(option);
        check_says(&run_with(command, b"").refused(code), expected);
    }
    assert!(!new.exists());
    assert!((0..24).any(|n| cluster.leader_of(&format!("probe {n}")) == 0), "the first node goes on");
}
