//! [`FaultFs`]: a file system that wraps another one, records the changing operations, calls a hook before each, and fails armed ones.
//!
//! Changing operations (create, write, map, sync, truncate, rename, remove, link, directory sync) are counted from 0 in the order of their calls.
//! Reads (open, `read_at`, length, directory listing) are counted separately. One fault of each class can be armed. So a test can run a workload
//! once to count its operations, and then once with a fault at each of them. An operation that fails does not reach the wrapped file system, except
//! the part of a short write.
//!
//! The hook decides about each changing operation before it is counted. It runs on the thread of the operation, and may delay it. There are also
//! lasting defects: no room for files of some kind, no changes at all, unreadable bytes, no mappings.

use std::ffi::OsString;
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};

use mini_engine::fs::{File, FileSystem, MappedBytes, Mapping, StdFs};

use super::lock;

/// The way in which an armed operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error of the device (EIO).
    Device,
    /// [`ErrorKind::StorageFull`] (ENOSPC).
    StorageFull,
    /// A write that stores the first half of its bytes and then fails with [`ErrorKind::StorageFull`]; any other operation fails in the same way.
    ShortWrite,
}

/// Whether the operations after the failed one fail too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Only that operation fails.
    Once,
    /// That operation and all later ones of its class fail, until [`FaultFs::heal`].
    FromThenOn,
}

/// The count of operations of one class, and the armed fault.
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

/// A changing operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the methods of the file system and of its files")]
pub enum Op {
    Create,
    Write,
    Sync,
    Truncate,
    /// A rename to the path in the next event.
    Rename,
    RenameTo,
    Remove,
    /// A sync of the directory at the event's path.
    SyncDir,
    CreateDir,
    RemoveDir,
    /// A hard link; the event has the new path.
    Link,
    /// A write into a mapping.
    Fill,
}

/// An operation and the path of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The operation.
    pub op: Op,
    /// The path under which the file was opened or created.
    pub path: PathBuf,
}

impl Event {
    /// The name of the file or directory, without its parents.
    pub fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Whether this is `op` on a file whose name contains `part`.
    pub fn is(&self, op: Op, part: &str) -> bool {
        self.op == op && self.name().contains(part)
    }
}

/// The decision of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The operation takes place.
    Go,
    /// The operation fails with this kind of error.
    Fail(ErrorKind),
    /// The operation fails with this error number of the system.
    FailOs(i32),
    /// A write stores at most this number of bytes.
    Short(usize),
    /// A sync does nothing and reports success: a disk that lies.
    Pretend,
}

/// An operation that failed by an armed fault or in the wrapped file system, and the name of its thread.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are these two")]
pub struct Failure {
    pub event: Event,
    pub thread: String,
}

/// A receiver of a message for each held operation, and the sender whose drop releases them.
pub type Held = (mpsc::Receiver<()>, mpsc::Sender<()>);

type Hook = dyn Fn(&Event) -> Answer + Send + Sync;

/// The way in which files are mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mappings {
    /// The wrapped file system maps them.
    Wrapped,
    /// Files are not mapped, so that each write of a log is an operation.
    None,
    /// Mappings for writing are simulated by immediate writes, each of which is an operation.
    Simulated,
}

struct State {
    hook: Arc<Hook>,
    read_hook: Option<Arc<dyn Fn() + Send + Sync>>,
    events: Vec<Event>,
    failures: Vec<Failure>,
    mutations: Class,
    reads: Class,
    refused: Option<&'static str>,
    is_read_only: bool,
    mappings: Mappings,
    /// The end of the names of the damaged files, and the unreadable bytes in them.
    unreadable: Option<(&'static str, Range<u64>)>,
}

impl State {
    /// Counts a mutating operation, and fails it if a fault is armed for it.
    fn mutate(&mut self) -> Result<()> {
        self.mutations.check()?;
        self.check_mount()
    }

