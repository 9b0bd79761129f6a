//! The event loop on a failing disk; ways to connect are in `transports`, and clients that do not read in `slow_clients`.

mod slow_clients;
mod transports;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mini_engine::Db;
use proof::disk::{Answer, Fault, FaultFs, MemFs, Op, Repeat};

use super::connection::{Connection, READ_BYTES};
use super::{Address, Server};
use crate::error::Result;
use crate::protocol::output::Output;
use crate::session::tests::bytes;
use crate::session::{Session, Step};
use crate::settings::{Limits, ServerDurability, Settings};
use crate::state::shared::Shared;

fn settings(durability: ServerDurability) -> Settings {
    Settings {
        durability,
        limits: Limits { clients: 10, request_bytes: 1 << 20, pipeline: 100, buffer_bytes: 1 << 30, idle_seconds: 0 },
        checkpoints: "/checkpoints".into(),
        ..Settings::default()
    }
}

/// The size of a memtable that is soon full, in bytes.
const MEMTABLE: usize = 4096;

/// A database in memory, on a disk that can be made to fail.
fn database(memtable_bytes: usize) -> (FaultFs, Db) {
    let faults = FaultFs::new(Arc::new(MemFs::default()));
    let builder = Db::builder("/db").file_system(Arc::new(faults.clone())).memtable_bytes(memtable_bytes);
    (faults, builder.open().expect("open"))
}

fn tcp(address: &Address) -> SocketAddr {
    let Address::Tcp(address) = address else { panic!("{address}") };
    *address
}

/// Sends `request`, and reads a reply of this number of lines.
fn ask(client: &mut (impl Read + Write), request: &str, lines: usize) -> Vec<String> {
    client.write_all(request.as_bytes()).expect("send");
    let mut said = String::new();
    while said.matches("\r\n").count() < lines {
        let mut part = [0; 1000];
        let len = client.read(&mut part).expect("receive");
        assert!(len > 0, "it ended after {said}");
        said.push_str(std::str::from_utf8(&part[..len]).expect("text"));
    }
    said.lines().map(str::to_owned).collect()
}

#[test]
fn no_write_is_acknowledged_whose_sync_failed() {
    // Catches a reply that is sent before its sync or although the sync fails; this includes a read that has seen the write.
    let server = Running::start();
    let (mut client, faults) = (server.client(), server.faults.clone());
    assert_eq!(ask(&mut client, "SET a 1\r\nGET a\r\n", 3), ["+OK", "$1", "1"]);
    // On this disk a write is one mutation. The two writes succeed; their sync fails.
    faults.fail_mutation(faults.mutations() + 2, Fault::Device, Repeat::FromThenOn);
    // An empty request has no reply, and the reply of DBSIZE comes in another turn: neither is replaced.
    let refused = ask(&mut client, "SET b 2\r\n\r\n*0\r\nINCR a\r\nGET b\r\nDBSIZE\r\n", 4);
    let (counted, refused) = refused.split_last().expect("replies");
    assert!(refused.len() == 3 && refused.iter().all(|line| line.starts_with("-IOERR cannot sync")), "{refused:?}");
    assert_eq!(counted, ":2");
    let refused = ask(&mut client, "SET c 3\r\n", 1);
    assert!(refused[0].starts_with("-MISCONF"), "{refused:?}");
    assert_eq!(ask(&mut client, "PING\r\nEXISTS nope\r\n", 2), ["+PONG", ":0"]);
    server.end();
}

