//! [`MemFs`]: a file system in memory that tracks durability, for tests of power cuts.
//!
//! The state is a [`Disk`]. Its clone is the state after a killed process, and [`after_power_cut`](Disk::after_power_cut) is a possible state after
//! a power cut. The model is as harsh as POSIX allows: only a sync of a file keeps its bytes and its length, only a sync of a directory keeps its
//! entries, and all unsynced data is lost, kept or torn at random. The model has no blocks with old contents of another file, and no bit rot.
//!
//! A [`MemFs`] can record the changes of all threads, in the order in which they took effect. From the record every state of the disk can be
//! reproduced and cut: see `tests/crash`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use mini_engine::fs::{File, FileSystem, MappedBytes, Mapping};

use super::contents::{self, Disk, Kind, Operation};
use super::lock;

/// A part of a record.
#[derive(Clone, Debug)]
pub enum Step {
    /// The disk changed.
    Operation(Operation),
    /// [`MemFs::note`] was called.
    Note(u64),
}

/// The holders of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holders {
    Exclusive,
    /// The number of readers, at least one.
    Shared(usize),
}

#[derive(Default)]
struct Shared {
    disk: Disk,
    locks: BTreeMap<PathBuf, Holders>,
    record: Option<Vec<Step>>,
    /// The end of the names of the files whose total bytes are measured, and the maximum of that total.
    most_bytes: Option<(String, u64)>,
    syncs: u64,
    fail_sync: Option<u64>,
    ignores_syncs: bool,
    /// The size of the disk in bytes.
    size: Option<u64>,
}

impl Shared {
    fn run(&mut self, kind: Kind, path: &Path) -> Result<()> {
        if self.ignores_syncs && matches!(kind, Kind::Sync { .. } | Kind::SyncDir { .. }) {
            return Ok(());
        }
        self.disk.perform(&kind)?;
        if let Some((end, most)) = &mut self.most_bytes {
            *most = self.disk.bytes_of(end).max(*most);
        }
        if let Some(record) = &mut self.record {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            let thread = std::thread::current().name().unwrap_or_default().to_owned();
            record.push(Step::Operation(Operation { kind, name, thread }));
        }
        Ok(())
    }

    /// The number of those `len` bytes at `offset` of `file` that fit on the disk.
    fn with_space(&self, file: u64, offset: u64, len: u64) -> Result<u64> {
        let Some(size) = self.size else { return Ok(len) };
        let own = contents::blocks(self.disk.content(file)?.len() as u64);
        let free = size.saturating_sub(self.disk.used_bytes());
        match (own + free - free % contents::blocks(1)).saturating_sub(offset).min(len) {
            0 if len > 0 => Err(Error::new(ErrorKind::StorageFull, "No space left on device")),
            len => Ok(len),
        }
    }

    /// Whether a fault is armed for the present sync.
    fn sync_fails(&mut self) -> bool {
        let index = self.syncs;
        self.syncs += 1;
        self.fail_sync == Some(index)
    }
}

/// A file system in memory. Clones share their disk.
///
/// ```
/// # fn main() -> mini_engine::Result<()> {
/// use std::sync::Arc;
///
/// use proof::disk::MemFs;
/// use mini_engine::{Db, Durability, WriteBatch};
///
/// let fs = MemFs::default();
/// let db = Db::builder("/db").file_system(Arc::new(fs.clone())).open()?;
/// let mut batch = WriteBatch::new();
/// batch.insert("apple", "red")?;
/// db.write(batch, Durability::Synced)?;
/// db.insert("banana", "yellow")?;
///
/// // The seed decides whether the banana survives; the apple was synced.
/// let (left, _losses) = fs.disk().after_power_cut(7);
/// let db = Db::builder("/db").file_system(Arc::new(MemFs::on(left))).open()?;
/// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemFs {
    shared: Arc<Mutex<Shared>>,
}

impl MemFs {
    /// A file system on a copy of `disk`, without any locks held.
    pub fn on(disk: Disk) -> Self {
        Self { shared: Arc::new(Mutex::new(Shared { disk, ..Shared::default() })) }
    }

    /// The present disk: the state after a killed process.
    pub fn disk(&self) -> Disk {
        self.shared().disk.clone()
    }

