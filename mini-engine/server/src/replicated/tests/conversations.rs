//! Clients of a node: their replies, and their transactions.

use super::*;
use crate::session::tests::{RELEASE, halves, orders, request as encoded};

#[test]
fn a_transaction_is_not_carried_out_if_another_node_has_been_the_leader() {
    // Catches a watch that outlives the node's leadership: this node has not seen the writes of that time.
    let mut node = Node::new();
    let mut client = Client::new(&node);
    client.talk(&mut node, "watch a => +OK | multi => +OK | get a => +QUEUED");
    node.term += 2;
    client.talk(&mut node, "exec => *-1 | watch a => +OK | multi => +OK | get a => +QUEUED | exec => *1 $-1");
}

#[test]
fn each_way_to_write_a_watched_key_is_noticed() {
    // Catches a leader that misses a write of the watched key, among many watches that have ended.
    let mut node = Node::new();
    let (mut one, mut other) = (Client::new(&node), Client::new(&node));
    for n in 0..200 {
        one.talk(&mut node, &format!("watch {{t}}{n} => +OK | unwatch => +OK"));
    }
    let writes = [
        ("mset {t}b 1 {t}a 2", true),
        ("delrange {t}a {t}b", true),
        ("delrange {t}b {t}c", false),
        ("delprefix {t}", true),
        ("delprefix {t}b", false),
        ("copy {t}a {t}b", true),
        ("set {t}ab 1", false),
        ("multi", false),
        ("append {t}a x", false),
        ("exec", true),
    ];
    for (write, is_noticed) in writes {
        one.talk(&mut node, "watch {t}a => +OK");
        other.say(&mut node, LONG_AGO, write);
        let expected = if is_noticed { "*-1" } else { "*1 $-1" };
        one.talk(&mut node, &format!("multi => +OK | get {{t}}none => +QUEUED | exec => {expected}"));
    }
}

#[test]
fn transactions_of_two_clients_go_as_in_redis_and_in_a_server_of_one_node() {
    // Catches a watch that EXEC or DISCARD without MULTI ends, and other differences between the two servers.
    let begin = || {
        let node = Node::new();
        let clients = [Client::new(&node), Client::new(&node)];
        (node, clients, LONG_AGO)
    };
    let say = |(node, clients, at): &mut (Node, [Client; 2], u64), client: usize, line: &str| {
        clients[client - 1].say(node, *at, line)
    };
    let later = |(node, _, at): &mut (Node, [Client; 2], u64)| {
        *at += 60_000;
        node.propose(*at, Vec::new());
    };
    assert!(orders::compare(false, begin, say, later) >= 60);
}

#[test]
fn a_command_that_fails_has_written_nothing() {
    // Catches a command in a transaction that fails half-way and leaves its first half on every node.
    let begin = || {
        let node = Node::new();
        let client = Client::new(&node);
        (node, client)
    };
    let say = |(node, client): &mut (Node, Client), request: &str| client.say(node, LONG_AGO, request);
    let contents = |(node, _): &(Node, Client)| {
        node.contents().into_iter().map(|(key, value, expiry)| format!("{key} {value} {expiry:?}")).collect()
    };
    halves::check(false, begin, say, contents);
}

#[test]
fn a_watched_key_that_expires_prevents_the_transaction() {
    // Catches a lock that has expired but still counts as held.
    let mut node = Node::new();
    let mut client = Client::new(&node);
    client.talk(&mut node, "set a 1 px 10 => +OK | hello 3 => %7 $6 server $11 mini-engine $7 version $5 7.0.0 $5 proto :3 $2 id :1 $4 mode $7 cluster $4 role $7 replica $7 modules *0");
    for (later, expected) in [(9, "*1 $1 1"), (10, "_")] {
        client.talk(&mut node, "watch a => +OK | multi => +OK | get a => +QUEUED");
        assert_eq!(client.say(&mut node, LONG_AGO + later, "exec"), expected);
    }
}

