//! A process that forks while it has a database open: a fork copies only the thread that forks.

use std::time::{Duration, Instant};

use mini_engine::{Db, Durability, Error, WriteBatch};

use proof::TempDir;

/// The exit code of a child whose calls were refused as expected.
const REFUSED: i32 = 7;

/// Runs `work` in a fork of this process, and returns the child's exit code. A child that hangs is killed after a minute.
#[expect(unsafe_code, reason = "the standard library cannot fork")]
fn in_a_fork(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child takes no lock that another thread may hold: the engine's calls refuse a fork before they lock, and the test harness waits for
    // this test. glibc makes its allocator usable in the child.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        let code = work();
        // SAFETY: `_exit` takes a number and ends the process, without the destructors that belong to the parent.
        unsafe { libc::_exit(code) }
    }
    let until = Instant::now() + Duration::from_secs(60);
    let (mut status, mut is_killed) = (0, false);
    loop {
        // SAFETY: the child is ours and was not waited for; `status` is a number of our own.
        let waited = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if waited == child {
            assert!(!is_killed, "the child hung");
            return libc::WEXITSTATUS(status);
        }
        if Instant::now() > until && !is_killed {
            // SAFETY: the child is ours and was not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            is_killed = true;
        }
        std::thread::yield_now();
    }
}

fn put(db: &Db, key: &str, durability: Durability) -> Result<(), Error> {
    let mut batch = WriteBatch::new();
    batch.insert(key, "value".repeat(20))?;
    db.write(batch, durability).map(drop)
}

pub(crate) fn a_fork_writes_nothing_to_the_database_of_its_parent() {
    // Catches an acknowledged write of the child that the parent overwrites, and a child that waits for workers that it does not have,
    // or removes files of its parent.
    for durability in [Durability::Buffered, Durability::Synced] {
        let dir = TempDir::new().unwrap();
        let db = Db::open(dir.path()).unwrap();
        put(&db, "before", durability).unwrap();
        let is_refused =
            |result: Result<(), Error>| matches!(result, Err(Error::ReadOnly { cause }) if cause.contains("fork"));
        let code = in_a_fork(|| {
            let refused = [
                put(&db, "of the child", durability),
                db.flush(),
                db.persist(Durability::Synced),
                db.compact_range(..),
                db.clone().close(),
            ];
            let all_refused = refused.map(is_refused) == [true; 5];
            drop(db.clone());
            if all_refused { REFUSED } else { 1 }
        });
        assert_eq!(code, REFUSED, "{durability:?}");
        put(&db, "after", durability).unwrap();
        // The parent's files are unchanged.
        db.flush().unwrap();
        put(&db, "last", durability).unwrap();
        drop(db);
        let db = Db::open(dir.path()).unwrap();
        assert!(db.recovery().findings().is_empty(), "{}", db.recovery());
        let keys: Vec<_> = db.iter().map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap()).collect();
        assert_eq!(keys, ["after", "before", "last"]);
        db.close().unwrap();
    }
}
