//! Tests of the file-system trait's provided functions and of its implementations.

use std::sync::Mutex;

use super::*;
use crate::disk::{FaultFs, MemFs};

/// A file in memory that reads and writes at most `most` bytes per call and is interrupted in every other call.
#[derive(Debug, Default)]
struct Whimsical {
    most: usize,
    bytes: Mutex<Vec<u8>>,
    calls: Mutex<u32>,
}

impl Whimsical {
    fn interrupted(&self) -> Result<()> {
        let mut calls = self.calls.lock().expect("not poisoned");
        *calls += 1;
        if *calls % 2 == 1 { Err(Error::from(ErrorKind::Interrupted)) } else { Ok(()) }
    }
}

impl File for Whimsical {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.interrupted()?;
        let bytes = self.bytes.lock().expect("not poisoned");
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let n = rest.len().min(buf.len()).min(self.most);
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.interrupted()?;
        let mut bytes = self.bytes.lock().expect("not poisoned");
        let n = buf.len().min(self.most);
        let end = offset as usize + n;
        let len = bytes.len().max(end);
        bytes.resize(len, 0);
        bytes[offset as usize..end].copy_from_slice(&buf[..n]);
        Ok(n)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.bytes.lock().expect("not poisoned").resize(len as usize, 0);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes.lock().expect("not poisoned").len() as u64)
    }
}

#[test]
fn short_and_interrupted_calls_are_continued() {
    // Catches a write that counts as done after its first call, and EINTR treated as a failure.
    let file = Whimsical { most: 3, ..Whimsical::default() };
    let data: Vec<u8> = (0..100).collect();
    file.write_all_at(&data, 5).expect("written");
    assert_eq!(file.len().expect("known"), 105);
    let mut back = vec![0; 100];
    file.read_exact_at(&mut back, 5).expect("read");
    assert_eq!(back, data);
    let eof = file.read_exact_at(&mut back, 6).expect_err("one byte too many");
    assert_eq!(eof.kind(), ErrorKind::UnexpectedEof);
    assert!(eof.to_string().contains("offset 105"), "{eof}");
}

#[test]
fn a_file_that_accepts_nothing_is_an_error_not_a_loop() {
    // Catches an endless loop when a write returns 0.
    let stubborn = Whimsical::default();
    assert!(stubborn.is_empty().expect("known"));
    assert_eq!(stubborn.write_all_at(b"x", 0).expect_err("refused").kind(), ErrorKind::WriteZero);
    assert_eq!(stubborn.read_exact_at(&mut [0], 0).expect_err("empty").kind(), ErrorKind::UnexpectedEof);
}

/// Runs the check with the operating system's files, looked up by path, and in an open directory.
fn for_std_fs(check: fn(&dyn FileSystem, &Path)) {
    check(&StdFs, tempfile::tempdir().expect("a directory").path());
    let dir = tempfile::tempdir().expect("a directory");
    check(&*in_open_directory(&std_fs(), dir.path()).expect("opened"), dir.path());
}

fn std_fs() -> Arc<dyn FileSystem> {
    Arc::new(StdFs)
}

#[test]
fn a_second_lock_in_the_same_process_would_block_until_the_first_is_dropped() {
    // Catches a lock that belongs to a process (POSIX record locks), which would let one process open a database twice.
    fn check(fs: &dyn FileSystem, dir: &Path) {
        let path = dir.join("LOCK");
        let held = fs.lock(&path).expect("free");
        let Err(error) = fs.lock(&path) else { panic!("{fs:?}: locked twice") };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        drop(held);
        assert!(fs.lock(&path).is_ok() && fs.exists(&path).expect("known"));
    }
    for_std_fs(check);
    check(&MemFs::default(), Path::new("/"));
}

