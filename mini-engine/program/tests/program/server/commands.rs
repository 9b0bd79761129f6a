//! The commands through a client library, which sends them and parses their replies; and the line protocol of the coursework.

use std::collections::{BTreeSet, HashMap};
use std::net::Shutdown;
use std::thread;

use redis::{Commands, Connection, ConnectionLike, RedisResult, Value, cmd, pipe};
use serde_json::Value as Json;

use crate::support::Room;
use crate::support::server::{Server, connect, syncs};

#[test]
fn a_client_library_parses_scans_transactions_and_maps_in_both_versions() {
    // Catches a reply that a client parses as another type, and differences between the two versions; `calls.json` has the single commands.
    let server = Server::new(&["--allow-flushall"]);
    for mut db in [server.client(), server.client3()] {
        use_library(&mut db).expect("replies of the expected types");
    }
}

fn use_library(db: &mut Connection) -> RedisResult<()> {
    cmd("FLUSHALL").query::<()>(db)?;
    assert!(db.set_nx::<_, _, bool>("milk", "none")? && !db.set_nx::<_, _, bool>("milk", "2 litres")?);
    assert_eq!(db.mget::<_, Vec<Option<i64>>>(&["a", "nope"])?, [None, None]);
    let bytes: Vec<u8> = (0..=255).collect();
    db.set::<_, _, ()>(&bytes, &bytes)?;
    assert_eq!(db.get::<_, Vec<u8>>(&bytes)?, bytes);

    for n in 0..200 {
        db.set::<_, _, ()>(format!("scan:{n:03}"), n)?;
    }
    let scanned: Vec<String> = db.scan_match("scan:1*")?.collect::<RedisResult<_>>()?;
    assert_eq!(scanned, (100..200).map(|n| format!("scan:{n}")).collect::<Vec<_>>());
    let range: Vec<(String, i64)> =
        cmd("RANGE").arg("scan:010").arg("scan:020").arg("LIMIT").arg(2).arg("REV").query(db)?;
    assert_eq!(range, [("scan:019".into(), 19), ("scan:018".into(), 18)]);
    let transaction: (Option<i64>, i64, Vec<(String, i64)>) =
        pipe().atomic().get("a").incr("a", 41).cmd("PREFIX").arg("a").query(db)?;
    assert_eq!(transaction, (None, 41, vec![("a".into(), 41)]));
    let many: Vec<i64> = (0..1000).fold(&mut pipe(), |pipe, _| pipe.incr("many", 1)).query(db)?;
    assert!(many.into_iter().eq(1..=1000));

    let config: HashMap<String, String> = cmd("CONFIG").arg("GET").arg("append*").query(db)?;
    assert_eq!((&*config["appendonly"], &*config["appendfsync"]), ("yes", "always"));
    let commands: Vec<Value> = cmd("COMMAND").query(db)?;
    assert_eq!(cmd("COMMAND").arg("COUNT").query::<usize>(db)?, commands.len());
    assert_eq!(cmd("WAIT").arg(1).arg(100).query::<i64>(db)?, 0);
    Ok(())
}

#[test]
fn counters_of_many_clients_lose_no_increment() {
    // Catches another client's command between the read and the write of one command, and transactions that interleave.
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
}

#[test]
fn one_sync_serves_the_writes_that_arrive_together() {
    // Catches a sync for each write of a pipeline, and acknowledgements without a sync.
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
}

