//! A process that imports is killed with SIGKILL at a random point, fifty times. The database must then hold the first lines of the input, at least
//! the acknowledged ones, and a second import must add the rest. Every second round imports into a keyspace.
//!
//! `KILL_SEED=n` repeats a run. `KILL_ROUNDS=n` sets the number of rounds. `KILL_LINES=n` gives each round an input of `n` lines, with batches and
//! memtables that are smaller in proportion: rounds become shorter, so there are more kills in the same time.
//!
//! Every line contains its own number, so the state after the kill shows which lines were stored. The input repeats keys, so a lost or reordered
//! line would show as an old value. Before the kill, a process gets only a few batches more than it has to acknowledge, and never the last lines
//! of the input. So no import can finish, however late the kill comes.

use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use mini_engine::{Db, Keyspace};
use proof::environment::{number, step};
use proof::{Map, Random, entries};

use crate::support::{Room, kill_seed, names};

const ROUNDS: usize = 50;
const LINES: usize = 30_000;
/// Batches of an input. The last batch is sent only after the kill.
const BATCHES: usize = 60;
/// Batches that a process gets beyond the one whose acknowledgement is awaited: the most that it can write before the kill.
const BATCHES_AHEAD: usize = 3;
/// The size of memtables for each line of the input, so that an input of any length fills some memtables.
const MEMTABLE_BYTES_PER_LINE: usize = 35;
/// The assumed time of a batch if none was measured.
const LEAST_PACE: Duration = Duration::from_micros(100);
const SIGKILL: i32 = 9;

/// The input: key, and a value that begins with the number of its line.
fn input(random: &mut Random, lines: usize) -> Vec<(String, String)> {
    (0..lines)
        .map(|n| (format!("key {:05}", random.index(lines)), format!("{n} {}", "v".repeat(random.index(120)))))
        .collect()
}

fn text(lines: &[(String, String)]) -> String {
    lines.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect()
}

/// The contents of a database after the first lines of the input.
fn state_after(lines: &[(String, String)]) -> Map {
    lines.iter().map(|(key, value)| (key.clone().into_bytes(), value.clone().into_bytes())).collect()
}

/// Starts an import of `text`. Kills it once it has acknowledged `batches` batches and continued for `part` of the time of one batch. Returns the
/// number of acknowledged lines.
fn killed_import(room: &Room, args: &str, text: &str, batches: usize, part: f64) -> usize {
    let (mut child, mut stdin, mut acks) = room.begin_import(args);
    let mut acked = 0;
    thread::scope(|threads| {
        let feeder = threads.spawn(move || {
            let fed = stdin.write_all(text.as_bytes());
            assert!(fed.is_ok() || fed.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe));
            // Returned, so that stdin is still open at the kill: the process must not see the end of the input.
            stdin
        });
        let mut begun = Instant::now();
        for batch in 0..batches {
            acked = acks.next().expect("an import that goes on");
            if batch == 0 {
                // The time before the first acknowledgement includes the start of the process.
                begun = Instant::now();
            }
        }
        // An acknowledgement always comes at the same step of an import. The moments between two acknowledgements must be tested too.
        let pace = begun.elapsed() / (batches as u32).saturating_sub(1).max(1);
        thread::sleep(pace.max(LEAST_PACE).mul_f64(part));
        child.kill().expect("kill");
        drop(feeder.join().expect("feeder"));
    });
    // The last acknowledgements before the kill may still be in the pipe.
    acked = acks.last().unwrap_or(acked);
    let status = child.wait().expect("wait");
    assert_eq!(status.signal(), Some(SIGKILL), "{status}");
    acked
}

/// The contents of the only keyspace that has any.
fn read_all(room: &Room, keyspace: Option<&str>) -> Map {
    let db = Db::open(room.database()).expect("a killed import leaves a sound database");
    assert!(keyspace.is_none() || db.first().expect("readable").is_none());
    let state = entries(&keyspace.map_or_else(|| Keyspace::clone(&db), |name| db.keyspace(name).expect("a keyspace")));
    assert!(db.verify().expect("verify").problems.is_empty());
    db.close().expect("close");
    state
}

/// The number of stored lines: the highest line number in a value.
fn lines_in(state: &Map) -> usize {
    let number = |value: &Vec<u8>| {
        let text = std::str::from_utf8(value).expect("text");
        text.split(' ').next().expect("a number").parse::<usize>().expect("a number")
    };
    state.values().map(number).max().map_or(0, |newest| newest + 1)
}

/// Whether a memtable was filled and replaced: a second log or a table exists.
fn has_rotated(room: &Room) -> bool {
    let count =
        |ending: &str| names(&room.database()).iter().filter(|name| name.to_string_lossy().ends_with(ending)).count();
    room.database().exists() && (count(".log") > 1 || count(".sst") > 0)
}

#[test]
fn every_acknowledged_line_survives_a_kill_and_the_rest_can_follow() {
    // Catches an acknowledgement before the log is written, a batch that is applied in part, a rotation that loses lines or
    // brings old ones back, and a recovered database that refuses writes.
    let mut random = Random(kill_seed());
    let rounds = number("KILL_ROUNDS").map_or(ROUNDS / step(3), |rounds| rounds as usize);
    let size = number("KILL_LINES").map_or(LINES, |lines| lines as usize);
    assert!(size >= BATCHES && size.is_multiple_of(BATCHES), "KILL_LINES: expected a multiple of {BATCHES}");
    let (batch, memtable_bytes) = (size / BATCHES, (size * MEMTABLE_BYTES_PER_LINE).max(4096));
    let (mut midway, mut rotated) = (0, 0);
    for round in 0..rounds {
        let lines = input(&mut random, size);
        let batches = random.index(BATCHES - 1);
        let offered = &lines[..(batches + BATCHES_AHEAD).min(BATCHES - 1) * batch];
        let part = random.index(2000) as f64 / 1000.0;
        let room = Room::new();
        let keyspace = (round % 2 == 1).then_some("users");
        let option = keyspace.map(|name| format!("--keyspace {name}")).unwrap_or_default();
        let args = format!("--memtable-bytes {memtable_bytes} --batch {batch} {option}");

        let acked = killed_import(&room, &args, &text(offered), batches, part);
        rotated += usize::from(has_rotated(&room));
        midway += usize::from(0 < acked && acked < size);

        let state = read_all(&room, keyspace);
        let survived = lines_in(&state);
        let context = format!("round {round}: {acked} lines acknowledged, {survived} found");
        assert!(acked <= survived, "{context}");
        assert!(survived <= offered.len() && survived.is_multiple_of(batch), "{context}: part of a batch");
        assert!(state == state_after(&lines[..survived]), "{context}: not the first lines of the input");

        room.import(&format!("- --synced {args}"), text(&lines[survived..]).as_bytes()).ended(0);
        assert!(read_all(&room, keyspace) == state_after(&lines), "{context}: the rest did not follow");
    }
    println!("{midway} of {rounds} killed midway, {rotated} past a rotation");
    assert!(midway * 3 >= rounds, "only {midway} of {rounds} imports were killed midway");
    assert!(rotated * 5 >= rounds, "only {rotated} of {rounds} imports were killed past a rotation");
}
