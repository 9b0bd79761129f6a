//! A view: the memtables and tables that make up the database at one moment.
//!
//! Views never change; a rotation, a flush or a compaction publishes the next one. A reader pins one and needs no lock. Only the holder of the
//! write lock publishes, so no change is lost between reading the old view and storing the new one.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::scan_count::ScanCount;
use crate::compaction::{Input, Plan};
use crate::epoch::{Loaded, Pin, Slot, TURNS, collect, pin, reclaim};
use crate::iter::{Hidden, RangesInMemory, impl_entry_iter};
use crate::lock::lock;
use crate::manifest::{CompactionStats, Run, Version};
use crate::memtables::{LoggedMemtable, MemtableIter};
use crate::table::{OpenRun, RunIter, RunTable, Table, TableMeta};
use crate::types::SeqNo;
use crate::wal;

/// A frozen memtable, which waits for its flush.
#[derive(Clone)]
pub(crate) struct FlushableMemtable {
    pub(crate) memtable: LoggedMemtable,
    /// The last sequence number before the first one of the next memtable.
    pub(crate) last_seqno: SeqNo,
}

/// One state of the database. All parts are shared, so that a copy is cheap.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) active: LoggedMemtable,
    /// All entries of the active memtable have greater sequence numbers than this: a read at this number or a smaller one need not search that
    /// memtable. No entry of a frozen memtable or a table has a greater number.
    pub(crate) before_active: SeqNo,
    /// The number at which this view is read, unless a smaller one is visible: that of its moment, in a reader of another process's database, and the
    /// greatest number in all others.
    pub(crate) upto: SeqNo,
    pub(crate) log: Arc<wal::Segment>,
    /// Newest first. Each memtable holds older writes than the one before it, and newer writes than all tables.
    pub(crate) frozen: Vec<FlushableMemtable>,
    pub(crate) version: Arc<Version>,
    /// The opened runs of the version, in its order: newest first.
    pub(crate) runs: Arc<[OpenRun]>,
    pub(crate) scans: Arc<ScanCount>,
    /// The bytes that compactions read and wrote up to this view.
    pub(crate) stats: CompactionStats,
}

impl View {
    /// The view that results when the active memtable is frozen and `fresh` takes its place.
    pub(crate) fn rotated(&self, fresh: LoggedMemtable, log: Arc<wal::Segment>, last_seqno: SeqNo) -> View {
        let mut next = View { log, before_active: last_seqno, ..self.clone() };
        let memtable = std::mem::replace(&mut next.active, fresh);
        next.frozen.insert(0, FlushableMemtable { memtable, last_seqno });
        next
    }

    /// The runs of `version`, whose tables are those of this view and `outputs`. Runs that are unchanged from this view are shared with it. O(runs² +
    /// tables of the changed runs).
    pub(crate) fn runs_of(&self, version: &Version, outputs: &[Arc<Table>]) -> Arc<[OpenRun]> {
        let old = || self.version.all_runs().map(|(_, run)| run).zip(self.runs.iter());
        let new = || version.all_runs().map(|(_, run)| run);
        let gone = old().filter(|(before, _)| !new().any(|run| run.is_same(before)));
        let known = gone.flat_map(|(_, open)| open.tables()).map(RunTable::table).chain(outputs);
        let known: HashMap<u64, &Arc<Table>> = known.map(|table| (table.number(), table)).collect();
        let shared = |run: &Run| old().find(|(before, _)| before.is_same(run)).map(|(_, open)| open.clone());
        new().map(|run| shared(run).unwrap_or_else(|| open_run(run, &known))).collect()
    }

