//! Power cuts and kills at every operation of the file system.
//!
//! A run is recorded once; then each state of its disk is restored, cut, and opened. The database keeps its writes in order, so the recovered state
//! must be the state after some number of the run's steps: at least the steps that were reported as durable, at most those that had begun. This rule
//! covers holes, removed entries that return, lost votes, and entries that are applied twice.
//!
//! `CRASH_SEED=n` repeats a run.

use std::path::Path;

use mini_engine::fs::FileSystem;
use openraft::LogIdOptionExt;
use openraft::storage::{LogState, RaftLogStorage, RaftStateMachine};
use proof::Random;
use proof::disk::{Disk, MemFs, Step};

use crate::snapshots::{DIR, chunks, filled, receive, snapshot};
use crate::support::{
    AnEntry, Log, LogId, Machine, TypeConfig, Vote, append, append_soon, apply, count, entries, number, open_log,
    open_machine, run, set, state, vote,
};

const SEED: u64 = 1;
const STEPS: usize = 60;

fn seed() -> u64 {
    proof::environment::number("CRASH_SEED").unwrap_or(SEED)
}

/// Steps of a run, whose number is noted in the record.
#[derive(Clone, Copy)]
enum Steps {
    Begun,
    /// A kill loses none of them.
    Returned,
    /// These were reported as durable, and so must survive a power cut.
    Durable,
}

fn note(mem: &MemFs, kind: Steps, steps: usize) {
    mem.note((kind as u64) << 32 | steps as u64);
}

/// Cuts a disk before each operation of a record and after the last one. `judge` gets the remaining disk, and the least and the greatest number
/// of steps that it may hold.
fn cut_all(mut disk: Disk, record: &[Step], judge: impl Fn(&MemFs, usize, usize) -> Result<(), String>) {
    let (mut steps, mut random, mut cuts) = ([0; 3], Random(seed()), 0);
    for at in 0..=record.len() {
        if let Some(Step::Note(word)) = record.get(at) {
            steps[(word >> 32) as usize] = *word as u32 as usize;
            continue;
        }
        let [begun, returned, durable] = steps;
        let mut power_cut = || (disk.after_power_cut(random.next()).0, durable);
        for (draw, (left, least)) in [power_cut(), power_cut(), (disk.clone(), returned)].into_iter().enumerate() {
            let judged = judge(&MemFs::on(left), least, begun);
            assert!(judged.is_ok(), "CRASH_SEED={}: before {at} {:?}, draw {draw}: {judged:?}", seed(), record.get(at));
            cuts += 1;
        }
        if let Some(Step::Operation(operation)) = record.get(at) {
            disk.apply(operation).expect("possible");
        }
    }
    assert!(cuts > 300, "only {cuts} cuts");
}

/// All data that can be read from a log.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    vote: Option<Vote>,
    committed: Option<LogId>,
    state: LogState<TypeConfig>,
    entries: Vec<AnEntry>,
}

async fn show(log: &mut Log) -> Shown {
    Shown {
        vote: vote(log).await,
        committed: log.read_committed().await.unwrap(),
        state: state(log).await,
        entries: entries(log).await,
    }
}

/// Makes a random change of the log, which has shown this. Returns whether the change is durable.
async fn change(log: &mut Log, shown: &Shown, random: &mut Random, term: &mut u64) -> bool {
    let (entries, last) = (&shown.entries, shown.state.last_log_id);
    let next = last.next_index();
    let text = "v".repeat(1 + random.index(3000));
    let new = (next..=next + random.below(5)).map(|index| set(*term, index, text.clone()));
    match random.below(11) {
        0..=3 => append_soon(log, new).await,
        4..=5 => {
            append(log, new).await;
            return true;
        }
        6 => {
            *term += 1;
            log.save_vote(&Vote::new(*term, 1)).await.unwrap();
            return true;
        }
        7 if !entries.is_empty() => {
            let after = Some(entries[random.index(entries.len())].log_id).max(shown.committed);
            log.truncate_after(after).await.unwrap();
            // Without an entry to remove, nothing is synced.
            return after < last;
        }
        8..=9 if !entries.is_empty() => log.purge(entries[random.index(entries.len())].log_id).await.unwrap(),
        _ => log.save_committed(last).await.unwrap(),
    }
    false
}

