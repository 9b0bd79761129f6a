//! Compares the replies with those of a `redis-server`: both are sent the same random requests of several clients.
//!
//! `COMPARE_SEED` repeats a run, and `COMPARE_REQUESTS` is the number of requests.

mod draws;

use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use draws::{Draws, RARE, REQUESTS, Request, TOGETHER};
use proof::environment::{number, seed};
use proof::free_address;

use crate::support::server::{Raw, Server};
use crate::support::{Room, skipped, wait_for};

/// Commands that are not compared: they are not in Redis 7.0, run scripts, concern the server or a cluster, have several replies, or wait.
const NOT_COMPARED: &str = "DELPREFIX DELRANGE PREFIX RANGE WAITAOF EVAL EVALSHA SCRIPT BGSAVE CONFIG INFO LASTSAVE SAVE SHUTDOWN SLOWLOG \
    ASKING CLUSTER READONLY READWRITE MONITOR WAIT";

/// Whether the replies to a request, ours and then that of Redis, may differ.
type May = fn(&Request, &Reply, &Reply) -> bool;

/// The differences that are meant. One more: after HELLO in a transaction, which is not drawn, all of the reply to EXEC has the new version.
const DECLARED: &[(&str, May)] = &[
    ("the times of both servers differ", |request, ours, theirs| {
        let most = match &*request.name() {
            "TTL" => 120,
            "PTTL" => 120_000,
            // Absolute times in requests lie beyond, and must be equal.
            "EXPIRETIME" if ours.int() < Some(4_000_000_000) => 120,
            "PEXPIRETIME" if ours.int() < Some(4_000_000_000_000) => 120_000,
            _ => return request.name() == "TIME" && ours.parts.len() == theirs.parts.len(),
        };
        let both = ours.int().zip(theirs.int());
        both.is_some_and(|(ours, theirs)| ours >= 0 && theirs >= 0 && ours.abs_diff(theirs) <= most)
    }),
    ("numbers with a fraction have 64 bits", |request, ours, theirs| {
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
        let numbers = (number(&ours.body), number(&theirs.body), request.0.get(2).and_then(|by| number(by)));
        let is_near = |a: f64, b: f64, by: f64| (a - b).abs() <= 1e-12 * (a.abs() + by.abs());
        request.name() == "INCRBYFLOAT"
            && (ours.begins("-ERR increment would produce NaN or Infinity")
                || matches!(numbers, (Some(a), Some(b), Some(by)) if is_near(a, b, by)))
    }),
    ("the order of keys", |request, ours, theirs| {
        let (ours, theirs) = match &*request.name() {
            "KEYS" => (ours, theirs),
            "SCAN" if ours.parts.len() == 2 && ours.parts[0] == theirs.parts[0] => (&ours.parts[1], &theirs.parts[1]),
            _ => return false,
        };
        ours.parts.iter().collect::<BTreeSet<_>>() == theirs.parts.iter().collect() && ours.head == theirs.head
    }),
    ("a cursor is one that SCAN has returned", |request, ours, _| {
        request.name() == "SCAN" && (ours.begins("-ERR invalid cursor") || ours.begins("-ERR the cursor is not known"))
    }),
    ("facts about the server and its clients", |request, ours, theirs| {
        let is_fact = request.name() == "HELLO" || request.is("CLIENT ID");
        is_fact && ours.head[0] == theirs.head[0] && !ours.begins("-")
    }),
    ("all values have one encoding, and no time of last use", |request, ours, theirs| {
        let is_there = request.is("OBJECT ENCODING") || request.is("OBJECT REFCOUNT");
        is_there && ours.head[0] == theirs.head[0] || ours.begins("-ERR OBJECT FREQ and IDLETIME are not there")
    }),
    ("errors about unknown commands have other words, and show bytes that are no text in ASCII", |_, ours, theirs| {
        let both = |text| ours.begins(text) && theirs.begins(text);
        (ours.begins("-ERR unknown ") && theirs.begins("-ERR "))
            || both("-ERR Unsupported option ")
            || both("-ERR Syntax error in HELLO option '")
    }),
];

/// A reply as it was sent: its first line, the bytes of a string, and the parts of an array or map.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Reply {
    head: Vec<u8>,
    body: Vec<u8>,
    parts: Vec<Reply>,
}

impl Reply {
    fn read(from: &mut BufReader<TcpStream>) -> Self {
        let mut reply = Self::default();
        from.read_until(b'\n', &mut reply.head).expect("a reply");
        assert!(reply.head.ends_with(b"\r\n"), "the connection has ended: {reply:?}");
        let len = std::str::from_utf8(&reply.head[1..]).ok().and_then(|text| text.trim_end().parse::<usize>().ok());
        match (reply.head[0], len) {
            (b'$' | b'=', Some(len)) => {
                reply.body = vec![0; len + 2];
                from.read_exact(&mut reply.body).expect("a string");
                reply.body.truncate(len);
            }
            (b'*' | b'~', Some(len)) => reply.parts = (0..len).map(|_| Self::read(from)).collect(),
            (b'%', Some(len)) => reply.parts = (0..2 * len).map(|_| Self::read(from)).collect(),
            _ => {}
        }
        reply
    }

    fn begins(&self, text: &str) -> bool {
        self.head.starts_with(text.as_bytes())
    }

    fn int(&self) -> Option<i64> {
        std::str::from_utf8(self.head.strip_prefix(b":")?).ok()?.trim_end().parse().ok()
    }
}

