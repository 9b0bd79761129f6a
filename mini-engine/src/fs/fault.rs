//! [`FaultFs`]: a file system that wraps another one, and fails chosen operations or only pretends to do them.
//!
//! Mutating operations (create, write, map, sync, truncate, rename, remove, link, directory sync) are counted from 0 in the order
//! they are called, reads (open, `read_at`, length, directory listing) are counted separately; one fault of each class
//! can be armed. So a test can run a workload once to count its operations, and then once for each of them.
//! An operation that fails does not reach the wrapped file system, except the part of a short write.
//!
//! Besides these faults it can have lasting defects: syncs that do nothing, no room for files of some kind, no links, no changes at all, unreadable
//! bytes. And it has a clock that can be set.

use std::ffi::OsString;
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use super::{File, FileSystem, MappedBytes, Mapping};
use crate::lock::lock;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error of the device (EIO).
    Device,
    /// [`ErrorKind::StorageFull`] (ENOSPC).
    StorageFull,
    /// A write that stores the first half of its bytes and then fails with [`ErrorKind::StorageFull`];
    /// any other operation fails in the same way.
    ShortWrite,
}

/// Whether the operations after the failed one fail too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Only the one operation fails.
    Once,
    /// It and all later ones of its class fail, until [`FaultFs::heal`].
    FromThenOn,
}

/// The operations of one class, and the one of them that will fail.
#[derive(Default)]
struct Class {
    count: u64,
    armed: Option<(u64, Fault, Repeat)>,
}

impl Class {
    /// Counts one operation. Returns the fault with which it must fail, if any.
    fn step(&mut self) -> Option<Fault> {
        let index = self.count;
        self.count += 1;
        let (at, fault, repeat) = self.armed?;
        let hit = index == at || (repeat == Repeat::FromThenOn && index > at);
        hit.then_some(fault)
    }

    fn check(&mut self) -> Result<()> {
        self.step().map_or(Ok(()), |fault| Err(fault.error()))
    }
}

impl Fault {
    fn error(self) -> Error {
        match self {
            Self::Device => Error::other("injected device error"),
            Self::StorageFull | Self::ShortWrite => Error::new(ErrorKind::StorageFull, "injected full disk"),
        }
    }
}