    /// The inputs of a plan that was made for this view or an earlier one and can begin now. O(log tables) plus the tables that the plan spans.
    pub(crate) fn inputs_of(&self, plan: &Plan) -> Vec<OpenRun> {
        let of_run = |input: &Input| {
            let mut runs = self.version.all_runs().zip(self.runs.iter());
            let run = runs.find(|((level, run), _)| (*level, run.id()) == (input.level, input.run)).map(|(_, run)| run);
            let within = run.map_or(&[][..], |run| run.within(&plan.key_range.smallest, &plan.key_range.largest));
            OpenRun::new(within.iter().filter(|table| input.tables.contains(&table.number())).cloned())
        };
        plan.inputs.iter().map(of_run).collect()
    }

    /// All tables, newest run first.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &RunTable> {
        self.runs.iter().flat_map(OpenRun::tables)
    }

    /// The oldest frozen memtable, which is flushed next, and the log from which replay starts after its flush.
    pub(crate) fn oldest_frozen(&self) -> Option<(&FlushableMemtable, u64)> {
        let (oldest, newer) = self.frozen.split_last()?;
        let next = newer.last().map_or(&self.active, |frozen| &frozen.memtable);
        Some((oldest, next.log))
    }

    /// Iterators over all sources that may have entries between `lower` and `upper`, newest source first, and the range tombstones that hide entries
    /// at `seqno`. The iterators read nothing before they are positioned. Entries that become visible after this call may be missing.
    pub(crate) fn sources(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, seqno: SeqNo) -> (Vec<Source>, Hidden) {
        let mut sources = Vec::with_capacity(1 + self.frozen.len() + self.runs.len());
        let mut hidden = Hidden::new(seqno);
        for memtable in self.memtables() {
            let sets = memtable.range_sets().into_iter().map(RangesInMemory::new);
            sets.for_each(|set| hidden.add(sources.len(), Box::new(set)));
            sources.push(Source::Memtable(memtable.iter()));
        }
        for run in self.runs.iter().filter(|run| run.overlaps(lower, upper)) {
            if let Some(ranges) = run.ranges_within(lower, upper) {
                hidden.add(sources.len(), Box::new(ranges));
            }
            sources.push(Source::Run(run.iter()));
        }
        (sources, hidden)
    }

    /// The memtables that may have versions newer than `since`, newest first.
    pub(crate) fn memtables_since(&self, since: SeqNo) -> impl Iterator<Item = &LoggedMemtable> {
        let frozen = self.frozen.iter().take_while(move |frozen| frozen.last_seqno > since);
        std::iter::once(&self.active).chain(frozen.map(|frozen| &frozen.memtable))
    }

    /// The runs whose tables may have versions newer than `since`: none, unless a flush or an ingest happened after it.
    pub(crate) fn runs_since(&self, since: SeqNo) -> impl Iterator<Item = &OpenRun> {
        self.runs.iter().filter(move |_| since < self.before_active)
    }

    /// Whether the views have the same writes, if no later write is read: no rotation and no ingest came between them.
    pub(crate) fn has_writes_of(&self, other: &View) -> bool {
        self.active.is(&other.active) && self.before_active == other.before_active
    }

    /// Whether some entry of a memtable expires.
    pub(crate) fn memtables_with_expiring(&self) -> bool {
        self.memtables().any(LoggedMemtable::has_expiring)
    }

    /// The memtables with entries, newest first.
    fn memtables(&self) -> impl Iterator<Item = &LoggedMemtable> {
        let frozen = self.frozen.iter().map(|frozen| &frozen.memtable);
        std::iter::once(&self.active).chain(frozen).filter(|memtable| !memtable.table.is_empty())
    }
}

/// How often the end of a compaction or database looks whether pinned readers, of any database, are done.
const MOST_LOOKS: u32 = 1000;
/// The number of looks with only a yield between them; most readers unpin within a microsecond.
const YIELDS: u32 = 100;
/// The time between later looks: a reader may have been interrupted, on a busy machine for many milliseconds.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The current view, and those that readers may still use.
pub(crate) struct CurrentView {
    slot: Slot<View>,
    retired: Arc<Mutex<RetiredViews>>,
    /// Whether the last wait for pinned readers was in vain: those of the parent of a fork never unpin.
    is_stuck: AtomicBool,
}

