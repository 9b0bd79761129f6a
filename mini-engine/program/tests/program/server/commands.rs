//! The commands, as a client library sends them and reads their replies; and the language of the coursework.

use std::collections::HashMap;
use std::net::Shutdown;
use std::thread;

use redis::{Commands, Connection, RedisResult, Value, cmd, pipe};

use crate::support::Room;
use crate::support::server::{Server, syncs};

/// One client's view of all commands, whatever the version.
fn use_everything(db: &mut Connection) -> RedisResult<()> {
    assert_eq!(cmd("PING").query::<String>(db)?, "PONG");
    assert_eq!(db.get::<_, Option<String>>("milk")?, None);
    db.set::<_, _, ()>("milk", "2 litres")?;
    assert_eq!(db.get::<_, String>("milk")?, "2 litres");
    assert!(!db.set_nx::<_, _, bool>("milk", "none")?);
    assert_eq!(cmd("SET").arg("milk").arg("x").arg("NX").query::<Option<String>>(db)?, None);
    assert_eq!(cmd("SET").arg("milk").arg("3").arg("XX").arg("GET").query::<String>(db)?, "2 litres");
    db.mset::<_, _, ()>(&[("a", 1), ("b", 2)])?;
    assert_eq!(db.mget::<_, Vec<Option<i64>>>(&["a", "nope", "b"])?, [Some(1), None, Some(2)]);
    assert_eq!(db.incr::<_, _, i64>("a", 41)?, 42);
    assert_eq!(db.decr::<_, _, i64>("a", 2)?, 40);
    assert_eq!(db.append::<_, _, usize>("log", "one")?, 3);
    assert_eq!(db.strlen::<_, usize>("log")?, 3);
    assert_eq!(db.exists::<_, usize>(&["a", "b", "nope"])?, 2);
    assert_eq!(db.del::<_, usize>(&["b", "log", "nope"])?, 2);
    assert_eq!(cmd("DBSIZE").query::<usize>(db)?, 2);
    let bytes: Vec<u8> = (0..=255).collect();
    db.set::<_, _, ()>(&bytes, &bytes)?;
    assert_eq!(db.get::<_, Vec<u8>>(&bytes)?, bytes);
    db.del::<_, ()>(&bytes)?;

    for n in 0..200 {
        db.set::<_, _, ()>(format!("scan:{n:03}"), n)?;
    }
    let scanned: Vec<String> = db.scan_match("scan:1*")?.collect::<RedisResult<_>>()?;
    assert_eq!(scanned, (100..200).map(|n| format!("scan:{n}")).collect::<Vec<_>>());
    let range: Vec<(String, i64)> =
        cmd("RANGE").arg("scan:010").arg("scan:020").arg("LIMIT").arg(2).arg("REV").query(db)?;
    assert_eq!(range, [("scan:019".into(), 19), ("scan:018".into(), 18)]);
    let prefix: Vec<(String, i64)> = cmd("PREFIX").arg("scan:00").query(db)?;
    assert_eq!((prefix.len(), &prefix[9]), (10, &("scan:009".into(), 9)));

    let transaction: (i64, i64, Vec<(String, i64)>) =
        pipe().atomic().get("a").incr("a", 1).cmd("PREFIX").arg("a").query(db)?;
    assert_eq!(transaction, (40, 41, vec![("a".into(), 41)]));
    let many: Vec<i64> = (0..1000).fold(&mut pipe(), |pipe, _| pipe.incr("many", 1)).query(db)?;
    assert!(many.into_iter().eq(1..=1000));

    let config: HashMap<String, String> = cmd("CONFIG").arg("GET").arg("append*").query(db)?;
    assert_eq!((&*config["appendonly"], &*config["appendfsync"]), ("yes", "always"));
    let info: String = cmd("INFO").query(db)?;
    assert!(info.contains("redis_version:") && info.contains("connected_clients:"), "{info}");
    let commands: Vec<Value> = cmd("COMMAND").query(db)?;
    assert_eq!(cmd("COMMAND").arg("COUNT").query::<usize>(db)?, commands.len());
    assert_eq!(cmd("WAIT").arg(1).arg(100).query::<i64>(db)?, 0);
    let error = cmd("SUBSCRIBE").arg("x").query::<Value>(db).expect_err("no such command");
    assert!(error.to_string().contains("unknown command"), "{error}");
    cmd("SAVE").query::<()>(db)?;
    // The other version begins with the same database.
    let all: Vec<String> = db.scan()?.collect::<RedisResult<_>>()?;
    all.into_iter().try_for_each(|key| db.del(key))
}

#[test]
fn a_client_library_uses_every_command_in_both_versions() {
    // Catches a reply that a client takes for something else, and a version that differs from the other.
    let server = Server::new(&[]);
    use_everything(&mut server.client()).expect("version 2");
    use_everything(&mut server.client3()).expect("version 3");
    server.end();
}