#[test]
fn a_transaction_with_a_missing_command_or_across_slots_is_not_carried_out() {
    // Catches a transaction that is carried out in part.
    let mut node = Node::new();
    let abort = "-EXECABORT Transaction discarded because of previous errors.";
    let mut client = Client::new(&node);
    let missing = [
        ("nonsense", "-ERR unknown command 'nonsense'"),
        ("get", "-ERR wrong number of arguments for 'get' command"),
        ("ping", "-ERR PING is not part of a transaction in a cluster: it has no key"),
        ("cluster info", "-ERR CLUSTER is not part of a transaction in a cluster: it has no key"),
        ("scan 0", "-ERR SCAN is not part of a transaction in a cluster"),
        ("flushall", "-ERR FLUSHALL is not there in a cluster"),
        ("mset a 1 b 1", "-CROSSSLOT Keys in request don't hash to the same slot"),
    ];
    for (line, error) in missing {
        client.talk(
            &mut node,
            &format!("multi => +OK | set a 1 => +QUEUED | {line} => {error} | exec => {abort} | get a => $-1"),
        );
    }
    client.talk(
        &mut node,
        "exec => -ERR EXEC without MULTI | discard => -ERR DISCARD without MULTI | multi => +OK | exec => *0
         watch a => +OK | set a 1 => +OK | multi => +OK | set a 2 => +QUEUED
         exec now => -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
         exec => -ERR EXEC without MULTI | multi => +OK | get a => +QUEUED | exec => *1 $1 1 | del a => :1
         multi => +OK | set a 1 => +QUEUED | set b 1 => +QUEUED | exec => -CROSSSLOT Keys in request don't hash to the same slot
         watch a => +OK | multi => +OK | set b 1 => +QUEUED | exec => -CROSSSLOT Keys in request don't hash to the same slot
         multi => +OK | multi => -ERR MULTI calls can not be nested | watch a => -ERR WATCH inside MULTI is not allowed
         set a 1 => +QUEUED | incr a => +QUEUED | getset a x => +QUEUED | incr a => +QUEUED | delprefix a => +QUEUED | prefix a => +QUEUED
         exec => *6 +OK :2 $1 2 -ERR value is not an integer or out of range +OK *0 | mget a => *1 $-1",
    );
}

#[test]
fn what_is_watched_is_bounded() {
    // Catches a server that stores any number of values for a client, or reads the values before it has counted them.
    let mut node = Node::new();
    let mut client = Client::new(&node);
    let value = "v".repeat(MAX_REQUEST_BYTES / 2);
    let watch = encoded(&["WATCH", &value]);
    assert_eq!(client.say(&mut node, LONG_AGO, &watch), "+OK");
    assert!(client.session.size() > MAX_REQUEST_BYTES / 2);
    assert!(client.say(&mut node, LONG_AGO, &watch).starts_with("-ERR what is watched is longer"));
    let append = encoded(&["APPEND", &format!("{{{value}}}a"), "x"]);
    client.talk(&mut node, "multi => +OK");
    assert_eq!(client.say(&mut node, LONG_AGO, &append), "+QUEUED");
    assert!(client.say(&mut node, LONG_AGO, "exec").starts_with("-EXECABORT a transaction and what it watches have"));
    client.talk(&mut node, "watch a => +OK | unwatch => +OK | multi => +OK | append a x => +QUEUED | discard => +OK");
    assert!(client.session.size() < 1 << 20);
}

#[test]
fn scripts_are_sent_to_other_nodes_as_texts() {
    // Catches a lock that is released only on the node that has the script, and not on the others.
    let (mut node, mut other) = (Node::new(), Node::new());
    let mut client = Client::new(&node);
    client.talk(&mut node, "evalsha ffff 1 a x => -NOSCRIPT No matching script. Please use EVAL.");
    let hash = client.say(&mut node, LONG_AGO, &encoded(&["script", "load", RELEASE]));
    let hash = hash.split_whitespace().last().expect("a hash");
    for node in [&mut node, &mut other] {
        node.write(LONG_AGO, &["mset a x b x"]);
    }
    let write = client.next_write(&node, &format!("evalsha {hash} 1 a x"));
    assert_eq!(other.propose(LONG_AGO, vec![write.clone()]), [":1"]);
    assert_eq!(node.propose(LONG_AGO, vec![write]), [":1"]);
    assert_eq!(node.contents(), other.contents());
    client.talk(&mut node, &format!("multi => +OK | evalsha {hash} 1 b x => +QUEUED | exec => *1 :1 | exists a b => -CROSSSLOT Keys in request don't hash to the same slot"));
}

#[test]
fn nothing_is_answered_before_the_password() {
    // Catches a client that reads, or requests the list of nodes, without the password.
    let mut node = Node::with(1, Settings { password: Some(b"pass".to_vec()), ..Settings::default() });
    let mut client = Client::new(&node);
    for line in ["get a", "set a 1", "watch a", "cluster nodes", "multi", "readonly", "info", "ping"] {
        assert_eq!(client.say(&mut node, LONG_AGO, line), "-NOAUTH Authentication required.", "{line}");
    }
    client.talk(
        &mut node,
        "exec => -EXECABORT Transaction discarded because of: NOAUTH Authentication required.
         auth word => -WRONGPASS invalid username-password pair or user is disabled. | auth pass => +OK | get a => $-1
         cluster nodes => :2 | reset => +RESET | get a => -NOAUTH Authentication required.",
    );
}