    fn check_mount(&self) -> Result<()> {
        if self.is_read_only { Err(ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }
}

/// Wraps a file system, and fails chosen operations. Clones share their counts, faults and hook.
#[derive(Clone)]
pub struct FaultFs {
    inner: Arc<dyn FileSystem>,
    state: Arc<Mutex<State>>,
}

impl FaultFs {
    /// Wraps `inner`; nothing fails until a fault is armed.
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        let state = State {
            hook: Arc::new(|_| Answer::Go),
            read_hook: None,
            events: Vec::new(),
            failures: Vec::new(),
            mutations: Class::default(),
            reads: Class::default(),
            refused: None,
            is_read_only: false,
            mappings: Mappings::Wrapped,
            unreadable: None,
        };
        Self { inner, state: Arc::new(Mutex::new(state)) }
    }

    /// Wraps the system's files. Mappings for writing are simulated, even if the system cannot map files: a write into a mapping is an operation.
    pub fn of_system() -> Self {
        let fs = Self::new(Arc::new(StdFs));
        fs.state().mappings = Mappings::Simulated;
        fs
    }

    /// Refuses mappings, so that each write of a log is an operation.
    pub fn unmapped(self) -> Self {
        self.state().mappings = Mappings::None;
        self
    }

    /// This file system, to be given to a database.
    pub fn arc(&self) -> Arc<dyn FileSystem> {
        Arc::new(self.clone())
    }

    /// Mutating operations so far, failed ones included.
    pub fn mutations(&self) -> u64 {
        self.state().mutations.count
    }

    /// Reads so far, failed ones included.
    pub fn reads(&self) -> u64 {
        self.state().reads.count
    }

    /// Fails the mutating operation with number `index`, counted from 0 since this file system was made.
    pub fn fail_mutation(&self, index: u64, fault: Fault, repeat: Repeat) {
        self.state().mutations.armed = Some((index, fault, repeat));
    }

    /// Fails the read with number `index`, counted from 0 since this file system was made.
    pub fn fail_read(&self, index: u64, fault: Fault, repeat: Repeat) {
        self.state().reads.armed = Some((index, fault, repeat));
    }

    /// Disarms all faults.
    pub fn heal(&self) {
        let mut state = self.state();
        (state.mutations.armed, state.reads.armed) = (None, None);
    }

    /// Makes these bytes unreadable in all files that are opened from now on and whose names end with `end`.
    pub fn spoil(&self, end: &'static str, bytes: Range<u64>) {
        self.state().unreadable = Some((end, bytes));
    }

    /// Refuses to create files with this extension as if there were no space, until the next call.
    pub fn refuse_files(&self, extension: Option<&'static str>) {
        self.state().refused = extension;
    }

    /// Refuses every mutating operation from now on, like a read-only mount. Opening a file for writing, and taking an exclusive lock, which may
    /// create the file, then count as mutating too.
    pub fn mount_read_only(&self) {
        self.state().is_read_only = true;
    }

    /// Calls `hook` before each changing operation from now on.
    pub fn set(&self, hook: impl Fn(&Event) -> Answer + Send + Sync + 'static) {
        self.state().hook = Arc::new(hook);
    }

    /// Gives this answer before each operation for which `is_hit` returns true.
    pub fn answer_where(&self, answer: Answer, is_hit: impl Fn(&Event) -> bool + Send + Sync + 'static) {
        self.set(move |event| if is_hit(event) { answer } else { Answer::Go });
    }

    /// Lets each `op` fail on files whose names contain `part`.
    pub fn fail(&self, op: Op, part: &str, kind: ErrorKind) {
        let part = part.to_owned();
        self.answer_where(Answer::Fail(kind), move |event| event.is(op, &part));
    }

    /// Calls `hook` before each read from now on.
    pub fn before_reads(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.state().read_hook = Some(Arc::new(hook));
    }

    /// Removes the hook.
    pub fn clear(&self) {
        self.set(|_| Answer::Go);
    }

    /// Holds each `op` on a file whose name contains `part` until the sender is dropped. The receiver gets a message for each operation that is
    /// about to begin. After the hold, the operation gets `answer`.
    pub fn hold(&self, op: Op, part: &str, answer: Answer) -> Held {
        let part = part.to_owned();
        self.hold_where(answer, move |event| event.is(op, &part))
    }

    /// Like [`hold`](Self::hold), for operations for which `is_held` returns true. `is_held` runs on the thread of the operation.
    pub fn hold_where(&self, answer: Answer, is_held: impl Fn(&Event) -> bool + Send + Sync + 'static) -> Held {
        let (arrived, arrivals) = mpsc::channel();
        let (go, goes) = mpsc::channel();
        let goes = Mutex::new(goes);
        self.set(move |event| {
            if !is_held(event) {
                return Answer::Go;
            }
            // Fails if the test is over.
            let _ = arrived.send(());
            // An error means that the sender was dropped, and releases the operation.
            let _ = lock(&goes).recv();
            answer
        });
        (arrivals, go)
    }

    /// The operations that succeeded since the last call.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.state().events)
    }