/// The target of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced<'a> {
    /// A file, by the name under which it was opened.
    File(&'a Path),
    /// The names in a directory.
    Directory(&'a Path),
}

type Ignored = dyn Fn(Synced<'_>) -> bool + Send + Sync;

#[derive(Default)]
struct State {
    mutations: Class,
    reads: Class,
    ignored: Option<Arc<Ignored>>,
    refused: Option<&'static str>,
    has_no_links: bool,
    is_read_only: bool,
    /// The end of file names, and the unreadable bytes in such files.
    unreadable: Option<(&'static str, Range<u64>)>,
    time: Option<SystemTime>,
}

impl State {
    fn check_mount(&self) -> Result<()> {
        if self.is_read_only { Err(ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }
}

/// The state that a file system and its files share.
#[derive(Clone, Default)]
struct Faults(Arc<Mutex<State>>);

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Counts a mutating operation, and fails it if it must fail.
    fn mutate(&self) -> Result<()> {
        let mut state = self.state();
        state.mutations.check()?;
        state.check_mount()
    }

    /// The same for an operation that is a mutation only on a read-only mount.
    fn prepare_to_mutate(&self) -> Result<()> {
        let is_read_only = self.state().is_read_only;
        if is_read_only { self.mutate() } else { Ok(()) }
    }

    /// Counts a read, and fails it if it must fail.
    fn read(&self) -> Result<()> {
        self.state().reads.check()
    }

    fn ignores(&self, synced: Synced<'_>) -> bool {
        let ignored = self.state().ignored.clone();
        ignored.is_some_and(|ignored| ignored(synced))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// Wraps a file system and fails chosen operations. Clones share their counts and faults.
#[derive(Clone, Debug)]
pub struct FaultFs {
    inner: Arc<dyn FileSystem>,
    faults: Faults,
}

impl FaultFs {
    /// Wraps `inner`; nothing fails until a fault is armed.
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        Self { inner, faults: Faults::default() }
    }

    /// Mutating operations so far, failed ones included.
    pub fn mutations(&self) -> u64 {
        self.faults.state().mutations.count
    }

    /// Reads so far, failed ones included.
    pub fn reads(&self) -> u64 {
        self.faults.state().reads.count
    }

    /// Fails the mutating operation with number `index`, counted from 0 since this was made.
    pub fn fail_mutation(&self, index: u64, fault: Fault, repeat: Repeat) {
        self.faults.state().mutations.armed = Some((index, fault, repeat));
    }

    /// Fails the read with number `index`, counted from 0 since this was made.
    pub fn fail_read(&self, index: u64, fault: Fault, repeat: Repeat) {
        self.faults.state().reads.armed = Some((index, fault, repeat));
    }

    /// From now on the device cannot read these bytes in files whose names end with `end`, if they are opened from now on.
    pub fn spoil(&self, end: &'static str, bytes: Range<u64>) {
        self.faults.state().unreadable = Some((end, bytes));
    }

    /// Disarms all faults.
    pub fn heal(&self) {
        let mut state = self.faults.state();
        (state.mutations.armed, state.reads.armed) = (None, None);
    }

    /// From now on, syncs for which `ignored` returns true do nothing and report success: a disk that lies. `ignored` runs on the thread of each
    /// sync, and may make it wait.
    pub fn ignore_syncs(&self, ignored: impl Fn(Synced<'_>) -> bool + Send + Sync + 'static) {
        self.faults.state().ignored = Some(Arc::new(ignored));
    }

    /// Refuses to create files with this extension as if there were no space, until told otherwise.
    pub fn refuse_files(&self, extension: Option<&'static str>) {
        self.faults.state().refused = extension;
    }

    /// Refuses every mutating operation from now on, like a read-only mount. Then opening a file for writing and taking an exclusive lock, which
    /// may create the file, are such operations too.
    pub fn mount_read_only(&self) {
        self.faults.state().is_read_only = true;
    }

    /// Refuses links from now on, like a file system without links.
    pub fn refuse_links(&self) {
        self.faults.state().has_no_links = true;
    }

    /// Sets the clock, which then stands still.
    pub fn set_time(&self, time: SystemTime) {
        self.faults.state().time = Some(time);
    }

    fn wrap(&self, file: Arc<dyn File>, path: &Path) -> Arc<dyn File> {
        let spoilt = self.faults.state().unreadable.clone().filter(|(end, _)| path.to_string_lossy().ends_with(end));
        let unreadable = spoilt.map_or(0..0, |(_, bytes)| bytes);
        Arc::new(FaultFile { inner: file, faults: self.faults.clone(), path: path.to_path_buf(), unreadable })
    }
}

impl FileSystem for FaultFs {
    /// Not counted: it is neither a read nor a change.
    fn open_dir(&self, dir: &Path) -> Result<Option<Arc<dyn FileSystem>>> {
        let faults = || self.faults.clone();
        Ok(self.inner.open_dir(dir)?.map(|inner| Arc::new(Self { inner, faults: faults() }) as _))
    }

    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.faults.mutate()?;
        let refused = self.faults.state().refused;
        if refused.is_some_and(|refused| path.extension().is_some_and(|found| found == refused)) {
            return Err(Fault::StorageFull.error());
        }
        Ok(self.wrap(self.inner.create_new(path)?, path))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.faults.read()?;
        Ok(self.wrap(self.inner.open(path)?, path))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.faults.prepare_to_mutate()?;
        self.faults.read()?;
        Ok(self.wrap(self.inner.open_write(path)?, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.faults.mutate()?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.faults.mutate()?;
        self.inner.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.faults.mutate()?;
        if self.faults.state().has_no_links {
            return Err(ErrorKind::Unsupported.into());
        }
        self.inner.link(from, to)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.faults.mutate()?;
        self.inner.remove_dir(dir)
    }

    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
        self.faults.read()?;
        self.inner.read_dir(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.faults.mutate()?;
        self.inner.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.faults.mutate()?;
        if self.faults.ignores(Synced::Directory(dir)) { Ok(()) } else { self.inner.sync_dir(dir) }
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.faults.read()?;
        self.inner.exists(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.faults.prepare_to_mutate()?;
        self.inner.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.inner.lock_shared(path)
    }

    fn lock_holder(&self, path: &Path) -> Option<u32> {
        self.inner.lock_holder(path)
    }

    fn now(&self) -> SystemTime {
        let time = self.faults.state().time;
        time.unwrap_or_else(|| self.inner.now())
    }
}

#[derive(Debug)]
struct FaultFile {
    inner: Arc<dyn File>,
    faults: Faults,
    path: PathBuf,
    /// Bytes that cannot be read.
    unreadable: Range<u64>,
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.faults.read()?;
        if self.unreadable.contains(&offset) {
            return Err(Fault::Device.error());
        }
        // A read returns the bytes up to there, as a real system does.
        let len = self.unreadable.start.checked_sub(offset).filter(|_| !self.unreadable.is_empty());
        let len = len.map_or(buf.len(), |len| buf.len().min(usize::try_from(len).unwrap_or(usize::MAX)));
        self.inner.read_at(buf.split_at_mut(len).0, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        let fault = self.faults.state().mutations.step();
        let Some(fault) = fault else {
            self.faults.state().check_mount()?;
            return self.inner.write_at(buf, offset);
        };
        if fault == Fault::ShortWrite {
            self.inner.write_all_at(buf.split_at(buf.len() / 2).0, offset)?;
        }
        Err(fault.error())
    }

    fn sync(&self) -> Result<()> {
        self.faults.mutate()?;
        if self.faults.ignores(Synced::File(&self.path)) { Ok(()) } else { self.inner.sync() }
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.faults.mutate()?;
        self.inner.truncate(len)
    }

    fn len(&self) -> Result<u64> {
        self.faults.read()?;
        self.inner.len()
    }

    /// Fails like a read; reads from the mapping itself cannot fail.
    fn map(&self) -> Result<MappedBytes> {
        self.faults.read()?;
        self.inner.map()
    }

    /// Fails like an operation; writes into the mapping itself cannot fail.
    fn map_mut(&self, len: u64) -> Result<Box<dyn Mapping>> {
        self.faults.mutate()?;
        self.inner.map_mut(len)
    }
}
