//! A command has either its whole effect or none: alone, in a transaction, and in a cluster.

use super::*;
use crate::commands::{Scope, writing};
use crate::state::keyspace::planted;

/// At least one request for each command that writes. `TEXT` stands for a script, `HASH` for its hash, and `LONG` for a key that is too long.
const REQUESTS: &str = "append a x|copy a c|copy a c db 1|decr n|decrby n 2|del a b n e|delprefix {w}|delrange {w}a {w}c|eval TEXT 3 a b e token
    evalsha HASH 3 a b e token|expire a 1000|expireat a 33333333333|flushall|flushdb|getdel a|getex a ex 1000|getset a 2|incr n|incrby n 2
    incrbyfloat n 0.5|move a 2|mset a 2 c 2 n 2|msetnx c 2 d 2|persist e|pexpire a -1|pexpireat a 33333333333333|psetex a 1000000 2|rename a b
    renamenx a c|set a 2|setex a 1000 2|setnx c 2|setrange a 1 x|unlink a b";

/// Requests whose last step fails without a planted failure.
const FAILING: &str = "mset a 2 LONG 2|msetnx c 2 LONG 2|rename a LONG|renamenx a LONG|copy a LONG
    incrbyfloat n inf|setrange a 20000000 x|getex a ex 0";

pub(super) const TEXT: &str = "local count = 0 for i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then redis.pcall('del', key) \
                    count = count + 1 end end return count";

/// The keys before each request: `a`, `b` and `e` have a token, `n` has a number, and `e` expires.
const BEFORE: [&str; 3] = ["mset a token b token n 5", "set e token ex 100000", "script load TEXT"];

/// The bytes of a request; keys of one letter get a hash tag, so that they have the same slot in a cluster.
fn encoded(line: &str) -> String {
    let (hash, long) = (sha1_smol::Sha1::from(TEXT).digest().to_string(), format!("{{w}}{}", "k".repeat(66_000)));
    let words = line.split(' ').map(|word| match word {
        "TEXT" => TEXT.to_owned(),
        "HASH" => hash.clone(),
        "LONG" => long.clone(),
        _ if word.len() == 1 && word.as_bytes()[0].is_ascii_lowercase() => format!("{{w}}{word}"),
        _ => word.to_owned(),
    });
    request(&words.collect::<Vec<_>>())
}

fn requests(list: &str) -> impl Iterator<Item = &str> {
    list.split(['|', '\n']).map(str::trim)
}

/// Makes each write of each command fail, alone and within a transaction; also runs the requests of `FAILING`. `begin` creates a server, `say` sends
/// it a request, and `contents` returns a line for each stored key, which begins with the key and a space.
pub(crate) fn check<S>(
    is_one_node: bool,
    begin: impl Fn() -> S,
    say: impl Fn(&mut S, &str) -> String,
    contents: impl Fn(&S) -> Vec<String>,
) {
    let is_there = |scope| is_one_node || scope != Scope::OneNode;
    for command in writing().filter(|command| is_there(command.scope())) {
        let is_of = |line: &str| line.split(' ').next().is_some_and(|name| name.eq_ignore_ascii_case(command.name()));
        assert!(requests(REQUESTS).any(is_of), "{}: no request", command.name());
    }
    let is_of_one = |line: &&str| ["flush", "move", "copy a c db"].iter().any(|begins| line.starts_with(begins));
    // Plants a failure after this number of writes of the request; returns whether the request failed.
    let fails = |line: &str, is_queued: bool, writes: usize| {
        let mut server = begin();
        for line in BEFORE {
            assert!(!say(&mut server, &encoded(line)).starts_with('-'), "{line}");
        }
        let before = contents(&server);
        if is_queued {
            for line in ["multi", "set f 1", line, "set l 1"] {
                assert!(!say(&mut server, &encoded(line)).starts_with('-'), "{line}");
            }
        }
        planted::fail_after(writes.saturating_add(usize::from(is_queued)));
        let reply = say(&mut server, &encoded(if is_queued { "exec" } else { line }));
        planted::fail_after(usize::MAX);
        let others = |line: &String| !line.starts_with("{w}f ") && !line.starts_with("{w}l ");
        let (after, others): (Vec<String>, Vec<String>) = contents(&server).into_iter().partition(others);
        // The failure may have been planted after the request's last write.
        let is_behind = is_queued && !others.iter().any(|line| line.starts_with("{w}l "));
        let is_failed = reply.contains("-ERR ") && !is_behind;
        assert_eq!(is_failed, after == before, "{line}, queued {is_queued}, after {writes} writes: {reply}");
        assert!(!is_failed || others.len() == if is_queued { 2 } else { 0 }, "{line}, after {writes} writes: {reply}");
        is_failed
    };
    for is_queued in [false, true] {
        for line in requests(REQUESTS).filter(|line| is_one_node || !is_of_one(line)) {
            let succeeds = (0..100).find(|&writes| !fails(line, is_queued, writes));
            assert!(succeeds.is_some_and(|writes| writes > 0), "{line}: {succeeds:?}");
        }
        for line in requests(FAILING) {
            assert!(fails(line, is_queued, usize::MAX), "{line}");
        }
    }
}

