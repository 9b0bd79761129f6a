//! Policies on versions without files: tables are lists in memory, and merges follow the rules of the real ones.

use std::collections::{BTreeMap, HashMap};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::compaction::in_progress::InProgress;
use crate::compaction::piece::{Consumed, is_divisible};
use crate::compaction::plan::Action;
use crate::compaction::retention::{Retention, Shadowing, Tombstones};
use crate::manifest::{RunId, Version, VersionEdit};
use crate::options::Options;
use crate::table::TableMeta;
use crate::types::{Kind, SeqNo, Slice};

mod pressure;

const POLICIES: [Compaction; 4] =
    [Compaction::Leveled, Compaction::Tiered, Compaction::LazyLeveled, Compaction::Partial];
const KEYS: u8 = 120;
const ENTRY_BYTES: u64 = 100;

type Entry = (Vec<u8>, SeqNo, Kind);

fn key(n: u8) -> Vec<u8> {
    format!("key{:03}", n % KEYS).into_bytes()
}

#[derive(Debug, Clone)]
enum Step {
    /// A memtable with these keys, set or removed, is flushed.
    Flush(Vec<(u8, bool)>),
    /// One in key order, above or within what is there.
    FlushRange(u8, u8),
    TakeSnapshot,
    DropSnapshot,
    /// A merge begins, if one can.
    Begin,
    /// One that takes tables off level 0.
    BeginLevel0,
    /// A merge could not read one of the tables.
    Damage(u8),
    /// All tables can be read again.
    Repair,
    /// One of those under way ends, after so many entries and a full table if there are that many, or with what it has if it is told
    /// to stop.
    End(u8, usize, bool),
    /// All merges end, and another policy goes on.
    Reopen(Compaction, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => vec((0..KEYS, prop::bool::weighted(0.7)), 1..14).prop_map(Step::Flush),
        2 => (0..KEYS, 1..14u8).prop_map(|(from, keys)| Step::FlushRange(from, keys)),
        1 => Just(Step::TakeSnapshot),
        1 => Just(Step::DropSnapshot),
        8 => Just(Step::Begin),
        3 => Just(Step::BeginLevel0),
        1 => any::<u8>().prop_map(Step::Damage),
        1 => Just(Step::Repair),
        5 => (any::<u8>(), 1..40usize, prop::bool::weighted(0.3)).prop_map(|(at, piece, stop)| Step::End(at, piece, stop)),
        1 => (prop::sample::select(&POLICIES[..]), 2..5u64).prop_map(|(policy, ratio)| Step::Reopen(policy, ratio)),
    ]
}

struct Job {
    id: u64,
    plan: Plan,
    snapshots: Vec<SeqNo>,
}

struct World {
    options: Options,
    version: Version,
    contents: HashMap<u64, Vec<Entry>>,
    in_progress: InProgress,
    jobs: Vec<Job>,
    history: Vec<Entry>,
    snapshots: Vec<SeqNo>,
    made: u64,
    written: u64,
    moved: u64,
    /// Merges that took a piece and left a rest.
    cuts: u64,
    /// What merges write before they leave the rest to another.
    piece: usize,
}

impl World {
    fn new(policy: Compaction, ratio: u64) -> World {
        let options = Options { memtable_bytes: 500, ..Options::default() };
        let options = options.l0_trigger(2).level1_bytes(800).table_file_bytes(1000).size_ratio(ratio);
        World {
            options: options.compaction(policy),
            version: Version::default(),
            contents: HashMap::new(),
            in_progress: InProgress::default(),
            jobs: Vec::new(),
            history: Vec::new(),
            snapshots: Vec::new(),
            made: 0,
            written: 0,
            moved: 0,
            cuts: 0,
            piece: usize::MAX,
        }
    }

    fn seqno(&self) -> SeqNo {
        self.history.len() as u64
    }