    /// The operations that failed, except those that the hook has failed.
    pub fn failures(&self) -> Vec<Failure> {
        self.state().failures.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn ask(&self, op: Op, path: &Path) -> (Answer, Event) {
        let event = Event { op, path: path.to_path_buf() };
        // Called without the lock, because a hook may wait for another operation.
        let hook = Arc::clone(&self.state().hook);
        (hook(&event), event)
    }

    /// The hook's answer; an error if the answer is a failure.
    fn allowed(&self, op: Op, path: &Path) -> Result<(Answer, Event)> {
        match self.ask(op, path) {
            (Answer::Fail(kind), _) => Err(kind.into()),
            (Answer::FailOs(number), _) => Err(Error::from_raw_os_error(number)),
            allowed => Ok(allowed),
        }
    }

    fn record<T>(&self, event: Event, result: Result<T>) -> Result<T> {
        let mut state = self.state();
        if result.is_ok() {
            state.events.push(event);
        } else {
            let thread = std::thread::current().name().unwrap_or_default().to_owned();
            state.failures.push(Failure { event, thread });
        }
        result
    }

    /// Runs a changing operation, which `real` carries out.
    fn change<T>(&self, op: Op, path: &Path, real: impl FnOnce() -> Result<T>) -> Result<T> {
        let (_, event) = self.allowed(op, path)?;
        let mutated = self.state().mutate();
        self.record(event, mutated.and_then(|()| real()))
    }

    fn sync(&self, op: Op, path: &Path, real: impl FnOnce() -> Result<()>) -> Result<()> {
        let (answer, event) = self.allowed(op, path)?;
        let mutated = self.state().mutate();
        self.record(event, mutated.and_then(|()| if answer == Answer::Pretend { Ok(()) } else { real() }))
    }

    /// Counts an operation that is mutating only on a read-only mount.
    fn prepare_to_mutate(&self) -> Result<()> {
        let mut state = self.state();
        if state.is_read_only { state.mutate() } else { Ok(()) }
    }

    /// Counts a read, and fails it if a fault is armed for it.
    fn read(&self) -> Result<()> {
        let hook = self.state().read_hook.clone();
        // Called without the lock: the hook may change the wrapped file system.
        if let Some(hook) = hook {
            hook();
        }
        self.state().reads.check()
    }

    fn wrap(&self, file: Arc<dyn File>, path: &Path) -> Arc<dyn File> {
        let spoilt = self.state().unreadable.clone().filter(|(end, _)| path.to_string_lossy().ends_with(end));
        let unreadable = spoilt.map_or(0..0, |(_, bytes)| bytes);
        Arc::new(FaultFile { inner: file, fs: self.clone(), path: path.to_path_buf(), unreadable })
    }
}

impl fmt::Debug for FaultFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultFs").field(&self.inner).finish()
    }
}

