//! Requests of clients, and the nodes that reply to them.

use futures_util::future::join_all;

use super::support::{Cluster, is_like};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_learn_the_map_of_the_cluster_and_a_follower_sends_them_to_the_leader() {
    // Catches a map with a slot that no node has, with node names that do not agree, or without the leader in front; a follower that replies with its
    // own, possibly outdated data, an address that clients cannot use, and READONLY that applies to writes.
    let cluster = Cluster::new(3, 1).await;
    cluster.talk("SET foo 1 => +OK").await;
    let leader = cluster.leader(0).await;
    let address = cluster.clients(leader);
    let first = format!("*[*[:0 :16383 *[$127.0.0.1 :{} ..", address.rsplit_once(':').unwrap().1);
    for node in 1..=3 {
        let mut client = cluster.client(node).await;
        client.wait_for_reply("CLUSTER SLOTS", &first).await;
        for field in ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3", "cluster_size:1"] {
            client.wait_for_reply("CLUSTER INFO", &format!("..{field}\r..")).await;
        }
        let (id, nodes) = (client.ask("CLUSTER MYID").await, client.ask("CLUSTER NODES").await);
        let own = nodes.lines().find(|line| line.contains("myself")).expect("a line");
        let named = own.contains(&id[1..]) && own.contains(&format!(" {}@", cluster.clients(node)));
        assert!(id.len() == 41 && named, "{id}: {own}");
        assert_eq!((nodes.matches("slave ").count(), nodes.matches(" connected 0-16383").count()), (2, 1), "{nodes}");
        let shards = client.ask("CLUSTER SHARDS").await;
        assert_eq!((shards.matches("$master").count(), shards.matches("$replica").count()), (1, 2 + 3), "{shards}");
        client.talk("CLUSTER RESET => -ERR CLUSTER RESET is not there.. | CLUSTER KEYSLOT foo => :12182").await;
        client.talk("MSET foo 1 bar 2 => -CROSSSLOT .. | PING => +PONG").await;
    }
    let follower = leader % 3 + 1;
    cluster.wait_for_stale(follower, "GET foo", "$1").await;
    let conversation = "GET foo => moved | SET foo 2 => moved | WATCH foo => moved | MGET foo {foo}x => moved \
                        | READONLY => +OK | GET foo => $1 | SET foo 2 => moved | READWRITE => +OK | GET foo => moved";
    let moved = format!("-MOVED 12182 {address}");
    cluster.client(follower).await.talk(&conversation.replace("moved", &moved)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelines_are_carried_out_once_and_in_order() {
    // Catches replies out of order, a read that overtakes an earlier write of the same client, and a write that is carried out twice.
    let cluster = Cluster::new(3, 1).await;
    let leader = cluster.leader(0).await;
    let work = async |number: u32| {
        let mut client = cluster.client(leader).await;
        client.send(&vec![format!("INCR own{number}\nPING\nGET own{number}\nINCR all"); 50].join("\n")).await;
        for n in 1..=50 {
            for expected in [format!(":{n}"), "+PONG".into(), format!("${n}"), ":..".into()] {
                let reply = client.receive().await;
                assert!(is_like(&reply, &expected), "{reply}, not {expected}");
            }
        }
    };
    join_all((0..8).map(work)).await;
    cluster.talk("GET all => $400").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_one_write_and_fails_after_a_change_of_what_it_watched_or_of_the_leader() {
    // Catches a transaction that is applied in part, one that is carried out although a watched value has changed, and a leader that missed the writes
    // of the leader before it, and therefore considers a watched key unchanged.
    let cluster = Cluster::new(3, 1).await;
    let leader = cluster.leader(0).await;
    let (mut one, mut two) = (cluster.client(leader).await, cluster.client(leader).await);
    one.talk("SET {a}1 x => +OK").await;
    for (after_watch, expected) in [("", "*[:1 +OK $y]"), ("a write", "*-1"), ("other leaders", "*-1")] {
        one.talk("WATCH {a}1 => +OK").await;
        match after_watch {
            "a write" => two.talk("SET {a}1 z => +OK").await,
            "other leaders" => {
                cluster.make_leader(leader % 3 + 1).await;
                cluster.make_leader(leader).await;
            }
            _ => {}
        }
        one.talk("MULTI => +OK | INCR {a}2 => +QUEUED | SET {a}1 y => +QUEUED | GET {a}1 => +QUEUED").await;
        assert_eq!(one.ask("EXEC").await, expected, "{after_watch}");
    }
    two.talk("MGET {a}1 {a}2 => *[$z $1]").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_with_a_token_counts_once_although_it_is_sent_twice() {
    // Catches a recipe of the manual that counts a repeated request, also under the next leader, or refuses it.
    let cluster = Cluster::new(3, 1).await;
    const ADD: &str = "local sum = redis.call('get',KEYS[2]) if sum then return tonumber(sum) end sum = redis.call('incrby',KEYS[1],ARGV[1]) \
                       redis.call('set',KEYS[2],sum,'EX',ARGV[2]) return sum";
    let add = |token: &str| format!("EVAL \"{ADD}\" 2 {{seats}} {{seats}}:{token} 1 3600");
    for (token, expected) in [("a", ":1"), ("a", ":1"), ("b", ":2"), ("a", ":1")] {
        assert_eq!(cluster.ask(&add(token)).await, expected, "{token}");
    }
    cluster.make_leader(cluster.leader(0).await % 3 + 1).await;
    assert_eq!(cluster.ask(&add("b")).await, ":2");
    // The other recipe of the manual: the repeated EXEC has no effect, since the token was written since its WATCH.
    let leader = cluster.leader(0).await;
    let mut clients = [cluster.client(leader).await, cluster.client(leader).await];
    for client in &mut clients {
        client.talk("WATCH {seats}:c => +OK | GET {seats}:c => $-1").await;
    }
    for (client, expected) in clients.iter_mut().zip(["*[+OK :3]", "*-1"]) {
        client.talk("MULTI => +OK | SET {seats}:c 1 EX 3600 => +QUEUED | INCR {seats} => +QUEUED").await;
        assert_eq!(client.ask("EXEC").await, expected);
    }
}