#[test]
fn a_pipeline_whose_batch_may_be_in_the_log_is_not_called_refused() {
    // Catches a repetition of writes that a reopened database may find in the log: the engine refuses them. A client that relies on this error would
    // write twice.
    let (faults, db) = database(1 << 20);
    let mut shared = Shared::new(db, settings(ServerDurability::Synced), 1);
    let mut session = Session::new(&mut shared);
    // Replies of earlier steps, more than one step may have.
    let earlier = "earlier ".repeat(10_000);
    // For each step, the number of requests that it carried out, and the first words of the reply lines.
    let mut check = |mut input: &[u8], expected: &[(usize, &str)]| {
        for (count, words) in expected {
            let mut output = Output::default();
            output.put(earlier.as_bytes());
            let step = session.step(&mut shared, input, 100, &mut output);
            let Step::Done { len, requests } = step else { panic!("{step:?}") };
            input = &input[len..];
            let said = String::from_utf8(bytes(output)).expect("text").replace(&"v".repeat(40_000), "V");
            let said = said.strip_prefix(&earlier).expect("what was there").lines();
            let found: Vec<&str> = said.map(|line| line.split(' ').next().expect("a word")).collect();
            assert_eq!((requests, &*found.join(" ")), (*count, *words));
        }
        assert!(input.is_empty());
    };
    check(format!("MSET a 1 long {} text x\r\n", "v".repeat(40_000)).as_bytes(), &[(1, "+OK")]);
    // On this disk a write is one mutation.
    faults.fail_mutation(faults.mutations(), Fault::Device, Repeat::FromThenOn);
    check(b"SET b 2\r\nGET a\r\nINCR a\r\nGET a\r\nINCR text\r\n", &[(5, "-IOERR $1 1 -IOERR $1 1 -ERR")]);
    check(b"INCR a\r\nGET a\r\n", &[(2, "-MISCONF $1 1")]);
    // Long replies end the step before the last request, which then has its own turn.
    check(b"SET b 2\r\nGET long\r\nGET long\r\nSET c 3\r\n", &[(3, "-MISCONF $40000 V $40000 V"), (1, "-MISCONF")]);
    // Replies that were short while the write before them still counted.
    check(
        b"SET long x\r\nGET long\r\nGET long\r\nGET long\r\nGET a\r\n",
        &[(5, "-MISCONF $40000 V $40000 V -MISCONF -MISCONF")],
    );
}

/// A server with small memtables on the test's disk, and its clients, whose reads time out.
struct Running {
    faults: FaultFs,
    address: Address,
    thread: thread::JoinHandle<Result<()>>,
}

impl Running {
    fn start() -> Self {
        Self::with(settings(ServerDurability::Synced))
    }

    fn with(settings: Settings) -> Self {
        Self::of(Server::bind("127.0.0.1:0", settings).expect("a port"))
    }

    fn of(server: Server) -> Self {
        let (faults, db) = database(MEMTABLE);
        let address = server.address().clone();
        let run = move || server.event_loop(db, None)?.run();
        Self { faults, address, thread: thread::Builder::new().name("loop".into()).spawn(run).expect("a thread") }
    }

    fn client(&self) -> TcpStream {
        let client = TcpStream::connect(tcp(&self.address)).expect("connect");
        client.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        client
    }

    fn end(self) {
        let client = self.client();
        self.end_by(client);
    }

    fn end_by(self, mut client: impl Write) {
        client.write_all(b"SHUTDOWN\r\n").expect("send");
        assert!(self.thread.join().expect("no panic").is_ok());
    }
}

#[test]
fn a_full_disk_refuses_writes_with_the_reason_and_the_server_goes_on() {
    // Catches a server that waits for space, so that no client gets any reply. Also catches writes that are still refused when there is space again.
    let server = Running::start();
    let (mut client, mut other) = (server.client(), server.client());
    server.faults.refuse_files(Some("sst"));
    let set = |n| format!("SET filler{n} {}\r\n", "v".repeat(400));
    let refused = (0..).map(|n| (n, ask(&mut client, &set(n), 1).remove(0))).find(|(_, said)| said != "+OK");
    let (written, said) = refused.expect("a limit");
    assert!(said.starts_with("-MISCONF ") && said.contains("could not create /db/"), "{said}");
    assert_eq!(ask(&mut other, "PING\r\nSTRLEN filler0\r\nDBSIZE\r\n", 3), ["+PONG", ":400", &format!(":{written}")]);
    let said = ask(&mut other, "INCR n\r\nSTRLEN filler0\r\nINCR n\r\nGET n\r\n", 4);
    assert!(
        said[0].starts_with("-MISCONF ") && said[1] == ":400" && said[2] == said[0] && said[3] == "$-1",
        "{said:?}"
    );
    let said = ask(&mut other, "MULTI\r\nINCR n\r\nEXEC\r\nEXEC\r\n", 4);
    assert!(said[2].starts_with("-MISCONF ") && said[3] == "-ERR EXEC without MULTI", "{said:?}");
    let info = ask(&mut other, "INFO writes\r\n", 5);
    assert_eq!(info[2], "aof_last_write_status:err");
    assert!(
        info[3] == "writes_refused:4" && info[4].starts_with("last_write_refusal:could not create /db/"),
        "{info:?}"
    );
    server.faults.refuse_files(None);
    let mut refused = 0;
    while ask(&mut client, "SET n 1\r\n", 1) != ["+OK"] {
        refused += 1;
        assert!(refused < 1_000_000, "there is space");
    }
    assert_eq!(ask(&mut other, "INCR n\r\n", 1), [":2"]);
    assert_eq!(ask(&mut other, "INFO writes\r\n", 5)[2], "aof_last_write_status:ok");
    server.end();
}

