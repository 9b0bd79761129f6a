//! The session without a network: the effects of commands, in both versions and in transactions.

mod clock;
mod conversations;
pub(crate) mod halves;
mod limits;
pub(crate) mod orders;

use std::sync::Arc;

use mini_engine::Builder;
use proof::disk::{FaultFs, MemFs};
use proof::{Clock, second};

use super::*;
use crate::settings::{Limits, ServerDurability, Settings};
use crate::state::context::Work;
use crate::state::databases::Database;
use crate::state::job::Job;

/// All bytes that are to be sent.
pub(crate) fn bytes(mut output: Output) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !output.is_empty() {
        output.send(&mut bytes).expect("memory takes it");
    }
    bytes
}

/// The requests and replies of `request => reply | request => reply`; lines that begin with `#` are comments.
pub(crate) fn exchanges(session: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = session.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split('|'));
    let exchanges = lines.map(|exchange| exchange.split_once("=>").expect("a request and its reply"));
    exchanges.map(|(request, reply)| (request.trim(), reply.trim()))
}

/// The server's side of a connection, on a database in memory or in a directory of the process.
pub(crate) struct Server {
    pub(crate) shared: Shared,
    session: Session,
    /// The maximum number of requests that are carried out together.
    pub(crate) most: usize,
    _directory: proof::TempDir,
}

fn limits() -> Limits {
    Limits { clients: 10, request_bytes: 1 << 16, pipeline: 100, buffer_bytes: 1 << 20, idle_seconds: 0 }
}

impl Server {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::on(|builder| builder, change)
    }

    pub(crate) fn on(disk: impl FnOnce(Builder) -> Builder, change: impl FnOnce(&mut Settings)) -> Self {
        let directory = proof::TempDir::new().expect("a temporary directory");
        let db = disk(mini_engine::Db::builder(directory.path()).memtable_bytes(1 << 20)).open().expect("open");
        let mut settings = Settings {
            durability: ServerDurability::Synced,
            limits: limits(),
            checkpoints: directory.path().join("checkpoints"),
            ..Settings::default()
        };
        change(&mut settings);
        let mut shared = Shared::new(db, settings, 1_000_000);
        let session = Session::new(&mut shared);
        Self { shared, session, most: 100, _directory: directory }
    }

    /// Makes this client, and later ones, speak the language of the coursework.
    fn speak_lines(&mut self) {
        self.shared.settings.protocol = Protocol::Lines;
        self.session = Session::new(&mut self.shared);
    }

    /// The reply bytes for `input`, which must hold complete requests only.
    pub(crate) fn answers(&mut self, input: &[u8]) -> Vec<u8> {
        let (mut at, mut output) = (0, Output::default());
        while at < input.len() {
            match self.session.step(&mut self.shared, &input[at..], self.most, &mut output) {
                Step::Done { len, .. } | Step::Empty(len) => at += len,
                Step::Continue => {}
                Step::Later(0, Work::Room(batch)) => {
                    let waited = self.shared.keys.db.wait_for_room(&batch);
                    self.session.refuse(waited.err());
                }
                Step::Later(0, Work::Job(Job::Create(number))) => {
                    let created = Job::Create(number).run(&self.shared.keys.db, &Default::default());
                    self.session.refuse(created.err().and_then(|refusal| refusal.cause().cloned()));
                }
                Step::Close => break,
                Step::Later(len, Work::Job(job)) => {
                    at += len;
                    let outcome = job.run(&self.shared.keys.db, &Default::default());
                    let reply = self.shared.end_job(&job, outcome);
                    self.session.answer(&reply, &mut output);
                }
                Step::Later(..) => panic!("there are no groups"),
                Step::Incomplete => panic!("not a whole request: {}", input[at..].escape_ascii()),
            }
        }
        bytes(output)
    }

    /// The replies to `input` as text.
    fn said(&mut self, input: &str) -> String {
        String::from_utf8(self.answers(input.as_bytes())).expect("text")
    }

    /// The reply to `line` as one line, in which a zero byte is `\0`.
    fn reply(&mut self, line: &str) -> String {
        self.said(&format!("{line}\r\n")).replace("\r\n", " ").replace('\0', r"\0").trim_end().to_owned()
    }

    /// The reply to `line` from another client.
    fn reply_to(&mut self, other: &mut Session, line: &str) -> String {
        std::mem::swap(&mut self.session, other);
        let reply = self.reply(line);
        std::mem::swap(&mut self.session, other);
        reply
    }

    /// The number of requests of each step, until a step carries out none, and the replies of all steps.
    fn steps(&mut self, input: &[u8]) -> (Vec<usize>, Vec<Vec<u8>>) {
        let (mut at, mut steps, mut replies) = (0, Vec::new(), Vec::new());
        loop {
            let mut output = Output::default();
            let step = self.session.step(&mut self.shared, &input[at..], 100, &mut output);
            replies.push(bytes(output));
            let Step::Done { len, requests } = step else { return (steps, replies) };
            at += len;
            steps.push(requests);
        }
    }

    /// Sends each request of [`exchanges`], and compares the replies.
    #[track_caller]
    fn talk(&mut self, session: &str) {
        for (line, expected) in exchanges(session) {
            assert_eq!(self.reply(line), expected, "{line}");
        }
    }

    /// The same in the language of the coursework, whose replies may have several lines or none: `¶` is a line end.
    #[track_caller]
    fn talk_lines(&mut self, session: &str) {
        self.speak_lines();
        for (line, expected) in exchanges(session) {
            assert_eq!(self.said(&format!("{line}\n")).replace('\n', "¶"), expected, "{line}");
        }
    }
}

/// The cursor and the keys in a reply to SCAN.
fn scanned(reply: &[u8]) -> (u64, Vec<String>) {
    let text = String::from_utf8(reply.to_vec()).expect("text");
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines[0], "*2", "{text}");
    let keys = lines[4..].iter().filter(|line| !line.is_empty() && !line.starts_with('$'));
    (lines[2].parse().expect("a cursor"), keys.map(|key| (*key).to_owned()).collect())
}

/// The number of keys of each call of an iteration.
fn scan_all(server: &mut Server, options: &str) -> Vec<usize> {
    let (mut cursor, mut found) = (0, Vec::new());
    while cursor > 0 || found.is_empty() {
        let (next, keys) = scanned(&server.answers(format!("scan {cursor} {options}\r\n").as_bytes()));
        cursor = next;
        found.push(keys.len());
    }
    found
}

#[test]
fn a_scan_returns_every_key_that_is_there_all_the_time_and_each_once() {
    // Catches a position that is lost or repeated while keys near it are added and removed.
    let mut server = Server::new();
    for n in 0..100 {
        server.talk(&format!("set key{n:03} v => +OK"));
    }
    let (mut cursor, mut seen, mut round) = (0, Vec::new(), 0);
    loop {
        let (next, keys) = scanned(&server.answers(format!("scan {cursor} count 7\r\n").as_bytes()));
        seen.extend(keys);
        // The keys between are removed and stored again; other keys are added before and after.
        server.answers(
            format!("set a{round} v\r\ndel key{:03}x\r\nset key{:03}x v\r\n", round * 7, round * 7).as_bytes(),
        );
        round += 1;
        if next == 0 {
            break;
        }
        cursor = next;
    }
    let stable: Vec<&String> = seen.iter().filter(|key| key.len() == 6).collect();
    assert_eq!(stable.len(), 100);
    assert!(stable.is_sorted() && seen.iter().collect::<std::collections::BTreeSet<_>>().len() == seen.len());
    // A repeated request gives the same keys: a client repeats it if the reply was lost.
    let (next, keys) = scanned(&server.answers(b"scan 0 match key0* count 10\r\n"));
    assert!(keys.iter().all(|key| key.starts_with("key0")) && keys.len() == 10);
    let again =
        |server: &mut Server| scanned(&server.answers(format!("scan {next} match key0* count 500\r\n").as_bytes()));
    let rest = again(&mut server);
    assert_eq!((rest.0, rest.1 == again(&mut server).1), (0, true));
    server.talk(
        "scan 12345 => -ERR the cursor is not known any more: begin again with 0 | scan x => -ERR invalid cursor
         scan -1 => -ERR invalid cursor | scan 0 count 0 => -ERR syntax error
         scan 0 type list count 1000 => *2 $1 0 *0 | scan 0 match nothing* => *2 $1 0 *0",
    );
}

