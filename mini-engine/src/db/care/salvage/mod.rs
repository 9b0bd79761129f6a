//! Reads all readable entries of a damaged database, and writes them to a new one. LevelDB and RocksDB have `RepairDB` for this purpose.
//!
//! An open either succeeds as a whole or fails, and a read that needs a damaged block returns an error. Salvage continues: it skips damaged blocks
//! and indexes (`table.rs`) and damaged frames (`logs.rs`), and uses the readable part of a manifest or no manifest at all (`manifest.rs`). All
//! versions that are found go through one merge (`merge.rs`), which keeps the one with the largest sequence number.
//!
//! Files that were set aside:
//! * A quarantined table is read like any other, also after it was dropped, as long as its file exists. This cannot bring back an older value or a
//!   removed key. Sequence numbers decide which value is newest. Every tombstone, of a key or of a range, that may hide a version in such a table
//!   still exists: as long as a version refers to the table, quarantined or dropped, compactions keep the tombstones of its key range
//!   (`Version::set_aside`). A version stops referring to a dropped table only when its file is removed.
//! * Other tables that were set aside are not read. Some of those that were set aside with a torn manifest may be obsolete, and their tombstones
//!   dropped. The entries of these tables are in other tables or in logs.
//! * Logs and ends of logs that were set aside are not read: the sequence numbers of their batches have been assigned again.
//!
//! Salvage takes the lock like a reader, and changes nothing in the database. It creates the new database like a checkpoint, under another name
//! (`new_directory.rs`).

mod keyspaces;
mod logs;
mod lost;
mod manifest;
mod merge;
mod report;
mod salvaged_keyspaces;
mod table;
mod write;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use self::keyspaces::FoundKeyspaces;
use self::logs::read_logs;
pub use self::lost::LostKeys;
use self::manifest::SalvagedManifest;
use self::merge::{SalvageSource, Salvaged};
pub use self::report::{LeftOut, LostWrites, SalvageReport};
pub(super) use self::table::{Lost, SalvageIter};
use crate::compaction::overlaps_bounds;
use crate::db::core::{DirectoryLock, absolute, check_is_no_leftover, lock_for_reading};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::lock::lock;
use crate::manifest::{ASIDE, FileKind};
use crate::options::Options;
use crate::table::{TableMeta, file_name};
use crate::types::{
    KeyBounds, KeyPrefix, OwnedBounds, RangeTombstones, SeqNo, Slice, millis, owned, prefix_bounds, shown_slice,
    system_time,
};
use crate::wal;

/// A damaged database, opened for salvage. Made by [`Builder::salvage`](crate::Builder::salvage).
///
/// ```
/// # fn main() -> mini_engine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (path, new) = (dir.path().join("db"), dir.path().join("new"));
/// use mini_engine::Db;
///
/// let db = Db::open(&path)?;
/// db.insert("a", "1")?;
/// db.close()?;
/// std::fs::remove_file(path.join("CURRENT")).unwrap();
///
/// let report = Db::builder(&path).salvage()?.write_to(&new)?;
/// assert!(report.is_complete(), "{report}");
/// assert_eq!(Db::open(&new)?.get("a")?.as_deref(), Some(&b"1"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Salvage {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    options: Options,
    manifest: SalvagedManifest,
    files: Vec<FileKind>,
    /// Files that were set aside, with their original kinds.
    aside: Vec<(PathBuf, FileKind)>,
    leaves_older_out: bool,
    /// The keyspace that is read.
    prefix: KeyPrefix,
    _lock: DirectoryLock,
}