    fn table(&mut self, entries: Vec<Entry>) -> TableMeta {
        self.made += 1;
        let seqnos = || entries.iter().map(|entry| entry.1);
        let meta = TableMeta {
            number: self.made,
            size: entries.len() as u64 * ENTRY_BYTES,
            entries: entries.len() as u64,
            tombstones: entries.iter().filter(|entry| entry.2 == Kind::Tombstone).count() as u64,
            smallest: entries[0].0.clone().into(),
            largest: entries[entries.len() - 1].0.clone().into(),
            min_seqno: seqnos().min().unwrap(),
            max_seqno: seqnos().max().unwrap(),
            narrowed: false,
        };
        self.written += meta.size;
        self.contents.insert(self.made, entries);
        meta
    }

    fn flush(&mut self, writes: impl IntoIterator<Item = (u8, bool)>) {
        let mut entries = Vec::new();
        for (n, set) in writes {
            let entry = (key(n), self.seqno() + 1, if set { Kind::Value } else { Kind::Tombstone });
            self.history.push(entry.clone());
            entries.push(entry);
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let meta = self.table(entries);
        self.apply(VersionEdit { added: vec![(RunId::LEVEL_0, meta)], ..VersionEdit::default() });
    }

    fn apply(&mut self, edit: VersionEdit) {
        self.version = self.version.apply(&edit).expect("a plan that keeps the invariants of versions");
    }

    fn begin(&mut self) -> bool {
        self.begin_of(Work::Any)
    }

    fn begin_of(&mut self, work: Work) -> bool {
        let Some(plan) = pick(&self.context(), work) else { return false };
        assert!(work == Work::Any || plan.relieves_level_0());
        let id = self.in_progress.begin(&plan);
        self.jobs.push(Job { id, plan, snapshots: self.snapshots.clone() });
        true
    }

    fn context(&self) -> Context<'_> {
        Context { version: &self.version, options: &self.options, in_progress: &self.in_progress }
    }

    fn end(&mut self, at: usize) {
        self.end_after(at, self.piece, false);
    }

    fn end_after(&mut self, at: usize, piece: usize, stop: bool) {
        let Job { id, plan, snapshots } = self.jobs.remove(at);
        let metas: HashMap<u64, TableMeta> = self.version.tables().map(|meta| (meta.number, meta.clone())).collect();
        let (outputs, next) = match plan.action {
            Action::Move => {
                self.moved += plan.tables().count() as u64;
                (plan.tables().map(|number| metas[&number].clone()).collect(), None)
            }
            Action::Merge => self.merge(&plan, &snapshots, is_divisible(plan.output).then_some((piece, stop))),
        };
        let consumed = Consumed::of(&plan, |number| metas[&number].clone(), next.as_ref());
        self.cuts += u64::from(next.is_some());
        self.made += 1;
        let pointers = consumed.pointer(&plan, self.made, next).into_iter().collect();
        let added = outputs.into_iter().map(|meta| (plan.output, meta)).chain(consumed.narrowed).collect();
        let pointers_done = plan.resumes.clone();
        self.apply(VersionEdit { removed: consumed.removed, added, pointers, pointers_done, ..VersionEdit::default() });
        self.in_progress.end(id);
    }

    /// What a table of the version has.
    fn entries_of(&self, meta: &TableMeta) -> impl Iterator<Item = &Entry> {
        self.contents[&meta.number].iter().filter(|entry| entry.0[..] >= *meta.smallest)
    }