    /// Repeats a recorded operation: see [`Disk::apply`].
    pub fn apply(&self, operation: &Operation) -> Result<()> {
        self.shared().disk.apply(operation)
    }

    /// Starts to record changes.
    pub fn record(&self) {
        self.shared().record.get_or_insert_default();
    }

    /// Starts to count the total bytes of files whose names end with `end`, after every change. Returns the present total.
    pub fn count_bytes_of(&self, end: &str) -> u64 {
        let mut shared = self.shared();
        let now = shared.disk.bytes_of(end);
        shared.most_bytes = Some((end.to_owned(), now));
        now
    }

    /// The maximum total since [`MemFs::count_bytes_of`] was called.
    pub fn most_bytes(&self) -> u64 {
        self.shared().most_bytes.as_ref().map_or(0, |(_, most)| *most)
    }

    /// Adds a note of the caller to the record, behind the changes so far.
    pub fn note(&self, word: u64) {
        if let Some(record) = &mut self.shared().record {
            record.push(Step::Note(word));
        }
    }

    /// Ends recording, and returns the record.
    pub fn take_record(&self) -> Vec<Step> {
        self.shared().record.take().unwrap_or_default()
    }

    /// The number of file syncs that were requested so far.
    pub fn syncs(&self) -> u64 {
        self.shared().syncs
    }

    /// Gives the disk a size in bytes: writes that need new blocks beyond it are short, and later ones fail with [`ErrorKind::StorageFull`].
    pub fn set_size(&self, bytes: u64) {
        self.shared().size = Some(bytes);
    }

    /// Makes the file sync with number `index`, counted from 0, fail: its bytes stay readable, and no later sync makes them durable, as on Linux.
    pub fn fail_sync(&self, index: u64) {
        self.shared().fail_sync = Some(index);
    }

    /// From now on, syncs succeed and make nothing durable, as on a disk that lies.
    pub fn ignore_syncs(&self) {
        self.shared().ignores_syncs = true;
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // Each change of the state is one step, so a panic of another holder leaves it consistent.
        lock(&self.shared)
    }

    fn run(&self, kind: Kind, path: &Path) -> Result<()> {
        self.shared().run(kind, path)
    }

    /// Takes a lock on `path` for `wanted`, if no other holder excludes it.
    fn hold(&self, shared: &mut Shared, path: PathBuf, wanted: Holders) -> Result<Box<dyn Send + Sync>> {
        let holders = match (shared.locks.get(&path), wanted) {
            (None, wanted) => wanted,
            (Some(Holders::Shared(others)), Holders::Shared(_)) => Holders::Shared(others + 1),
            (Some(_), _) => return Err(Error::new(ErrorKind::WouldBlock, "the lock is held")),
        };
        shared.locks.insert(path.clone(), holders);
        Ok(Box::new(HeldLock { fs: self.clone(), path }))
    }

    fn handle(&self, path: PathBuf, mode: Mode) -> Result<Arc<dyn File>> {
        let file = self.shared().disk.file(&path)?;
        Ok(Arc::new(MemFile { fs: self.clone(), path, file, mode }))
    }
}

impl fmt::Debug for MemFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemFs")
    }
}

/// `path` from the root, without `.` and `..`, which is safe because there are no symbolic links.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}