#[test]
fn the_node_describes_itself_as_one_of_a_cluster() {
    // Catches replies that make cluster libraries refuse the server, and connections that cannot be listed or disconnected.
    let mut node = Node::new();
    let (mut one, other) = (Client::new(&node), Client::new(&node));
    let info = one.say(&mut node, LONG_AGO, "info server cluster clients replication");
    let fields = "redis_mode:cluster tcp_port:7001 cluster_enabled:1 cluster_clock_ahead_ms:-3600000 cluster_lacks_room:1 \
        role:slave master_host:10.0.0.7 master_port:7002 master_link_status:up";
    for field in fields.split(' ') {
        assert!(info.contains(field), "{field}: {info}");
    }
    one.talk(
        &mut node,
        "config get cluster-enabled => *2 $15 cluster-enabled $3 yes | select 0 => +OK | select 1 => -ERR DB index is out of range
         client setname one => +OK | client getname => $3 one | ping => +PONG | echo hi => $2 hi | config set a b => -ERR settings are given when the server is started, see `mini-engine serve --help`
         asking => +OK | copy a b db 1 => -CROSSSLOT Keys in request don't hash to the same slot | copy {a}1 {a}2 db 1 => -ERR DB index is out of range
         client kill id 2 => :1",
    );
    assert_eq!(node.shared().clients.killed, [other.session.id()]);
    assert!(matches!(one.next(&node, "quit"), (Step::Close, reply) if reply == "+OK"));
}

#[test]
fn a_scan_goes_on_with_another_connection() {
    // Catches cursors that work only on the connection that received them: libraries have many connections.
    let mut node = Node::new();
    node.write(LONG_AGO, &["mset a 1 b 1 c 1"]);
    let (mut cursor, mut found) = ("0".to_owned(), String::new());
    for _ in 0..3 {
        let reply = Client::new(&node).say(&mut node, LONG_AGO, &format!("scan {cursor} count 1"));
        let words: Vec<&str> = reply.split(' ').collect();
        (cursor, found) = (words[2].to_owned(), found + words[5]);
    }
    assert_eq!((&*cursor, &*found), ("0", "abc"));
    assert_eq!(node.read("dbsize"), ":3");
    assert_eq!(node.read("keys [ac]"), "*2 $1 a $1 c");
}

#[test]
fn requests_come_in_any_pieces_and_malformed_ones_end_the_connection() {
    // Catches a request that is carried out before it is complete, or twice, and a web page that makes a browser send commands.
    let mut node = Node::new();
    let input = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\n\r\nGET a\r\n*-1\r\n";
    let mut client = Client::new(&node);
    let (mut at, mut seen, mut output) = (0, Vec::new(), Output::default());
    for end in 0..=input.len() {
        loop {
            match client.step(&node, &input[at..end], &mut output) {
                Step::Incomplete => break,
                Step::Empty(len) => at += len,
                Step::Later(0, Work::Groups(requests)) => {
                    seen.push(format!("{requests:?}"));
                    let replies = node.carry_out(LONG_AGO, requests);
                    at += client.session.answered(&mut node.shared(), (&input[at..end], &mut output), replies);
                }
                step => panic!("{step:?}"),
            }
        }
    }
    assert_eq!((at, bytes_of(&output)), (input.len(), b"+OK\r\n$2\r\n\r\n\r\n".to_vec()));
    let expected = ["Writes([(15495, Write(Request(SET of 3 parts)))])", "Reads { requests: [(15495, GET of 2 parts)]"];
    assert!(
        seen.len() == 2 && seen.iter().zip(expected).all(|(seen, expected)| seen.starts_with(expected)),
        "{seen:?}"
    );
    for malformed in ["*1\r\n:1\r\n", "*9999999\r\n", "POST / HTTP/1.1\r\n", "*1\r\n$99999999\r\n"] {
        let mut output = Output::default();
        let step = Client::new(&node).step(&node, malformed.as_bytes(), &mut output);
        assert!(matches!(step, Step::Close) && bytes_of(&output).starts_with(b"-ERR "), "{malformed}");
    }
}

#[test]
fn requests_that_are_not_answered_together_are_passed_on_again() {
    // Catches a request that is lost when the replies before it end a step, a request that is repeated, and a client that waits for ever.
    let mut node = Node::new();
    node.write(LONG_AGO, &["mset {t}a 1 {t}b 2"]);
    let mut client = Client::new(&node);
    let (input, mut at, mut output) =
        (b"GET {t}a\r\nGET {t}b\r\nGET {t}c\r\nSET {t}c 3\r\nGET {t}c\r\n", 0, Output::default());
    let mut asked = Vec::new();
    while at < input.len() {
        let Step::Later(0, Work::Groups(requests)) = client.step(&node, &input[at..], &mut output) else {
            panic!("it is for a group")
        };
        let mut replies = node.carry_out(LONG_AGO, requests);
        asked.push(replies.len());
        replies.truncate(1);
        at += client.session.answered(&mut node.shared(), (&input[at..], &mut output), replies);
    }
    assert_eq!((asked, sent_to(&output).as_str()), (vec![3, 1, 1, 1, 1], "$1 1 $1 2 $-1 +OK $1 3"));
    let mut output = Output::default();
    assert!(matches!(client.step(&node, input, &mut output), Step::Later(0, Work::Groups(_))));
    let len = client.session.answered(&mut node.shared(), (input, &mut output), Vec::new());
    assert_eq!((len, sent_to(&output).matches("-CLUSTERDOWN").count()), (30, 3));
    assert_eq!(node.shared().counters.commands, 8);
}
