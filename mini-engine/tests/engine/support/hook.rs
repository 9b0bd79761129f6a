//! A file-system double that records every changing operation and asks a hook before each.

use std::ffi::OsString;
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::SystemTime;

use mini_engine::fs::{File, FileSystem, Mapping, StdFs};

/// An operation that is about to happen to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Create,
    Write,
    Sync,
    Truncate,
    /// A rename to the name in the next event.
    Rename,
    RenameTo,
    Remove,
    /// The name is the directory's.
    SyncDir,
    CreateDir,
    RemoveDir,
    /// The name is the new one.
    Link,
    /// A mapping that a writer is about to write into.
    Fill,
}

/// An operation and the name of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) op: Op,
    pub(crate) name: String,
}

impl Event {
    /// Whether this is `op` on a file whose name contains `part`.
    pub(crate) fn is(&self, op: Op, part: &str) -> bool {
        self.op == op && self.name.contains(part)
    }
}

/// The answer of the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Go,
    Fail(ErrorKind),
    /// Fail with this error number of the system.
    FailOs(i32),
    /// A write of at most this many bytes.
    Short(usize),
}

/// Messages of operations that are held, and the channel that holds them.
pub(crate) type Held = (mpsc::Receiver<()>, mpsc::Sender<()>);

type Hook = dyn Fn(&Event) -> Answer + Send + Sync;

struct Shared {
    inner: Arc<dyn FileSystem>,
    /// Files can be mapped.
    maps: bool,
    events: Mutex<Vec<Event>>,
    failures: Mutex<Vec<Failure>>,
    hook: Mutex<Arc<Hook>>,
}

/// An operation that failed in the wrapped file system, and the thread that it failed on.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) event: Event,
    pub(crate) thread: String,
}

/// The double. Clones share the record and the hook.
#[derive(Clone)]
pub(crate) struct HookFs {
    shared: Arc<Shared>,
}

impl HookFs {
    pub(crate) fn new() -> HookFs {
        HookFs::over(Arc::new(StdFs))
    }

    /// Like [`new`](Self::new), with logs that are mapped.
    pub(crate) fn mapped() -> HookFs {
        HookFs::with(Arc::new(StdFs), true)
    }

    pub(crate) fn over(inner: Arc<dyn FileSystem>) -> HookFs {
        HookFs::with(inner, false)
    }

    fn with(inner: Arc<dyn FileSystem>, maps: bool) -> HookFs {
        let hook: Arc<Hook> = Arc::new(|_| Answer::Go);
        let (events, failures) = (Mutex::default(), Mutex::default());
        let shared = Shared { inner, maps, events, failures, hook: Mutex::new(hook) };
        HookFs { shared: Arc::new(shared) }
    }

    pub(crate) fn arc(&self) -> Arc<dyn FileSystem> {
        Arc::new(self.clone())
    }

    /// Asks `hook` before each changing operation from now on.
    pub(crate) fn set(&self, hook: impl Fn(&Event) -> Answer + Send + Sync + 'static) {
        *self.shared.hook.lock().unwrap() = Arc::new(hook);
    }

    /// Gives this answer before each operation that `is_hit` names.
    pub(crate) fn answer_where(&self, answer: Answer, is_hit: impl Fn(&Event) -> bool + Send + Sync + 'static) {
        self.set(move |event| if is_hit(event) { answer } else { Answer::Go });
    }

    /// Lets each `op` fail on files whose names contain `part`.
    pub(crate) fn fail(&self, op: Op, part: &str, kind: ErrorKind) {
        let part = part.to_owned();
        self.answer_where(Answer::Fail(kind), move |event| event.is(op, &part));
    }

    /// Lets everything happen again.
    pub(crate) fn clear(&self) {
        self.set(|_| Answer::Go);
    }

    /// Holds each `op` on a file whose name contains `part` until the sender is dropped. The receiver gets a message for each operation that is
    /// about to begin. After the hold, `answer` is the answer to the operation.
    pub(crate) fn hold(&self, op: Op, part: &str, answer: Answer) -> Held {
        let part = part.to_owned();
        self.hold_where(answer, move |event| event.is(op, &part))
    }

    /// Like [`hold`](Self::hold), for operations that `is_held` names. It runs on the thread of the operation.
    pub(crate) fn hold_where(&self, answer: Answer, is_held: impl Fn(&Event) -> bool + Send + Sync + 'static) -> Held {
        let (arrived, arrivals) = mpsc::channel();
        let (go, goes) = mpsc::channel();
        let goes = Mutex::new(goes);
        self.set(move |event| {
            if !is_held(event) {
                return Answer::Go;
            }
            // The test may be over.
            let _ = arrived.send(());
            // An error means that the channel has ended, and lets the operation pass.
            let _ = goes.lock().unwrap().recv();
            answer
        });
        (arrivals, go)
    }

