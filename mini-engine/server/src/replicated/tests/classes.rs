//! Every command has a class in a cluster.

use super::*;

/// Commands that the node carries out itself.
const OF_NODE: &str = "AUTH CLIENT COMMAND CONFIG ECHO HELLO INFO MONITOR PING QUIT READONLY READWRITE RESET SCRIPT SELECT SLOWLOG TIME MULTI DISCARD UNWATCH ASKING";
/// Commands that are refused.
const REFUSED: &str = "BGSAVE FLUSHALL FLUSHDB LASTSAVE MOVE SAVE SHUTDOWN WAIT WAITAOF";
/// Commands that write one or more keys.
pub(super) const WRITES: &str = "APPEND COPY DECR DECRBY DEL DELPREFIX DELRANGE EVAL EXPIRE EXPIREAT GETDEL GETEX GETSET INCR INCRBY INCRBYFLOAT MSET MSETNX \
    PERSIST PEXPIRE PEXPIREAT PSETEX RENAME RENAMENX SET SETEX SETNX SETRANGE UNLINK";
/// Commands that read.
pub(super) const READS: &str = "DBSIZE EXISTS EXPIRETIME GET GETRANGE KEYS MGET OBJECT PEXPIRETIME PREFIX PTTL RANGE SCAN STRLEN SUBSTR TOUCH TTL TYPE";
/// Commands that are each treated in a special way.
const OTHERS: &str = "CLUSTER EVALSHA EXEC WATCH";

/// A request for a command, with as many parts as the command needs.
fn line(name: &str) -> String {
    let arguments = match name {
        "EVAL" => "script 1 {t}a {t}b",
        "OBJECT" => "encoding {t}a",
        "MSET" | "MSETNX" | "APPEND" | "DECRBY" | "EXPIRE" | "EXPIREAT" | "GETSET" | "INCRBY" | "INCRBYFLOAT"
        | "PEXPIRE" | "PEXPIREAT" | "SET" | "SETNX" => "{t}a 5",
        "COPY" | "RENAME" | "RENAMENX" | "DELRANGE" | "RANGE" => "{t}a {t}b",
        "GETRANGE" | "SUBSTR" => "{t}a 0 1",
        "PSETEX" | "SETEX" | "SETRANGE" => "{t}a 5 5",
        "SCAN" => "0",
        "MOVE" | "WAIT" => "1 0",
        "WAITAOF" => "1 0 0",
        "CLIENT" => "id",
        "CONFIG" => "get save",
        "SCRIPT" => "flush",
        "SELECT" => "0",
        "SLOWLOG" => "len",
        "AUTH" | "ECHO" => "x",
        "DBSIZE" | "ASKING" | "COMMAND" | "HELLO" | "INFO" | "MONITOR" | "PING" | "QUIT" | "READONLY" | "READWRITE"
        | "RESET" | "TIME" | "MULTI" | "DISCARD" | "UNWATCH" | "BGSAVE" | "FLUSHALL" | "FLUSHDB" | "LASTSAVE"
        | "SAVE" | "SHUTDOWN" => "",
        _ => "{t}a",
    };
    format!("{name} {arguments}")
}

fn names() -> Vec<String> {
    let node = Node::new();
    let (next, list) = Client::new(&node).next(&node, "command list");
    assert!(matches!(next, Step::Done { .. }));
    list.split(' ').filter(|word| word.chars().all(char::is_alphabetic)).map(str::to_ascii_uppercase).collect()
}

