//! A world of tables without files: flushes, loads, compactions in pieces, a caller's compaction of a range, and checks of all reads at each step.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::*;
use crate::compaction::in_progress::InProgress;
use crate::compaction::piece::{Consumed, is_divisible};
use crate::compaction::plan::Action;
use crate::compaction::retention::{Retention, Shadowing, Tombstones};
use crate::compaction::{KeyRange, ManualCompaction, pick_for_ingest, pick_manual};
use crate::manifest::{KeyspaceSet, RunId, Version, VersionEdit};
use crate::options::Options;
use crate::table::TableMeta;
use crate::types::{Kind, SeqNo, Slice};

pub(super) const POLICIES: [Compaction; Compaction::ALL.len()] = *Compaction::ALL.first_chunk().unwrap();
pub(super) const KEYS: u8 = 120;
pub(super) const ENTRY_BYTES: u64 = 100;
/// The bytes of an entry that fills a table by itself before compression.
const LARGE_BYTES: u64 = 10_000;

pub(super) type Entry = (Vec<u8>, SeqNo, Kind);

pub(super) fn key(n: u8) -> Vec<u8> {
    format!("key{:03}", n % KEYS).into_bytes()
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A flush of a memtable with these keys, each set or removed.
    Flush(Vec<(u8, bool)>),
    /// A flush in key order, above or within the existing keys.
    FlushRange(u8, u8),
    /// A flush that removes a range of keys.
    Remove(u8, u8),
    TakeSnapshot,
    DropSnapshot,
    /// A compaction begins, if one is due.
    Begin,
    /// A compaction that takes tables from level 0 begins.
    BeginLevel0,
    /// A compaction could not read one of the tables.
    Damage(u8),
    /// All tables can be read again.
    Repair,
    /// A running compaction ends: after this many entries and a full table if it has that many, or with its present output if the flag cancels it.
    End(u8, usize, bool),
    /// Tables with this many keys are ingested.
    Ingest(u8, u8),
    /// A caller compacts a range of this many keys: the next compaction begins unless a running one conflicts with it. With a number of entries the
    /// compaction ends at once after that number, otherwise like the others.
    Manual(u8, u8, Option<usize>),
    /// Scans become many, or few.
    Scan(bool),
    /// Space becomes short, or is sufficient again.
    Tight(bool),
    /// All running compactions end, and another policy continues.
    Reopen(Compaction, u64),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => vec((0..KEYS, prop::bool::weighted(0.7)), 1..14).prop_map(Step::Flush),
        2 => (0..KEYS, 1..14u8).prop_map(|(from, keys)| Step::FlushRange(from, keys)),
        1 => (0..KEYS, 1..60u8).prop_map(|(from, keys)| Step::Remove(from, keys)),
        1 => Just(Step::TakeSnapshot),
        1 => Just(Step::DropSnapshot),
        8 => Just(Step::Begin),
        3 => Just(Step::BeginLevel0),
        1 => any::<u8>().prop_map(Step::Damage),
        1 => Just(Step::Repair),
        5 => (any::<u8>(), 1..40usize, prop::bool::weighted(0.3)).prop_map(|(at, piece, stop)| Step::End(at, piece, stop)),
        2 => (0..KEYS, 1..30u8).prop_map(|(from, keys)| Step::Ingest(from, keys)),
        4 => (0..KEYS, 1..KEYS, prop::option::of(1..40usize)).prop_map(|(from, keys, end)| Step::Manual(from, keys, end)),
        1 => any::<bool>().prop_map(Step::Scan),
        1 => any::<bool>().prop_map(Step::Tight),
        1 => (prop::sample::select(&POLICIES[..]), 2..5u64).prop_map(|(policy, ratio)| Step::Reopen(policy, ratio)),
    ]
}

pub(super) struct Job {
    pub(super) id: u64,
    pub(super) plan: Plan,
    pub(super) snapshots: Vec<SeqNo>,
    is_manual: bool,
}