impl Salvage {
    pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path, options: Options) -> Result<Salvage> {
        options.validate()?;
        let dir = absolute(dir)?;
        let (lock, fs) = lock_for_reading(&fs, &dir)?;
        let names = fs.read_dir(&dir).map_err(Error::io("list", &dir))?;
        let mut files: Vec<FileKind> = names.iter().map(|name| FileKind::of(name)).collect();
        files.sort_unstable_by_key(|kind| kind.number());
        check_is_no_leftover(&dir, &files)?;
        if !files.iter().any(|kind| matches!(kind, FileKind::Manifest(_) | FileKind::Log(_) | FileKind::Table(_))) {
            return Err(Error::not_a_database(&dir, "expected tables, logs or a manifest, found none"));
        }
        let manifest = manifest::read_manifests(&*fs, &dir, &files)?;
        let is_aside = |name: &&OsString| matches!(FileKind::of(name), FileKind::Aside(_));
        let mut aside: Vec<(PathBuf, FileKind)> =
            names.iter().filter(is_aside).map(|name| (dir.join(name), FileKind::before_aside(name))).collect();
        aside.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let prefix = KeyPrefix::DEFAULT;
        Ok(Salvage { fs, dir, options, manifest, files, aside, leaves_older_out: false, prefix, _lock: lock })
    }

    /// Leaves out keys of which a lost version may be newer than the remaining one. By default such keys are kept: the lost part of a table may be
    /// small, and the keys in its range many.
    pub fn leave_older_out(mut self, leave: bool) -> Salvage {
        self.leaves_older_out = leave;
        self
    }

    /// The names of the keyspaces, as far as they are known.
    pub fn keyspaces(&self) -> Vec<String> {
        let mut names: Vec<String> = self.manifest.keyspaces.named().map(|meta| meta.name.to_string()).collect();
        names.sort_unstable();
        names
    }

    /// Selects keyspace `name` instead of the default, for [`Salvage::range`] and [`Salvage::prefix`]. [`Salvage::write_to`] writes all keyspaces.
    ///
    /// # Errors
    /// [`Error::NoKeyspace`] if no known keyspace has that name.
    pub fn keyspace(mut self, name: &str) -> Result<Salvage> {
        let found = self.manifest.keyspaces.named().find(|meta| *meta.name == *name);
        self.prefix = KeyPrefix::of(found.ok_or_else(|| Error::NoKeyspace { name: name.to_owned() })?.id);
        Ok(self)
    }

    /// Reads all entries whose keys lie in `bounds`, in key order.
    ///
    /// # Errors
    /// [`Error::UnsupportedVersion`] and [`Error::Unsupported`] of files of a newer version; [`Error::Full`] if the logs do not fit
    /// into `replay_memory_bytes`; [`Error::Io`] for lack of file handles. Damage is no error.
    pub fn range(self, bounds: impl KeyBounds) -> Result<SalvagedEntries> {
        self.entries(&bounds)
    }

    /// Like [`Salvage::range`], for the keys that start with `prefix`.
    ///
    /// # Errors
    /// The same as for [`Salvage::range`].
    pub fn prefix(self, prefix: impl AsRef<[u8]>) -> Result<SalvagedEntries> {
        self.entries(&prefix_bounds(prefix.as_ref()))
    }

    fn entries(self, bounds: &impl KeyBounds) -> Result<SalvagedEntries> {
        Ok(SalvagedEntries { entries: self.read(self.prefix.bounds(bounds))?, source: self })
    }

    /// Writes all readable entries to a new database in `dir`, which must not exist. The new database is durable when this returns; after an error
    /// there is no database. Until then the directory has [another name](crate::incomplete_directory), like that of a checkpoint.
    ///
    /// # Errors
    /// The same as for [`Salvage::range`]; [`Error::InvalidArgument`] if `dir` exists already, or lies within the damaged database; [`Error::Io`].
    pub fn write_to(self, dir: impl AsRef<Path>) -> Result<SalvageReport> {
        let dir = absolute(dir.as_ref())?;
        if dir.starts_with(&self.dir) {
            let what = format!("expected a directory outside of {}, found {}", self.dir.display(), dir.display());
            return Err(Error::InvalidArgument(what));
        }
        let entries = self.read(owned(&..))?;
        let report = entries.report();
        let mut keyspaces = FoundKeyspaces::new(&self.manifest);
        write::write(&self.fs, &dir, self.options, &mut keyspaces, entries)?;
        let mut report = lock(&report).clone();
        report.add_keyspaces(&keyspaces);
        Ok(report)
    }

    /// The merge of all tables and logs.
    fn read(&self, bounds: OwnedBounds) -> Result<Salvaged> {
        let mut report = SalvageReport {
            directory: self.dir.clone(),
            manifest: self.manifest.whole.clone(),
            damage: self.manifest.damage.clone(),
            older_keys_left_out: self.leaves_older_out,
            ..SalvageReport::default()
        };
        let lost = Lost::default();
        let (mut sources, mut ranges) = (Vec::new(), Vec::new());
        for (number, (path, meta)) in self.tables(&mut report) {
            if meta.as_ref().is_some_and(|meta| !overlaps_bounds(meta, &bounds)) {
                continue;
            }
            match SalvageIter::open(self.fs.clone(), path.clone(), number, meta.clone(), lost.clone()) {
                Ok(table) => {
                    report.tables += 1;
                    ranges.push(table.range_tombstones());
                    sources.push(SalvageSource::Table(Box::new(table)));
                }
                Err(cause) if cause.is_damage() => lost.add(all_lost(path, meta, cause)),
                Err(error) => return Err(error),
            }
        }
        let logs = self.logs(&mut report);
        let oldest = self.manifest.whole.as_ref().map(|_| (self.manifest.log_number, self.manifest.last_seqno));
        let memory = self.options.replay_memory_bytes;
        let logged = read_logs(&*self.fs, &self.dir, &logs, oldest, memory, &mut report)?;
        let ranges = RangeTombstones::union(ranges.iter().chain(logged.range_sets().iter().map(|set| &**set)));
        sources.push(SalvageSource::Logs(logged.iter()));
        let instant = millis(self.options.time_source.now()).max(self.manifest.clock);
        Ok(Salvaged::new((sources, ranges), lost, (bounds, instant), report))
    }

    /// The tables to read, each with its metadata from the manifest.
    fn tables(&self, report: &mut SalvageReport) -> BTreeMap<u64, (PathBuf, Option<TableMeta>)> {
        let manifest = &self.manifest;
        let mut tables: BTreeMap<u64, (PathBuf, Option<TableMeta>)> = BTreeMap::new();
        for (&number, meta) in &manifest.tables {
            let name = file_name(number);
            let is_quarantined = manifest.quarantined.contains(&number);
            let is_aside = is_quarantined && !self.files.contains(&FileKind::Table(number));
            let path = self.dir.join(if is_aside { name + ASIDE } else { name });
            if is_aside && manifest.dropped.contains(&number) && !self.files.contains(&FileKind::Aside(number)) {
                // The table was dropped, and its file is removed.
                continue;
            }
            tables.insert(number, (path, Some(meta.clone())));
        }
        for (file, kind) in &self.aside {
            if matches!(kind, FileKind::Table(number) if !tables.contains_key(number)) {
                let why = "set aside beside a torn manifest: its writes are in other tables or in logs";
                report.leave_out(file.clone(), why, false);
            }
        }
        for kind in &self.files {
            let FileKind::Table(number) = *kind else { continue };
            let file = self.dir.join(file_name(number));
            if tables.contains_key(&number) {
                continue;
            }
            if manifest.whole.is_some() || manifest.obsolete.contains(&number) {
                let why = "no table of the database: it was compacted into others, or never completed";
                report.leave_out(file, why, false);
            } else {
                tables.insert(number, (file, None));
            }
        }
        tables
    }

    /// The numbers of the logs to read, ascending.
    fn logs(&self, report: &mut SalvageReport) -> Vec<u64> {
        let mut logs = Vec::new();
        for kind in &self.files {
            match *kind {
                FileKind::Log(number) if number >= self.manifest.log_number => logs.push(number),
                FileKind::Log(number) => {
                    let file = self.dir.join(wal::file_name(number));
                    report.leave_out(file, "its writes are in tables", false);
                }
                _ => {}
            }
        }
        for (file, kind) in &self.aside {
            let FileKind::Log(number) = *kind else { continue };
            if !wal::may_hold_batches(&*self.fs, file, number) {
                continue;
            }
            let why = "a log, or the end of one, that was set aside: its sequence numbers were given again since; `dump` shows its batches";
            report.leave_out(file.clone(), why, true);
        }
        let oldest = self.manifest.log_number;
        if self.manifest.whole.is_some() && !logs.contains(&oldest) {
            let log = self.dir.join(wal::file_name(oldest));
            let what = "expected the log that the manifest names, found no such file";
            report.damage.push(Error::corruption(&log, 0, what));
            report.lost_writes.push(LostWrites { log, bytes: 0..0, seqnos: None, may_be_torn: false });
        }
        logs
    }
}

