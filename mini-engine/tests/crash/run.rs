//! Runs a script and notes in the disk's record how far the writing has come. Each note stands after all operations that took effect before it
//! became true. So for a cut at any place, the record says what had been promised by then.

use crate::prelude::*;

/// Where every database is.
pub(crate) const DIR: &str = "/db";

/// A word of a record: which of the three numbers of [`Progress`] reached which value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    Begun(usize),
    Acknowledged(usize),
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

    /// Brings `progress` to where the note of this word says.
    pub(crate) fn read(word: u64, progress: &mut Progress) {
        let n = word as u32 as usize;
        match word >> 32 {
            0 => progress.begun = n,
            1 => progress.acknowledged = n,
            _ => progress.synced = n,
        }
    }
}

/// The time of a clock of the tests.
pub(crate) fn second(n: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(n)
}

/// A database being written to, on a disk in memory.
pub(crate) struct Run {
    pub(crate) mem: MemFs,
    fs: FaultFs,
    memtable_bytes: usize,
    l0_trigger: usize,
    policy: Compaction,
    settles: bool,
    tables_refused: bool,
    /// What the clock shows, in seconds: the number of the newest batch that was ever begun.
    pub(crate) time: u64,
    pub(crate) db: Option<Db>,
    pub(crate) batches: Vec<Batch>,
    pub(crate) progress: Progress,
}

impl Run {
    /// Opens the database on `mem`, through `fs`, which leads there, at this time.
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
            time: 0,
            memtable_bytes: script.memtable_bytes,
            l0_trigger: script.l0_trigger,
            policy: POLICIES[script.policy],
            settles: script.settles(),
            tables_refused: false,
            db: None,
            batches: Vec::new(),
            progress: Progress::default(),
        }
    }

    pub(crate) fn reopen(&mut self) -> Result<(), Error> {
        self.fs.set_time(second(self.time));
        let builder = Db::builder(DIR).memtable_bytes(self.memtable_bytes).l0_trigger(self.l0_trigger);
        // Levels small enough that a few values make several of them, or several runs of one.
        let (ratio, level1_bytes) = match self.policy {
            Compaction::Tiered | Compaction::LazyLeveled => (4, 16 << 10),
            _ => (2, 1 << 10),
        };
        let builder =
            builder.compaction(self.policy).size_ratio(ratio).level1_bytes(level1_bytes).table_file_bytes(2048);
        // A piece of a compaction is one table.
        let builder = builder.max_compaction_bytes(1024);
        // One compaction at a time, so that a seed repeats.
        let builder = builder
            .compaction_threads(1)
            .block_bytes(512)
            .partition_bytes(128)
            .immutable_memtables(4)
            .table_reads(if self.l0_trigger.is_multiple_of(2) { TableReads::Mmap } else { TableReads::Pread })
            .cache_bytes(64 << 10);
        self.db = Some(builder.file_system(Arc::new(self.fs.clone())).open()?);
        // The contents that an open has found are durable.
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

    /// Takes `batches` as the contents of the database. It has been opened, so they are durable.
    pub(crate) fn adopt(&mut self, batches: &[Batch]) {
        self.batches = batches.to_vec();
        let all = batches.len();
        self.progress = Progress { begun: all, acknowledged: all, synced: all };
    }

    /// All that was written so far is durable.
    pub(crate) fn note_all_synced(&mut self) {
        let all = self.progress.acknowledged;
        self.note(Note::Synced(all));
    }

    pub(crate) fn act(&mut self, act: &Act) -> Result<(), Error> {
        match act {
            Act::Write { batch, synced } => self.write(batch, *synced)?,
            Act::Transact { batch, synced } => self.transact(batch, *synced)?,
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

    pub(crate) fn write(&mut self, batch: &Batch, synced: bool) -> Result<(), Error> {
        self.noted(batch, synced, |db, durability| {
            let mut writes = WriteBatch::new();
            for change in batch.iter() {
                match change {
                    Change::Set(key, value) => writes.insert(key, value)?,
                    Change::SetUntil(key, value, at) => writes.insert_with_expiry(key, value, second(*at))?,
                    Change::Remove(key) => writes.remove(key)?,
                    Change::RemoveRange(from, Some(to)) => writes.remove_range(from..to)?,
                    Change::RemoveRange(from, None) => writes.remove_range(from..)?,
                    // A load is durable.
                    Change::Load(entries) => return db.ingest(entries).map(|_| Durability::Synced),
                }
            }
            db.write(writes, durability).map(|_| durability)
        })
    }

    /// Makes the changes in a transaction that also reads, so that its commit checks what it has read.
    fn transact(&mut self, batch: &Batch, synced: bool) -> Result<(), Error> {
        self.noted(batch, synced, |db, durability| {
            let transaction = db.transaction();
            transaction.get(COUNT)?;
            for change in batch.iter() {
                match change {
                    Change::Set(key, value) => transaction.insert(key, value)?,
                    Change::SetUntil(key, value, at) => transaction.insert_with_expiry(key, value, second(*at))?,
                    Change::Remove(key) => transaction.remove(key)?,
                    Change::RemoveRange(from, Some(to)) => transaction.remove_range(from..to)?,
                    Change::RemoveRange(from, None) => transaction.remove_range(from..)?,
                    Change::Load(_) => unreachable!("a load is a write of its own"),
                }
            }
            transaction.range("key2".."key6").try_for_each(|entry| entry.map(drop))?;
            transaction.commit(durability).map(|_| durability)
        })
    }

    /// Notes how far `write` has come with the batch.
    fn noted(
        &mut self,
        batch: &Batch,
        synced: bool,
        write: impl FnOnce(&Db, Durability) -> Result<Durability, Error>,
    ) -> Result<(), Error> {
        self.batches.push(batch.clone());
        let number = self.batches.len();
        self.time = self.time.max(number as u64);
        self.fs.set_time(second(self.time));
        self.note(Note::Begun(number));
        let durability = write(self.db(), if synced { Durability::Synced } else { Durability::Buffered })?;
        self.note(Note::Acknowledged(number));
        if durability == Durability::Synced {
            self.note(Note::Synced(number));
        }
        Ok(())
    }

    /// Waits until the workers have nothing left to do, or `give_up`.
    pub(crate) fn settle(&self, give_up: impl Fn() -> bool) {
        while self.settles && !self.tables_refused && !self.is_settled() && !give_up() {
            std::thread::yield_now();
        }
    }

    fn is_settled(&self) -> bool {
        let names = self.mem.read_dir(Path::new(DIR)).unwrap();
        let count = |end: &str| names.iter().filter(|name| name.to_string_lossy().ends_with(end)).count() as u64;
        let metrics = self.db().metrics();
        let tables = metrics.levels.iter().map(|level| level.tables).sum();
        let are_logs_done =
            metrics.immutable_memtables == 0 && metrics.flushes_running == 0 && metrics.logs_being_made == 0;
        let is_idle = are_logs_done && metrics.compactions_running == 0 && !metrics.compaction_due;
        // One log more may have been made ahead.
        is_idle && (1..=2).contains(&count(".log")) && count(".sst") == tables
    }
}
