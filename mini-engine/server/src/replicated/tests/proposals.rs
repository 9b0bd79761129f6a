//! The result of an apply depends only on the database and the proposals.

use proptest::prelude::*;

use super::*;
use crate::session::tests::extend;

const SECOND: u64 = 1000;

#[test]
fn keys_expire_by_the_instants_of_proposals() {
    // Catches a command that uses the system's time: at instants long ago, every line would have another result.
    let mut node = Node::new();
    let (requests, replies): (Vec<&str>, Vec<&str>) = exchanges(
        "set a 1 ex 10 => +OK | psetex b 500 2 => +OK | set c 3 => +OK | expire c 20 => :1 | set d 4 px 700 => +OK | getex d ex 30 => $1 4
         set e 5 pxat 999999999999 => +OK | get e => $-1 | ttl a => :10 | pttl b => :500 | ttl c => :20 | pexpiretime d => :1000000030000
         set f 6 exat 1000000001 => +OK | persist f => :1 | setex g 3 7 => +OK | expire g -1 => :1 | get g => $-1",
    )
    .unzip();
    assert_eq!(node.write(LONG_AGO, &requests), replies);
    assert_eq!(node.write(LONG_AGO + 499, &["get b", "pttl b"]), ["$1 2", ":1"]);
    // A proposal with an earlier instant is carried out at the latest instant.
    assert_eq!(node.write(LONG_AGO, &["pttl b", "set h 1 px 1"]), [":1", "+OK"]);
    assert_eq!(node.write(LONG_AGO + 500, &["exists a b c d f h", "incr b", "get h"]), [":4", ":1", "$-1"]);
    node.propose(LONG_AGO + 10 * SECOND, Vec::new());
    assert_eq!(node.read("mget a b c"), "*3 $-1 $1 1 $1 3");
    assert_eq!(node.read("pttl c"), ":10000");
    let lock = Request::new(["eval", &extend(), "1", "c", "3", "50"]).into();
    assert_eq!(node.propose(LONG_AGO + 10 * SECOND, vec![lock, request("pttl c").into()]), [":1", ":50"]);
}

#[test]
fn a_restarted_node_goes_on_from_its_latest_instant() {
    // Catches an instant that is lost in a restart: a key would exist again on the restarted node, and a later proposal would find it only there.
    let mut node = Node::new();
    node.write(LONG_AGO, &["set a 1 px 1000", "set b 1"]);
    node.write(LONG_AGO + 1000, &["set c 1"]);
    let mut node = node.restarted();
    assert_eq!((node.instant.millis(), node.read("mget a b c")), (LONG_AGO + 1000, "*3 $-1 $1 1 $1 1".to_owned()));
    assert_eq!(node.write(LONG_AGO, &["incr a", "set d 1 px 1", "get d"]), [":1", "+OK", "$1 1"]);
    assert_eq!(node.read("pexpiretime d"), format!(":{}", LONG_AGO + 1001));
}

#[test]
fn a_refused_write_leaves_nothing_and_does_not_disturb_its_neighbours() {
    // Catches a request that is stored half although its reply is an error.
    let mut node = Node::new();
    let long = "k".repeat(mini_engine::MAX_KEY_LEN + 1);
    node.write(LONG_AGO, &["mset a 0 c 0"]);
    let requests =
        format!("set a 1|mset a 2 b 2 {long} 2|incr a|incr|get x y|shutdown|scan 0|evalsha x 0|watch a|set b 3");
    let replies = node.write(LONG_AGO, &requests.split('|').collect::<Vec<_>>());
    assert!(replies[1].starts_with("-ERR invalid argument: key of 65536 bytes"), "{}", replies[1]);
    assert_eq!((&*replies[0], &*replies[2], &*replies[9]), ("+OK", ":2", "+OK"));
    assert!(replies[3..9].iter().all(|reply| reply.starts_with("-ERR ")), "{replies:?}");
    assert_eq!(node.read("mget a b c"), "*3 $1 2 $1 3 $1 0");
    assert_eq!(node.propose(LONG_AGO, vec![Request::new([""; 0]).into()]), ["-ERR unknown command ''"]);
}

#[test]
fn writes_beyond_the_room_of_a_proposal_are_refused_and_taken_back() {
    // Catches a batch that grows without bound, or is too large for the engine, which would end every node; and a transaction that is half undone.
    let mut node = Node::new();
    let value = "v".repeat(MAX_REQUEST_BYTES);
    let long: Write = Request::new(["append", "a", &value]).into();
    assert_eq!(node.propose(LONG_AGO, vec![long.clone()]), [format!(":{MAX_REQUEST_BYTES}")]);
    let setrange: Write = Request::new(["setrange", "a", "0", "x"]).into();
    let replies = node.propose(LONG_AGO, vec![setrange; 6]);
    let refused = "-TRYAGAIN too much is written or read at once: nothing was done";
    let done = format!(":{MAX_REQUEST_BYTES}");
    let expected = [&*done, &done, &done, refused, refused, refused];
    assert_eq!(replies, expected);
    // Long replies count too.
    let replies = node.write(LONG_AGO, &["getex a"; 6]);
    let are_whole = replies.iter().map(|reply| reply.len() > MAX_REQUEST_BYTES);
    assert_eq!(are_whole.collect::<Vec<_>>(), [true, true, true, false, false, false]);
    assert_eq!(replies[3], refused);
    let many = ["delrange a b"; 1024];
    assert!(node.write(LONG_AGO, &many).iter().all(|reply| reply == "+OK"));
    let mut client = Client::new(&node);
    client.talk(
        &mut node,
        "set k 1 => +OK | multi => +OK | delprefix k => +QUEUED | set k 2 => +QUEUED | delprefix k => +QUEUED",
    );
    let write = client.next_write(&node, "exec");
    let mut writes: Vec<Write> = many[1..].iter().map(|line| request(line).into()).collect();
    writes.extend([request("set l 1").into(), write, request("get k").into()]);
    let replies = node.propose(LONG_AGO, writes);
    assert_eq!(replies[1023..], ["+OK", refused, "$1 1"]);
    assert_eq!(node.read("mget k l"), "*2 $1 1 $1 1");
}