    /// The tables that `plan` makes before it ends, and the first key that is left then.
    fn merge(
        &mut self,
        plan: &Plan,
        snapshots: &[SeqNo],
        piece: Option<(usize, bool)>,
    ) -> (Vec<TableMeta>, Option<Slice>) {
        let taken: Vec<u64> = plan.tables().collect();
        let inputs = self.version.tables().filter(|meta| taken.contains(&meta.number));
        let mut entries: Vec<Entry> = inputs.flat_map(|meta| self.entries_of(meta)).cloned().collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let mut shadowing = Shadowing::new(Retention { snapshots, tombstones: Tombstones::KeepOf(&plan.below) });
        // On level 0 one table is a run.
        let full = if plan.output == RunId::LEVEL_0 { u64::MAX } else { self.options.table_file_bytes };
        let per_table = (full / ENTRY_BYTES) as usize;
        let (mut tables, mut kept, mut next): (Vec<Vec<Entry>>, usize, _) = (Vec::new(), 0, None);
        for (at, entry) in entries.into_iter().enumerate() {
            let is_full = tables.last().is_some_and(|table| table.len() >= per_table);
            let ends = piece.is_some_and(|(piece, stop)| if stop { at >= piece } else { is_full && kept >= piece });
            if ends && at > 0 && shadowing.is_new(&entry.0) {
                next = Some(Slice::from(&entry.0[..]));
                break;
            }
            if !shadowing.keeps(&entry.0, entry.1, entry.2) {
                continue;
            }
            kept += 1;
            match tables.last_mut() {
                Some(table) if table.len() < per_table || table.last().unwrap().0 == entry.0 => table.push(entry),
                _ => tables.push(vec![entry]),
            }
        }
        (tables.into_iter().map(|table| self.table(table)).collect(), next)
    }

    fn damage(&mut self, number: u64) {
        let error = crate::error::Error::corruption(std::path::Path::new("1.sst"), 0, "a test");
        self.in_progress.damage.note(number, "1.sst".into(), error, std::time::Instant::now());
    }

    fn end_all(&mut self) {
        while !self.jobs.is_empty() {
            self.end(0);
        }
    }

    /// Merges until nothing is due any more.
    fn settle(&mut self) {
        self.in_progress.damage.forget(1..=self.made);
        self.end_all();
        // A piece of a merge is a merge by itself.
        let pieces = 1 + 2 * self.seqno() as usize / self.piece.min(self.seqno() as usize + 1);
        let bound = (20 + 10 * self.version.tables().count()) * pieces;
        for _ in 0..bound {
            if !self.begin() {
                return self.check_shape();
            }
            self.end_all();
        }
        panic!("still something due after {bound} merges: {:?}", self.version);
    }

    /// What each policy promises of a version in which nothing is due.
    fn check_shape(&self) {
        let (version, ratio) = (&self.version, self.options.size_ratio as usize);
        let held = level_0::inputs(&self.context(), BOTTOM).len() > 1;
        let most = if held { level_0::patience(&self.options) } else { self.options.l0_trigger };
        assert!(version.runs(0).len() <= most, "{version:?}");
        assert!(!version.tables().any(|table| table.narrowed), "a merge that nobody goes on with: {version:?}");
        let most = |level: usize| match self.options.compaction.unwrap() {
            Compaction::Leveled | Compaction::Partial => 1,
            Compaction::LazyLeveled if level == BOTTOM => 1,
            Compaction::LazyLeveled | Compaction::Tiered => ratio - 1,
        };
        assert!((1..=BOTTOM).all(|level| version.runs(level).len() <= most(level)), "{version:?}");
        if let Some(Compaction::Leveled | Compaction::Partial) = self.options.compaction {
            let context = Context { version, options: &self.options, in_progress: &self.in_progress };
            let targets = targets::Targets::of(&context);
            // Up to one part in a thousand above the target is not worth a merge.
            let fits = |level: usize| version.level_bytes(level) / 1001 <= targets.bytes(level) / 1000;
            assert!((1..=BOTTOM).all(fits), "{version:?}");
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Flush(writes) => self.flush(writes),
            Step::FlushRange(from, keys) => self.flush((from..from.saturating_add(keys)).map(|n| (n, true))),
            Step::TakeSnapshot => self.snapshots.push(self.seqno()),
            Step::DropSnapshot => drop((!self.snapshots.is_empty()).then(|| self.snapshots.remove(0))),
            Step::Begin => drop(self.begin()),
            Step::BeginLevel0 => drop(self.begin_of(Work::Level0)),
            Step::Damage(at) => {
                let numbers: Vec<u64> = self.version.tables().map(|table| table.number).collect();
                numbers.get(usize::from(at) % numbers.len().max(1)).into_iter().for_each(|&number| self.damage(number));
            }
            Step::Repair => self.in_progress.damage.forget(1..=self.made),
            Step::End(at, piece, stop) if !self.jobs.is_empty() => {
                self.end_after(usize::from(at) % self.jobs.len(), piece, stop);
            }
            Step::End(..) => {}
            Step::Reopen(policy, ratio) => {
                self.end_all();
                self.snapshots.clear();
                self.options = self.options.clone().compaction(policy).size_ratio(ratio);
            }
        }
        self.snapshots.sort_unstable();
        self.snapshots.dedup();
        self.check();
    }

