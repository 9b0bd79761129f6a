//! Runs a script and notes the writer's progress in the disk's record. Each note comes after all operations that took effect before it became
//! true. So for a cut at any place, the notes before it give the events that were acknowledged or durable by then.

use crate::prelude::*;

/// The directory of every database.
pub(crate) const DIR: &str = "/db";

/// A note in a record: a part of the [`Progress`] of the writer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    Begun(usize),
    /// This event was acknowledged; a creation or drop of a keyspace is then durable.
    Acknowledged(usize),
    /// All events up to this one are durable.
    Synced(usize),
}

impl Note {
    fn word(self) -> u64 {
        let (kind, n) = match self {
            Note::Begun(n) => (0, n),
            Note::Acknowledged(n) => (1, n),
            Note::Synced(n) => (2, n),
        };
        kind << 32 | n as u64
    }

    /// Whether `word` encodes that an event was begun.
    pub(crate) fn is_begun(word: u64) -> bool {
        word >> 32 == 0
    }

    /// Updates `progress` by the note that `word` encodes.
    pub(crate) fn read(word: u64, progress: &mut Progress) {
        let n = word as u32 as usize;
        match word >> 32 {
            0 => progress.begun = n,
            1 => {
                progress.acknowledged = n;
                progress.durable.keyspaces = progress.durable.keyspaces.max(n);
            }
            _ => progress.durable = progress.durable.max(Kept::all(n)),
        }
    }
}

fn durability(synced: bool) -> Durability {
    if synced { Durability::Synced } else { Durability::Buffered }
}

/// A database being written to, on a disk in memory.
pub(crate) struct Run {
    pub(crate) mem: MemFs,
    fs: FaultFs,
    clock: Clock,
    memtable_bytes: usize,
    l0_trigger: usize,
    policy: Compaction,
    settles: bool,
    tables_refused: bool,
    /// The time of the clock, in seconds: the number of the newest event that was ever begun.
    pub(crate) time: u64,
    pub(crate) db: Option<Db>,
    pub(crate) events: Vec<Event>,
    pub(crate) progress: Progress,
    /// The number of transactions that were refused.
    pub(crate) refused: u64,
}

impl Run {
    /// Opens the database on `mem`, through `fs`, a layer over `mem`, at this time.
    pub(crate) fn open(
        script: &Script,
        mem: MemFs,
        fs: Arc<dyn FileSystem>,
        lie: Lie,
        time: u64,
    ) -> Result<Run, Error> {
        let mut run = Run { time, ..Run::closed(script, mem, fs, lie) };
        run.reopen()?;
        Ok(run)
    }

    pub(crate) fn closed(script: &Script, mem: MemFs, fs: Arc<dyn FileSystem>, lie: Lie) -> Run {
        Run {
            mem,
            fs: lie.over(fs),
            clock: Clock::at(second(0)),
            time: 0,
            memtable_bytes: script.memtable_bytes,
            l0_trigger: script.l0_trigger,
            policy: POLICIES[script.policy],
            settles: script.settles(),
            tables_refused: false,
            db: None,
            events: Vec::new(),
            progress: Progress::default(),
            refused: 0,
        }
    }

    pub(crate) fn reopen(&mut self) -> Result<(), Error> {
        self.clock.set(second(self.time));
        let builder = Db::builder(DIR).memtable_bytes(self.memtable_bytes).l0_trigger(self.l0_trigger);
        // Levels are so small that a few values make several levels, or several runs of a level.
        let (ratio, level1_bytes) = match self.policy {
            Compaction::Tiered | Compaction::LazyLeveled => (4, 16 << 10),
            _ => (2, 1 << 10),
        };
        let builder =
            builder.compaction(self.policy).size_ratio(ratio).level1_bytes(level1_bytes).table_file_bytes(2048);
        // Each piece of a compaction is one table.
        let builder = builder.max_compaction_bytes(1024);
        // One compaction at a time, so that a seed repeats a run.
        let builder = builder
            .compaction_threads(1)
            .block_bytes(512)
            .partition_bytes(128)
            .immutable_memtables(4)
            .table_reads(if self.l0_trigger.is_multiple_of(2) { TableReads::Mmap } else { TableReads::Pread })
            .cache_bytes(64 << 10);
        self.db = Some(builder.file_system(self.fs.arc()).time_source(self.clock.source()).open()?);
        // The contents that an open has recovered are durable.
        self.note_all_synced();
        Ok(())
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().expect("open between acts")
    }