#[derive(Default)]
pub(super) struct World {
    pub(super) options: Options,
    pub(super) version: Version,
    pub(super) contents: HashMap<u64, Vec<Entry>>,
    pub(super) in_progress: InProgress,
    pub(super) jobs: Vec<Job>,
    pub(super) history: Vec<Entry>,
    pub(super) snapshots: Vec<SeqNo>,
    pub(super) made: u64,
    pub(super) written: u64,
    pub(super) moved: u64,
    /// The maximum number of entries of a piece.
    pub(super) piece: usize,
    /// Keys whose values each fill a table but compress to almost nothing.
    pub(super) compressible: Vec<Vec<u8>>,
    /// Whether scans are many.
    pub(super) is_scanned_often: bool,
    pub(super) is_tight: bool,
    /// The keyspaces of those keys that have a prefix.
    keyspaces: KeyspaceSet,
    /// The range that a caller compacts.
    range: Option<ManualCompaction>,
    /// The compact pointer from which the caller continues.
    rest: Option<u64>,
}

impl World {
    pub(super) fn new(policy: Compaction, ratio: u64) -> World {
        let options = Options { memtable_bytes: 500, ..Options::default() };
        let options = options.level1_bytes(800).table_file_bytes(1000).size_ratio(ratio);
        // Tiered compaction uses the default, which is the ratio.
        let options = if policy == Compaction::Tiered { options } else { options.l0_trigger(2) };
        World { options: options.compaction(policy), piece: usize::MAX, ..World::default() }
    }

    pub(super) fn seqno(&self) -> SeqNo {
        self.history.len() as u64
    }

    /// Bytes of `entries`, after compression if `compressed` is set; tables are cut by their bytes before compression.
    fn bytes(&self, entries: &[Entry], compressed: bool) -> u64 {
        let large = if compressed { 1 } else { LARGE_BYTES };
        let is_large = |entry: &Entry| entry.2 == Kind::Value && self.compressible.contains(&entry.0);
        entries.iter().map(|entry| if is_large(entry) { large } else { ENTRY_BYTES }).sum()
    }

    pub(super) fn table(&mut self, entries: Vec<Entry>) -> TableMeta {
        self.made += 1;
        let seqnos = || entries.iter().map(|entry| entry.1);
        let meta = TableMeta {
            number: self.made,
            size: self.bytes(&entries, true),
            entries: entries.len() as u64,
            tombstones: entries.iter().filter(|entry| entry.2 == Kind::Tombstone).count() as u64,
            smallest: entries[0].0.clone().into(),
            largest: entries[entries.len() - 1].0.clone().into(),
            min_seqno: seqnos().min().unwrap(),
            max_seqno: seqnos().max().unwrap(),
            ..TableMeta::default()
        };
        self.written += meta.size;
        self.contents.insert(self.made, entries);
        meta
    }