#[test]
fn every_command_has_its_place() {
    // Catches a new command without a class: it would be carried out on one node only, or change only that node.
    let node = Node::new();
    let mut known: Vec<&str> =
        [OF_NODE, REFUSED, WRITES, READS, OTHERS].iter().flat_map(|names| names.split_whitespace()).collect();
    known.sort_unstable();
    assert_eq!(names(), known);
    for name in OF_NODE.split_whitespace() {
        let (next, reply) = Client::new(&node).next(&node, &line(name));
        assert!(matches!(next, Step::Done { .. } | Step::Close) && !reply.contains("arguments"), "{name}: {reply}");
    }
    for name in REFUSED.split_whitespace() {
        let (next, reply) = Client::new(&node).next(&node, &line(name));
        assert!(matches!(next, Step::Done { .. }), "{name}");
        assert_eq!(reply, format!("-ERR {name} is not there in a cluster"));
    }
    let slot = slot_of(b"t");
    for name in WRITES.split_whitespace() {
        let next = Client::new(&node).next(&node, &line(name)).0;
        assert!(
            matches!(&next, Step::Later(0, Work::Groups(GroupRequests::Writes(writes))) if writes[0].0 == slot),
            "{name}: {next:?}"
        );
    }
    for name in READS.split_whitespace() {
        let next = Client::new(&node).next(&node, &line(name)).0;
        let expected = if ["DBSIZE", "KEYS", "SCAN"].contains(&name) { 0 } else { slot };
        let is_expected = |requests: &[(u16, Request)]| requests[0].0 == expected;
        assert!(
            matches!(&next, Step::Later(0, Work::Groups(GroupRequests::Reads { requests, access: Access::Read, .. })) if is_expected(requests)),
            "{name}: {next:?}"
        );
    }
}

#[test]
fn requests_across_slots_and_groups_are_refused() {
    // Catches a request for which a group has only some of the keys.
    let node = Node::with(3, Settings::default());
    let mut client = Client::new(&node);
    for line in
        ["mset a 1 b 2", "del a b", "rename a b", "mget a b", "range a b", "delprefix a", "eval x 2 a b", "watch a b"]
    {
        assert!(client.next(&node, line).1.starts_with("-CROSSSLOT "), "{line}");
    }
    for line in ["keys *", "scan 0", "dbsize"] {
        assert!(client.next(&node, line).1.starts_with("-ERR keys of all slots are in several groups"), "{line}");
    }
    for line in ["del {t}a {t}b", "delprefix {t}", "delrange {t}a {t}b", "watch {t}a {t}b", "prefix {t}"] {
        let slot = match client.next(&node, line).0 {
            Step::Later(0, Work::Groups(GroupRequests::Writes(writes))) => writes[0].0,
            Step::Later(0, Work::Groups(GroupRequests::Reads { requests, .. })) => requests[0].0,
            step => panic!("{line}: {step:?}"),
        };
        assert_eq!(slot, slot_of(b"t"), "{line}");
    }
}

#[test]
fn what_belongs_to_other_nodes_is_redirected_also_while_it_is_queued() {
    // Catches a follower that serves reads without READONLY, a transaction whose missing command goes unnoticed, and a READONLY that never ends.
    let node = Node::new();
    let mut client = Client::new(&node);
    let follower: Redirect =
        |slot, access| (access != Access::StaleRead).then(|| format!("MOVED {slot} 127.0.0.1:7002"));
    let moved = format!("-MOVED {} 127.0.0.1:7002", slot_of(b"a"));
    // The expected replies; `stale` is a read of what this node has.
    let expected = format!(
        "get a => {moved} | set a 1 => {moved} | watch a => {moved} | readonly => +OK | get a => stale
         readonly x => -ERR syntax error | readonly linearizable x => -ERR syntax error | get a => stale
         readonly linearizable => +OK | get a => {moved} | set a 1 => {moved} | multi => +OK | get a => {moved}
         exec => -EXECABORT Transaction discarded because of previous errors. | readwrite => +OK | get a => {moved}
         readonly => +OK | reset => +RESET | get a => {moved}"
    );
    for (line, expected) in exchanges(&expected) {
        let (next, reply) = client.next_at(&node, line, follower);
        let is_stale =
            matches!(next, Step::Later(0, Work::Groups(GroupRequests::Reads { access: Access::StaleRead, .. })));
        assert_eq!((is_stale, &*reply), if expected == "stale" { (true, "") } else { (false, expected) }, "{line}");
    }
}
