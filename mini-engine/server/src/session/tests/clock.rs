//! Expiry times that are given as a duration, while the system's clock is changed.

use std::time::{Duration, SystemTime};

use mini_engine::Db;

use super::*;

/// Requests that set `k` to expire in three seconds, each with the request that prepares `k`.
const DOORS: [(&str, &str); 14] = [
    ("del k", "set k v px 3000"),
    ("set k old", "set k v ex 3"),
    ("del k", "set k v nx px 3000"),
    ("set k old", "set k v xx get px 3000"),
    ("del k", "setex k 3 v"),
    ("set k old", "psetex k 3000 v"),
    ("set k v", "getex k ex 3"),
    ("set k v px 9000", "getex k px 3000"),
    ("set k v", "expire k 3"),
    ("set k v ex 9", "pexpire k 3000 lt"),
    ("set k v ex 1", "expire k 3 gt"),
    ("set k v", "EXTEND k v 3000"),
    ("set k v ex 1", "EXTEND k v 3000"),
    ("del k", "set k v ex 3"),
];

/// A server whose keys expire by the clock.
pub(super) fn open((mem, clock): &(MemFs, Clock)) -> Server {
    let builder = Db::builder("/db").file_system(Arc::new(mem.clone())).time_source(clock.source());
    Server::on(|_| builder.memtable_bytes(1 << 20), |_| ())
}

#[test]
fn a_span_counts_from_the_clock_by_which_keys_expire_at_every_door() {
    // Catches a lock that two clients hold, a key that is gone at once, and a key that a transaction shows but a later read does not: after the
    // system's clock was set back, also with a restart.
    let start = Duration::from_secs(1_000_000);
    for (step, restarts) in [(-5000, false), (-3_600_000, true), (0, false), (5000, false), (5000, true), (-1, true)] {
        for (before, door) in DOORS {
            for is_queued in [false, true] {
                let case = format!("{step} ms, {before}, {door}, restarts: {restarts}, in a transaction: {is_queued}");
                let clocked = (MemFs::default(), Clock::at(SystemTime::UNIX_EPOCH));
                let set = |millis: u128| clocked.1.set(SystemTime::UNIX_EPOCH + Duration::from_millis(millis as u64));
                let begun = start.as_millis();
                set(begun);
                let mut server = open(&clocked);
                server.talk("setex other 1000 v => +OK | get other => $1 v");
                set(begun.saturating_add_signed(step));
                if restarts {
                    server.shared.keys.db.clone().close().expect("close");
                    drop(server);
                    server = open(&clocked);
                }
                let now = begun.max(begun.saturating_add_signed(step));
                server.said(&format!("{before}\r\n"));
                let door = match door.strip_prefix("EXTEND k v ") {
                    Some(span) => request(&["eval", &extend(), "1", "k", "v", span]),
                    None => format!("{door}\r\n"),
                };
                if is_queued {
                    let said = server.said(&format!("multi\r\n{door}get k\r\npttl k\r\nexec\r\n"));
                    assert!(said.ends_with("$1\r\nv\r\n:3000\r\n"), "{case}: {said}");
                } else {
                    server.said(&door);
                }
                server
                    .talk(&format!("get k => $1 v | pttl k => :3000 | ttl k => :3 | pexpiretime k => :{}", now + 3000));
                server.talk("set k another nx px 3000 => $-1");
                let time = format!("*2\r\n$7\r\n{}\r\n$1\r\n0\r\n", now / 1000);
                assert!(step % 1000 != 0 || server.said("time\r\n") == time, "{case}");
                set(now + 2999);
                server.talk("exists k => :1 | pttl k => :1 | watch k => +OK | multi => +OK | get k => +QUEUED");
                set(now + 3000);
                server.talk("exec => *-1 | exists k => :0 | pttl k => :-2 | set k another nx px 3000 => +OK");
            }
        }
    }
}

#[test]
fn the_difference_of_the_clocks_is_in_info_and_in_the_metrics() {
    // Catches locks that live for hours without any message in the log.
    let clocked = (MemFs::default(), Clock::at(SystemTime::UNIX_EPOCH));
    let set = |seconds| clocked.1.set(second(seconds));
    set(1000);
    let mut server = open(&clocked);
    server.talk("setex a 1000 v => +OK | ttl a => :1000");
    for (system, ahead) in [(1000, 0), (400, 600), (999, 1), (1001, 0)] {
        set(system);
        let said = server.said("info engine\r\n");
        assert!(said.contains(&format!("clock_ahead_ms:{}\r\n", ahead * 1000)), "{said}");
        let text = crate::state::metrics::text(&server.shared);
        assert!(text.contains(&format!("\nmini_engine_clock_ahead_seconds {ahead}\n")), "{text}");
        server.talk("get a => $1 v");
    }
}