#[test]
fn counters_of_many_clients_lose_no_increment() {
    // Catches another client's command between the read and the write of one command; and transactions that mix.
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 100;
    let server = Server::new(&["--durability", "buffered"]);
    thread::scope(|threads| {
        for _ in 0..CLIENTS {
            threads.spawn(|| {
                let mut db = server.client();
                for _ in 0..ROUNDS {
                    db.incr::<_, _, ()>("count", 1).expect("incr");
                    db.append::<_, _, ()>("log", "x").expect("append");
                    let (a, b): (i64, i64) =
                        pipe().atomic().incr("left", 1).incr("right", 1).query(&mut db).expect("a transaction");
                    assert_eq!(a, b);
                }
            });
        }
    });
    let mut db = server.client();
    let count = CLIENTS * ROUNDS;
    assert_eq!(db.mget::<_, Vec<usize>>(&["count", "left", "right"]).expect("mget"), [count; 3]);
    assert_eq!(db.strlen::<_, usize>("log").expect("strlen"), count);
    drop(db);
    server.end();
}

#[test]
fn large_values_come_back_as_they_were_sent() {
    // Catches a value that is cut or mixed up where it takes many reads and writes, and a limit that is off by one.
    let server = Server::new(&["--max-request", "8M"]);
    let value: Vec<u8> = (0..7 << 20).map(|n: u32| (n ^ (n >> 8)) as u8).collect();
    let mut db = server.client();
    for _ in 0..3 {
        db.set::<_, _, ()>("large", &value).expect("set");
        assert!(db.get::<_, Vec<u8>>("large").expect("get") == value);
    }
    let (one, two): (Vec<u8>, Vec<u8>) = pipe().get("large").get("large").query(&mut db).expect("both");
    assert!(one == value && two == value);
    drop(db);
    server.end();
}

#[test]
fn one_sync_serves_the_writes_that_arrive_together() {
    // Catches a sync for each write of a pipeline, and acknowledgements without any.
    let server = Server::new(&[]);
    let mut db = server.client();
    db.set::<_, _, ()>("first", 1).expect("set");
    let before = syncs(&mut db);
    (0..10).for_each(|n| db.set("alone", n).expect("set"));
    let alone = syncs(&mut db);
    assert!(alone - before >= 10, "{} syncs for 10 writes, each acknowledged before the next", alone - before);
    (0..1000).fold(&mut pipe(), |pipe, n| pipe.set("together", n).ignore()).query::<()>(&mut db).expect("a pipeline");
    let together = syncs(&mut db) - alone;
    assert!((1..=100).contains(&together), "{together} syncs for a pipeline of 1000 writes");
    drop(db);
    server.end();
}

#[test]
fn the_book_lists_the_commands_that_are_there_and_those_that_are_not() {
    // Catches a command that is missing in the book, and one that the book calls missing though it exists.
    let book = include_str!("../../../../../docs/src/serve.md");
    let (_, missing) = book.split_once("### What is not there").expect("the section");
    let (missing, _) = missing.split_once("\n**").expect("its end");
    let rows = missing.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let called: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    assert!(called.len() > 50, "{called:?}");
    let server = Server::new(&[]);
    let mut raw = server.raw();
    raw.send(called.iter().map(|call| format!("{call}\r\n")).collect::<String>() + "QUIT\r\n");
    let replies = String::from_utf8(raw.rest()).expect("text");
    let replies: Vec<&str> = replies.lines().collect();
    assert_eq!(replies.len(), called.len() + 1);
    for (call, reply) in called.iter().zip(replies) {
        // Those are there, with what is named beside them missing.
        let refusals: &[&str] = match *call {
            "SET" | "SELECT" => &["-ERR wrong number of arguments"],
            _ => &["-ERR unknown", "-ERR settings are given when the server is started"],
        };
        assert!(refusals.iter().any(|refusal| reply.starts_with(refusal)), "{call}: {reply}");
    }
    let there: Vec<String> = cmd("COMMAND").arg("LIST").query(&mut server.client()).expect("a list");
    let unlisted: Vec<&String> =
        there.iter().filter(|name| !book.contains(&format!("`{}", name.to_uppercase()))).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
    server.end();
}

#[test]
fn a_workload_is_answered_line_by_line() {
    // Catches a job whose answer comes out of its place, and lines that are answered twice.
    let room = Room::new();
    let data = room.path("data");
    std::fs::create_dir(&data).expect("a directory");
    std::fs::write(data.join("0.dat"), [5i32, 50, 6, 60].map(i32::to_ne_bytes).concat()).expect("write");
    let data = data.display().to_string();
    let server = room.server(&["--protocol", "lines", "--load-from", &data]);
    let mut raw = server.raw();
    raw.send("p 10 7\np 63 222\ng 10\ng 15\nl \"0.dat\"\nr 0 100\nd 10\nr 0 100\ns\nbogus\ng 6\n");
    raw.0.shutdown(Shutdown::Write).expect("shutdown");
    let said = String::from_utf8(raw.rest()).expect("text");
    let expected = "7\n\n5:50 6:60 10:7 63:222\n5:50 6:60 63:222\nLogical Pairs: 3\n\n5:50 6:60 63:222\n\
                    error: expected p KEY VALUE, g KEY, r FROM TO, d KEY, l \"FILE\" or s\n60\n";
    assert_eq!(said, expected);
    server.end();
    room.refuses(2, &[("serve --protocol lines --listen 0.0.0.0:0", "--without-password")]);
}
