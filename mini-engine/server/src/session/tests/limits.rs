//! The scripts of rate limiters and caches.

use std::time::{Duration, SystemTime};

use super::*;
use crate::commands::LIMITERS;

const ROWS: &str = include_str!("limits.txt");

/// The scripts of the rows, each with a piece of text that only this script has.
const TEXTS: [(&str, &str); 14] = [
    ("limits-fixed", " current = redis.call('incrby'"),
    ("limits-state", "return {previous_count"),
    ("limits-hit", "weighted_count"),
    ("flexible", "consumed"),
    ("express", "windowMs = tonumber(ARGV[1])"),
    ("express-5", "windowMs = tonumber(ARGV[2])"),
    ("express-state", "totalHits = redis.call('GET'"),
    ("allow", "allow_at"),
    ("allow-most", "tostring(-1)"),
    ("swap", "redis.call('set',KEYS[1],ARGV[2]) else"),
    ("swap-px", "ARGV[2],'PX'"),
    ("swap-ex", "ARGV[2],'EX'"),
    ("aiocache", "#ARGV"),
    ("once", "tonumber(sum)"),
];

/// The request of a row, with the text in place of the script's name.
fn of_row(row: &str) -> String {
    let mut parts: Vec<&str> = row.split(' ').collect();
    if let Some((_, part)) = TEXTS.iter().find(|(name, _)| *name == parts[0]) {
        let texts: Vec<&str> = LIMITERS.iter().map(|script| script.text).filter(|text| text.contains(part)).collect();
        assert_eq!(texts.len(), 1, "{row}: {texts:?}");
        parts.splice(..1, ["eval", texts[0]]);
    }
    request(&parts)
}

#[test]
fn limits_and_caches_do_what_the_texts_say() {
    // Catches a limit that admits more or fewer requests than in Redis, a window that never ends, and a number in another format than Lua's; also in
    // a transaction, where a script sees the writes of earlier ones.
    assert_eq!(LIMITERS.len(), TEXTS.len());
    for is_queued in [false, true] {
        for rows in ROWS.split("\n\n") {
            let mut now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250);
            let clocked = (MemFs::default(), Clock::at(now));
            let mut server = clock::open(&clocked);
            let (mut requests, mut replies) = (String::new(), Vec::new());
            let rows = rows.lines().filter(|row| !row.starts_with('#')).flat_map(|line| line.split(" | "));
            for row in rows.chain(["after 0"]) {
                let Some(millis) = row.strip_prefix("after ") else {
                    let (line, reply) = row.split_once(" => ").expect("a request and its reply");
                    requests += &of_row(line);
                    replies.push(reply);
                    continue;
                };
                let (count, mut expected) = (replies.len(), replies.join(" "));
                if is_queued {
                    requests = format!("multi\r\n{requests}exec\r\n");
                    expected = format!("+OK {}*{count} {expected}", "+QUEUED ".repeat(count));
                }
                assert_eq!(server.said(&requests).replace("\r\n", " ").trim_end(), expected.trim_end());
                (requests, replies) = (String::new(), Vec::new());
                now += Duration::from_millis(millis.parse().expect("milliseconds"));
                clocked.1.set(now);
            }
        }
    }
}
