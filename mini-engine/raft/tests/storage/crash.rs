//! Power cuts and kills at every operation of the file system.
//!
//! A run is recorded once; then each state of its disk is restored, cut, and opened. The database keeps its writes in order, so the recovered state
//! must be the state after some number of the run's steps: at least the steps that were reported as durable, at most those that had begun. This rule
//! covers holes, removed entries that return, lost votes, and entries that are applied twice.
//!
//! `CRASH_SEED=n` repeats a run.

use std::sync::Arc;

use mini_engine::fs::FileSystem;
use openraft::RaftLogReader;
use openraft::storage::{LogState, RaftLogStorage, RaftStateMachine};
use openraft_mini_engine::Logs;
use proof::Random;
use proof::disk::{Disk, MemFs, Step};

use crate::snapshots::{DIR, chunks, filled, receive, snapshot};
use crate::support::{
    AnEntry, Log, LogId, Machine, TypeConfig, Vote, append, append_soon, apply, count, entries, number, open_log,
    open_machine, run, set,
};

const SEED: u64 = 1;
const STEPS: usize = 60;

fn seed() -> u64 {
    proof::environment::number("CRASH_SEED").unwrap_or(SEED)
}

/// The progress of a run, noted in the record.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Steps that have begun.
    begun: usize,
    /// Steps that have returned: a kill loses none of them.
    returned: usize,
    /// Steps that were reported as durable, and so must survive a power cut.
    durable: usize,
}

impl Progress {
    fn word(kind: u64, steps: usize) -> u64 {
        kind << 32 | steps as u64
    }

    fn read(&mut self, word: u64) {
        let steps = word as u32 as usize;
        match word >> 32 {
            0 => self.begun = steps,
            1 => self.returned = steps,
            _ => self.durable = steps,
        }
    }
}