    pub(super) fn flush(&mut self, writes: impl IntoIterator<Item = (u8, bool)>) {
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

    pub(super) fn apply(&mut self, edit: VersionEdit) {
        self.version = self.version.apply(&edit).expect("a plan that keeps the invariants of versions");
    }

    pub(super) fn begin(&mut self) -> bool {
        self.begin_of(Work::Any)
    }

    pub(super) fn begin_of(&mut self, work: Work) -> bool {
        let Some(plan) = pick(&self.context(), work) else { return false };
        assert!(work == Work::Any || plan.relieves_level_0());
        self.start(plan, false);
        true
    }

    pub(super) fn start(&mut self, plan: Plan, is_manual: bool) {
        let id = self.in_progress.begin(&plan);
        self.jobs.push(Job { id, plan, snapshots: self.snapshots.clone(), is_manual });
    }

    fn ingest(&mut self, keys: impl IntoIterator<Item = u8>) {
        let first = self.history.len();
        self.history.extend(keys.into_iter().zip(first as u64 + 1..).map(|(n, seqno)| (key(n), seqno, Kind::Value)));
        let chunks: Vec<Vec<Entry>> = self.history[first..].chunks(10).map(<[Entry]>::to_vec).collect();
        let metas: Vec<TableMeta> = chunks.into_iter().map(|chunk| self.table(chunk)).collect();
        let Some(key_range) = KeyRange::around(&metas) else { return };
        let place = pick_for_ingest(&self.version, &self.in_progress, &key_range);
        let added = metas.into_iter().map(|meta| (place, meta)).collect();
        self.apply(VersionEdit { added, ..VersionEdit::default() });
    }

    fn compact_keys(&mut self, from: u8, keys: u8, end_after: Option<usize>) {
        if self.jobs.iter().any(|job| job.is_manual) {
            return;
        }
        let to = from.saturating_add(keys).min(KEYS - 1);
        let bounds = (Bound::Included(key(from)), Bound::Included(key(to)));
        let (upto, made_from) = (self.seqno(), self.made + 1);
        let new =
            || ManualCompaction { bounds: crate::types::owned(&bounds), upto, made_from, minimal: HashSet::new() };
        let range = self.range.get_or_insert_with(new).clone();
        let Some(plan) = pick_manual(&self.context(), &range, self.rest) else { return self.end_range() };
        if self.in_progress.conflicts_with(&plan) {
            return;
        }
        self.start(plan, true);
        if let Some(entries) = end_after {
            self.end_after(self.jobs.len() - 1, entries, false);
        }
    }

    /// The caller's compaction continues from this pointer instead of the last one.
    fn take_rest(&mut self, pointer: Option<u64>) {
        if let Some(last) = std::mem::replace(&mut self.rest, pointer) {
            self.in_progress.release(last);
        }
        if let Some(pointer) = pointer {
            self.in_progress.claim(pointer);
        }
    }

    /// The caller's compaction is done or given up.
    pub(super) fn end_range(&mut self) {
        self.range = None;
        self.take_rest(None);
    }

    pub(super) fn context(&self) -> Context<'_> {
        let Self { version, options, in_progress, is_scanned_often, is_tight, keyspaces, .. } = self;
        Context {
            version,
            options,
            in_progress,
            is_scanned_often: *is_scanned_often,
            is_tight: *is_tight,
            keyspaces,
            instant: 0,
        }
    }

    pub(super) fn end(&mut self, at: usize) {
        self.end_after(at, self.piece, false);
    }

    pub(super) fn end_after(&mut self, at: usize, piece: usize, stop: bool) {
        let Job { id, mut plan, snapshots, is_manual } = self.jobs.remove(at);
        if self.is_tight {
            plan.leave_newest(&self.version);
        }
        let metas: HashMap<u64, TableMeta> = self.version.tables().map(|meta| (meta.number, meta.clone())).collect();
        let (outputs, next) = match plan.action {
            Action::Move => {
                self.moved += plan.tables().count() as u64;
                (plan.tables().map(|number| metas[&number].clone()).collect(), None)
            }
            Action::Remove => (Vec::new(), None),
            Action::Rewrite => self.rewrite(&plan, &snapshots, is_divisible(plan.output).then_some((piece, stop))),
        };
        let consumed = Consumed::of(&plan, |number| metas[&number].clone(), next.as_ref());
        self.made += 1;
        let pointers: Vec<_> = consumed.pointer(&plan, self.made, next).into_iter().collect();
        if is_manual {
            self.take_rest(pointers.first().map(|pointer| pointer.id));
        }
        let added = outputs.into_iter().map(|meta| (plan.output, meta)).chain(consumed.narrowed).collect();
        let pointers_done = plan.pointers_done();
        self.apply(VersionEdit { removed: consumed.removed, added, pointers, pointers_done, ..VersionEdit::default() });
        self.in_progress.end(id);
    }

    /// The entries that a table of the version holds.
    pub(super) fn entries_of(&self, meta: &TableMeta) -> impl Iterator<Item = &Entry> {
        self.contents[&meta.number].iter().filter(|entry| entry.0[..] >= *meta.smallest)
    }

