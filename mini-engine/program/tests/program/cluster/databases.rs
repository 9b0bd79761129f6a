//! The databases in a node's directory: only the node changes them, and it takes no repaired one.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::nodes::Cluster;
use crate::support::{Room, check_says, names, run, run_with};

#[test]
fn only_the_node_changes_its_databases_and_it_refuses_a_repaired_one() {
    // Catches an operator who repairs, compacts or edits a node's database, after which the node votes without what it has acknowledged.
    let (mut cluster, room) = (Cluster::new(1, 1), Room::new());
    cluster.client().set("k", "v");
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
            check_says(&said, "belongs to the node of a cluster|next: |cp -r");
        }
        assert_eq!((names(&node.join(database)), new.exists()), (before, false));
    }
    let get = format!("get '{}' --keyspace 0 k", node.join("state-0/state-000000").display());
    assert!(run(&get).text().contains('v'));
    for database in ["log", "state-0/state-000000"] {
        let (database, copied, original) = (node.join(database), room.path("copied"), room.path("original"));
        assert!(Command::new("cp").arg("-a").args([&database, &copied]).status().expect("cp").success());
        run(&format!("repair '{}' '{}'", copied.display(), new.display())).text();
        // A copy of a repaired database is one, too.
        run(&format!("checkpoint '{}' '{}'", new.display(), room.path("copy").display())).text();
        assert!(room.path("copy/REPAIRED").exists());
        fs::remove_dir_all(room.path("copy")).expect("remove");
        fs::rename(&database, &original).expect("rename");
        fs::rename(&new, &database).expect("rename");
        check_says(&run_with(cluster.nodes[0].command(), b"").refused(2), "the file REPAIRED|empty directory");
        [&copied, &database].iter().for_each(|path| fs::remove_dir_all(path).expect("remove"));
        fs::rename(&original, &database).expect("rename");
    }
    cluster.start(0);
    assert_eq!(cluster.client().get("k").as_deref(), Some("v"));
}
