//! WiredTiger: a B+ tree with a log. A session belongs to one thread at a time, so operations borrow one of a pool.

use std::sync::{Mutex, PoisonError};

use wiredtiger::{Connection, Cursor, Session};

use super::store::{Done, Record, Settings, Store, store};

const RECORDS: &str = "table:records";
/// WiredTiger refuses a smaller cache.
const LEAST_CACHE: u64 = 1 << 20;

/// A cursor is closed before its session, which is the order of the fields.
struct Worker {
    cursor: Cursor,
    session: Session,
}

/// The workers are closed before their connection.
pub(crate) struct Open {
    workers: Mutex<Vec<Worker>>,
    connection: Connection,
}

fn open(settings: &Settings) -> Done<Open> {
    // Each commit writes the log: without a sync, it survives a killed process.
    let (cache, method) =
        (settings.shape.cache_bytes().max(LEAST_CACHE), if settings.synced { "fsync" } else { "none" });
    let sync = format!("transaction_sync=(enabled=true,method={method})");
    let config = format!("create,session_max=1100,cache_size={cache},log=(enabled=true),{sync}");
    let dir = settings.dir.to_str().ok_or("expected a directory whose name is text")?;
    Ok(Open { connection: Connection::open(dir, &config)?, workers: Mutex::default() })
}

impl Open {
    fn worker(&self) -> Done<Worker> {
        let idle = self.workers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(
            || {
                let session = self.connection.open_session()?;
                session.create(RECORDS, "key_format=u,value_format=u,leaf_page_max=4KB")?;
                Ok(Worker { cursor: session.open_cursor(RECORDS, "overwrite")?, session })
            },
            Ok,
        )
    }

    /// Runs `work` on a worker, whose cursor gives up its place afterwards.
    fn on_worker<R>(&self, work: impl FnOnce(&mut Worker) -> Done<R>) -> Done<R> {
        let mut worker = self.worker()?;
        let made = work(&mut worker)?;
        worker.cursor.reset()?;
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        Ok(made)
    }
}

fn put(cursor: &mut Cursor, record: Record<'_>) -> Done {
    cursor.set_key(record.key);
    cursor.set_value(record.value);
    Ok(cursor.insert()?)
}

store! {
    Wiredtiger(Open);
    open(settings) => open(settings)?;
    put(of, record) => of.on_worker(|worker| put(&mut worker.cursor, record))?;
    put_batch(of, records) => of.on_worker(|worker| {
        worker.session.begin_transaction()?;
        records.try_for_each(|record| put(&mut worker.cursor, record))?;
        Ok(worker.session.commit_transaction()?)
    })?;
    get(of, key, read) => of.on_worker(|Worker { cursor, .. }| {
        cursor.set_key(key);
        Ok(if cursor.search()? { Some(read(cursor.get_value()?)) } else { None })
    })?;
    // The binding copies keys.
    scan(of, from, most, each) => of.on_worker(|Worker { cursor, .. }| {
        cursor.set_key(from);
        // Below 0: the cursor is at the key before `from`.
        let mut is_there = match cursor.search_near()? {
            Some(side) if side < 0 => cursor.next()?,
            found => found.is_some(),
        };
        for _ in 0..most {
            if !is_there {
                break;
            }
            let (key, value) = cursor.get_raw_kv()?;
            each(&key, &value);
            is_there = cursor.next()?;
        }
        Ok(())
    })?;
    // The binding has no checkpoint, so `flush` does nothing, and `load` is not synced.
    close(of) => {
        drop(of.workers);
        of.connection.close()?;
    };
}