#[derive(Default)]
struct RetiredViews {
    /// The number of views that are neither current nor freed.
    count: usize,
    /// Those that no pinned reader uses.
    free: Vec<Arc<View>>,
}

impl CurrentView {
    pub(crate) fn new(view: Arc<View>) -> Self {
        Self { slot: Slot::new(Some(view)), retired: Arc::default(), is_stuck: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn load<'a>(&'a self, pin: &'a Pin) -> Loaded<'a, View> {
        self.slot.load(pin).expect("there is always a view")
    }

    /// The view with a count of its own, for a reader that may wait.
    pub(crate) fn get(&self) -> Arc<View> {
        self.load(&pin()).to_arc()
    }

    /// Replaces the view; only the holder of the write lock may call this.
    pub(super) fn set(&self, view: Arc<View>) {
        let old = self.slot.swap(Some(view));
        lock(&self.retired).count += 1;
        let retired = self.retired.clone();
        reclaim(old, move |views| lock(&retired).free.extend(views));
    }

    /// The number of views that are neither current nor freed.
    pub(crate) fn retired(&self) -> usize {
        lock(&self.retired).count
    }

    /// Drops the views that no pinned reader uses: closes their files and frees their memtables. Returns the number of those that are in use.
    pub(crate) fn free_retired(&self) -> usize {
        (0..TURNS).for_each(|_| collect());
        let free = std::mem::take(&mut lock(&self.retired).free);
        let freed = free.len();
        drop(free);
        // Only now, because another thread that sees no retired view relies on the space of its files.
        let mut retired = lock(&self.retired);
        retired.count -= freed;
        retired.count
    }

    /// The same until none is in use, for a second or so at most; for a millisecond if the last wait was in vain. Returns whether none is.
    pub(crate) fn free_all_retired(&self) -> bool {
        // Relaxed: only the duration of a wait depends on it.
        let looks = if self.is_stuck.load(Ordering::Relaxed) { YIELDS } else { MOST_LOOKS };
        let is_free = (0..looks).any(|look| {
            match look {
                0 => {}
                1..=YIELDS => thread::yield_now(),
                _ => thread::sleep(BETWEEN_LOOKS),
            }
            self.free_retired() == 0
        });
        self.is_stuck.store(!is_free, Ordering::Relaxed);
        is_free
    }
}

impl Drop for CurrentView {
    fn drop(&mut self) {
        // No reader of this core is left, but pins of others can delay its views for a moment: for ever in a fork of a process with pinned threads.
        if !self.free_all_retired() {
            tracing::warn!(
                "a thread is pinned for long: a view of a closed database is not freed, and its obsolete files are left to the next open"
            );
            // Otherwise any thread would close its files, in the middle of whatever it does.
            std::mem::forget(self.retired.clone());
        }
    }
}

/// The entries of one source of a view.
#[expect(clippy::large_enum_variant, reason = "a scan has few sources, and a box would cost each an allocation")]
pub(crate) enum Source {
    Memtable(MemtableIter),
    Run(RunIter),
}

impl_entry_iter!(Source { Memtable, Run });

/// The runs of `version`; `known` contains all of its tables.
pub(crate) fn open_runs<'a>(version: &Version, known: impl Iterator<Item = &'a Arc<Table>>) -> Arc<[OpenRun]> {
    let known: HashMap<u64, &Arc<Table>> = known.map(|table| (table.number(), table)).collect();
    version.all_runs().map(|(_, run)| open_run(run, &known)).collect()
}

fn open_run(run: &Run, known: &HashMap<u64, &Arc<Table>>) -> OpenRun {
    let open = |meta: &TableMeta| {
        // An edit adds only its outputs; otherwise the version would refer to a table that is not open.
        let table = known.get(&meta.number).expect("a version names tables that were made or found");
        RunTable::new(table, meta)
    };
    OpenRun::new(run.tables().iter().map(open))
}