/// Cuts a disk before each operation of a record and after the last one. `judge` gets the remaining disk, and the least and the greatest number
/// of steps that it may hold.
fn cut_all(mut disk: Disk, record: &[Step], judge: impl Fn(&Disk, usize, usize) -> Result<(), String>) {
    let (mut progress, mut random, mut cuts) = (Progress::default(), Random(seed()), 0);
    for at in 0..=record.len() {
        if let Some(Step::Note(word)) = record.get(at) {
            progress.read(*word);
            continue;
        }
        let Progress { begun, returned, durable } = progress;
        let cases = [
            (disk.after_power_cut(random.next()).0, durable),
            (disk.after_power_cut(random.next()).0, durable),
            (disk.clone(), returned),
        ];
        for (draw, (left, least)) in cases.iter().enumerate() {
            let judged = judge(left, *least, begun);
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
        vote: log.get_log_reader().await.read_vote().await.unwrap(),
        committed: log.read_committed().await.unwrap(),
        state: log.get_log_state().await.unwrap(),
        entries: entries(log).await,
    }
}

/// A log with random writes, and its readable data after each step.
struct LogRun {
    mem: MemFs,
    open: Option<(Logs, Log)>,
    random: Random,
    term: u64,
    shown: Vec<Shown>,
}

impl LogRun {
    fn note(&self, kind: u64) {
        self.mem.note(Progress::word(kind, self.shown.len()));
    }

    /// Makes one step, with notes before and after.
    async fn step(&mut self) {
        // The state before a step is known, so the step that begins is the next one.
        self.mem.note(Progress::word(0, self.shown.len() + 1));
        let choice = self.random.below(12);
        let (_, log) = self.open.as_mut().expect("open between steps");
        let LogState { last_purged_log_id: purged, last_log_id: last } = log.get_log_state().await.unwrap();
        let next = last.as_ref().map_or(0, |last| last.index + 1);
        let first = purged.as_ref().map_or(0, |purged| purged.index + 1);
        let some = next..next + 1 + self.random.below(5);
        let text = "v".repeat(1 + self.random.below(3000) as usize);
        let new = some.map(|index| set(self.term, index, text.clone()));
        let mut is_durable = false;
        match choice {
            0..=3 => append_soon(log, new).await,
            4..=5 => {
                append(log, new).await;
                is_durable = true;
            }
            6 => {
                self.term += 1;
                log.save_vote(&Vote::new(self.term, 1)).await.unwrap();
                is_durable = true;
            }
            7 => log.save_committed(last).await.unwrap(),
            8 if next > first => {
                let entries = entries(log).await;
                let after = entries.get(self.random.index(entries.len())).map(|entry| entry.log_id);
                let after = after.max(log.read_committed().await.unwrap());
                log.truncate_after(after).await.unwrap();
                // Without an entry to remove, nothing is synced.
                is_durable = after < last;
            }
            9..=10 if next > first => {
                let entries = entries(log).await;
                log.purge(entries[self.random.index(entries.len())].log_id).await.unwrap();
            }
            _ => {
                self.open = None;
                let fs: Arc<dyn FileSystem> = Arc::new(self.mem.clone());
                self.open = Some(open_log(&fs));
                // The data that an open has recovered is durable.
                is_durable = true;
            }
        }
        let (_, log) = self.open.as_mut().expect("open between steps");
        self.shown.push(show(log).await);
        self.note(1);
        if is_durable {
            self.note(2);
        }
    }
}

#[test]
fn after_a_crash_a_log_is_as_it_was_after_one_of_its_last_steps() {
    // Catches a vote or an entry that was acknowledged and is lost, a hole, a partial truncation or purge, and removed entries that return.
    let mem = MemFs::default();
    let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
    let mut steps =
        LogRun { mem: mem.clone(), open: Some(open_log(&fs)), random: Random(seed()), term: 1, shown: Vec::new() };
    let disk = mem.disk();
    mem.record();
    let (_, log) = steps.open.as_mut().expect("open");
    let empty = run(show(log));
    run(async {
        for _ in 0..STEPS {
            steps.step().await;
        }
    });
    steps.open = None;
    let shown: Vec<Shown> = [empty].into_iter().chain(steps.shown).collect();
    cut_all(disk, &mem.take_record(), |left, least, most| {
        let fs: Arc<dyn FileSystem> = Arc::new(MemFs::on(left.clone()));
        let (_logs, mut log) = open_log(&fs);
        let found = run(show(&mut log));
        match shown[least..=most.min(shown.len() - 1)].contains(&found) {
            true => Ok(()),
            false => Err(format!("not a state after {least} to {most} steps: {found:?}")),
        }
    });
}

/// The number of entries that a machine has applied; they must be the first ones, each once.
fn applied(machine: &mut Machine) -> Result<usize, String> {
    let last = run(machine.applied_state()).unwrap().0;
    let steps = last.map_or(0, |last| last.index as usize + 1);
    let counted = number(&machine.state().db(), "count").unwrap() as usize;
    match counted == steps {
        true => Ok(steps),
        false => Err(format!("the last entry is {last:?}, and {counted} were counted")),
    }
}

#[test]
fn after_a_crash_a_state_machine_has_applied_the_first_entries_each_once() {
    // Catches an entry without its log id, a log id without its entry, and a snapshot that does not make the state durable.
    let mem = MemFs::default();
    let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
    let mut machine = Some(open_machine(&fs, DIR));
    let disk = mem.disk();
    mem.record();
    let mut random = Random(seed());
    let mut next = 0;
    for _ in 0..STEPS {
        let open = machine.as_mut().expect("open between steps");
        match random.below(8) {
            0 => {
                drop(run(snapshot(open)));
                mem.note(Progress::word(2, next));
            }
            1 => {
                drop(machine.take());
                machine = Some(open_machine(&fs, DIR));
                mem.note(Progress::word(2, next));
            }
            _ => {
                let more = 1 + random.index(4);
                mem.note(Progress::word(0, next + more));
                run(apply(open, (next..next + more).map(|index| count(index as u64))));
                next += more;
                mem.note(Progress::word(1, next));
            }
        }
    }
    drop(machine);
    cut_all(disk, &mem.take_record(), |left, least, most| {
        let fs: Arc<dyn FileSystem> = Arc::new(MemFs::on(left.clone()));
        let steps = applied(&mut open_machine(&fs, DIR))?;
        match (least..=most).contains(&steps) {
            true => Ok(()),
            false => Err(format!("expected {least} to {most} entries, found {steps}")),
        }
    });
}

#[test]
fn a_crash_while_a_snapshot_is_received_and_installed_leaves_the_old_state_or_the_new_one() {
    // Catches a mixture of the old and the new state, an old state after the call has returned, and leftovers that make the next open fail.
    let leader_fs: Arc<dyn FileSystem> = Arc::new(MemFs::default());
    let mut leader = filled(&leader_fs, 110);
    let sent = run(snapshot(&mut leader));
    let mem = MemFs::default();
    let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
    let mut follower = open_machine(&fs, DIR);
    run(apply(&mut follower, (0..5).map(count)));
    // A snapshot makes the follower's entries durable.
    drop(run(snapshot(&mut follower)));
    let disk = mem.disk();
    mem.record();
    mem.note(Progress::word(0, 1));
    let received = receive(&follower.state(), &chunks(&sent.snapshot)).unwrap();
    run(follower.install_snapshot(&received.meta, received.snapshot)).unwrap();
    mem.note(Progress::word(1, 1));
    mem.note(Progress::word(2, 1));
    drop(follower);
    cut_all(disk, &mem.take_record(), |left, least, _| {
        let mem = MemFs::on(left.clone());
        let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
        let mut machine = open_machine(&fs, DIR);
        let last = run(machine.applied_state()).unwrap().0.map(|last| last.index);
        let counted = number(&machine.state().db(), "count").unwrap();
        let is_new = match (last, counted) {
            (Some(4), 5) => false,
            (Some(110), 11) => true,
            found => return Err(format!("neither the old state nor the new one: {found:?}")),
        };
        if least == 1 && !is_new {
            return Err("the old state after the installation".to_owned());
        }
        // The next try works.
        let received = receive(&machine.state(), &chunks(&sent.snapshot)).map_err(|error| error.to_string())?;
        let names = mem.read_dir(std::path::Path::new(DIR)).unwrap();
        if names.len() != 2 {
            return Err(format!("the open has left {names:?}"));
        }
        run(machine.install_snapshot(&received.meta, received.snapshot)).map_err(|error| error.to_string())
    });
}