/// The commands of Redis 7.0, from `COMMAND LIST` of Redis 7.0.15.
const REDIS_7: &str = "ACL APPEND ASKING AUTH BGREWRITEAOF BGSAVE BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX \
    BZPOPMIN CLIENT CLUSTER COMMAND CONFIG COPY DBSIZE DEBUG DECR DECRBY DEL DISCARD DUMP ECHO EVAL EVALSHA EVALSHA_RO EVAL_RO EXEC EXISTS \
    EXPIRE EXPIREAT EXPIRETIME FAILOVER FCALL FCALL_RO FLUSHALL FLUSHDB FUNCTION GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER \
    GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE GET GETBIT GETDEL GETEX GETRANGE GETSET HDEL HELLO HEXISTS HGET HGETALL HINCRBY \
    HINCRBYFLOAT HKEYS HLEN HMGET HMSET HRANDFIELD HSCAN HSET HSETNX HSTRLEN HVALS INCR INCRBY INCRBYFLOAT INFO KEYS LASTSAVE LATENCY LCS LINDEX \
    LINSERT LLEN LMOVE LMPOP LOLWUT LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM MEMORY MGET MIGRATE MODULE MONITOR MOVE MSET MSETNX MULTI \
    OBJECT PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PFADD PFCOUNT PFDEBUG PFMERGE PFSELFTEST PING PSETEX PSUBSCRIBE PSYNC PTTL PUBLISH PUBSUB \
    PUNSUBSCRIBE QUIT RANDOMKEY READONLY READWRITE RENAME RENAMENX REPLCONF REPLICAOF RESET RESTORE RESTORE-ASKING ROLE RPOP RPOPLPUSH RPUSH \
    RPUSHX SADD SAVE SCAN SCARD SCRIPT SDIFF SDIFFSTORE SELECT SET SETBIT SETEX SETNX SETRANGE SHUTDOWN SINTER SINTERCARD SINTERSTORE SISMEMBER \
    SLAVEOF SLOWLOG SMEMBERS SMISMEMBER SMOVE SORT SORT_RO SPOP SPUBLISH SRANDMEMBER SREM SSCAN SSUBSCRIBE STRLEN SUBSCRIBE SUBSTR SUNION \
    SUNIONSTORE SUNSUBSCRIBE SWAPDB SYNC TIME TOUCH TTL TYPE UNLINK UNSUBSCRIBE UNWATCH WAIT WATCH XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XINFO \
    XLEN XPENDING XRANGE XREAD XREADGROUP XREVRANGE XSETID XTRIM ZADD ZCARD ZCOUNT ZDIFF ZDIFFSTORE ZINCRBY ZINTER ZINTERCARD ZINTERSTORE \
    ZLEXCOUNT ZMPOP ZMSCORE ZPOPMAX ZPOPMIN ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK \
    ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION ZUNIONSTORE";

#[test]
fn the_book_says_of_each_command_of_redis_whether_it_is_there() {
    // Catches a command that the book omits, a missing one that the book lists as implemented, and an implemented one that it lists as missing.
    let book = include_str!("../../../../../docs/src/serve.md");
    let (_, table) = book.split_once("### Every command of Redis 7").expect("the section");
    let (table, _) = table.split_once("\nWhy they").expect("its end");
    let columns = |row: &str| row.split('|').map(names).collect::<Vec<_>>();
    let (mut there, mut missing) = (vec!["WAITAOF".to_owned()], Vec::new());
    for row in table.lines().filter_map(|line| line.strip_prefix("| ")).map(columns) {
        there.extend(row[1].iter().chain(&row[2]).cloned());
        missing.extend(row[3].iter().cloned());
    }
    let mut all: Vec<&str> =
        there.iter().chain(&missing).map(String::as_str).filter(|name| *name != "WAITAOF").collect();
    all.sort_unstable();
    assert_eq!(all.join(" "), REDIS_7);

    let server = Server::new(&[]);
    let mut raw = server.raw();
    raw.send(missing.iter().map(|name| format!("{name}\r\n")).collect::<String>() + "QUIT\r\n");
    let replies = String::from_utf8(raw.rest()).expect("text");
    let refused: Vec<String> = missing.iter().map(|name| format!("-ERR unknown command '{name}'")).collect();
    assert_eq!(replies.lines().collect::<Vec<_>>(), [&refused[..], &["+OK".to_owned()]].concat());
    let listed: Vec<String> = cmd("COMMAND").arg("LIST").query(&mut server.client()).expect("a list");
    let own = ["RANGE", "PREFIX", "DELRANGE", "DELPREFIX"].map(str::to_owned);
    let sorted = |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>();
    let listed = listed.into_iter().map(|name| name.to_uppercase()).collect();
    assert_eq!(sorted(listed), sorted([there, own.to_vec()].concat()));
}

