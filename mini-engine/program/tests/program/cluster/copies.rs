//! Nodes whose directory is a copy, or has a repaired database: they may have lost what they had acknowledged.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::client::{Connection, Reply};
use super::nodes::{Cluster, serve};
use super::wait_for;
use crate::support::{Room, check_says, names, run, run_with};

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().expect("cp").success());
}

fn put_back(copied: &Path, directory: &Path) {
    fs::remove_dir_all(directory).expect("remove");
    copy(copied, directory);
}

#[test]
fn a_copy_that_is_started_beside_its_node_ends_and_the_node_goes_on() {
    // Catches two processes that vote as one node, and a copy that takes the place of the original.
    let (mut cluster, room) = (Cluster::new(3, 1), Room::new());
    let (original, copied) = ((cluster.leader_of("probe") + 1) % 3, room.path("copy"));
    cluster.pause(original);
    copy(&cluster.nodes[original].directory, &copied);
    cluster.resume(original);
    cluster.client().must(&["SET", "k", "v"]);
    let mut reader = Connection::reading(cluster.nodes[original].address).expect("connect");
    wait_for("the original goes on", || reader.call(&["GET", "k"]).expect("a reply") == Reply::value("v"));
    let said = run_with(serve(&copied, "127.0.0.1:0", "127.0.0.1:0"), b"").refused(2);
    check_says(&said, "another process of node|runs, so this one was started with a copy|empty directory");
    cluster.kill((original + 1) % 3);
    // The original still counts for the majority.
    assert_eq!(cluster.client().must(&["SET", "k", "w"]), Reply::Status("OK".into()));
    assert!(cluster.nodes[original].runs());
}

#[test]
fn only_the_node_changes_its_databases_and_it_refuses_a_repaired_one() {
    // Catches an operator who repairs, compacts or edits a node's database, after which the node votes without what it has acknowledged.
    let (mut cluster, room) = (Cluster::new(1, 1), Room::new());
    cluster.client().must(&["SET", "k", "v"]);
    assert!(cluster.end(0));
    let node = cluster.nodes[0].directory.clone();
    fs::write(node.join("state-0/notes"), "a file of the operator").expect("written");
    let (new, plain) = (room.path("new"), room.path("plain"));
    run(&format!("put '{}' k v", plain.display())).text();
    let commands = [
        "repair DB NEW",
        "checkpoint DB NEW",
        "checkpoint PLAIN DB",
        "compact DB",
        "import DB -",
        "put DB k v",
        "delete DB k",
        "quarantine DB --drop 1",
        "quarantine DB --drop 1 --lose-entries",
        "serve DB --listen 127.0.0.1:0",
    ];
    for database in ["log", "state-0/state-000000", ""] {
        let before = names(&node.join(database));
        for command in commands {
            let of = |path: &Path| path.display().to_string();
            let command = command.replace("DB", &of(&node.join(database))).replace("NEW", &of(&new));
            let said = run(&command.replace("PLAIN", &of(&plain))).refused(2);
            check_says(&said, "belongs to the node of a cluster|cluster remove|empty directory|cp -r");
        }
        assert_eq!((names(&node.join(database)), new.exists()), (before, false));
    }
    let get = format!("get '{}' --keyspace 0 k", node.join("state-0/state-000000").display());
    assert!(run(&get).text().contains('v'));
    for database in ["log", "state-0/state-000000"] {
        let (database, copied, original) = (node.join(database), room.path("copied"), room.path("original"));
        copy(&database, &copied);
        run(&format!("repair '{}' '{}'", copied.display(), new.display())).text();
        fs::rename(&database, &original).expect("rename");
        fs::rename(&new, &database).expect("rename");
        check_says(&run_with(cluster.nodes[0].command(), b"").refused(2), "the file REPAIRED|empty directory");
        put_back(&original, &database);
        [copied, original].iter().for_each(|path| fs::remove_dir_all(path).expect("remove"));
    }
    cluster.start(0);
    assert_eq!(cluster.client().must(&["GET", "k"]), Reply::value("v"));
}