    /// Every reader finds what an ordinary map would have, and the versions of each key stand newest first (V4).
    fn check(&self) {
        let mut versions: BTreeMap<&[u8], Vec<(SeqNo, Kind)>> = BTreeMap::new();
        for (_, run) in self.version.all_runs() {
            for (key, seqno, kind) in run.tables().iter().flat_map(|table| self.entries_of(table)) {
                versions.entry(key).or_default().push((*seqno, *kind));
            }
        }
        for n in 0..KEYS {
            let key = key(n);
            let found = versions.get(&key[..]).map_or(&[][..], Vec::as_slice);
            assert!(found.is_sorted_by(|a, b| a.0 > b.0), "{}: {found:?}", key.escape_ascii());
            for &at in self.snapshots.iter().chain([&self.seqno()]) {
                let expected = self.history.iter().rev().find(|entry| entry.0 == key && entry.1 <= at);
                let expected = expected.filter(|entry| entry.2 == Kind::Value).map(|entry| entry.1);
                let first = found.iter().find(|version| version.0 <= at);
                let first = first.filter(|version| version.1 == Kind::Value).map(|version| version.0);
                assert_eq!(first, expected, "{} at {at}", key.escape_ascii());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_plan_loses_a_version_breaks_a_level_or_meets_another_and_plans_end(
        policy in prop::sample::select(&POLICIES[..]),
        ratio in 2..5u64,
        piece in prop::sample::select(&[1, 30, usize::MAX][..]),
        steps in vec(step(), 1..150),
    ) {
        // Catches a merge that passes over an older or newer version of its keys, a tombstone dropped too early, merges
        // that undo each other's outputs when they run at once, and a policy that is never content, also with what
        // another has left.
        let mut world = World::new(policy, ratio);
        world.piece = piece;
        for step in steps {
            world.run(step);
        }
        world.settle();
        world.check();
    }
}

/// A world with `rounds` times as many flushes of 5 random keys as make up its data, settled after each.
fn overwritten(policy: Compaction, ratio: u64, rounds: u64) -> World {
    let mut world = World::new(policy, ratio);
    let mut draw = 7u64;
    for _ in 0..rounds * u64::from(KEYS) / 5 {
        let keys: Vec<(u8, bool)> = (0..5)
            .map(|_| {
                draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((draw >> 33) as u8 % KEYS, true)
            })
            .collect();
        world.flush(keys);
        world.settle();
    }
    world.check();
    world
}

#[test]
fn lazier_policies_write_less_and_keep_more() {
    // Catches a policy that has become another one, or rewrites everything at each turn.
    let figures = POLICIES.map(|policy| {
        let world = overwritten(policy, 4, 40);
        (world.written * 10 / (world.seqno() * ENTRY_BYTES), world.version.tables().map(|table| table.size).sum())
    });
    let [leveled, tiered, lazy, partial]: [(u64, u64); 4] = figures;
    assert!(tiered.0 < lazy.0 && lazy.0 < leveled.0.max(partial.0), "written for each byte, in tenths: {figures:?}");
    let live = u64::from(KEYS) * ENTRY_BYTES;
    assert!([leveled.1, lazy.1, partial.1].iter().all(|&bytes| bytes <= live * 2), "{figures:?} of {live}");
    assert!(tiered.1 <= live * 5 / 2, "{figures:?} of {live}");
}

#[test]
fn a_load_in_key_order_is_moved_and_not_rewritten() {
    // Catches a merge of tables that overlap nothing: a sorted load would be written once a level.
    for policy in POLICIES {
        let mut world = World::new(policy, 4);
        world.options.table_file_bytes = 400;
        for from in (0..KEYS).step_by(4) {
            world.run(Step::FlushRange(from, 4));
            world.settle();
        }
        assert!(world.moved > 0, "{policy:?}");
        assert_eq!(world.written, world.seqno() * ENTRY_BYTES, "{policy:?}");
    }
}

#[test]
fn small_tables_do_not_pile_up() {
    // Catches thousands of tables with a few keys each, after as many short sessions with keys in order.
    for policy in POLICIES {
        let mut world = World::new(policy, 4);
        // Sessions that end long before a memtable is full.
        (world.options.table_file_bytes, world.options.memtable_bytes) = (100_000, 100_000);
        for n in 0..KEYS {
            world.run(Step::FlushRange(n, 1));
            world.settle();
        }
        assert!(world.version.tables().count() < 15, "{policy:?}: {:?}", world.version);
    }
}

#[test]
fn what_another_policy_left_becomes_what_the_new_one_wants() {
    // Catches a policy that works on its own versions only.
    for from in POLICIES {
        for to in POLICIES {
            let mut world = overwritten(from, 3, 4);
            world.run(Step::Reopen(to, 4));
            world.settle();
            world.check();
        }
    }
}

#[test]
fn the_size_ratio_and_the_size_of_level_1_decide_how_many_levels_there_are() {
    // Catches options that are checked and then ignored.
    let levels = |ratio: u64, level1_bytes: u64| {
        let mut world = World::new(Compaction::Leveled, ratio);
        world.options.level1_bytes = level1_bytes;
        world.options.memtable_bytes = 100;
        for round in 0..40u8 {
            world.run(Step::Flush((0..5).map(|n| (n * 24 + round % 24, true)).collect()));
            world.settle();
        }
        (1..=BOTTOM).filter(|&level| world.version.level_bytes(level) > 0).count()
    };
    assert_eq!(levels(2, 1 << 20), 1);
    let (wide, narrow) = (levels(8, 300), levels(2, 300));
    assert!(1 < wide && wide < narrow, "{wide} levels by 8, {narrow} by 2");
}

#[test]
fn the_upper_keys_of_old_tables_do_not_wait_for_new_tables() {
    // Catches a merge that begins anew below its last key whenever a new table has come: it would never get to the upper keys, and
    // level 0 would grow for ever.
    for policy in POLICIES {
        let mut world = World::new(policy, 4);
        world.flush((0..KEYS).map(|n| (n, true)));
        world.run(Step::Reopen(Compaction::Leveled, 4));
        world.settle();
        world.run(Step::Reopen(policy, 4));
        let (mut draw, mut most) = (7u64, 0);
        for _ in 0..600 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            world.run(Step::Flush(vec![((draw >> 33) as u8 % KEYS, true)]));
            // As in a process that writes one key: a sixteenth of all there is.
            if world.begin() {
                world.end_after(0, usize::from(KEYS) / 16, true);
            }
            world.check();
            most = most.max(world.version.runs(0).len());
        }
        assert!(most <= 2 * 16 + 8, "{policy:?}: {most} tables on level 0");
        world.settle();
    }
}

#[test]
fn two_merges_run_at_once_where_they_do_not_meet() {
    // Catches a registry under which only ever one merge runs, so that a long one holds up level 0.
    let mut world = overwritten(Compaction::Tiered, 3, 4);
    while world.version.runs(1).len() < 3 {
        world.flush([(1, true), (119, true), (60, true)]);
        if !context_is_due(&world) {
            continue;
        }
        world.begin();
        world.end_all();
    }
    while world.version.runs(0).len() <= world.options.l0_trigger {
        world.flush([(1, true), (119, true)]);
    }
    assert!(world.begin() && world.begin(), "{:?}", world.version);
    // The one that began last ends first.
    world.end(1);
    world.check();
    world.end(0);
    world.check();
}

fn context_is_due(world: &World) -> bool {
    world.context().level_0_is_due()
}