/// The names between backticks in a text.
fn names(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether a reply matches the expectation in a file of calls; see `mini-engine/server/clients`.
fn agrees(reply: &Value, expected: &Json) -> bool {
    let text = match reply {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        Value::Okay => Some("OK".into()),
        Value::ServerError(_) => Some(format!("{reply:?}")),
        _ => None,
    };
    let bound = |name: &str| expected[name].as_i64().expect("a number");
    match (reply, expected) {
        (Value::Array(parts), Json::Array(expected)) => {
            parts.len() == expected.len() && parts.iter().zip(expected).all(|(part, expected)| agrees(part, expected))
        }
        (Value::Int(number), Json::Number(_)) => Some(*number) == expected.as_i64(),
        (Value::Nil, expected) => expected.is_null(),
        (_, Json::String(expected)) => text.as_ref() == Some(expected),
        (reply, Json::Object(fields)) => {
            // The library separates the code of an error from its message.
            let part = |name: &str| fields[name].as_str().expect("a text").trim_start_matches("ERR ");
            let contains = |name: &str| text.is_some_and(|text| text.contains(part(name)));
            match reply {
                Value::ServerError(_) => fields.contains_key("error") && contains("error"),
                _ if fields.contains_key("contains") => contains("contains"),
                Value::Int(number) if fields.contains_key("from") => (bound("from")..=bound("to")).contains(number),
                _ => fields.contains_key("any"),
            }
        }
        _ => false,
    }
}

#[test]
fn the_calls_that_other_client_libraries_make_are_answered_to_this_one_too() {
    // Catches a command that no call tests, and a reply that a library parses as another type.
    let calls: Vec<(Vec<String>, Json)> =
        serde_json::from_str(include_str!("../../../../server/clients/calls.json")).expect("calls");
    for options in ["", "?protocol=resp3"] {
        let server = Server::new(&["--allow-flushall"]);
        let mut db = connect(server.address, options);
        for (call, expected) in &calls {
            let request = cmd(&call[0]).arg(&call[1..]).get_packed_command();
            let reply = db.req_packed_command(&request).expect("a reply");
            assert!(agrees(&reply, expected), "{call:?}: expected {expected}, found {reply:?}");
        }
        let commands: Vec<String> = cmd("COMMAND").arg("LIST").query(&mut db).expect("a list");
        // Commands that end or change the connection, or have their own tests.
        let others = "AUTH HELLO MONITOR QUIT RESET SHUTDOWN";
        let undriven = commands.iter().map(|name| name.to_uppercase()).filter(|name| {
            !others.split(' ').any(|other| other == name) && !calls.iter().any(|(call, _)| call[0] == *name)
        });
        assert_eq!(undriven.collect::<Vec<_>>(), [""; 0]);
    }
}

#[test]
fn a_workload_is_answered_line_by_line() {
    // Catches a background job whose answer is out of order, and lines that are answered twice.
    let room = Room::new();
    let data = room.path("data");
    std::fs::create_dir(&data).expect("a directory");
    std::fs::write(data.join("0.dat"), [5i32, 50, 6, 60].map(i32::to_le_bytes).concat()).expect("write");
    let data = data.display().to_string();
    let server = room.server(&["--protocol", "lines", "--load-from", &data]);
    let mut raw = server.raw();
    raw.send("p 10 7\np 63 222\ng 10\ng 15\nl \"0.dat\"\nr 0 100\nd 10\nr 0 100\ns\nbogus\ng 6\n");
    raw.0.shutdown(Shutdown::Write).expect("shutdown");
    let said = String::from_utf8(raw.rest()).expect("text");
    let expected = "7\n\n5:50 6:60 10:7 63:222\n5:50 6:60 63:222\nLogical Pairs: 3\n\n5:50 6:60 63:222\n\
                    error: expected p KEY VALUE, g KEY, r FROM TO, d KEY, l \"FILE\" or s\n60\n";
    assert_eq!(said, expected);
    room.refuses(2, &[("serve --protocol lines --listen 0.0.0.0:0", "--without-password")]);
}