#[test]
fn scans_from_the_start_do_not_pass_what_was_removed_there_each_time() {
    // Catches an iteration in which a client removes keys from the front by SCAN and DEL, and each SCAN visits all removed keys again. The cost is
    // measured in visited keys without a value.
    const COUNT: u64 = 4000;
    let mut server = Server::new();
    for n in 0..COUNT {
        server.answers(format!("set key{n:04} v\r\n").as_bytes());
    }
    for n in (0..COUNT).step_by(10) {
        let (_, keys) = scanned(&server.answers(b"scan 0 count 10\r\n"));
        assert_eq!(keys[0], format!("key{n:04}"));
        server.talk(&format!("del {} => :10", keys.join(" ")));
    }
    server.talk("scan 0 count 10 => *2 $1 0 *0");
    let passed = server.shared.keys.db.metrics().dead_keys_passed;
    // If each SCAN began from the start, the cost would be two hundred visits for each key.
    assert!(passed < 50 * COUNT, "{passed} keys passed for {COUNT} keys");
}

#[test]
fn nothing_but_the_password_is_taken_before_the_password() {
    // Catches a command that runs without the password, and wrong passwords that are not counted.
    let mut server = Server::with(|settings| settings.password = Some(b"secret".to_vec()));
    for command in ["get a", "set a 1", "ping", "info", "shutdown", "scan 0", "multi", "config get *", "command"] {
        server.talk(&format!("{command} => -NOAUTH Authentication required."));
    }
    for wrong in ["wrong", "secre", "other secret"] {
        server.talk(&format!("auth {wrong} => -WRONGPASS invalid username-password pair or user is disabled."));
    }
    assert!(server.reply("hello 3").starts_with("-NOAUTH HELLO"));
    assert!(server.reply("hello 3 auth default wrong").starts_with("-WRONGPASS"));
    server.talk(
        "auth default secret => +OK | ping => +PONG | reset => +RESET
         ping => -NOAUTH Authentication required. | auth secret => +OK | get a => $-1",
    );
    assert!(server.said("info stats\r\n").contains("acl_access_denied_auth:4\r\n"));
    // Before the password, a request as large as those of other clients is refused.
    let mut server = Server::with(|settings| settings.password = Some(b"secret".to_vec()));
    assert!(server.said("*2\r\n$4\r\nauth\r\n$20000\r\n").starts_with("-ERR Protocol error"));
    assert!(Server::new().said("auth x\r\n").starts_with("-ERR AUTH"), "no password is configured");
}

#[test]
fn everything_is_removed_only_where_that_is_allowed_and_only_from_databases() {
    // Catches a server whose default settings let any client remove all keys, and one that also removes entries that belong to no client.
    let mut server = Server::new();
    let refusal = "removes everything: start the server with --allow-flushall";
    server.talk(&format!(
        "set a 1 => +OK | flushall => -ERR FLUSHALL {refusal} | flushdb => -ERR FLUSHDB {refusal} | get a => $1 1"
    ));
    let mut server = Server::with(|settings| (settings.may_flush_all, settings.databases) = (true, 3));
    let other = server.shared.keys.db.keyspace("01").expect("a keyspace");
    other.insert("a", "1").expect("insert");
    server.talk(
        "select 3 => -ERR DB index is out of range | select 2 => +OK | mset a 1 b 2 => +OK | flushall async => +OK | dbsize => :0
         flushdb bogus => -ERR syntax error | flushall sync async => -ERR syntax error | flushall => +OK",
    );
    assert!(server.reply("client info").contains(" db=2 ") && other.contains_key("a").expect("get"));
}

#[test]
fn replies_and_transactions_are_bounded_and_a_refused_write_is_not_made() {
    // Catches a reply that takes all memory, and a write that was made although its client got an error.
    let mut server = Server::new();
    let value = "v".repeat(60_000);
    server.talk(&format!("mset a {value} => +OK"));
    server.answers(format!("set b {value}\r\n").as_bytes());
    let too_long = |found: String| found.contains("longer than 65536 bytes");
    assert!(server.said("mget a b\r\n").starts_with("-ERR the values are longer than 65536 bytes"));
    assert!(too_long(server.said("range a c\r\n")));
    assert!(server.answers(b"append a xxxxxx\r\n").len() < 20);
    let tail = "x".repeat(6000);
    assert!(server.answers(format!("append a {tail}\r\n").as_bytes()).starts_with(b"-ERR string exceeds"));
    let queued = server.answers(b"multi\r\nset c 1\r\nget a\r\nhello 3\r\nselect 2\r\nselect 0\r\nget b\r\n");
    assert_eq!(queued, [&b"+OK\r\n"[..], &b"+QUEUED\r\n".repeat(6)].concat());
    assert!(too_long(server.said("exec\r\n")));
    // Short requests whose writes are long.
    server.talk("multi => +OK | append a x => +QUEUED | append a x => +QUEUED");
    assert!(too_long(server.said("exec\r\n")));
    server.talk("strlen a => :60006 | get c => $-1 | multi => +OK");
    server.answers(format!("set d {value}\r\n").as_bytes());
    assert!(server.answers(format!("set e {value}\r\n").as_bytes()).starts_with(b"-ERR a transaction has at most"));
    server.talk("exec => -EXECABORT Transaction discarded because of previous errors. | exists d e => :0");
    let key = "k".repeat(65_530);
    assert!(server.answers(format!("*2\r\n$3\r\nget\r\n${}\r\n", key.len()).as_bytes()).starts_with(b"-ERR Protocol"));
}

#[test]
fn a_key_past_the_engines_limit_is_refused() {
    // Catches an error of the engine that ends the server, or that is reported as success.
    let mut server = Server::with(|settings| settings.limits.request_bytes = 1 << 20);
    let key = "k".repeat(65_536);
    server.talk(&format!("set {} 1 => +OK", &key[..100]));
    let found = server.said(&request(&["set", &key, "1"]));
    assert!(found.starts_with("-ERR invalid argument: key of 65536 bytes is too long"), "{found}");
}

#[test]
fn the_commands_describe_themselves() {
    // Catches a table of commands that disagrees with the behaviour of the commands.
    let mut server = Server::new();
    server.talk(
        "command info get nope => *2 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *2 +@read +@fast *0 *0 *0 $-1
         client => -ERR wrong number of arguments for 'client' command | command bogus => -ERR unknown subcommand or wrong number of arguments for 'bogus' of COMMAND
         config set save '' => -ERR settings are given when the server is started, see `mini-engine serve --help`
         config get appendfsync max[c]lient? => *4 $11 appendfsync $6 always $10 maxclients $2 10
         wait 1 0 => :0 | waitaof 1 0 0 => *2 :1 :0 | echo hi => $2 hi | ping => +PONG
         ping hi => $2 hi | ping a b => -ERR wrong number of arguments for 'ping' command",
    );
    let count = server.said("command count\r\n");
    let count: usize = count.trim().trim_start_matches(':').parse().expect("a number");
    let all = server.said("command\r\n");
    assert!(all.starts_with(&format!("*{count}\r\n*10\r\n")), "{all}");
    let info = server.said("info\r\n");
    for field in ["redis_version:7.0.0", "tcp_port:0", "appendfsync:always", "connected_clients:0", "wal_syncs:"] {
        assert!(info.contains(field), "{field}: {info}");
    }
    assert!(!server.said("info clients\r\n").contains("tcp_port"));
}

