//! A process that imports is killed with SIGKILL at a random point, fifty times. The database must then hold the first lines of the input, at least
//! the acknowledged ones, and a second import must add the rest. Every second round imports into a keyspace.
//!
//! `KILL_SEED=n` repeats a run. `KILL_ROUNDS=n` sets the number of rounds. `KILL_LINES=n` gives each round an input of `n` lines, with batches and
//! memtables that are smaller in proportion: rounds become shorter, so there are more kills in the same time.
//!
//! Every line contains its own number, so the state after the kill shows which lines were stored. The input repeats keys, so a lost or reordered
//! line would show as an old value. Before the kill, a process gets only a few batches more than it has to acknowledge, and never the last lines
//! of the input. So no import can finish, however late the kill comes.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout};
use std::thread;
use std::time::{Duration, Instant};

use mini_engine::{Db, Keyspace};
use proof::Random;

use crate::support::{Room, finished, kill_seed, piped, program};
use proof::environment::{number, step};

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

type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// The size of an input, and the values that depend on it.
#[derive(Clone, Copy)]
struct Size {
    lines: usize,
}

impl Size {
    fn batch(self) -> usize {
        self.lines / BATCHES
    }

    fn memtable_bytes(self) -> usize {
        (self.lines * MEMTABLE_BYTES_PER_LINE).max(4096)
    }
}

/// The input: key, and a value that begins with the number of its line.
fn input(random: &mut Random, size: Size) -> Vec<(String, String)> {
    (0..size.lines)
        .map(|n| (format!("key {:05}", random.index(size.lines)), format!("{n} {}", "v".repeat(random.index(120)))))
        .collect()
}

fn text(lines: &[(String, String)]) -> String {
    lines.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect()
}

/// The contents of a database after the first lines of the input.
fn state_after(lines: &[(String, String)]) -> State {
    lines.iter().map(|(key, value)| (key.clone().into_bytes(), value.clone().into_bytes())).collect()
}

/// The database of a round, and the keyspace that the import fills; rounds alternate between keyspaces.
#[derive(Clone, Copy)]
struct Target<'a> {
    database: &'a Path,
    keyspace: Option<&'a str>,
}

fn start_import(target: Target<'_>, size: Size) -> Child {
    let (memtable_bytes, batch) = (size.memtable_bytes().to_string(), size.batch().to_string());
    let mut import = program();
    import.args(["import", "--synced", "--memtable-bytes", &memtable_bytes, "--batch", &batch]);
    import.args(target.keyspace.iter().flat_map(|name| ["--keyspace", name])).arg(target.database).arg("-");
    piped(import)
}

/// The next acknowledgement, or `None` when the process has ended.
fn next_ack(stdout: &mut BufReader<ChildStdout>) -> Option<usize> {
    let mut line = String::new();
    stdout.read_line(&mut line).expect("read");
    // A line that the kill cut off acknowledges nothing.
    let number = line.strip_suffix('\n')?;
    Some(number.strip_prefix("acked ").expect("an ack").parse().expect("a number"))
}

/// Starts an import of `text`. Kills it once it has acknowledged `batches` batches and continued for `part` of the time of one batch. Returns the
/// number of acknowledged lines.
fn killed_import(target: Target<'_>, size: Size, text: &str, batches: usize, part: f64) -> usize {
    let mut child = start_import(target, size);
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
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
            acked = next_ack(&mut stdout).expect("an import that goes on");
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
    while let Some(ack) = next_ack(&mut stdout) {
        acked = ack;
    }
    let status = child.wait().expect("wait");
    assert_eq!(status.signal(), Some(SIGKILL), "{status}");
    acked
}

fn read_all(target: Target<'_>) -> State {
    let db = Db::open(target.database).expect("a killed import leaves a sound database");
    let keyspace = target.keyspace.map_or_else(|| Keyspace::clone(&db), |name| db.keyspace(name).expect("a keyspace"));
    assert!(target.keyspace.is_none() || db.first().expect("readable").is_none());
    let state = keyspace.iter().map(|record| record.map(|(key, value)| (key.to_vec(), value.to_vec())));
    let state = state.collect::<Result<State, _>>().expect("readable");
    assert!(db.verify().expect("verify").problems.is_empty());
    db.close().expect("close");
    state
}

/// The number of stored lines: the highest line number in a value.
fn lines_in(state: &State) -> usize {
    let number = |value: &Vec<u8>| {
        let text = std::str::from_utf8(value).expect("text");
        text.split(' ').next().expect("a number").parse::<usize>().expect("a number")
    };
    state.values().map(number).max().map_or(0, |newest| newest + 1)
}

/// Whether a memtable was filled and replaced: a second log or a table exists.
fn has_rotated(database: &Path) -> bool {
    let entries = std::fs::read_dir(database).into_iter().flatten();
    let names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    let ending = |ending: &str| names.iter().filter(|name| name.ends_with(ending)).count();
    ending(".log") > 1 || ending(".sst") > 0
}

fn import_rest(target: Target<'_>, size: Size, lines: &[(String, String)]) {
    let mut child = start_import(target, size);
    let mut stdin = child.stdin.take().expect("piped");
    let rest = text(lines);
    thread::scope(|threads| {
        threads.spawn(move || stdin.write_all(rest.as_bytes()).expect("feed"));
        finished(child).ended(0);
    });
}

#[test]
fn every_acknowledged_line_survives_a_kill_and_the_rest_can_follow() {
    // Catches an acknowledgement before the log is written, a batch that is applied in part, a rotation that loses lines or
    // brings old ones back, and a recovered database that refuses writes.
    let mut random = Random(kill_seed());
    let rounds = number("KILL_ROUNDS").map_or(ROUNDS / step(3), |rounds| rounds as usize);
    let size = Size { lines: number("KILL_LINES").map_or(LINES, |lines| lines as usize) };
    assert!(
        size.lines >= BATCHES && size.lines.is_multiple_of(BATCHES),
        "KILL_LINES: expected a multiple of {BATCHES}"
    );
    let (mut midway, mut rotated) = (0, 0);
    for round in 0..rounds {
        let lines = input(&mut random, size);
        let (offered, _) = lines.split_at(size.lines - size.batch());
        let batches = random.index(offered.len() / size.batch());
        let offered = &offered[..offered.len().min((batches + BATCHES_AHEAD) * size.batch())];
        let part = random.index(2000) as f64 / 1000.0;
        let room = Room::new();
        let database = room.database();
        let target = Target { database: &database, keyspace: (round % 2 == 1).then_some("users") };

        let acked = killed_import(target, size, &text(offered), batches, part);
        rotated += usize::from(has_rotated(&database));
        midway += usize::from(0 < acked && acked < size.lines);

        let state = read_all(target);
        let survived = lines_in(&state);
        let context = format!("round {round}: {acked} lines acknowledged, {survived} found");
        assert!(acked <= survived, "{context}");
        assert!(survived <= offered.len() && survived.is_multiple_of(size.batch()), "{context}: part of a batch");
        assert!(state == state_after(&lines[..survived]), "{context}: not the first lines of the input");

        import_rest(target, size, &lines[survived..]);
        assert!(read_all(target) == state_after(&lines), "{context}: the rest did not follow");
    }
    println!("{midway} of {rounds} killed midway, {rotated} past a rotation");
    assert!(midway * 3 >= rounds, "only {midway} of {rounds} imports were killed midway");
    assert!(rotated * 5 >= rounds, "only {rotated} of {rounds} imports were killed past a rotation");
}