    /// The tables that `plan` writes before it ends, and the first remaining key.
    pub(super) fn rewrite(
        &mut self,
        plan: &Plan,
        snapshots: &[SeqNo],
        piece: Option<(usize, bool)>,
    ) -> (Vec<TableMeta>, Option<Slice>) {
        let taken: Vec<u64> = plan.tables().collect();
        let inputs = self.version.tables().filter(|meta| taken.contains(&meta.number));
        let mut entries: Vec<Entry> = inputs.flat_map(|meta| self.entries_of(meta)).cloned().collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let mut shadowing =
            Shadowing::new(Retention { snapshots, instants: &[], tombstones: Tombstones::KeepOf(&plan.below) });
        // On level 0 one table is a run.
        let full = if plan.output == RunId::LEVEL_0 { u64::MAX } else { self.options.table_file_bytes };
        let (mut tables, mut kept, mut next): (Vec<Vec<Entry>>, usize, _) = (Vec::new(), 0, None);
        for (at, entry) in entries.into_iter().enumerate() {
            let is_full = tables.last().is_some_and(|table| self.bytes(table, false) >= full);
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
                Some(table) if !is_full || table.last().unwrap().0 == entry.0 => table.push(entry),
                _ => tables.push(vec![entry]),
            }
        }
        (tables.into_iter().map(|table| self.table(table)).collect(), next)
    }

    pub(super) fn damage(&mut self, number: u64) {
        let error = crate::error::Error::corruption(std::path::Path::new("1.sst"), 0, "a test");
        self.in_progress.damage.note(number, "1.sst".into(), error, std::time::Instant::now());
    }

    pub(super) fn end_all(&mut self) {
        while !self.jobs.is_empty() {
            self.end(0);
        }
    }

    /// Runs compactions until none is due.
    pub(super) fn settle(&mut self) {
        self.in_progress.damage.forget(1..=self.made);
        self.end_all();
        self.end_range();
        // A piece of a compaction is a compaction by itself.
        let pieces = 1 + 2 * self.seqno() as usize / self.piece.min(self.seqno() as usize + 1);
        let bound = (20 + 10 * self.version.tables().count()) * pieces;
        for _ in 0..bound {
            if !self.begin() {
                return self.check_shape();
            }
            self.end_all();
        }
        panic!("still something due after {bound} compactions: {:?}", self.version);
    }

    /// Checks the shape that each policy promises when nothing is due.
    pub(super) fn check_shape(&self) {
        let (version, ratio) = (&self.version, self.options.size_ratio as usize);
        let held = level_0::inputs(&self.context(), BOTTOM).len() > 1;
        let most = if held { level_0::patience(&self.options) } else { self.options.level_0_tables() };
        assert!(version.runs(0).len() <= most, "{version:?}");
        assert!(!version.tables().any(|table| table.narrowed), "a compaction that nobody goes on with: {version:?}");
        let most = |level: usize| match self.options.compaction.unwrap() {
            Compaction::Leveled | Compaction::Partial => 1,
            Compaction::LazyLeveled if level == BOTTOM => 1,
            Compaction::LazyLeveled | Compaction::Tiered => ratio - 1,
        };
        assert!((1..=BOTTOM).all(|level| version.runs(level).len() <= most(level)), "{version:?}");
        if let Some(Compaction::Leveled | Compaction::Partial) = self.options.compaction {
            let context = Context { version, ..self.context() };
            let targets = targets::Targets::of(&context);
            // An excess of up to a thousandth of the target is not worth a compaction.
            let fits = |level: usize| version.level_bytes(level) / 1001 <= targets.bytes(level) / 1000;
            assert!((1..=BOTTOM).all(fits), "{version:?}");
        }
    }

    pub(super) fn run(&mut self, step: Step) {
        match step {
            Step::Flush(writes) => self.flush(writes),
            Step::FlushRange(from, keys) => self.flush((from..from.saturating_add(keys)).map(|n| (n, true))),
            Step::Remove(from, keys) => self.flush((from..from.saturating_add(keys).min(KEYS)).map(|n| (n, false))),
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
            Step::Ingest(from, keys) => self.ingest(from..from.saturating_add(keys).min(KEYS)),
            Step::Manual(from, keys, end_after) => self.compact_keys(from, keys, end_after),
            Step::Scan(is_often) => self.is_scanned_often = is_often,
            Step::Tight(is_tight) => self.is_tight = is_tight,
            Step::Reopen(policy, ratio) => {
                self.end_all();
                self.end_range();
                self.snapshots.clear();
                self.options = self.options.clone().compaction(policy).size_ratio(ratio);
            }
        }
        self.snapshots.sort_unstable();
        self.snapshots.dedup();
        self.check();
    }

    /// Checks that every reader finds the same as in an ordinary map, and that the versions of each key are found newest first (V4).
    pub(super) fn check(&self) {
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