    /// The operations that succeeded since the last call.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.shared.events.lock().unwrap())
    }

    /// The operations that failed below.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.shared.failures.lock().unwrap().clone()
    }

    fn record<T>(&self, event: Event, result: Result<T>) -> Result<T> {
        if result.is_ok() {
            self.shared.events.lock().unwrap().push(event);
        } else {
            let thread = std::thread::current().name().unwrap_or_default().to_owned();
            self.shared.failures.lock().unwrap().push(Failure { event, thread });
        }
        result
    }

    fn ask(&self, op: Op, path: &Path) -> (Answer, Event) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let event = Event { op, name };
        // Not under the lock: a hook may wait for another operation.
        let hook = self.shared.hook.lock().unwrap().clone();
        (hook(&event), event)
    }

    fn run<T>(&self, op: Op, path: &Path, real: impl FnOnce() -> Result<T>) -> Result<T> {
        let (answer, event) = self.ask(op, path);
        match answer {
            Answer::Fail(kind) => return Err(Error::from(kind)),
            Answer::FailOs(number) => return Err(Error::from_raw_os_error(number)),
            Answer::Go | Answer::Short(_) => {}
        }
        self.record(event, real())
    }

    fn wrap(&self, file: Arc<dyn File>, path: &Path) -> Arc<dyn File> {
        Arc::new(HookFile { file, path: path.to_path_buf(), fs: self.clone() })
    }
}

impl fmt::Debug for HookFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookFs")
    }
}

impl FileSystem for HookFs {
    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.run(Op::Create, path, || self.shared.inner.create_new(path)).map(|file| self.wrap(file, path))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.shared.inner.open(path).map(|file| self.wrap(file, path))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.shared.inner.open_write(path).map(|file| self.wrap(file, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.run(Op::Rename, from, || self.shared.inner.rename(from, to))?;
        self.run(Op::RenameTo, to, || Ok(()))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.run(Op::Remove, path, || self.shared.inner.remove(path))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.run(Op::Link, to, || self.shared.inner.link(from, to))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.run(Op::RemoveDir, dir, || self.shared.inner.remove_dir(dir))
    }

    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
        self.shared.inner.read_dir(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.run(Op::CreateDir, dir, || self.shared.inner.create_dir_all(dir))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.run(Op::SyncDir, dir, || self.shared.inner.sync_dir(dir))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.shared.inner.exists(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.shared.inner.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.shared.inner.lock_shared(path)
    }

    fn now(&self) -> SystemTime {
        self.shared.inner.now()
    }
}

#[derive(Debug)]
struct HookFile {
    file: Arc<dyn File>,
    path: PathBuf,
    fs: HookFs,
}

impl File for HookFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        let (answer, event) = self.fs.ask(Op::Write, &self.path);
        let len = match answer {
            Answer::Go => buf.len(),
            Answer::Short(len) => len.min(buf.len()),
            Answer::Fail(kind) => return Err(Error::from(kind)),
            Answer::FailOs(number) => return Err(Error::from_raw_os_error(number)),
        };
        self.fs.record(event, self.file.write_at(&buf[..len], offset))
    }

    fn sync(&self) -> Result<()> {
        self.fs.run(Op::Sync, &self.path, || self.file.sync())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.fs.run(Op::Truncate, &self.path, || self.file.truncate(len))
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn map_mut(&self, len: u64) -> Result<Box<dyn Mapping>> {
        if !self.fs.shared.maps {
            return Err(ErrorKind::Unsupported.into());
        }
        // In memory, so that it works on every file system.
        let (file, fs, path) = (self.file.clone(), self.fs.clone(), self.path.clone());
        Ok(Box::new(HookMapping { file, fs, path, len }))
    }
}

/// Writes at once what a system would write later: a reader of the file sees no difference.
#[derive(Debug)]
struct HookMapping {
    file: Arc<dyn File>,
    path: PathBuf,
    fs: HookFs,
    len: u64,
}

impl Mapping for HookMapping {
    fn write(&self, bytes: &[u8], offset: u64) {
        let (_, event) = self.fs.ask(Op::Fill, &self.path);
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(8), 0);
        let end = offset + padded.len() as u64;
        assert!(end <= self.len && end <= self.file.len().unwrap(), "{} bytes at {offset}: no space", bytes.len());
        self.fs.record(event, self.file.write_all_at(&padded, offset)).unwrap();
    }
}