    fn note(&mut self, note: Note) {
        Note::read(note.word(), &mut self.progress);
        self.mem.note(note.word());
    }

    /// Assumes `events` as the contents of the database. It was opened with them, so they are durable.
    pub(crate) fn adopt(&mut self, events: Vec<Event>) {
        let all = events.len();
        self.events = events;
        [Note::Begun(all), Note::Acknowledged(all), Note::Synced(all)].into_iter().for_each(|note| self.note(note));
    }

    /// Notes that all events so far are durable.
    pub(crate) fn note_all_synced(&mut self) {
        let all = self.progress.acknowledged;
        self.note(Note::Synced(all));
    }

    /// The names of the keyspaces, without the default one.
    pub(crate) fn live(&self) -> Vec<Name> {
        entries_after(&self.events).into_keys().filter(|name| !name.is_empty()).collect()
    }

    pub(crate) fn act(&mut self, act: &Act) -> Result<(), Error> {
        match act {
            Act::Write { batch, synced } => self.write(batch, *synced)?,
            Act::Transact { batch, synced } => self.transact(batch, *synced)?,
            Act::Keyspace(event) => self.change_keyspaces(event)?,
            Act::Persist => {
                self.db().persist(Durability::Synced)?;
                self.note_all_synced();
            }
            Act::Flush => match self.db().flush() {
                Err(_) if self.tables_refused => {}
                flushed => {
                    flushed?;
                    self.note_all_synced();
                }
            },
            Act::CompactRange => {
                self.db().compact_range("key2".."key6")?;
                for name in self.live() {
                    keyspace(self.db(), name)?.compact_range("key3"..)?;
                }
                self.note_all_synced();
            }
            Act::Reopen { close } => {
                let db = self.db.take().expect("open between acts");
                if *close {
                    db.close()?;
                    self.note_all_synced();
                } else {
                    drop(db);
                }
                self.reopen()?;
            }
            Act::RefuseTables(refused) => {
                self.tables_refused = *refused;
                self.fs.refuse_files(refused.then_some("sst"));
            }
        }
        Ok(())
    }

    /// The time of the next event, in seconds.
    fn next_second(&self) -> u64 {
        self.time.max(self.events.len() as u64 + 1)
    }

    /// The batch as the next event. In keyspaces whose entries expire by default, values without an expiry of their own get the default one or, in
    /// every second event, never expire.
    fn with_default_expiries(&self, batch: &Batch) -> Batch {
        let (second, is_for_ever) = (self.next_second(), self.events.len().is_multiple_of(2));
        let with_default_expiry = |(name, change): &(Name, Change)| {
            let change = match (change, lifetime(name)) {
                (Change::Set(key, value), Some(_)) if is_for_ever => Change::SetUntil(key.clone(), value.clone(), None),
                (Change::Set(key, value), Some(lifetime)) => {
                    Change::SetByDefault(key.clone(), value.clone(), second + lifetime)
                }
                (change, _) => change.clone(),
            };
            (*name, change)
        };
        Arc::new(batch.iter().map(with_default_expiry).collect())
    }

    pub(crate) fn write(&mut self, batch: &Batch, synced: bool) -> Result<(), Error> {
        let batch = self.with_default_expiries(batch);
        self.noted(&Event::Batch(batch.clone()), |db| {
            let mut writes = WriteBatch::new();
            for (name, change) in batch.iter() {
                let keyspace = keyspace(db, name)?;
                let mut writes = writes.keyspace(&keyspace);
                match change {
                    Change::Set(key, value) | Change::SetByDefault(key, value, _) => writes.insert(key, value)?,
                    Change::SetUntil(key, value, at) => writes.insert_with_expiry(key, value, at.map(second))?,
                    Change::Remove(key) => writes.remove(key)?,
                    Change::RemoveRange(from, Some(to)) => writes.remove_range(from..to)?,
                    Change::RemoveRange(from, None) => writes.remove_range(from..)?,
                    // A load is durable.
                    Change::Load(entries) => return keyspace.ingest(entries).map(|_| Durability::Synced),
                }
            }
            db.write(writes, durability(synced)).map(|_| durability(synced))
        })
    }