#[test]
fn a_lock_that_another_process_holds_for_a_moment_is_tried_again_and_one_that_stays_is_refused() {
    // Catches a writer that is rejected because a process is just checking for a writer, and an endless wait.
    let try_lock = |held_at_first: u32| {
        let mut tries = 0;
        let locked = held_lock::tried_twice(|| {
            tries += 1;
            if tries > held_at_first { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
        });
        (locked.is_ok(), tries)
    };
    assert_eq!([0, 1, 2].map(try_lock), [(true, 1), (true, 2), (false, 2)]);
}

#[cfg(unix)]
#[test]
fn a_lock_whose_file_is_removed_is_still_held_and_names_its_process() {
    // Catches a second writer that locks a new file of the same name, and a process id that remains without a writer.
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("LOCK");
    let held = StdFs.lock(&path).expect("free");
    assert_eq!(StdFs.lock_holder(&path), Some(std::process::id()));
    std::fs::remove_file(&path).expect("remove");
    let kind = |locked: Result<Box<dyn Send + Sync>>| locked.err().map(|error| error.kind());
    assert_eq!(kind(StdFs.lock_shared(&path)), Some(ErrorKind::WouldBlock));
    assert_eq!(kind(StdFs.lock(&path)), Some(ErrorKind::WouldBlock));
    drop(held);
    let held = StdFs.lock(&path).expect("free");
    drop(held);
    assert_eq!(std::fs::read(&path).expect("read"), b"");
    // The remaining id of a killed writer is not reported as that of a reader.
    std::fs::write(&path, "123\n").expect("write");
    let reader = StdFs.lock_shared(&path).expect("free");
    assert_eq!(StdFs.lock_holder(&path), None);
    drop(reader);
    // A process in another container may have the same id as this one: then the id is not reported.
    for (writer, told) in [(123, Some(123)), (std::process::id(), None)] {
        std::fs::write(&path, format!("{writer}\n")).expect("write");
        let held = std::fs::File::open(&path).expect("open");
        held.try_lock().expect("free");
        assert_eq!(StdFs.lock_holder(&path), told);
    }
}

#[test]
fn shared_locks_go_with_each_other_and_not_with_an_exclusive_one() {
    // Catches readers that exclude each other, a reader and a writer at the same time, a lock that is released when the first of two readers drops
    // it, and a reader that creates the lock file.
    fn check(fs: &dyn FileSystem, dir: &Path) {
        let path = dir.join("LOCK");
        let kind = |locked: Result<Box<dyn Send + Sync>>| locked.err().map(|error| error.kind());
        assert_eq!(kind(fs.lock_shared(&path)), Some(ErrorKind::NotFound));
        assert!(!fs.exists(&path).expect("known"));
        let writer = fs.lock(&path).expect("free");
        assert_eq!(kind(fs.lock_shared(&path)), Some(ErrorKind::WouldBlock));
        drop(writer);
        let readers = [fs.lock_shared(&path).expect("free"), fs.lock_shared(&path).expect("shared")];
        for reader in readers {
            assert_eq!(kind(fs.lock(&path)), Some(ErrorKind::WouldBlock));
            drop(reader);
        }
        assert_eq!(kind(fs.lock(&path)), None);
    }
    for_std_fs(check);
    check(&MemFs::default(), Path::new("/"));
    check(&FaultFs::new(Arc::new(MemFs::default())), Path::new("/"));
}

#[test]
fn a_file_system_without_shared_locks_lets_one_reader_in() {
    // Catches a default that admits a reader while there is a writer, or that creates the lock file.
    #[derive(Debug)]
    struct Plain(MemFs);
    impl FileSystem for Plain {
        fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
            self.0.create_new(path)
        }
        fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
            self.0.open(path)
        }
        fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
            self.0.open_write(path)
        }
        fn rename(&self, from: &Path, to: &Path) -> Result<()> {
            self.0.rename(from, to)
        }
        fn remove(&self, path: &Path) -> Result<()> {
            self.0.remove(path)
        }
        fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
            self.0.read_dir(dir)
        }
        fn create_dir_all(&self, dir: &Path) -> Result<()> {
            self.0.create_dir_all(dir)
        }
        fn sync_dir(&self, dir: &Path) -> Result<()> {
            self.0.sync_dir(dir)
        }
        fn exists(&self, path: &Path) -> Result<bool> {
            self.0.exists(path)
        }
        fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
            self.0.lock(path)
        }
    }
    let (fs, path) = (Plain(MemFs::default()), Path::new("/LOCK"));
    let kind = |locked: Result<Box<dyn Send + Sync>>| locked.err().map(|error| error.kind());
    assert_eq!(kind(fs.lock_shared(path)), Some(ErrorKind::NotFound));
    assert!(!fs.exists(path).expect("known"));
    drop(fs.lock(path).expect("free"));
    let reader = fs.lock_shared(path).expect("free");
    assert_eq!(
        (kind(fs.lock_shared(path)), kind(fs.lock(path))),
        (Some(ErrorKind::WouldBlock), Some(ErrorKind::WouldBlock))
    );
    drop(reader);
    assert_eq!(kind(fs.lock_shared(path)), None);
}