impl Display for Reply {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}{}", self.head.escape_ascii(), self.body.escape_ascii())?;
        self.parts.iter().try_for_each(|part| write!(out, " {part}"))
    }
}

/// A server without configuration and files, and its address.
struct Redis(Child, SocketAddr);

impl Redis {
    /// Starts it in the directory `room`. `None` if it is not installed, or is another version than the one whose commands ours are.
    fn start(room: &Path) -> Option<Self> {
        let version = Command::new("redis-server").arg("--version").output().ok()?.stdout;
        String::from_utf8_lossy(&version).contains(" v=7.0.").then_some(())?;
        let (mut command, address) = (Command::new("redis-server"), free_address());
        command.args(["--port", &address.port().to_string(), "--save", "", "--appendonly", "no", "--dir"]).arg(room);
        let redis = Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("spawn"), address);
        wait_for("a server", || TcpStream::connect(address).is_ok());
        Some(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A client of both servers.
struct Client {
    /// The connections to our server and to Redis.
    streams: [BufReader<TcpStream>; 2],
    is_in_transaction: bool,
    /// The requests whose replies were `QUEUED`.
    queued: Vec<Request>,
}

impl Client {
    fn new(ours: &Server, theirs: &Redis) -> Self {
        let streams = [ours.address, theirs.1].map(|address| BufReader::new(Raw::connect(address).0));
        Self { streams, is_in_transaction: false, queued: Vec::new() }
    }

    /// Draws a pipeline, which ends after QUIT.
    fn draw(&mut self, draws: &mut Draws) -> Vec<Request> {
        let [rare, common] = [RARE, draws.of(&[REQUESTS, REQUESTS, REQUESTS, TOGETHER])]
            .map(|templates| templates.split(", ").collect::<Vec<_>>());
        let most = if draws.random.one_in(20) { 400 } else { 20 };
        let len = 1 + draws.random.index(most);
        let mut requests: Vec<Request> = Vec::new();
        while requests.len() < len && !requests.last().is_some_and(|last| last.is("QUIT")) {
            let template = match draws.random.below(20) {
                0 if self.is_in_transaction => "EXEC",
                0 | 1 if common.len() > rare.len() => draws.of(&rare),
                _ => draws.of(&common),
            };
            if self.is_in_transaction && template.starts_with("HELLO") {
                continue;
            }
            for request in draws.requests(template) {
                match (&*request.name(), request.0.len()) {
                    ("MULTI", 1) => self.is_in_transaction = true,
                    ("EXEC" | "DISCARD" | "RESET", 1) => self.is_in_transaction = false,
                    _ => {}
                }
                requests.push(request);
            }
        }
        requests
    }

    /// Sends requests to both servers, and compares the replies. Returns the first difference.
    fn compare(&mut self, requests: Vec<Request>) -> Result<(), String> {
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| request.encode(&mut bytes));
        self.streams.iter_mut().for_each(|stream| stream.get_mut().write_all(&bytes).expect("send"));
        for request in requests {
            let [ours, theirs] = self.streams.each_mut().map(Reply::read);
            if request.is("EXEC") && ours.head == theirs.head && ours.parts.len() == self.queued.len() {
                for ((request, ours), theirs) in self.queued.drain(..).zip(&ours.parts).zip(&theirs.parts) {
                    check(&request, ours, theirs)?;
                }
            } else {
                check(&request, &ours, &theirs)?;
            }
            match &*ours.head {
                b"+QUEUED\r\n" => self.queued.push(request),
                b"+OK\r\n" if request.is("MULTI") => self.queued.clear(),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Checks that two replies are the same, or differ as declared.
fn check(request: &Request, ours: &Reply, theirs: &Reply) -> Result<(), String> {
    match ours == theirs || DECLARED.iter().any(|(_, may)| may(request, ours, theirs)) {
        true => Ok(()),
        false => Err(format!("{request}\n  ours:  {ours}\n  Redis: {theirs}")),
    }
}

#[test]
fn replies_are_those_of_redis() {
    // Catches a reply, an error or an effect of a command that differs from that of Redis without being declared.
    let room = Room::new();
    let Some(redis) = Redis::start(&room.path("")) else {
        return skipped("replies_are_those_of_redis", "redis-server 7.0 is not installed: nothing was compared");
    };
    let ours = Server::new(&["--durability", "buffered", "--allow-flushall"]);
    let known: Vec<String> = redis::cmd("COMMAND").arg("LIST").query(&mut ours.client()).expect("a list");
    let words: BTreeSet<&str> = [REQUESTS, RARE, NOT_COMPARED].iter().flat_map(|list| list.split([' ', ','])).collect();
    known.iter().for_each(|name| assert!(words.contains(&*name.to_uppercase()), "{name}: expected a template"));
    let wanted = number("COMPARE_REQUESTS").unwrap_or(20_000) as usize;
    let mut draws = Draws::new(seed("COMPARE_SEED"));
    let mut clients = [(); 3].map(|()| Client::new(&ours, &redis));
    let mut count = 0;
    while count < wanted {
        let n = draws.random.index(clients.len());
        let requests = clients[n].draw(&mut draws);
        count += requests.len();
        let ends = requests.last().is_some_and(|last| last.is("QUIT"));
        let pipeline: String = requests.iter().map(|request| format!("{request}\n")).collect();
        if let Err(difference) = clients[n].compare(requests) {
            panic!("{pipeline}This pipeline of client {n} ended at request {count}. A reply differs:\n{difference}");
        }
        if ends {
            clients[n] = Client::new(&ours, &redis);
        }
    }
    println!("{count} requests were compared");
}