#[test]
fn others_are_served_while_writes_wait_for_a_flush_and_no_write_is_lost_or_done_twice() {
    // Catches a wait in the event loop, a write that overtakes an earlier one of its client, and two writes that are based on the same old value.
    let server = Running::start();
    let (is_held, go) = server.faults.hold(Op::Sync, ".sst", Answer::Go);
    let mut writers: Vec<TcpStream> = (0..4).map(|_| server.client()).collect();
    let requests = format!("INCR n\r\nSET filler {}\r\nGET filler\r\n", "v".repeat(400)).repeat(50);
    writers.iter_mut().for_each(|writer| writer.write_all(requests.as_bytes()).expect("send"));
    is_held.recv().expect("a flush");
    // Stops when no write is accepted any more: two memtables are full.
    let mut reader = server.client();
    let writes = |reader: &mut TcpStream| ask(reader, "INFO engine\r\n", 13)[2].clone();
    let mut before = String::new();
    while std::mem::replace(&mut before, writes(&mut reader)) != before {
        assert_eq!(ask(&mut reader, "PING\r\nSTRLEN filler\r\n", 2), ["+PONG", ":400"]);
    }
    drop(go);
    let mut counted = Vec::new();
    for mut writer in writers {
        let lines = ask(&mut writer, "", 50 * 4);
        for lines in lines.chunks(4) {
            assert!(lines[1] == "+OK" && lines[2] == "$400", "{lines:?}");
            counted.push(lines[0][1..].parse::<usize>().expect("a number"));
        }
    }
    counted.sort_unstable();
    assert!(counted.into_iter().eq(1..=200), "each INCR has its own number");
    server.end();
}

#[test]
fn the_loop_syncs_nothing_itself() {
    // Catches an event loop that handles no client and no signal while the device is busy.
    let server = Running::start();
    let syncing = Arc::new(Mutex::new(BTreeSet::new()));
    let threads = Arc::clone(&syncing);
    server.faults.set(move |event| {
        if matches!(event.op, Op::Sync | Op::SyncDir) {
            threads.lock().expect("no panic").insert(thread::current().name().unwrap_or_default().to_owned());
        }
        Answer::Go
    });
    let mut client = server.client();
    for n in 0..50 {
        assert_eq!(ask(&mut client, &format!("SET k{n} {}\r\nWAITAOF 1 0 0\r\n", "v".repeat(400)), 4)[0], "+OK");
    }
    assert_eq!(ask(&mut client, "BGSAVE\r\n", 1).len(), 1);
    server.end();
    let syncing = syncing.lock().expect("no panic");
    assert!(syncing.contains("serve-sync") && !syncing.contains("loop"), "{syncing:?}");
}

/// A client, its connection, and the server's side of the socket, in which the test sees what has arrived.
fn connected(shared: &mut Shared, now: Instant) -> (TcpStream, TcpStream, Connection) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connect");
    let (stream, _) = listener.accept().expect("a client");
    stream.set_nonblocking(true).expect("nonblocking");
    let arrived = stream.try_clone().expect("a handle");
    let connection = Connection::new(Box::new(mio::net::TcpStream::from_std(stream)), 1, shared, now);
    (client, arrived, connection)
}

fn is_closed_at(connection: &mut Connection, shared: &mut Shared, now: Instant) -> bool {
    connection.check_time(now, shared.settings.limits.idle_seconds, &mut shared.counters.refused);
    connection.is_closed()
}