#[test]
fn consecutive_proposals_that_do_not_read_may_share_a_batch() {
    // Catches an apply that claims not to read, and therefore misses the writes of an earlier proposal in its batch.
    let mut node = Node::new();
    let proposals = [(0, "set a 1"), (5, "set b 1"), (2, "set a 2")]
        .map(|(later, line)| Proposal { at: LONG_AGO + later, writes: vec![request(line).into()] });
    let mut batch = WriteBatch::new();
    let before = node.instant.millis();
    for proposal in &proposals {
        assert!(!Executor::reads(proposal));
        node.executor.apply(&node.db, 1, proposal, &mut batch).unwrap();
    }
    assert_eq!(node.instant.millis(), before, "nothing of it is stored");
    node.db.write(batch, Durability::Buffered).unwrap();
    assert_eq!(node.read("mget a b"), "*2 $1 2 $1 1");
    assert_eq!(node.restarted().instant.millis(), LONG_AGO + 5);
    for line in ["get a", "incr a", "set a 1 ex 3", "setnx a 1", "del a", "nonsense", "delrange a b"] {
        assert!(Executor::reads(&Proposal { at: 0, writes: vec![request(line).into()] }), "{line}");
    }
    assert!(Executor::reads(&Proposal::default()));
}

#[test]
fn damaged_proposals_are_errors() {
    // Catches bytes from another node that make a request refer to memory outside of the request.
    let bytes = postcard::to_stdvec(&Proposal { at: 7, writes: vec![request("set a 1").into()] }).expect("encoded");
    assert_eq!(
        format!("{:?}", sent(&postcard::from_bytes(&bytes).expect("decoded"))).matches("set of 3 parts").count(),
        1
    );
    let (mut node, mut errors) = (Node::new(), 0);
    for at in 0..bytes.len() {
        for value in 0..=u8::MAX {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            match postcard::from_bytes::<Proposal>(&damaged) {
                Ok(proposal) => drop(node.propose(proposal.at, proposal.writes)),
                Err(_) => errors += 1,
            }
        }
        assert!(postcard::from_bytes::<Proposal>(&bytes[..at]).is_err(), "{at} bytes");
    }
    assert!(errors > 1000, "{errors}");
}

/// Writes, each with the pause before it, and whether a proposal ends there.
fn writes() -> impl Strategy<Value = Vec<(String, u64, [bool; 2])>> {
    let key = || prop::sample::select(vec!["a", "b", "c"]);
    let line = prop_oneof![
        (key(), 0..9).prop_map(|(key, n)| format!("set {key} {n}")),
        (key(), 1..40).prop_map(|(key, millis)| format!("set {key} 5 px {millis}")),
        (key(), 1..40).prop_map(|(key, millis)| format!("pexpire {key} {millis}")),
        key().prop_map(|key| format!("incr {key}")),
        key().prop_map(|key| format!("append {key} 1")),
        (key(), key()).prop_map(|(from, to)| format!("rename {from} {to}")),
        (key(), key()).prop_map(|(from, to)| format!("copy {from} {to} replace")),
        (key(), key()).prop_map(|(one, other)| format!("msetnx {one} 7 {other} 8")),
        (key(), key()).prop_map(|(from, to)| format!("delrange {from} {to}")),
        key().prop_map(|key| format!("delprefix {key}")),
        key().prop_map(|key| format!("getex {key} persist")),
        key().prop_map(|key| format!("del {key}")),
    ];
    prop::collection::vec((line, prop_oneof![3 => Just(0), 1 => 1..30u64], any::<[bool; 2]>()), 1..60)
}

proptest! {
    #[test]
    fn two_nodes_have_the_same_contents_and_replies_however_writes_are_grouped(writes in writes()) {
        // Catches a result that depends on anything but the writes and their instants: on the division into proposals, or on a flush or a restart.
        let mut nodes = [Node::new(), Node::new()];
        let mut replies = [Vec::new(), Vec::new()];
        for (place, (node, replies)) in nodes.iter_mut().zip(&mut replies).enumerate() {
            let (mut at, mut waiting) = (LONG_AGO, Vec::new());
            for (line, pause, ends) in &writes {
                // All writes of a proposal have the same instant.
                if *pause > 0 || ends[place] {
                    replies.extend(node.propose(at, std::mem::take(&mut waiting)));
                }
                at += pause;
                waiting.push(request(line).into());
                if *pause > 25 && ends == &[true, true] && place == 1 {
                    node.db.flush().expect("a sound disk");
                    node.db.compact().expect("a sound disk");
                }
            }
            replies.extend(node.propose(at, waiting));
            // The last writes may not have raised the instant yet.
            node.propose(at, Vec::new());
        }
        let [one, other] = nodes;
        prop_assert_eq!(&replies[0], &replies[1]);
        prop_assert_eq!(one.contents(), other.contents());
        let (millis, contents) = (one.instant.millis(), one.contents());
        let restarted = one.restarted();
        prop_assert_eq!((restarted.instant.millis(), restarted.contents()), (millis, contents));
    }
}