/// All keys of all databases.
fn contents(server: &Server) -> Vec<String> {
    let db = &server.shared.keys.db;
    let named = db.keyspaces().into_iter().map(|name| (name.clone(), db.keyspace(&name).expect("open")));
    let all = named.chain([("0".to_owned(), mini_engine::Keyspace::clone(db))]);
    let of = |(name, stored): (String, mini_engine::Keyspace)| {
        let keys: Vec<_> = stored.iter().map(|entry| entry.expect("an entry").0).collect();
        let line = |key: &mini_engine::Slice| {
            let found = stored.get_with_expiry(key).expect("get");
            format!("{} in {name}: {found:?}", key.escape_ascii())
        };
        keys.iter().map(line).collect::<Vec<_>>()
    };
    all.flat_map(of).collect()
}

#[test]
fn a_command_that_fails_has_written_nothing() {
    // Catches a command whose first half stays when its second half fails, in any database, and a failure that affects neighbouring commands.
    let begin = || {
        let mut server =
            Server::with(|settings| (settings.may_flush_all, settings.limits.request_bytes) = (true, 1 << 20));
        server.talk("select 2 => +OK | set z 1 => +OK | select 1 => +OK | set z 1 => +OK | select 0 => +OK");
        server
    };
    check(true, begin, |server, request| server.said(request), contents);
}

#[test]
fn a_transaction_removes_as_many_ranges_as_a_batch_can() {
    // Catches a FLUSHALL that empties the first databases and fails at the next one, and ranges of a failed command that affect later commands.
    let mut server = Server::with(|settings| {
        settings.may_flush_all = true;
        settings.limits.request_bytes = 1 << 20;
    });
    server
        .talk("select 2 => +OK | set a 2 => +OK | select 1 => +OK | set a 1 => +OK | select 0 => +OK | set a 0 => +OK");
    let before = contents(&server);
    let most = mini_engine::MAX_BATCH_RANGES as usize;
    server.talk("multi => +OK");
    (0..most - 2).for_each(|_| server.talk("delprefix x => +QUEUED"));
    server.talk("flushall => +QUEUED | delprefix y => +QUEUED | delrange y x => +QUEUED | delprefix y => +QUEUED | delprefix y => +QUEUED");
    let said = server.said("exec\r\n");
    let replies: Vec<&str> = said.lines().collect();
    let too_many = "-ERR invalid argument: too many ranges: a transaction can remove at most 1024";
    assert_eq!(replies[most - 2..], ["+OK", too_many, "+OK", "+OK", "+OK", too_many]);
    assert_eq!(contents(&server), before);
}