#[test]
fn slow_requests_are_kept_with_what_they_asked_but_no_password() {
    // Catches a list without bound, requests that are cut without a note, and a password that is shown.
    let mut server = Server::with(|settings| (settings.slow_micros, settings.password) = (0, Some(b"secret".to_vec())));
    server.talk("auth secret => +OK | client setname me => +OK");
    let long = "x".repeat(200);
    server.answers(format!("mset {}\r\n", "k v ".repeat(20)).as_bytes());
    server.answers(format!("set k {long}\r\nget k\r\n").as_bytes());
    let said = server.said("slowlog get 5\r\n").replace("\r\n", " ");
    let lines: Vec<&str> = said.split("*6 ").collect();
    let ids: Vec<&str> = lines[1..].iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(ids, [":4", ":3", ":2", ":1", ":0"]);
    assert!(lines[1].ends_with(" *2 $3 get $1 k $0  $2 me "), "{}", lines[1]);
    assert!(lines[2].contains(&format!(" {}... (72 more bytes) ", "x".repeat(128))), "{}", lines[2]);
    assert!(lines[3].contains(" *32 $4 mset ") && lines[3].contains(" ... (10 more arguments) "), "{}", lines[3]);
    assert!(lines[5].contains(" *1 $4 auth "), "{}", lines[5]);
    server.talk("slowlog len => :6 | slowlog reset => +OK | slowlog len => :1 | slowlog get -2 => -ERR count should be greater than or equal to -1");
    for _ in 0..200 {
        server.answers(b"ping\r\n");
    }
    server.talk("slowlog len => :128 | slowlog bogus => -ERR unknown subcommand or wrong number of arguments for 'bogus' of SLOWLOG");
    server.shared.settings.slow_micros = u64::MAX;
    server.talk("slowlog reset => +OK | ping => +PONG | slowlog get => *0");
}

#[test]
fn the_calls_of_each_command_are_counted_once() {
    // Catches a command that is counted when it is queued, or not at all if it is carried out together with others.
    let mut server = Server::new();
    server.talk("set a 1 => +OK | multi => +OK | get a => +QUEUED | incr a => +QUEUED | append a x => +QUEUED | incr a => +QUEUED");
    server.answers(b"exec\r\n");
    server.answers(b"get a\r\nincr a\r\nget a\r\n");
    let said = server.said("info commandstats\r\n");
    let counted = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:")));
        let fields = line.unwrap_or_default().split(',').filter(|field| field.contains("calls="));
        fields.filter_map(|field| field.split('=').nth(1)).map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    // The numbers of calls, of rejected calls and of failed calls.
    let expected = "get => 3 0 0 | incr => 3 0 2 | append => 1 0 0 | exec => 1 0 0 | multi => 1 0 0 | set => 1 0 0";
    for (name, expected) in exchanges(expected) {
        assert_eq!(counted(name), expected, "{name}: {said}");
    }
    let info = server.said("info\r\n");
    assert!(!info.contains("cmdstat_") && info.contains("keyspace_hits:7\r\nkeyspace_misses:0\r\n"), "{info}");
}

#[test]
fn counters_begin_anew_and_what_is_there_stays() {
    // Catches a counter that is not reset, and a reset that loses the connected clients or the slow log.
    let mut server = Server::with(|settings| settings.slow_micros = 0);
    server.talk("get nope => $-1 | set k v => +OK | get k => $1 v");
    server.shared.counters.clients = 1;
    (server.shared.counters.connections, server.shared.counters.sent_bytes) = (5, 6);
    server.shared.counters.refused.note(crate::state::refused::Cause::Clients, "there", "too many");
    server.talk("config resetstat => +OK | config resetstat now => -ERR unknown subcommand or wrong number of arguments for 'resetstat' of CONFIG");
    let info = server.said("info everything\r\n");
    let fields = "connected_clients:1 total_connections_received:0 total_net_output_bytes:0 keyspace_hits:0 keyspace_misses:0 rejected_connections:0";
    for field in fields.split(' ') {
        assert!(info.contains(&format!("\n{field}\r")), "{field}: {info}");
    }
    assert!(!info.contains("cmdstat_get") && !info.contains("slowlog_len:0"), "{info}");
}

/// The script that releases a lock, from the manual of Redis.
pub(crate) const RELEASE: &str = r#"if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end"#;

/// The script that extends a lock, from the manual of Redis.
pub(crate) fn extend() -> String {
    RELEASE.replace("\"del\",KEYS[1]", "\"pexpire\",KEYS[1],ARGV[2]")
}

/// The bytes of a request.
pub(crate) fn request(parts: &[impl AsRef<str>]) -> String {
    let parts = parts.iter().map(AsRef::as_ref);
    parts.clone().fold(format!("*{}\r\n", parts.len()), |all, part| format!("{all}${}\r\n{part}\r\n", part.len()))
}