#[test]
fn file_systems_keep_the_traits_promises() {
    // Catches a create that truncates an existing file, a read-only handle that writes, and a simulated file system that differs from the real one.
    for_std_fs(promises);
    promises(&MemFs::default(), Path::new("/"));
}

fn promises(fs: &dyn FileSystem, dir: &Path) {
    let sub = dir.join("a").join("b");
    assert_eq!(fs.create_new(&sub.join("file")).expect_err("no directory").kind(), ErrorKind::NotFound);
    fs.create_dir_all(&sub).expect("created");
    fs.create_dir_all(&sub).expect("exists");
    let path = sub.join("file");
    let file = fs.create_new(&path).expect("created");
    assert_eq!(fs.create_new(&path).expect_err("exists").kind(), ErrorKind::AlreadyExists);
    file.write_all_at(b"hello world", 0).expect("written");
    file.sync().expect("synced");
    file.truncate(5).expect("cut");
    fs.open_write(&path).expect("opened").write_all_at(b"J", 0).expect("written");
    let reader = fs.open(&path).expect("opened");
    assert!(reader.write_all_at(b"x", 0).is_err());
    let mut buf = [0; 16];
    assert_eq!(reader.read_at(&mut buf, 0).expect("read"), 5);
    assert_eq!((&buf[..5], reader.len().expect("known")), (&b"Jello"[..], 5));
    assert_eq!(reader.read_at(&mut buf, 99).expect("read"), 0);
    let (moved, replaced) = (sub.join("moved"), sub.join("replaced"));
    fs.create_new(&replaced).expect("created").write_all_at(b"old", 0).expect("written");
    fs.rename(&path, &moved).expect("renamed");
    fs.rename(&moved, &replaced).expect("renamed");
    fs.sync_dir(&sub).expect("synced");
    assert_eq!(fs.read_dir(&sub).expect("listed"), ["replaced"]);
    assert_eq!(fs.open(&replaced).expect("opened").len().expect("known"), 5);
    assert!(!fs.exists(&path).expect("known") && fs.exists(&replaced).expect("known"));
    assert_eq!(fs.read_dir(&replaced).expect_err("a file").kind(), ErrorKind::NotADirectory);
    fs.remove(&replaced).expect("removed");
    assert_eq!(fs.open(&replaced).expect_err("gone").kind(), ErrorKind::NotFound);
    assert_eq!(fs.remove(&replaced).expect_err("gone").kind(), ErrorKind::NotFound);
    // An open handle can still read its file.
    assert_eq!(reader.read_at(&mut buf, 0).expect("read"), 5);
}

#[cfg(unix)]
#[test]
fn names_in_an_open_directory_stay_its_own_wherever_it_is_moved() {
    // Catches files written to whatever has the old name of a moved directory; and that directory renamed to a checkpoint, or removed as failed.
    let dir = tempfile::tempdir().expect("a directory");
    let [new, moved, beside] = ["new", "moved", "beside"].map(|name| dir.path().join(name));
    let fs = in_open_directory(&std_fs(), dir.path()).expect("opened");
    fs.create_dir_all(&new).expect("created");
    fs.create_new(&beside).expect("created");
    let fs = in_open_directory(&fs, &new).expect("opened");
    fs.create_new(&new.join("before")).expect("created");
    std::fs::rename(&new, &moved).expect("moved");
    std::fs::create_dir(&new).expect("another");
    fs.create_new(&new.join("after")).expect("created");
    fs.link(&beside, &new.join("linked")).expect("linked");
    fs.rename(&new.join("before"), &new.join("renamed")).expect("renamed");
    fs.create_dir_all(&new.join("a").join("b")).expect("created");
    fs.sync_dir(&new).expect("synced");
    let sorted = |mut names: Vec<OsString>| {
        names.sort();
        names
    };
    let names = ["a", "after", "linked", "renamed"];
    assert_eq!(sorted(fs.read_dir(&new).expect("listed")), names);
    assert_eq!(sorted(StdFs.read_dir(&moved).expect("listed")), names);
    assert_eq!(StdFs.read_dir(&new).expect("listed"), [""; 0]);
    for refused in [fs.rename(&new, &dir.path().join("whole")), fs.remove_dir(&new)] {
        assert_eq!(refused.expect_err("another one").kind(), ErrorKind::NotFound);
    }
    assert!(new.is_dir());
    // Once the name refers to the open directory again, the rename and the removal are allowed.
    std::fs::remove_dir(&new).expect("removed");
    fs.rename(&moved, &new).expect("moved back");
    fs.rename(&new, &moved).expect("moved");
}