    /// Makes the changes in a transaction that also reads, so that its commit checks its reads. A second transaction, which began at the same time,
    /// is refused after it: no change of the second one may ever be visible.
    fn transact(&mut self, batch: &Batch, synced: bool) -> Result<(), Error> {
        let (batch, live, mut late) = (self.with_default_expiries(batch), self.live(), None);
        self.noted(&Event::Batch(batch.clone()), |db| {
            let refused = db.transaction();
            refused.get(COUNT)?;
            for name in live.iter().chain(&[""]) {
                refused.keyspace(&keyspace(db, name)?).insert("key1", "of a refused transaction")?;
            }
            late = Some(refused);
            let transaction = db.transaction();
            transaction.get(COUNT)?;
            for (name, change) in batch.iter() {
                let writes = transaction.keyspace(&keyspace(db, name)?);
                match change {
                    Change::Set(key, value) | Change::SetByDefault(key, value, _) => writes.insert(key, value)?,
                    Change::SetUntil(key, value, at) => writes.insert_with_expiry(key, value, at.map(second))?,
                    Change::Remove(key) => writes.remove(key)?,
                    Change::RemoveRange(from, Some(to)) => writes.remove_range(from..to)?,
                    Change::RemoveRange(from, None) => writes.remove_range(from..)?,
                    Change::Load(_) => unreachable!("a load is a write of its own"),
                }
            }
            transaction.range("key2".."key6").try_for_each(|entry| entry.map(drop))?;
            for name in live {
                transaction.keyspace(&keyspace(db, name)?).iter().try_for_each(|entry| entry.map(drop))?;
            }
            transaction.commit(durability(synced)).map(|_| durability(synced))
        })?;
        match late.expect("begun").commit(durability(synced)) {
            Err(Error::Conflict { .. }) => {
                self.refused += 1;
                Ok(())
            }
            committed => committed.map(|seqno| panic!("committed at {seqno}, although what it has read has changed")),
        }
    }

    pub(crate) fn change_keyspaces(&mut self, event: &Event) -> Result<(), Error> {
        self.noted(event, |db| match event {
            Event::Create(name) => {
                let created = match lifetime(name) {
                    Some(seconds) => {
                        let options = KeyspaceOptions::default().expire_after(Duration::from_secs(seconds));
                        db.keyspace_with(name, options)?
                    }
                    None => db.keyspace(name)?,
                };
                assert_eq!(created.name(), *name);
                // Earlier batches need not be durable.
                Ok(Durability::Buffered)
            }
            Event::Drop(name) => db.drop_keyspace(name).map(|()| Durability::Synced),
            Event::Batch(_) => unreachable!("a batch is written"),
        })
    }

    /// Writes the event by `write`, and notes its progress.
    fn noted(&mut self, event: &Event, write: impl FnOnce(&Db) -> Result<Durability, Error>) -> Result<(), Error> {
        self.time = self.next_second();
        self.events.push(event.clone());
        let number = self.events.len();
        // Noted before the clock moves, because a worker may record the new time at once.
        self.note(Note::Begun(number));
        self.clock.set(second(self.time));
        let durability = write(self.db())?;
        self.note(Note::Acknowledged(number));
        if durability == Durability::Synced {
            self.note(Note::Synced(number));
        }
        Ok(())
    }

    /// Waits until the workers have nothing left to do, or `give_up` returns true.
    pub(crate) fn settle(&self, give_up: impl Fn() -> bool) {
        wait_while(|| self.settles && !self.tables_refused && !self.is_settled() && !give_up());
    }

    fn is_settled(&self) -> bool {
        let names = self.mem.read_dir(Path::new(DIR)).unwrap();
        let count = |end: &str| names.iter().filter(|name| name.to_string_lossy().ends_with(end)).count() as u64;
        let metrics = self.db().metrics();
        let tables = metrics.levels.iter().map(|level| level.tables).sum();
        let are_logs_done =
            metrics.immutable_memtables == 0 && metrics.flushes_running == 0 && metrics.logs_being_made == 0;
        let is_idle = are_logs_done && metrics.compactions_running == 0 && !metrics.compaction_due;
        // One more log may have been made in advance, and logs of earlier sessions stay until the first flush.
        let logs = count(".log");
        is_idle && logs > 0 && (logs <= 2 || metrics.flushes == 0) && count(".sst") == tables
    }
}
