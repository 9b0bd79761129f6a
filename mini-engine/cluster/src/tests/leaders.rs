//! Changes of leaders.

use super::support::{Client, Cluster};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_there_under_the_next_leader_and_on_a_node_that_returns() {
    // Catches an acknowledgement before the majority has the write, a node that stays idle after a restart, and follower reads that never see writes.
    let mut cluster = Cluster::new(3, 1).await;
    assert_eq!(cluster.ask("SET colour blue").await, "+OK");
    for expected in 1..=3 {
        let leader = cluster.leader(0).await;
        assert_eq!(cluster.ask("INCR count").await, format!(":{expected}"));
        cluster.stop(leader).await;
        assert_eq!(cluster.ask("GET colour").await, "$blue");
        assert_eq!(cluster.ask("GET count").await, format!("${expected}"));
        assert_eq!(cluster.ask(&format!("SET while{leader} away")).await, "+OK");
        cluster.start(leader).await;
        cluster.wait_for_stale(leader, &format!("GET while{leader}"), "$away").await;
    }
    for node in 1..=3 {
        cluster.stop(node).await;
    }
    for node in 1..=3 {
        cluster.start(node).await;
    }
    assert_eq!(cluster.ask("INCR count").await, ":4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_writes_and_reads_end_with_a_reason_and_stale_reads_go_on() {
    // Catches a write that waits for ever, a write that a leader acknowledges without a majority, and a read that a deposed leader answers.
    let mut cluster = Cluster::new(3, 1).await;
    assert_eq!(cluster.ask("SET colour blue").await, "+OK");
    let leader = cluster.leader(0).await;
    cluster.wait_for_stale(leader, "GET colour", "$blue").await;
    for node in (1..=3).filter(|node| *node != leader) {
        // The old leader still considers itself the leader, for a moment.
        cluster.stop(node).await;
    }
    let mut client = cluster.client(leader).await;
    for request in ["SET colour red", "SET colour red", "INCR count"] {
        let reply = client.ask(request).await;
        assert!(reply.starts_with("-CLUSTERDOWN ") || reply.starts_with("-UNCERTAIN "), "{request}: {reply}");
    }
    let reply = client.ask("GET colour").await;
    assert!(reply.starts_with("-CLUSTERDOWN "), "{reply}");
    assert_eq!(client.ask("READONLY").await, "+OK");
    assert_eq!(client.ask("GET colour").await, "$blue");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipeline_is_answered_in_order_and_each_read_sees_the_writes_before_it() {
    // Catches replies out of order, a read that overtakes an earlier write of the same client, and a write that is carried out twice.
    let cluster = Cluster::new(3, 1).await;
    let leader = cluster.leader(0).await;
    let mut client = cluster.client(leader).await;
    let mut requests = Vec::new();
    for n in 0..200 {
        requests.push(format!("INCR count\nPING {n}\nGET count\nECHO {n}\nGET count"));
    }
    client.send(&requests.join("\n")).await;
    for n in 0..200 {
        let expected =
            [format!(":{}", n + 1), format!("${n}"), format!("${}", n + 1), format!("${n}"), format!("${}", n + 1)];
        for expected in expected {
            assert_eq!(client.receive().await, expected, "round {n}");
        }
    }
    // Several clients at once.
    let address = cluster.clients(leader);
    let clients = (0..8).map(async |_| {
        let mut client = Client::connect(&address).await;
        client.send(&["INCR all"; 50].join("\n")).await;
        let mut last = 0;
        for _ in 0..50 {
            let reply = client.receive().await;
            let count: u64 = reply[1..].parse().expect("a number");
            assert!(count > last, "{count} after {last}");
            last = count;
        }
    });
    futures_util::future::join_all(clients).await;
    assert_eq!(client.ask("GET all").await, "$400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_not_carried_out_if_another_node_has_led_since_its_watch() {
    // Catches a leader that missed the writes of the leader before it, and therefore considers a watched key unchanged.
    let cluster = Cluster::new(3, 1).await;
    let leader = cluster.leader(0).await;
    let mut client = cluster.client(leader).await;
    assert_eq!(client.ask("WATCH a").await, "+OK");
    assert_eq!((client.ask("MULTI").await, client.ask("SET a 1").await), ("+OK".to_owned(), "+QUEUED".to_owned()));
    assert_eq!(client.ask("EXEC").await, "*[+OK]");
    assert_eq!(client.ask("WATCH a").await, "+OK");
    cluster.make_leader(leader % 3 + 1).await;
    cluster.make_leader(leader).await;
    assert_eq!((client.ask("MULTI").await, client.ask("SET a 2").await), ("+OK".to_owned(), "+QUEUED".to_owned()));
    assert_eq!(client.ask("EXEC").await, "*-1");
    assert_eq!(client.ask("GET a").await, "$1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_moves_to_the_node_that_is_named_and_stays_if_that_cannot_lead() {
    // Catches a hand-over to another node, one that is reported before it is done, and a group that stops because of a node that is down.
    let mut cluster = Cluster::new(3, 1).await;
    let one = cluster.address(1);
    for node in [3, 1, 2] {
        let moved = cluster.control.move_leader(&cluster.address(node), &one, None).await.unwrap();
        assert_eq!(moved, (node, vec![0]));
        assert_eq!(cluster.leader(0).await, node);
    }
    assert_eq!(cluster.control.move_leader("3", &one, Some(&[0])).await.unwrap(), (3, vec![0]));
    cluster.stop(1).await;
    let two = cluster.address(2);
    for (node, expected) in [("1", "node 1 does not answer"), ("7", "expected the number or an address of a member")] {
        let error = cluster.control.move_leader(node, &two, None).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(cluster.leader(0).await, 3);
}
