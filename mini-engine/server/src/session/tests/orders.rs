//! Transactions of two clients, compared with Redis. The same table is run on a server of one node and on a node of a cluster.

use std::time::{Duration, SystemTime};

use super::*;

const ROWS: &str = include_str!("orders.txt");

/// A line of the table with a hash tag in its keys, so that they have the same slot.
fn tagged(line: &str) -> String {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default().to_owned();
    words.fold(name, |line, word| match word {
        "a" | "b" | "c" | "n" => format!("{line} {{w}}{word}"),
        _ => format!("{line} {word}"),
    })
}

/// A reply in the form that the table uses.
fn shown(reply: &str) -> String {
    let words = match reply {
        _ if reply.starts_with('-') => 1,
        _ if reply.contains(" $6 server ") => 2,
        _ => usize::MAX,
    };
    reply.split(' ').take(words).collect::<Vec<_>>().join(" ")
}

/// Runs the rows of the table: all of them, or without those that are only for a server of one node. `begin` creates a server, `say` sends it a line
/// of a client and returns the reply as one line, and `later` advances the time. Returns the number of rows.
pub(crate) fn compare<S>(
    is_one_node: bool,
    begin: impl Fn() -> S,
    say: impl Fn(&mut S, usize, &str) -> String,
    later: impl Fn(&mut S),
) -> usize {
    let (mut count, mut is_for_one) = (0, false);
    for row in ROWS.lines() {
        is_for_one |= row.starts_with("# one node");
        if row.starts_with('#') || (is_for_one && !is_one_node) {
            continue;
        }
        count += 1;
        let mut server = begin();
        assert_eq!(say(&mut server, 1, &tagged("mset a 1 b 1 n 5")), "+OK");
        for step in row.split(" | ") {
            let Some((request, expected)) = step.split_once(" => ") else {
                assert_eq!(step, "later", "{row}");
                later(&mut server);
                continue;
            };
            let (client, line) = request.split_once(' ').expect("a client and a line");
            let found = say(&mut server, client.parse().expect("a number"), &tagged(line));
            assert_eq!(shown(&found), expected, "{request} of {row}");
        }
    }
    count
}

#[test]
fn transactions_of_two_clients_go_as_in_redis() {
    // Catches a watch that ends too early or begins too late, a change that is missed or invented, and a transaction that lacks a command.
    let begin = || {
        let clock = Clock::at(SystemTime::now());
        let mut server =
            Server::on(|builder| builder.time_source(clock.source()), |settings| settings.may_flush_all = true);
        let other = Session::new(&mut server.shared);
        (server, other, clock)
    };
    let say = |(server, other, _): &mut (Server, Session, Clock), client: usize, line: &str| {
        if client == 2 { server.reply_to(other, line) } else { server.reply(line) }
    };
    let later = |(_, _, clock): &mut (Server, Session, Clock)| {
        clock.set(clock.now() + Duration::from_secs(60));
    };
    assert!(compare(true, begin, say, later) >= 60);
}

#[test]
fn a_removed_range_changes_the_watched_keys_that_were_in_it() {
    // Catches DELPREFIX and DELRANGE that count as a change of an absent key, or not of a present one, or that hide earlier or later changes.
    for (change, is_carried_out) in [
        (&["delprefix x"][..], true),
        (&["delprefix x", "delrange x y"], true),
        (&["delprefix a"], false),
        (&["set x 1", "delprefix x"], false),
        (&["delprefix x", "set x 1"], false),
        (&["delprefix x", "set a 2"], false),
        (&["multi", "set x 1", "delprefix x", "exec"], false),
        (&["multi", "delprefix x", "set other 1", "exec"], true),
        (&["multi", "delprefix x", "set a 2", "exec"], false),
        (&["delprefix x", "select 1", "set x 1", "set a 1"], true),
    ] {
        let mut server = Server::new();
        server.talk("set a 1 => +OK | watch a => +OK | watch a x => +OK");
        let mut other = Session::new(&mut server.shared);
        change.iter().for_each(|line| assert!(!server.reply_to(&mut other, line).starts_with('-'), "{line}"));
        let reply = if is_carried_out { "*1 +PONG" } else { "*-1" };
        server.talk(&format!("multi => +OK | ping => +QUEUED | exec => {reply}"));
    }
}

#[test]
fn what_is_watched_is_bounded() {
    // Catches a client that makes the server store any number of keys or snapshots.
    let mut server = Server::new();
    let watch = |server: &mut Server, n: usize| server.said(&format!("watch key{n}\r\n"));
    let refused = (0..1000).find(|n| watch(&mut server, *n) != "+OK\r\n").expect("a limit");
    assert!((50..200).contains(&refused), "{refused}");
    assert!(watch(&mut server, 1000).starts_with("-MISCONF out of room: watched keys take at most 65536 bytes"));
    // Watching the same key again does not count again.
    server.talk("watch key0 => +OK | unwatch => +OK");
    assert_eq!(watch(&mut server, 1000), "+OK\r\n");
}