/// The loss of a table that cannot be read at all.
fn all_lost(file: PathBuf, meta: Option<TableMeta>, cause: Error) -> LostKeys {
    match meta {
        Some(meta) => {
            let (from, to) = (Bound::Included(meta.smallest), Bound::Included(meta.largest));
            LostKeys { file, bytes: 0..meta.size, from, to, newest: meta.max_seqno, cause }
        }
        None => {
            let (from, to) = (Bound::Unbounded, Bound::Unbounded);
            LostKeys { file, bytes: 0..0, from, to, newest: SeqNo::MAX, cause }
        }
    }
}

/// The readable entries of a damaged database, in key order. Made by [`Salvage::range`].
pub struct SalvagedEntries {
    entries: Salvaged,
    /// Holds the lock.
    source: Salvage,
}

impl SalvagedEntries {
    /// The parts that were read so far, and those that could not be read.
    pub fn report(&self) -> SalvageReport {
        lock(&self.entries.report()).clone()
    }

    /// Like `next`, with the time at which the entry expires, if it does.
    pub fn next_with_expiry(&mut self) -> Option<Result<(Slice, Slice, Option<SystemTime>)>> {
        let entry = self.entries.next()?;
        Some(entry.map(|(key, kind, stored)| {
            let key = Slice::from(self.source.prefix.strip(&key));
            // The entry has not expired, or it would not be yielded.
            let (value, at) = shown_slice(kind, stored, || 0).unwrap_or_default();
            (key, value, at.map(system_time))
        }))
    }
}

impl Iterator for SalvagedEntries {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_with_expiry()?.map(|(key, value, _)| (key, value)))
    }
}
