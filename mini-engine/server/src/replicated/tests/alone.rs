//! A cluster replies like a server of one node.

use proptest::prelude::*;

use super::*;
use crate::session::tests::{RELEASE, Server, request as encoded};

/// Requests, in which `K` stands for a key and `N` for a small number. They contain every command that both servers have, except those with cursors.
const REQUESTS: &str = "append K N|copy K K|copy K K replace|decr K|decrby K N|del K K|delprefix K|delrange K K|expire K 5000|expire K 6000 gt|\
    expireat K 99999999999|expireat K 9 |expiretime K|get K|getdel K|getex K persist|getex K ex 5000|getrange K 0 N|getset K N|incr K|incrby K N|\
    incrbyfloat K 1.5|keys {t}[ab]*|mget K K K|mset K N K N|mset K N K|msetnx K N K N|object encoding K|object encoding|persist K|pexpire K 5000000|\
    pexpire K 0|pexpireat K 99999999999000|pexpiretime K|prefix {t} limit N|prefix K rev|psetex K 5000000 N|pttl K|range K {t}z|range K K limit N|\
    rename K K|renamenx K K|set K N|set K N nx get|set K N xx keepttl|set K N px 5000000|set K N ex -1|set K N exat 9|set K N bogus|setex K 5000 N|\
    setnx K N|setrange K N ab|strlen K|substr K 0 N|touch K K|ttl K|type K|unlink K K|exists K K|dbsize|scan 0 count 1000|get|incrby K x|nonsense K|\
    ping|echo N|select 0|select 9|client getname|client setname N|unwatch|hello 2|hello 3|wait|eval x 0|eval R 1 K N|eval A 2 K K N 5000|\
    command count|config get databases|time x|discard|exec";
/// The requests that a transaction of a cluster may contain, too.
const QUEUED: &str = "get K|set K N|incr K|del K|append K N|rename K K|mset K N K N|expire K 5000|delrange K K|range K {t}z|getset K N|incrby K x|mget K K|get|nonsense";
const ACQUIRE: &str = "for i,key in ipairs(KEYS) do if redis.call('exists',key) == 1 then return 0 end end \
    for i,key in ipairs(KEYS) do redis.call('set',key,ARGV[1],'PX',ARGV[2]) end return #KEYS";
/// Their replies contain a time relative to an instant, and the two servers use different instants.
const TIMES: [&str; 4] = ["ttl", "pttl", "expiretime", "pexpiretime"];

/// A request from the list.
fn request_of(list: &'static str) -> impl Strategy<Value = Vec<String>> {
    let templates: Vec<&str> = list.split('|').collect();
    (prop::sample::select(templates), any::<[u8; 4]>()).prop_map(|(template, choices)| {
        let mut choices = choices.into_iter();
        let mut choice = || choices.next().unwrap_or_default();
        let part = |word: &str| match word {
            "K" => format!("{{t}}{}", ["a", "b", "ab", "c"][usize::from(choice() % 4)]),
            "N" => (choice() % 12).to_string(),
            "R" => RELEASE.to_owned(),
            "A" => ACQUIRE.to_owned(),
            _ => word.to_owned(),
        };
        template.split_whitespace().map(part).collect()
    })
}

/// Single requests, and transactions.
fn requests() -> impl Strategy<Value = Vec<Vec<String>>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let transaction =
        (any::<bool>(), prop::collection::vec(request_of(QUEUED), 0..6)).prop_map(move |(watches, queued)| {
            let watch = watches.then(|| words("watch {t}a {t}b"));
            watch.into_iter().chain([words("multi")]).chain(queued).chain([words("exec")]).collect::<Vec<_>>()
        });
    let one = request_of(REQUESTS).prop_map(|request| vec![request]);
    prop::collection::vec(prop_oneof![6 => one, 1 => transaction], 1..60).prop_map(|requests| requests.concat())
}

/// A server of one node, for comparison.
fn alone() -> Server {
    let db = Db::builder("/db").memtable_bytes(1 << 20).file_system(Arc::new(MemFs::default()));
    let limit = |settings: &mut Settings| (settings.databases, settings.limits.request_bytes) = (1, MAX_REQUEST_BYTES);
    let mut server = Server::on(|_| db, limit);
    server.most = 1;
    server
}

/// The length of the first reply.
fn reply_len(replies: &[u8]) -> usize {
    let line = replies.windows(2).position(|end| end == b"\r\n").expect("a line") + 2;
    let number: i64 = std::str::from_utf8(&replies[1..line - 2]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    match replies[0] {
        b'$' | b'=' if number >= 0 => line + number as usize + 2,
        b'*' => (0..number).fold(line, |at, _| at + reply_len(&replies[at..])),
        b'%' => (0..2 * number).fold(line, |at, _| at + reply_len(&replies[at..])),
        _ => line,
    }
}

proptest! {
    #[test]
    fn replies_and_contents_are_those_of_a_server_of_one_node(requests in requests()) {
        // Catches a command that behaves differently in a cluster: it misses the writes of earlier requests in its proposal, leaves a part of a
        // refused request, or loses a value's expiry time.
        let (mut node, mut alone) = (Node::new(), alone());
        let expected: Vec<String> = requests.iter().map(|request| shown(&alone.answers(encoded(request).as_bytes()))).collect();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_millis() as u64;
        // The writes of a pipeline are proposed together.
        let pipeline: String = requests.iter().map(|request| encoded(request)).collect();
        let mut replies = Client::new(&node).exchange(&mut node, now, pipeline.as_bytes());
        let mut found = Vec::new();
        while !replies.is_empty() {
            let rest = replies.split_off(reply_len(&replies));
            found.push(shown(&replies));
            replies = rest;
        }
        for ((request, expected), found) in requests.iter().zip(&expected).zip(&found) {
            let differs_by_time = TIMES.contains(&&*request[0]) && [expected, found].iter().all(|reply| reply.starts_with(':') && !reply.starts_with(":-"));
            let is_hello = request[0] == "hello";
            prop_assert!(expected == found || differs_by_time || is_hello, "{request:?}: {expected} alone, {found} in a cluster, in {requests:?}");
        }
        prop_assert_eq!(expected.len(), found.len());
        let contents: Vec<_> = node.contents().into_iter().map(|(key, value, _)| (key, value)).collect();
        let entries = alone.shared.keys.db.iter().map(|entry| entry.expect("a sound disk"));
        prop_assert_eq!(contents, entries.map(|(key, value)| (shown(&key), shown(&value))).collect::<Vec<_>>());
    }
}

#[test]
fn every_command_of_keys_is_compared() {
    // Catches a new command whose replies in a cluster no test compares.
    let names = |list: &'static str| list.split('|').map(|line| line.trim().split(' ').next().unwrap_or_default());
    let compared: Vec<&str> = names(REQUESTS).collect();
    let all = [classes::WRITES, classes::READS].map(str::to_ascii_lowercase);
    for name in all.iter().flat_map(|names| names.split_whitespace()) {
        assert!(compared.contains(&name), "{name}");
    }
    assert!(names(QUEUED).all(|name| compared.contains(&name)));
}
