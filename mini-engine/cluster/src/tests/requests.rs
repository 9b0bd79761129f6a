//! Requests of clients, and the nodes that reply to them.

use super::support::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_sends_clients_to_the_leader_and_answers_stale_reads() {
    // Catches a follower that replies with its own, possibly outdated data, an address that clients cannot use, and READONLY that applies to writes.
    let cluster = Cluster::new(3, 1).await;
    let leader = cluster.leader(0).await;
    assert_eq!(cluster.ask("SET foo 1").await, "+OK");
    let follower = leader % 3 + 1;
    let mut client = cluster.client(follower).await;
    let moved = format!("-MOVED 12182 {}", cluster.clients(leader));
    for request in ["GET foo", "SET foo 2", "WATCH foo", "MGET foo {foo}x"] {
        assert_eq!(client.ask(request).await, moved, "{request}");
    }
    cluster.wait_for_stale(follower, "GET foo", "$1").await;
    assert_eq!(client.ask("READONLY").await, "+OK");
    assert_eq!(client.ask("GET foo").await, "$1");
    assert_eq!(client.ask("SET foo 2").await, moved);
    assert_eq!(client.ask("READWRITE").await, "+OK");
    assert_eq!(client.ask("GET foo").await, moved);
    for node in [leader, follower] {
        let mut client = cluster.client(node).await;
        let reply = client.ask("MSET foo 1 bar 2").await;
        assert!(reply.starts_with("-CROSSSLOT "), "{reply}");
        assert_eq!(client.ask("CLUSTER KEYSLOT foo").await, ":12182");
        assert_eq!(client.ask("PING").await, "+PONG");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_learn_the_map_of_the_cluster() {
    // Catches a map with a slot that no node has, with node names that do not agree, or without the leader in front.
    let cluster = Cluster::new(3, 1).await;
    let leader = cluster.leader(0).await;
    for node in 1..=3 {
        let mut client = cluster.client(node).await;
        let id = client.ask("CLUSTER MYID").await;
        assert_eq!(id.len(), 41, "{id}");
        let port = cluster.clients(leader).rsplit_once(':').unwrap().1.to_owned();
        super::support::wait_for("the leader in front", async || {
            let slots = client.ask("CLUSTER SLOTS").await;
            slots.starts_with(&format!("*[*[:0 :16383 *[$127.0.0.1 :{port} ")).then_some(())
        })
        .await;
        let nodes = client.ask("CLUSTER NODES").await;
        let own = nodes.lines().find(|line| line.contains("myself")).expect("a line");
        assert!(own.contains(&id[1..]) && own.contains(&format!(" {}@", cluster.clients(node))), "{own}");
        assert_eq!(
            nodes.lines().filter(|line| line.contains(" slave ") || line.contains(",slave ")).count(),
            2,
            "{nodes}"
        );
        assert_eq!(nodes.lines().filter(|line| line.ends_with(" connected 0-16383")).count(), 1, "{nodes}");
        let info = super::support::wait_for("a state that is ok", async || {
            Some(client.ask("CLUSTER INFO").await).filter(|info| info.contains("cluster_state:ok"))
        })
        .await;
        for field in ["cluster_slots_ok:16384", "cluster_known_nodes:3", "cluster_size:1"] {
            assert!(info.contains(field), "{field}: {info}");
        }
        let shards = client.ask("CLUSTER SHARDS").await;
        assert_eq!((shards.matches("$master").count(), shards.matches("$replica").count()), (1, 2 + 3), "{shards}");
        let refused = client.ask("CLUSTER RESET").await;
        assert!(refused.starts_with("-ERR CLUSTER RESET is not there"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_one_write_and_fails_if_what_it_watched_has_changed() {
    // Catches a transaction that is applied in part, and a transaction that is carried out although a watched value has changed.
    let cluster = Cluster::new(3, 1).await;
    let leader = cluster.leader(0).await;
    let (mut one, mut two) = (cluster.client(leader).await, cluster.client(leader).await);
    assert_eq!(one.ask("SET {a}1 x").await, "+OK");
    for (change, expected) in [(None, "*[:1 +OK $y]"), (Some("SET {a}1 z"), "*-1")] {
        assert_eq!(one.ask("WATCH {a}1").await, "+OK");
        if let Some(change) = change {
            assert_eq!(two.ask(change).await, "+OK");
        }
        assert_eq!(one.ask("MULTI").await, "+OK");
        for request in ["INCR {a}2", "SET {a}1 y", "GET {a}1"] {
            assert_eq!(one.ask(request).await, "+QUEUED");
        }
        assert_eq!(one.ask("EXEC").await, expected);
    }
    assert_eq!(two.ask("MGET {a}1 {a}2").await, "*[$z $1]");
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
    let (mut one, mut two) = (cluster.client(leader).await, cluster.client(leader).await);
    for client in [&mut one, &mut two] {
        assert_eq!(client.ask("WATCH {seats}:c").await, "+OK");
        assert_eq!(client.ask("GET {seats}:c").await, "$-1");
    }
    for (client, expected) in [(&mut one, "*[+OK :3]"), (&mut two, "*-1")] {
        client.send("MULTI\nSET {seats}:c 1 EX 3600\nINCR {seats}").await;
        for said in ["+OK", "+QUEUED", "+QUEUED"] {
            assert_eq!(client.receive().await, said);
        }
        assert_eq!(client.ask("EXEC").await, expected);
    }
}