#[test]
fn the_scripts_of_locks_are_known_by_their_texts_and_hashes() {
    // Catches a hash that differs from that of clients, a lock that another token releases, and an unknown script that is taken for a known one.
    let mut server = Server::new();
    let hash = "647c65a442733a1aa440f99908d249d13b4d6c4a";
    server.talk(&format!(
        "evalsha {hash} 1 lock me => -NOSCRIPT No matching script. Please use EVAL. | script exists {hash} => *1 :0"
    ));
    assert_eq!(server.said(&request(&["script", "load", RELEASE])), format!("$40\r\n{hash}\r\n"));
    server.talk(&format!(
        "script exists {hash} nope => *2 :1 :0 | set lock me ex 1000 => +OK | evalsha {hash} 1 lock you => :0 | get lock => $2 me
         evalsha {} 1 lock me => :1 | get lock => $-1 | evalsha {hash} 1 lock me => :0 | evalsha {hash} 2 lock me => -ERR the script uses more keys or arguments than it was given
         mset a me b me => +OK | evalsha {hash} 2 a b me you => :1 | mget a b => *2 $-1 $2 me
         evalsha {hash} 3 lock me => -ERR Number of keys can't be greater than number of args
         evalsha {hash} -1 lock me => -ERR Number of keys can't be negative | script flush => +OK
         evalsha {hash} 1 lock me => -NOSCRIPT No matching script. Please use EVAL.", hash.to_uppercase()));
    let (other, comment) = (RELEASE.replace("del", "get"), format!("--[[\n{RELEASE}\n]]"));
    let long = format!("{RELEASE}{}", " ".repeat(16 << 10));
    for unknown in
        [["eval", "return 1", "0"], ["script", "load", &other], ["script", "load", &comment], ["script", "load", &long]]
    {
        let refused = "-ERR unknown script: only the scripts that the server's manual names are known\r\n";
        assert_eq!(server.said(&request(&unknown)), refused, "{unknown:?}");
    }
    let other_spelling =
        format!("-- releases\n  {}", RELEASE.replace('"', "'").replace("\n   ", " ").replace(",", ", "));
    server.talk("multi => +OK | set lock me => +QUEUED");
    assert_eq!(server.said(&request(&["eval", &other_spelling, "1", "lock", "me"])), "+QUEUED\r\n");
    server.talk("exec => *2 +OK :1 | exists lock => :0");
}

#[test]
fn locks_are_taken_and_kept_as_the_texts_say() {
    // Catches a lock that is lost because its time is too long, that is taken with an invalid time, or that is touched by a script which only names
    // it. The expected replies come from Redis; after an error, Redis adds the hash of the script.
    let in_all = |condition: &str| {
        format!(
            "for i,key in ipairs(KEYS) do if redis.call({condition} then return 0 end end \
         for i,key in ipairs(KEYS) do redis.call('set',key,ARGV[1],'PX',ARGV[2]) end return #KEYS"
        )
    };
    let (acquire, renew) = (in_all("'exists',key) == 1"), in_all("'get',key) ~= ARGV[1]"));
    // redsync, version 4.
    let release = "\n\tlocal val = redis.call(\"GET\", KEYS[1])\n\tif val == ARGV[1] then\n\t\treturn redis.call(\"DEL\", KEYS[1])\n\
        \telseif val == false then\n\t\treturn -1\n\telse\n\t\treturn 0\n\tend\n";
    let touch = "\n\tif redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n\t\treturn redis.call(\"PEXPIRE\", KEYS[1], ARGV[2])\n\
        \telseif redis.call(\"SET\", KEYS[1], ARGV[1], \"PX\", ARGV[2], \"NX\") then\n\t\treturn 1\n\telse\n\t\treturn 0\n\tend\n";
    let extend = extend();
    let extend_by_seconds = extend.replace("pexpire", "expire");
    let add = "local token = redis.call('get', KEYS[1]) if not token or token ~= ARGV[1] then return 0 end \
        local expiration = redis.call('pttl', KEYS[1]) if not expiration then expiration = 0 end if expiration < 0 then return 0 end \
        local newttl = ARGV[2] if ARGV[3] == \"0\" then newttl = ARGV[2] + expiration end redis.call('pexpire', KEYS[1], newttl) return 1";
    let obtain = "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[3]) then return redis.status_reply('OK') end local offset = tonumber(ARGV[2]) \
        if redis.call('getrange',KEYS[1],0,offset-1) == string.sub(ARGV[1],1,offset) then return redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[3]) end";
    let (max, kept) = ("9223372036854775807", "$3 tok $3 tok $-1");
    let invalid = |command| format!("-ERR invalid expire time in '{command}' command");
    let texts = [
        ("release", release),
        ("touch", touch),
        ("extend", &extend),
        ("seconds", &extend_by_seconds),
        ("add", add),
        ("obtain", obtain),
        ("acquire", &acquire),
        ("renew", &renew),
        ("unlock", halves::TEXT),
    ];
    let cases: [(&str, &str, &str, &str); 33] = [
        ("release", "1 a tok", ":1", "$-1 $3 tok $-1"),
        ("release", "1 a no", ":0", kept),
        ("release", "1 c tok", ":-1", kept),
        ("release", "2 a b tok", ":1", "$-1 $3 tok $-1"),
        ("touch", "1 a tok 9000", ":1", kept),
        ("touch", "1 a no 9000", ":0", kept),
        ("touch", "1 c tok 9000", ":1", "$3 tok $3 tok $3 tok"),
        ("touch", "1 a tok 0", ":1", "$-1 $3 tok $-1"),
        ("touch", "1 c tok 0", &invalid("set"), kept),
        ("extend", "2 a b tok 9000", ":1", kept),
        ("extend", &format!("1 a tok {max}"), &invalid("pexpire"), kept),
        ("extend", "1 a no x", ":0", kept),
        ("extend", "1 a tok x", "-ERR value is not an integer or out of range", kept),
        ("extend", "1 a tok 0", ":1", "$-1 $3 tok $-1"),
        ("seconds", &format!("1 a tok {max}"), &invalid("expire"), kept),
        ("seconds", "1 a tok 9223372036854775", &invalid("expire"), kept),
        ("seconds", "1 a tok 9000", ":1", kept),
        ("add", "1 a tok 10 0", ":0", kept),
        ("obtain", "1 a toky 3 5000", "+OK", "$4 toky $3 tok $-1"),
        ("obtain", "1 a toy 3 5000", "$-1", kept),
        ("obtain", "1 a new 0 5000", "$-1", kept),
        ("obtain", "1 a tok -1 5000", "$-1", kept),
        ("obtain", "1 a tok 3 0", &invalid("set"), kept),
        ("obtain", "1 c tok 3 0", &invalid("set"), kept),
        ("obtain", "1 c tok q 5000", "+OK", "$3 tok $3 tok $3 tok"),
        ("acquire", "2 c d tok 0", &invalid("set"), kept),
        ("acquire", &format!("1 c tok {max}"), &invalid("set"), kept),
        ("acquire", "2 a c tok 1000", ":0", kept),
        ("acquire", "0 tok x", ":0", kept),
        ("renew", "2 a b tok 9000", ":2", kept),
        ("renew", "2 a b tok 0", &invalid("set"), kept),
        ("unlock", "2 a b tok", ":2", "$-1 $-1 $-1"),
        ("unlock", "2 a a tok", ":1", "$-1 $3 tok $-1"),
    ];
    for (name, args, reply, left) in cases {
        let mut server = Server::new();
        server.talk("mset a tok b tok => +OK");
        let text = texts.iter().find(|text| text.0 == name).expect("a text").1;
        let parts: Vec<&str> = ["eval", text].into_iter().chain(args.split(' ')).collect();
        assert_eq!(server.said(&request(&parts)).trim_end().replace("\r\n", " "), reply, "{name} {args}");
        server.talk(&format!("mget a b c => *3 {left}"));
    }
    let mut server = Server::new();
    server.talk("set a tok ex 1000 => +OK");
    for (time, is_added, reply) in
        [(max, "0", &*invalid("pexpire")), (max, "1", &invalid("pexpire")), ("1000000", "0", ":1")]
    {
        assert_eq!(server.said(&request(&["eval", add, "1", "a", "tok", time, is_added])).trim_end(), reply);
    }
    server.talk("ttl a => :2000");
    let hash = "e950836ed1e694540c503ef9972b8de518044d3b";
    assert_eq!(server.said(&request(&["script", "load", release])), format!("$40\r\n{hash}\r\n"));
}

#[test]
fn info_shows_the_keys_of_each_database() {
    // Catches keys of another database that are counted for database 0 too.
    let mut server = Server::new();
    server.talk("mset a 0 b 0 => +OK | select 2 => +OK | set a 2 => +OK");
    server.shared.keys.db.flush().expect("flush");
    let said = server.said("info keyspace\r\n");
    let shown = |number, keys| format!("db{number}:keys={keys},expires=0,avg_ttl=0\r\n");
    // If a table has keys of both databases, either one may get the greater part.
    let is_shown = |(first, other)| said.contains(&format!("# Keyspace\r\n{}{}", shown(0, first), shown(2, other)));
    assert!([(2, 1), (1, 2)].into_iter().any(is_shown), "{said}");
}

#[test]
fn a_transaction_waits_for_a_database_before_it_begins() {
    // Catches a transaction that is carried out in part, or lost, when one of its commands needs a database that does not exist.
    let mut server = Server::new();
    server.talk("multi => +OK | incr n => +QUEUED | select 5 => +QUEUED | incr n => +QUEUED");
    let step = server.session.step(&mut server.shared, b"exec\r\n", 100, &mut Output::default());
    assert!(matches!(step, Step::Later(0, Work::Job(Job::Create(5)))), "{step:?}");
    assert_eq!((server.session.client.database.number, server.shared.keys.db.get("n").expect("get")), (0, None));
    server.session.refuse(Some(mini_engine::Error::Closed));
    // The transaction fails as a whole: the last command is not meant for database 0.
    server.talk("exec => -IOERR the database is closed | get n => $-1");
    server.talk("multi => +OK | select 5 => +QUEUED | incr n => +QUEUED | exec => *2 +OK :1 | get n => $1 1");
}

/// Complete requests of a pipeline, some of which see the writes of others.
const PIPELINE: &[u8] =
    b"set a 1\r\nincr a\r\nget a\r\nset b \"\\x78\"\r\nincr b\r\nincrby a 40\r\nstrlen a\r\nget b\r\nset a 7 nx\r\n\
    get a\r\nget none\r\ndecr n\r\ndecrby n y\r\nget n\r\nping\r\nget a\r\n";

#[test]
fn a_pipelines_replies_are_those_of_its_requests_one_by_one() {
    // Catches a request that does not see the writes of earlier ones, a refused request that affects others, and replies in a wrong order.
    let mut one_by_one = Server::new();
    one_by_one.most = 1;
    let expected = one_by_one.answers(PIPELINE);
    for most in [2, 3, 100] {
        let mut server = Server::new();
        server.most = most;
        assert_eq!(server.answers(PIPELINE).escape_ascii().to_string(), expected.escape_ascii().to_string(), "{most}");
        assert_eq!(server.shared.counters.commands, 16);
        assert_eq!(server.shared.syncs.is_unsynced, one_by_one.shared.syncs.is_unsynced);
        let stored = "mget a b c n x\r\n";
        assert_eq!(server.said(stored), one_by_one.said(stored));
    }
}

#[test]
fn neighbours_of_a_pipeline_go_together_as_one_batch() {
    // Catches pipelines that are carried out request by request, and steps that exceed the limit of the turn.
    let mut server = Server::new();
    let mut step =
        |input: &[u8], most| match server.session.step(&mut server.shared, input, most, &mut Output::default()) {
            Step::Done { len, requests } => (len, requests, server.shared.keys.db.metrics().wal_bytes),
            other => panic!("{other:?}"),
        };
    let sets = b"set a 1\r\n".repeat(20);
    let (_, _, begun) = step(&sets, 1);
    let (len, requests, together) = step(&sets, 100);
    assert_eq!((len, requests), (16 * 9, 16));
    let (_, _, alone) = (0..16).map(|_| step(&sets, 1)).last().expect("a step");
    let (together, alone) = (together - begun, alone - together);
    assert!(together * 2 < alone, "{together} bytes of log together, {alone} alone");
    let mut taken = |input: &[u8], most| step(input, most).1;
    assert_eq!(taken(&sets, 3), 3);
    // The second SET has an option, and the third is incomplete.
    assert_eq!(taken(b"set a 1\r\nset a 1 xx\r\n", 100), 1);
    assert_eq!(taken(b"set a 1\r\nget a\r\nset a", 100), 2);
    // Several keys go together with other writes, but not with reads.
    assert_eq!(taken(b"mset a 2 b 2\r\nset a 3\r\nmset b 3 c 3\r\nget a\r\n", 100), 3);
    assert_eq!(taken(b"get a\r\nmset a 4 b 4\r\n", 100), 1);
    server.talk("mset a 5 b => -ERR wrong number of arguments for 'mset' command | mget a b c => *3 $1 3 $1 3 $1 3");
}

#[test]
fn a_pipeline_writes_each_key_once_as_its_last_request_left_it() {
    // Catches writes that are replaced in the same batch and reach the log and the memtable all the same; one that is lost with those before it; and an
    // expiry time that is lost.
    let mut server = Server::new();
    server.talk("set b 5 exat 9999999999 => +OK");
    let before = server.shared.keys.db.metrics().writes;
    let found =
        server.said("incr a\r\nincr b\r\nincr a\r\nset c x\r\nget a\r\nset a 7\r\nincr b\r\ndecr a\r\nstrlen c\r\n");
    let refused = server.said("incr a\r\nincrby a y\r\nget a\r\n");
    assert_eq!(refused, ":7\r\n-ERR value is not an integer or out of range\r\n$1\r\n7\r\n");
    assert_eq!(found, ":1\r\n:6\r\n:2\r\n+OK\r\n$1\r\n2\r\n+OK\r\n:7\r\n:6\r\n:1\r\n");
    assert_eq!(server.shared.keys.db.metrics().writes - before, 4);
    server.talk("mget a b c => *3 $1 7 $1 7 $1 x | expiretime b => :9999999999 | ttl a => :-1");
    // A transaction is one batch too, with the last value of each key.
    let before = server.shared.keys.db.metrics().writes;
    server.talk("multi => +OK | set p 1 => +QUEUED | set q 2 => +QUEUED | incr p => +QUEUED | exec => *3 +OK +OK :2");
    assert_eq!(server.shared.keys.db.metrics().writes - before, 2);
}

#[test]
fn a_long_request_goes_alone() {
    // Catches a write that fails for lack of space and makes its neighbours fail, and copies of long values.
    let mut server = Server::with(|settings| settings.limits.request_bytes = 1 << 20);
    let long = request(&["set", "b", &"v".repeat(70_000)]);
    let input = format!("set a 1\r\nget a\r\n{long}{long}set c 1\r\nget b\r\nget a\r\n");
    assert_eq!(server.steps(input.as_bytes()).0, [2, 1, 1, 2, 1]);
}

#[test]
fn long_values_do_not_gather_in_memory() {
    // Catches a step that holds as many long values as its requests name; requests that are lost or repeated where it stops; and later bytes that
    // join them.
    let mut server = Server::new();
    for key in ["a", "b", "c", "d"] {
        server.shared.keys.db.insert(key, vec![b'v'; 40_000]).expect("insert");
    }
    server.shared.keys.db.insert("long", vec![b'v'; 70_000]).expect("insert");
    let input =
        b"get a\r\nget none\r\nget b\r\nincr n\r\nget c\r\nget long\r\nget d\r\nget n\r\nget n\r\n*99999999\r\n";
    let (steps, replies) = server.steps(input);
    assert!(replies.iter().all(|replies| replies.len() < (64 << 10) + 40_100));
    // The third value reaches the limit. Then requests are carried out alone until a reply is short.
    assert_eq!(steps, [3, 1, 3, 1, 1]);
    // Each of the two steps with three requests reads two values, which reach the limit, and then one value alone; then three requests are alone.
    assert_eq!(server.shared.keys.db.metrics().gets, 3 + 3 + 3);
    let replies = String::from_utf8(replies.concat()).expect("text").replace(&"v".repeat(40_000), "V");
    let replies: Vec<&str> = replies.lines().collect();
    let (head, tail) = replies.split_at(8);
    assert_eq!(head, ["$40000", "V", "$-1", "$40000", "V", ":1", "$40000", "V"]);
    assert!(tail[0].starts_with("-ERR the reply is longer than 65536 bytes"), "{tail:?}");
    assert_eq!(tail[1..7], ["$40000", "V", "$1", "1", "$1", "1"]);
    assert!(tail[7].starts_with("-ERR Protocol error"), "{tail:?}");
}

#[test]
fn reads_of_a_pipeline_are_answered_by_an_engine_that_refuses_writes() {
    // Catches a batch that cannot be written and makes the reads in the same step fail.
    let directory = proof::TempDir::new().expect("a temporary directory");
    let db = mini_engine::Db::open(directory.path()).expect("open");
    db.insert("a", "1").expect("insert");
    drop(db);
    let mut server = Server::new();
    server.shared.keys.db = mini_engine::Db::builder(directory.path()).read_only(true).open().expect("open");
    server.shared.first = Database::first(&server.shared.keys.db);
    server.session = Session::new(&mut server.shared);
    let found = server.said("get a\r\nset a 2\r\nget a\r\nincr a\r\n");
    let found: Vec<&str> = found.lines().map(|line| line.split(' ').next().expect("a word")).collect();
    assert_eq!(found, ["$1", "1", "-MISCONF", "$1", "1", "-MISCONF"]);
}

#[test]
fn what_must_be_synced_before_its_reply_says_so() {
    // Catches an acknowledgement that does not wait for its sync, and reads that wait for a sync needlessly.
    for (durability, waits) in
        [(ServerDurability::Synced, true), (ServerDurability::Everysec, false), (ServerDurability::Buffered, false)]
    {
        let mut server = Server::with(|settings| settings.durability = durability);
        server.talk("get a => $-1 | set a 1 xx => $-1");
        assert!(!server.shared.syncs.are_needed());
        for write in ["set a 1", "incr n", "append s x", "mset x 1 y 2", "del a", "getset n 1"] {
            server.shared.syncs.is_unsynced = false;
            server.answers(format!("{write}\r\n").as_bytes());
            assert_eq!(server.shared.syncs.are_needed(), waits, "{durability:?} {write}");
        }
        server.shared.syncs.is_unsynced = false;
        server.talk("multi => +OK | set a 1 => +QUEUED");
        assert!(!server.shared.syncs.are_needed());
        server.talk("exec => *1 +OK");
        assert_eq!(server.shared.syncs.are_needed(), waits);
        server.talk("waitaof 1 0 0 => *2 :1 :0");
        assert!(server.shared.syncs.are_needed());
    }
}

#[test]
fn two_checkpoints_are_kept_and_open_as_databases() {
    // Catches a SAVE that makes no copy, that fills the disk or removes other files, and an incomplete copy that replaces a complete one.
    let mut server = Server::new();
    let directory = server.shared.settings.checkpoints.clone();
    std::fs::create_dir_all(directory.join("checkpoint-mine")).expect("a directory of the user's");
    for n in 1..=3 {
        server.talk(&format!("set n {n} => +OK | save => +OK"));
        server.shared.saves.is_under_way = false;
        if n == 2 {
            // As after a crash before CURRENT was written.
            std::fs::create_dir(directory.join("checkpoint-000003")).expect("a directory");
        }
    }
    let mut names: Vec<_> =
        std::fs::read_dir(&directory).expect("list").map(|entry| entry.expect("entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["checkpoint-000002", "checkpoint-000003", "checkpoint-000004", "checkpoint-mine"]);
    let copy = mini_engine::Db::open(directory.join("checkpoint-000004")).expect("a database");
    assert_eq!(copy.get("n").expect("get").as_deref(), Some(&b"3"[..]));
    server.talk("bgsave => +Background saving started | bgsave => -ERR Background save already in progress");
    assert_eq!(server.shared.background.len(), 1);
}

#[test]
fn what_a_browser_sends_ends_its_connection() {
    // Catches a web page that makes a browser send commands to a server without a password.
    let mut server = Server::new();
    let body = b"POST / HTTP/1.1\r\nHost: localhost:6379\r\n\r\nSET a 1\r\n";
    assert_eq!(server.answers(body).escape_ascii().to_string(), r"-ERR this is no HTTP server\r\n");
    let found = server.said("PUT / HTTP/1.1\r\nhost: localhost:6379\r\n\r\nSET a 1\r\n");
    assert_eq!(found, "-ERR unknown command 'PUT'\r\n-ERR this is no HTTP server\r\n");
    server.talk("get a => $-1");
    server.speak_lines();
    let found = server.answers(b" post / HTTP/1.1\r\n\r\np 1 1\n");
    assert_eq!(String::from_utf8(found).expect("text"), "error: this is no HTTP server\n");
    server.talk_lines("g 1 => ¶");
}

#[test]
fn the_courseworks_examples_print_what_they_are_to_print() {
    // Catches a range in the order of decimal digits, an end that is included, and a missing empty line.
    let mut server = Server::new();
    server.talk_lines(
        "p 10 7 => | p 63 222 => | g 10 => 7¶ | g 15 => ¶ | p 15 5 => | g 15 => 5¶ | d 63 => | d 15 =>
         p 13 2 => | p 17 99 => | p 12 22 => | p -3 -4 => | p 100 1 => | r 10 12 => 10:7¶
         r 10 15 => 10:7 12:22 13:2¶ | r 14 17 => ¶ | r 20 10 => ¶ | r -10 101 => -3:-4 10:7 12:22 13:2 17:99 100:1¶
         d 10 => | d 10 => | g 10 => ¶ | => | s => Logical Pairs: 5¶¶-3:-4 12:22 13:2 17:99 100:1¶
         p 1 => error: expected p KEY VALUE, g KEY, r FROM TO, d KEY, l \"FILE\" or s¶
         p x 1 => error: expected a whole number, found x¶
         l \"a.dat\" => error: this server loads no files: start it with --load-from DIR¶",
    );
    server.shared.keys.db.flush().expect("flush");
    let statistics = server.said("s\n");
    assert!(statistics.contains("LVL0: "), "{statistics}");
}

#[test]
fn files_are_loaded_from_their_directory_only() {
    // Catches a client that can read other files of the server's machine.
    let directory = proof::TempDir::new().expect("a temporary directory");
    let pairs: Vec<u8> = [(1i32, 10i32), (-2, 20), (3, -30)]
        .iter()
        .flat_map(|(k, v)| [k.to_le_bytes(), v.to_le_bytes()].concat())
        .collect();
    std::fs::write(directory.path().join("0.dat"), &pairs).expect("write");
    std::fs::write(directory.path().join("cut.dat"), &pairs[..12]).expect("write");
    let mut server = Server::with(|settings| settings.load_from = Some(directory.path().to_owned()));
    let outside = "error: expected the name of a file below the directory of --load-from¶";
    let refused = format!("l /etc/passwd => {outside} | l ../x => {outside} | l => {outside}");
    server.talk_lines(&format!("l \"0.dat\" => | r -5 5 => -2:20 1:10 3:-30¶ | {refused}"));
    assert_eq!(server.shared.syncs.loads, 0);
    assert!(server.said("l \"none\"\n").starts_with("error: IOERR cannot open"));
    assert!(server.said("l cut.dat\n").contains("ends within a pair"));
}

#[test]
fn replies_wait_for_a_sync_as_long_as_a_file_is_loaded() {
    // Catches a client that sees pairs which a power failure could undo: those of a running or failed load.
    let directory = proof::TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("cut.dat"), [1; 12]).expect("write");
    for (durability, waits) in [(ServerDurability::Synced, true), (ServerDurability::Everysec, false)] {
        let mut server = Server::with(|settings| {
            settings.load_from = Some(directory.path().to_owned());
            settings.durability = durability;
        });
        server.speak_lines();
        let mut other = Session::new(&mut server.shared);
        let step = other.step(&mut server.shared, b"l cut.dat\n", 1, &mut Output::default());
        let Step::Later(_, Work::Job(job)) = step else { panic!("{step:?}") };
        // The state after a turn with a sync, first before the load has written anything, then afterwards.
        server.shared.syncs.is_unsynced = false;
        assert_eq!(server.shared.syncs.are_needed(), waits);
        let outcome = job.run(&server.shared.keys.db, &Default::default());
        server.talk_lines("g 16843009 => 16843009¶");
        assert_eq!(server.shared.syncs.are_needed(), waits);
        let reply = server.shared.end_job(&job, outcome);
        assert!(matches!(&reply, Reply::Error(text) if text.contains("ends within a pair")), "{reply:?}");
        assert_eq!(server.shared.syncs.are_needed(), waits);
        server.shared.syncs.is_unsynced = false;
        assert!(!server.shared.syncs.are_needed());
    }
}

#[test]
fn every_client_is_listed_with_its_name_and_last_command_until_it_has_gone() {
    // Catches a list that shows only the calling client, a wrong client number, and records of disconnected clients.
    let mut server = Server::new();
    let mut other = Session::new(&mut server.shared);
    let record = server.shared.clients.get_mut(other.id()).expect("a record");
    record.addresses = ["127.0.0.1:50000", "127.0.0.1:6379"].map(str::to_owned);
    let list = |server: &mut Server, line: &str| {
        let text = server.said(&format!("{line}\r\n"));
        text.split_once("\r\n").expect("a string").1.trim_end().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for (line, reply) in [("client setname b", "+OK"), ("client setinfo lib-name tester", "+OK"), ("get a", "$-1")] {
        assert_eq!(server.reply_to(&mut other, line), reply);
    }
    server.talk("client setname a => +OK | client id => :1 | client getname => $1 a");
    let all = list(&mut server, "client list");
    let rest = "flags=N db=0 cmd=client user=default lib-name= lib-ver=";
    assert_eq!(all[0], format!("id=1 addr= laddr= name=a age=0 idle=0 {rest}"));
    assert_eq!(
        all[1..],
        ["id=2 addr=127.0.0.1:50000 laddr=127.0.0.1:6379 name=b age=0 idle=0 flags=N db=0 cmd=get user=default \
          lib-name=tester lib-ver="]
    );
    assert_eq!(list(&mut server, "client info"), all[..1]);
    assert_eq!(list(&mut server, "client list id 2 7"), all[1..]);
    assert_eq!(list(&mut server, "client list type normal").len(), 2);
    assert_eq!(list(&mut server, "client list type pubsub"), [""; 0]);
    server.talk(
        "client list id x => -ERR Invalid client ID | client list type x => -ERR Unknown client type 'x'
         client list id => -ERR syntax error | client no-evict off => +OK
         client no-evict on => -ERR NO-EVICT is not there: one bound holds for the buffers of all clients
         client no-touch x => -ERR syntax error",
    );
    assert_eq!(server.reply_to(&mut other, "reset"), "+RESET");
    assert!(list(&mut server, "client list")[1].contains("name= "));
    assert_eq!(server.reply_to(&mut other, "client id"), ":2");
    server.shared.clients.remove(2);
    assert_eq!(list(&mut server, "client list").len(), 1);
}

#[test]
fn info_has_the_numbers_that_redis_cli_shows() {
    // Catches a missing field, which `redis-cli --stat` would show as a negative size.
    let mut server = Server::new();
    let fields = |server: &mut Server| {
        let text = server.said("info\r\n");
        // The value follows the first occurrence of the name.
        move |name: &str| {
            let (_, rest) = text.split_once(name)?;
            rest[1..].split(['\r', ',']).next()?.parse::<i64>().ok()
        }
    };
    let empty = fields(&mut server)("used_memory").expect("a number");
    for n in 0..100 {
        server.answers(format!("set key{n} {}\r\n", "v".repeat(1000)).as_bytes());
    }
    let full = fields(&mut server);
    assert!(full("used_memory").is_some_and(|full| full > empty + 100_000), "{empty}");
    assert_eq!(full("db0:keys"), Some(100));
    server.shared.keys.db.flush().expect("flush");
    assert_eq!(fields(&mut server)("db0:keys"), Some(100));
    for n in 0..40 {
        server.answers(format!("del key{n}\r\n").as_bytes());
    }
    server.shared.keys.db.flush().expect("flush");
    assert_eq!(fields(&mut server)("db0:keys"), Some(60));
    let others = "connected_clients blocked_clients total_commands_processed total_connections_received bgsave_in_progress \
        aof_rewrite_in_progress loading";
    for name in others.split(' ') {
        assert!(full(name).is_some_and(|number| number >= 0), "{name}");
    }
}

#[test]
fn damage_that_reads_meet_is_counted_and_said_once() {
    // Catches damage that is reported only to the client that finds it, and damage that is not counted in a pipeline, a transaction or a job.
    let mut server = Server::new();
    server.talk(
        "set a 1 => +OK
         info damage => $92 # Damage damage_met:0 damage_places:0 last_damage_time:0 last_damage: damaged_files:0",
    );
    server.shared.keys.db.flush().expect("flush");
    let tables =
        std::fs::read_dir(server._directory.path()).expect("a directory").map(|entry| entry.expect("an entry").path());
    let table = { tables }.find(|path| path.extension().is_some_and(|ending| ending == "sst")).expect("a table");
    let mut bytes = std::fs::read(&table).expect("read");
    bytes[0] ^= 1;
    std::fs::write(&table, bytes).expect("write");
    for (requests, times) in
        [("get a\r\n", 1), ("get a\r\nget a\r\n", 2), ("multi\r\nget a\r\nexec\r\n", 1), ("dbsize\r\n", 1)]
    {
        let before = server.shared.counters.damage.met;
        let said = server.said(requests);
        assert!(said.contains("-IOERR corruption in ") && said.contains(".sst at offset 0: "), "{said}");
        assert_eq!(server.shared.counters.damage.met - before, times, "{requests}");
    }
    let news = server.shared.counters.damage.news();
    assert!(news.len() == 1 && news[0].contains(".sst at offset 0: "), "{news:?}");
    let said = server.said("info damage\r\n");
    assert!(said.contains("damage_met:5\r\ndamage_places:1\r\n"), "{said}");
    assert!(said.contains(&format!("\r\nlast_damage:{}\r\n", news[0])), "{said}");
}

#[test]
fn a_long_range_lets_others_in_and_shows_one_moment() {
    // Catches a range that blocks all clients until its last entry, one that sees later writes, and one that is counted or answered more than once.
    let mut server = Server::with(|settings| settings.limits.request_bytes = 1 << 20);
    let mut batch = mini_engine::WriteBatch::new();
    for n in 0..4500 {
        batch.insert(format!("key{n:04}"), "v").expect("insert");
    }
    server.shared.keys.db.write(batch, mini_engine::Durability::Buffered).expect("write");
    let mut other = Session::new(&mut server.shared);
    for (request, expected, steps) in [
        ("prefix key\r\n", 4500, 5),
        ("prefix key rev\r\n", 4500, 5),
        ("range key1000 key3000 limit 1500\r\n", 1500, 2),
        ("prefix key limit 3\r\n", 3, 1),
    ] {
        let (mut output, mut taken, before) = (Output::default(), 0, server.shared.counters.commands);
        loop {
            taken += 1;
            let step = server.session.step(&mut server.shared, request.as_bytes(), 100, &mut output);
            if let Step::Done { len, requests: 1 } = step {
                assert_eq!(len, request.len());
                break;
            }
            assert!(matches!(step, Step::Continue) && output.is_empty(), "{step:?}");
            assert!(server.session.size() >= taken * 1000 * 20);
            // The reply shows neither of the two changes.
            server.reply_to(&mut other, "set key4499x new");
            server.reply_to(&mut other, "del key4000 key0500");
        }
        let reply = String::from_utf8(bytes(output)).expect("text");
        assert!(reply.starts_with(&format!("*{}\r\n", 2 * expected)) && !reply.contains("new"), "{request}");
        assert_eq!((taken, server.shared.counters.commands), (steps, before + 2 * (steps as u64 - 1) + 1), "{request}");
        server.reply_to(&mut other, "del key4499x");
        server.reply_to(&mut other, "mset key4000 v key0500 v");
    }
    // In a transaction no other request is carried out in between.
    server.talk("multi => +OK | prefix key => +QUEUED");
    let mut output = Output::default();
    let step = server.session.step(&mut server.shared, b"exec\r\n", 100, &mut output);
    assert!(matches!(step, Step::Done { .. }) && bytes(output).starts_with(b"*1\r\n*9000\r\n"));
    // A reply that becomes too long in a later step is refused too.
    server.shared.keys.request_bytes = 60_000;
    server.talk("prefix key => -ERR the entries are longer than 60000 bytes: use LIMIT | get key0000 => $1 v");
}

#[test]
fn a_step_of_keys_and_of_scan_is_bounded_by_the_work_of_the_pattern_and_by_the_values() {
    // Catches a step whose pattern matches block the loop for seconds, and long values that KEYS visits in one step.
    let mut server = Server::with(|settings| settings.limits.request_bytes = 64 << 20);
    for n in 0..64 {
        server.shared.keys.db.insert(format!("{n:02}{}", "a".repeat(60_000)), "v").expect("insert");
    }
    for n in 0..64 {
        server.shared.keys.db.insert(format!("long{n:02}"), vec![b'v'; 60_000]).expect("insert");
    }
    let classes = format!("*{}b", "[abcdefgh]".repeat(100));
    for (pattern, steps, matching) in [("*", 11, 128), ("0*", 2, 10), (&classes, 15, 0), ("long*", 4, 64)] {
        let (request, mut output, mut taken) = (format!("keys {pattern}\r\n"), Output::default(), 1);
        while let Step::Continue = server.session.step(&mut server.shared, request.as_bytes(), 1, &mut output) {
            taken += 1;
        }
        assert!((steps..=steps + 1).contains(&taken), "{pattern}: {taken} steps");
        let found = scan_all(&mut server, &format!("match {pattern} count 1000"));
        assert_eq!(found.iter().sum::<usize>(), matching, "{pattern}");
        assert!((steps..=steps + 1).contains(&found.len()), "{pattern}: {} calls", found.len());
    }
    // Many patterns that a client sends at once count as work too.
    let all = "x".repeat(512);
    server.talk(&format!(
        "keys {all}{all}x => -ERR a pattern has at most 1024 bytes
         config get max* => *8 $10 maxclients $2 10 $9 maxmemory $1 0 $17 maxmemory-clients $7 1048576 $16 maxmemory-policy $10 noeviction
         config get {all} {all} => -ERR the patterns have at most 1024 bytes together"
    ));
}

#[test]
fn a_transaction_is_bounded_by_its_bytes_and_not_by_its_commands() {
    // Catches a number of commands that is refused although the commands are short, and commands whose own memory is not counted.
    let mut server = Server::with(|settings| settings.limits.request_bytes = 64 << 20);
    server.talk("multi => +OK");
    let queued = server.said(&"incr n\r\n".repeat(150_000));
    assert_eq!(queued, "+QUEUED\r\n".repeat(150_000));
    assert!(server.session.size() > 150_000 * 50, "{}", server.session.size());
    assert!(server.said("exec\r\n").ends_with(":149999\r\n:150000\r\n"));
    server.shared.keys.request_bytes = 1 << 20;
    server.talk("multi => +OK");
    let queued = server.said(&"incr n\r\n".repeat(20_000));
    assert!(queued.contains("-ERR a transaction has at most 1048576 bytes\r\n"));
    assert!(server.session.size() < 3 << 20);
    server.talk("exec => -EXECABORT Transaction discarded because of previous errors. | get n => $6 150000");
}

#[test]
fn a_scan_stops_at_long_values_too() {
    // Catches a step that reads as many long values as the number in COUNT.
    let mut server = Server::new();
    for n in 0..30 {
        server.shared.keys.db.insert(format!("key{n:02}"), vec![b'v'; 300_000]).expect("insert");
    }
    let found = scan_all(&mut server, "count 1000");
    assert!(found.len() == 8 && found.iter().sum::<usize>() == 30 && found.iter().all(|keys| *keys <= 4), "{found:?}");
}

#[test]
fn a_step_that_is_held_has_not_taken_place_and_one_that_is_refused_says_why() {
    // Catches a transaction that is lost while it waits, a reply or count for work that was not done, a half-done step, and a refusal that persists.
    let faults = FaultFs::new(Arc::new(MemFs::default()));
    let disk = faults.clone();
    let mut server = Server::on(|builder| builder.file_system(Arc::new(disk)).memtable_bytes(4096), |_| ());
    faults.refuse_files(Some("sst"));
    let mut last = String::new();
    for n in 0..1000 {
        let said = server.answers(format!("set filler{n} {}\r\n", "v".repeat(400)).as_bytes());
        last = String::from_utf8(said).expect("text");
        if last != "+OK\r\n" {
            break;
        }
    }
    assert!(last.starts_with("-MISCONF no space: could not create "), "{last}");
    assert!(server.shared.counters.writes.are_refused && server.shared.counters.writes.refused == 1);
    let news = server.shared.counters.writes.news();
    assert!(news.is_some_and(|news| news.starts_with("writes are refused: could not create ")));
    assert_eq!(server.shared.counters.writes.news(), None);
    server.shared.counters.writes.note(1, None);
    assert_eq!(server.shared.counters.writes.news().as_deref(), Some("writes are taken again; refused so far: 1"));
    for _ in 0..2 {
        server.shared.counters.writes.note(1, Some(&mini_engine::Error::Closed));
        server.shared.counters.writes.note(1, None);
        let news = server.shared.counters.writes.news();
        assert_eq!(news.as_deref(), Some("writes were refused, and are taken again: the database is closed"));
    }

    let state = |server: &Server| {
        let counters = &server.shared.counters;
        (counters.commands, counters.writes.refused, server.session.client.transaction.is_some())
    };
    let step = |server: &mut Server, input: &str| {
        let before = state(server);
        let mut output = Output::default();
        output.put(b"before");
        let step = server.session.step(&mut server.shared, input.as_bytes(), 100, &mut output);
        let said = String::from_utf8(bytes(output)).expect("text");
        if let Step::Later(0, _) = step {
            assert_eq!((&said[..], state(server)), ("before", before), "{input}");
        }
        (step, said)
    };
    server.talk("multi => +OK | get filler0 => +QUEUED | set a 1 => +QUEUED");
    let value = "v".repeat(400);
    let inputs = [
        "exec\r\n",
        "set a 1\r\nget filler0\r\nincr a\r\n",
        // By itself, the second command would write.
        "set a x\r\nincr a\r\n",
        "incr a\r\n",
        "mset a 1 b 2\r\n",
    ];
    for input in inputs {
        for _ in 0..2 {
            let (held, _) = step(&mut server, input);
            let Step::Later(0, Work::Room(batch)) = held else { panic!("{input}: {held:?}") };
            assert!(!batch.is_empty());
        }
        let refusal = mini_engine::Error::Full("planted".into());
        server.session.refuse(Some(refusal));
        let (done, said) = step(&mut server, input);
        let refused = "-MISCONF out of room: planted\r\n";
        let together = format!("before{refused}$400\r\n{value}\r\n{refused}");
        let expected = match input {
            _ if input.starts_with("set a 1") => together,
            _ if input.starts_with("set a x") => format!("before{refused}{refused}"),
            _ => format!("before{refused}"),
        };
        assert!(said == expected && matches!(done, Step::Done { .. }), "{input}: {said} {done:?}");
    }
    // The reads before the held request are answered, and only once.
    server.session.refuse(None);
    let (done, said) = step(&mut server, "get filler0\r\ngetdel filler0\r\n");
    assert!(matches!(done, Step::Done { requests: 1, .. }) && said == format!("before$400\r\n{value}\r\n"), "{said}");

    faults.refuse_files(None);
    while server.answers(b"set a 1\r\n") != b"+OK\r\n" {}
    let news = server.shared.counters.writes.news();
    assert!(news.is_some_and(|news| news.starts_with("writes were refused, and are taken again: ")));
    server.talk("multi => +OK | incr a => +QUEUED | exec => *1 :2 | exec => -ERR EXEC without MULTI");
}
