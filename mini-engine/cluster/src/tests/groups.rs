//! Several groups.

use std::collections::BTreeSet;

use mini_engine_server::replicated::slot_of;

use super::support::Cluster;
use crate::slots::group_of;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_group_has_its_slots_and_its_leader_and_keys_are_found_where_they_were_written() {
    // Catches a key that is written to one group and read from another, and mixed-up replies of a pipeline over several groups.
    let mut cluster = Cluster::new(3, 3).await;
    let mut groups = BTreeSet::new();
    for n in 0..60 {
        let key = format!("key{n}");
        groups.insert(group_of(slot_of(key.as_bytes()), 3));
        assert_eq!(cluster.ask(&format!("SET {key} {n}")).await, "+OK");
        assert_eq!(cluster.ask(&format!("GET {key}")).await, format!("${n}"));
    }
    assert_eq!(groups.len(), 3);
    let mut slots = BTreeSet::new();
    for group in 0..3 {
        let leader = cluster.leader(group).await;
        let mut client = cluster.client(leader).await;
        slots.insert(client.ask("CLUSTER SLOTS").await.matches("*[:").count());
        // Requests for the node's own groups are carried out, and the others are redirected (MOVED), in the order of the requests.
        let led: BTreeSet<u32> = (0..3).filter(|group| cluster.groups(leader).leads(*group).is_ok()).collect();
        client.send(&(0..60).map(|n| format!("SET key{n} {n}x\nGET key{n}")).collect::<Vec<_>>().join("\n")).await;
        for n in 0..60 {
            let is_here = led.contains(&group_of(slot_of(format!("key{n}").as_bytes()), 3));
            for expected in ["+OK".to_owned(), format!("${n}x")] {
                let reply = client.receive().await;
                assert!(if is_here { reply == expected } else { reply.starts_with("-MOVED ") }, "key{n}: {reply}");
            }
        }
    }
    assert_eq!(slots, BTreeSet::from([3]));
    assert!(cluster.ask("PREFIX key").await.starts_with("-CROSSSLOT "));
    assert_eq!(cluster.ask("SET {tag}b 2").await, "+OK");
    assert_eq!(cluster.ask("SET {tag}a 1").await, "+OK");
    assert_eq!(cluster.ask("PREFIX {tag}").await, "*[${tag}a $1 ${tag}b $2]");

    // All groups continue without one node.
    cluster.stop(1).await;
    for n in 0..60 {
        assert_eq!(cluster.ask(&format!("GET key{n}")).await, format!("${n}x"));
    }
}