#[test]
fn after_a_crash_a_log_is_as_it_was_after_one_of_its_last_steps() {
    // Catches a vote or an entry that was acknowledged and is lost, a hole, a partial truncation or purge, and removed entries that return.
    let mem = MemFs::default();
    let (mut logs, mut log) = open_log(&mem);
    let (disk, mut random, mut term) = (mem.disk(), Random(seed()), 1);
    mem.record();
    let mut shown = vec![run(show(&mut log))];
    // At least until an entry that the log holds is committed, which limits truncations.
    let is_committed = |shown: &Shown| shown.entries.first().is_some_and(|first| shown.committed >= Some(first.log_id));
    while shown.len() <= STEPS || !shown.iter().any(is_committed) {
        let step = shown.len();
        assert!(step < 10 * STEPS, "CRASH_SEED={}: no entry is committed", seed());
        note(&mem, Steps::Begun, step);
        let is_durable = if random.one_in(8) {
            drop((logs, log));
            (logs, log) = open_log(&mem);
            // The data that an open has recovered is durable.
            true
        } else {
            run(change(&mut log, &shown[step - 1], &mut random, &mut term))
        };
        shown.push(run(show(&mut log)));
        note(&mem, Steps::Returned, step);
        if is_durable {
            note(&mem, Steps::Durable, step);
        }
    }
    drop((logs, log));
    cut_all(disk, &mem.take_record(), |left, least, most| {
        let (_logs, mut log) = open_log(left);
        let found = run(show(&mut log));
        let is_shown = shown[least..=most].contains(&found);
        is_shown.then_some(()).ok_or_else(|| format!("not a state after {least} to {most} steps: {found:?}"))
    });
}

/// The index of the last entry that a machine has applied, and the number that it has counted.
fn applied(machine: &mut Machine) -> (Option<u64>, u64) {
    (run(machine.applied_state()).unwrap().0.index(), number(&machine.state().db(), "count").unwrap())
}

#[test]
fn after_a_crash_a_state_machine_has_applied_the_first_entries_each_once() {
    // Catches an entry without its log id, a log id without its entry, and a snapshot that does not make the state durable.
    let mem = MemFs::default();
    let mut machine = open_machine(&mem, DIR);
    let (disk, mut random, mut next) = (mem.disk(), Random(seed()), 0);
    mem.record();
    for _ in 0..STEPS {
        match random.below(8) {
            0 => {
                drop(run(snapshot(&mut machine)));
                note(&mem, Steps::Durable, next);
            }
            1 => {
                drop(machine);
                machine = open_machine(&mem, DIR);
                note(&mem, Steps::Durable, next);
            }
            _ => {
                let first = next;
                next += 1 + random.index(4);
                note(&mem, Steps::Begun, next);
                run(apply(&mut machine, (first as u64..next as u64).map(count)));
                note(&mem, Steps::Returned, next);
            }
        }
    }
    drop(machine);
    cut_all(disk, &mem.take_record(), |left, least, most| {
        let (last, counted) = applied(&mut open_machine(left, DIR));
        let is_right = last.map_or(0, |last| last + 1) == counted && (least..=most).contains(&(counted as usize));
        is_right
            .then_some(())
            .ok_or_else(|| format!("expected {least} to {most}, found {last:?} and {counted} counted"))
    });
}

#[test]
fn a_crash_while_a_snapshot_is_received_and_installed_leaves_the_old_state_or_the_new_one() {
    // Catches a mixture of the old and the new state, an old state after the call has returned, and leftovers that make the next open fail.
    let mut leader = filled(&MemFs::default(), 110);
    let sent = run(snapshot(&mut leader));
    let install = |machine: &mut Machine| {
        let received = receive(&machine.state(), &chunks(&sent.snapshot))?;
        run(machine.install_snapshot(&received.meta, received.snapshot))
    };
    let mem = MemFs::default();
    let mut follower = open_machine(&mem, DIR);
    run(apply(&mut follower, (0..5).map(count)));
    // A snapshot makes the follower's entries durable.
    drop(run(snapshot(&mut follower)));
    let disk = mem.disk();
    mem.record();
    note(&mem, Steps::Begun, 1);
    install(&mut follower).unwrap();
    note(&mem, Steps::Returned, 1);
    note(&mem, Steps::Durable, 1);
    drop(follower);
    cut_all(disk, &mem.take_record(), |left, least, most| {
        let mut machine = open_machine(left, DIR);
        let states = [(Some(4), 5), (Some(110), 11)];
        let found = applied(&mut machine);
        if !states[least..=most].contains(&found) {
            return Err(format!("expected one of {:?}, found {found:?}", &states[least..=most]));
        }
        let names = left.read_dir(Path::new(DIR)).unwrap();
        if names.len() != 1 {
            return Err(format!("the open has left {names:?}"));
        }
        // The next try works.
        install(&mut machine).map_err(|error| error.to_string())
    });
}