impl FileSystem for FaultFs {
    /// Not counted, because it is neither a read nor a change.
    fn open_dir(&self, dir: &Path) -> Result<Option<Arc<dyn FileSystem>>> {
        let state = || Arc::clone(&self.state);
        Ok(self.inner.open_dir(dir)?.map(|inner| Arc::new(Self { inner, state: state() }) as _))
    }

    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        let created = self.change(Op::Create, path, || {
            let refused = self.state().refused;
            match refused.is_some_and(|refused| path.extension().is_some_and(|found| found == refused)) {
                true => Err(Fault::StorageFull.error()),
                false => self.inner.create_new(path),
            }
        });
        created.map(|file| self.wrap(file, path))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.read()?;
        Ok(self.wrap(self.inner.open(path)?, path))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.prepare_to_mutate()?;
        self.read()?;
        Ok(self.wrap(self.inner.open_write(path)?, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.change(Op::Rename, from, || self.inner.rename(from, to))?;
        let (_, event) = self.allowed(Op::RenameTo, to)?;
        self.record(event, Ok(()))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.change(Op::Remove, path, || self.inner.remove(path))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.change(Op::Link, to, || self.inner.link(from, to))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.change(Op::RemoveDir, dir, || self.inner.remove_dir(dir))
    }

    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
        self.read()?;
        self.inner.read_dir(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.change(Op::CreateDir, dir, || self.inner.create_dir_all(dir))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.sync(Op::SyncDir, dir, || self.inner.sync_dir(dir))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.read()?;
        self.inner.exists(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.prepare_to_mutate()?;
        self.inner.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.inner.lock_shared(path)
    }

    fn lock_holder(&self, path: &Path) -> Option<u32> {
        self.inner.lock_holder(path)
    }
}

#[derive(Debug)]
struct FaultFile {
    inner: Arc<dyn File>,
    fs: FaultFs,
    path: PathBuf,
    /// Bytes that cannot be read.
    unreadable: Range<u64>,
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.fs.read()?;
        if self.unreadable.contains(&offset) {
            return Err(Fault::Device.error());
        }
        // A read returns the bytes before the unreadable ones, as a real system does.
        let len = self.unreadable.start.checked_sub(offset).filter(|_| !self.unreadable.is_empty());
        let len = len.map_or(buf.len(), |len| buf.len().min(usize::try_from(len).unwrap_or(usize::MAX)));
        self.inner.read_at(buf.split_at_mut(len).0, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        let (answer, event) = self.fs.allowed(Op::Write, &self.path)?;
        let fault = self.fs.state().mutations.step();
        let most = if let Answer::Short(most) = answer { most } else { buf.len() };
        let written = match fault {
            None => {
                let mounted = self.fs.state().check_mount();
                mounted.and_then(|()| self.inner.write_at(buf.split_at(most.min(buf.len())).0, offset))
            }
            Some(fault @ Fault::ShortWrite) => {
                let half = self.inner.write_all_at(buf.split_at(buf.len() / 2).0, offset);
                half.and(Err(fault.error()))
            }
            Some(fault) => Err(fault.error()),
        };
        self.fs.record(event, written)
    }

    fn sync(&self) -> Result<()> {
        self.fs.sync(Op::Sync, &self.path, || self.inner.sync())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.fs.change(Op::Truncate, &self.path, || self.inner.truncate(len))
    }

    fn len(&self) -> Result<u64> {
        self.fs.read()?;
        self.inner.len()
    }

    fn stamp(&self) -> Result<Option<[u64; 4]>> {
        self.fs.read()?;
        self.inner.stamp()
    }

    /// Fails like a read; reads from the mapping itself cannot fail.
    fn map(&self) -> Result<MappedBytes> {
        if self.fs.state().mappings == Mappings::None {
            return Err(ErrorKind::Unsupported.into());
        }
        self.fs.read()?;
        self.inner.map()
    }

    /// The call can fail like an operation; later writes into the mapping cannot fail.
    fn map_mut(&self, len: u64) -> Result<Box<dyn Mapping>> {
        let mappings = self.fs.state().mappings;
        if mappings == Mappings::None {
            return Err(ErrorKind::Unsupported.into());
        }
        self.fs.state().mutate()?;
        if mappings == Mappings::Wrapped {
            return self.inner.map_mut(len);
        }
        let (file, fs, path) = (Arc::clone(&self.inner), self.fs.clone(), self.path.clone());
        Ok(Box::new(FaultMapping { file, fs, path, len }))
    }
}

/// A simulated mapping, which writes at once; a system would write later, but a reader of the file sees no difference.
#[derive(Debug)]
struct FaultMapping {
    file: Arc<dyn File>,
    fs: FaultFs,
    path: PathBuf,
    len: u64,
}

impl Mapping for FaultMapping {
    fn write(&self, bytes: &[u8], offset: u64) {
        let (_, event) = self.fs.ask(Op::Fill, &self.path);
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(8), 0);
        let end = offset + padded.len() as u64;
        let has_space = end <= self.len && self.file.len().is_ok_and(|len| end <= len);
        assert!(has_space, "{} bytes at {offset}: no space", bytes.len());
        self.fs.record(event, self.file.write_all_at(&padded, offset)).expect("there is space");
    }
}