#[test]
fn what_a_client_sends_after_its_last_reply_is_read_for_a_while() {
    // Catches a socket that is closed while its client still sends, also a long value or after it was slow to take its replies: this resets the
    // connection, and the client may never see the reply.
    let mut shared = Shared::new(database(MEMTABLE).1, settings(ServerDurability::Synced), 1);
    let (mut now, mut buffer) = (Instant::now(), vec![0; READ_BYTES]);
    let (mut client, arrived, mut connection) = connected(&mut shared, now);
    for (part, sent_after) in [("QUIT\r\n", 70), ("more", 0), ("and more", 0)] {
        client.write_all(part.as_bytes()).expect("send");
        while arrived.peek(&mut [0]).is_err() {}
        now += Duration::from_millis(1500);
        assert!(connection.turn(&mut shared, &mut buffer, now).is_none());
        now += Duration::from_secs(sent_after);
        connection.send(now);
        assert!(!is_closed_at(&mut connection, &mut shared, now));
    }
    assert!(is_closed_at(&mut connection, &mut shared, now + Duration::from_secs(60)));
    let mut said = String::new();
    client.read_to_string(&mut said).expect("the end");
    assert_eq!(said, "+OK\r\n");
}

const LONG: usize = 32 << 20;

/// The maximum memory that the loop's thread allocates at one time during `talk`, as a multiple of the length of a long value. Memtables are not
/// counted: their memory comes directly from the system.
fn memory(db: &Db, talk: impl FnOnce(&mut TcpStream) + Send + 'static) -> f64 {
    let mut settings = settings(ServerDurability::Synced);
    settings.limits.request_bytes = 2 * LONG;
    let server = Server::bind("127.0.0.1:0", settings).expect("a port");
    let address = tcp(server.address());
    let client = thread::spawn(move || {
        let mut client = TcpStream::connect(address).expect("connect");
        talk(&mut client);
        client.write_all(b"SHUTDOWN\r\n").expect("send");
    });
    let mut ended = None;
    let counted = allocation_counter::measure(|| {
        ended = Some(server.event_loop(db.clone(), None).and_then(|mut event_loop| event_loop.run()));
    });
    client.join().expect("no panic");
    assert!(ended.is_some_and(|ended| ended.is_ok()));
    counted.bytes_max as f64 / LONG as f64
}

/// Sends `request`, and returns a reply of `len` bytes.
fn ask_long(client: &mut TcpStream, request: &[u8], len: usize) -> Vec<u8> {
    client.write_all(request).expect("send");
    let mut reply = vec![0; len];
    client.read_exact(&mut reply).expect("receive");
    reply
}

#[test]
fn a_long_value_is_in_the_servers_memory_once_for_its_request_its_batch_and_its_reply() {
    // Catches an input that grows past the end of its request, a value that is copied into the reply, and a reply that is copied while it is sent.
    let dir = proof::TempDir::new().expect("a temporary directory");
    let db = Db::builder(dir.path()).cache_bytes(1 << 20).open().expect("open");
    let value: Vec<u8> = (0..LONG).map(|n| (n % 251) as u8).collect();
    let request = |command: &str| [command.as_bytes(), format!("${LONG}\r\n").as_bytes(), &value, b"\r\n"].concat();
    let (set, append) = (request("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n"), request("*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n"));
    let reply = request("");
    // If a write has to wait for a larger reserve, another thread frees its memory, and that thread is not counted.
    db.insert("k", vec![0; 2 * LONG]).expect("insert");
    db.remove("k").expect("remove");
    db.compact().expect("compact");
    let set = memory(&db, move |client| assert_eq!(ask_long(client, &set, 5), b"+OK\r\n"));
    let get = || {
        let reply = reply.clone();
        memory(&db, move |client| assert!(ask_long(client, b"GET k\r\n", reply.len()) == reply))
    };
    let of_memtable = get();
    db.flush().expect("flush");
    let of_table = get();
    let append =
        memory(&db, move |client| assert_eq!(ask_long(client, &append, 11), format!(":{}\r\n", 2 * LONG).as_bytes()));
    let found = format!("SET {set:.2}, GET {of_memtable:.2} and {of_table:.2}, APPEND {append:.2}");
    // APPEND doubles the value: memory holds the argument, the value, and the batch.
    assert!(set <= 2.1 && of_memtable <= 1.1 && of_table <= 1.1 && append <= 5.1, "{found}");
    println!("{found}");
}