impl FileSystem for MemFs {
    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        let path = plain(path);
        self.run(Kind::Create { path: path.clone() }, &path)?;
        self.handle(path, Mode::Write)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.handle(plain(path), Mode::Read)
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.handle(plain(path), Mode::Write)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.run(Kind::Rename { from: plain(from), to: plain(to) }, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.run(Kind::Remove { path: plain(path) }, path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.run(Kind::Link { from: plain(from), to: plain(to) }, to)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.run(Kind::RemoveDir { path: plain(dir) }, dir)
    }

    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
        self.shared().disk.names(&plain(dir))
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        let (mut shared, dir) = (self.shared(), plain(dir));
        let mut missing: Vec<&Path> = dir.ancestors().take_while(|path| !shared.disk.is_dir(path)).collect();
        while let Some(path) = missing.pop() {
            shared.run(Kind::CreateDir { path: path.to_path_buf() }, path)?;
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.run(Kind::SyncDir { path: plain(dir) }, dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.shared().disk.exists(&plain(path)))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let (mut shared, path) = (self.shared(), plain(path));
        if !shared.disk.exists(&path) {
            shared.run(Kind::Create { path: path.clone() }, &path)?;
        }
        self.hold(&mut shared, path, Holders::Exclusive)
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let (mut shared, path) = (self.shared(), plain(path));
        shared.disk.file(&path)?;
        self.hold(&mut shared, path, Holders::Shared(1))
    }
}

/// A held lock; dropping it releases the lock.
struct HeldLock {
    fs: MemFs,
    path: PathBuf,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let mut shared = self.fs.shared();
        match shared.locks.get_mut(&self.path) {
            Some(Holders::Shared(holders)) if *holders > 1 => *holders -= 1,
            _ => drop(shared.locks.remove(&self.path)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
}

#[derive(Clone, Debug)]
struct MemFile {
    fs: MemFs,
    /// The path under which the file was opened.
    path: PathBuf,
    file: u64,
    mode: Mode,
}

impl MemFile {
    fn change(&self, kind: Kind) -> Result<()> {
        self.change_in(&mut self.fs.shared(), kind)
    }

    fn change_in(&self, shared: &mut Shared, kind: Kind) -> Result<()> {
        match self.mode {
            Mode::Write => shared.run(kind, &self.path),
            Mode::Read => Err(ErrorKind::PermissionDenied.into()),
        }
    }
}

impl File for MemFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let shared = self.fs.shared();
        let bytes = shared.disk.content(self.file)?;
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf.split_at_mut(n).0.copy_from_slice(rest.split_at(n).0);
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        // The lock is held over the check and the write, so that two writes do not get the same space.
        let mut shared = self.fs.shared();
        let len = shared.with_space(self.file, offset, buf.len() as u64)? as usize;
        let bytes = buf.get(..len).unwrap_or(buf).into();
        self.change_in(&mut shared, Kind::Write { file: self.file, offset, bytes })?;
        Ok(len)
    }

    fn sync(&self) -> Result<()> {
        let mut shared = self.fs.shared();
        if shared.sync_fails() {
            shared.run(Kind::FailedSync { file: self.file }, &self.path)?;
            return Err(Error::other("injected device error"));
        }
        shared.run(Kind::Sync { file: self.file }, &self.path)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.change(Kind::Truncate { file: self.file, len })
    }

    fn len(&self) -> Result<u64> {
        Ok(self.fs.shared().disk.content(self.file)?.len() as u64)
    }

    fn stamp(&self) -> Result<Option<[u64; 4]>> {
        Ok(Some([0, self.file, 0, self.fs.shared().disk.version(self.file)?]))
    }

    fn map(&self) -> Result<MappedBytes> {
        Ok(MappedBytes::copied(self.fs.shared().disk.content(self.file)?))
    }

    fn map_mut(&self, len: u64) -> Result<Box<dyn Mapping>> {
        match self.mode {
            Mode::Write => Ok(Box::new(MemMapping { file: self.clone(), len })),
            Mode::Read => Err(ErrorKind::PermissionDenied.into()),
        }
    }
}

/// A power cut loses, keeps or tears writes to the mapping like other writes, because a system writes mapped pages back in the same way.
#[derive(Debug)]
struct MemMapping {
    file: MemFile,
    len: u64,
}

impl Mapping for MemMapping {
    /// Also panics for a write behind the end of the file, which ends the process on a real system.
    fn write(&self, bytes: &[u8], offset: u64) {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(8), 0);
        let MemFile { fs, path, file, .. } = &self.file;
        let mut shared = fs.shared();
        let end = offset + padded.len() as u64;
        let has_space = shared.disk.content(*file).is_ok_and(|content| end <= content.len() as u64);
        let len = bytes.len();
        assert!(offset.is_multiple_of(8) && end <= self.len && has_space, "{len} bytes at {offset}: no space there");
        let written = shared.run(Kind::Write { file: *file, offset, bytes: padded.into() }, path);
        written.expect("there is space");
    }
}
