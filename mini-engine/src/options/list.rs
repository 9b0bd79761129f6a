//! The list of all options. Each has its documentation, which its setters share, its name, type and default, and the range of its value.

/// Calls the macro `$callback` with `$arguments` and the list of options.
macro_rules! with_options {
    ($callback:ident $($arguments:tt)*) => {
        $callback! {
            [$($arguments)*]
            values {
                /// The bytes of memory at which a memtable is frozen and flushed to a table. Default 64 MiB; 4 KiB to 16 GiB.
                memtable_bytes: usize = 64 << 20, 4 << 10..=16 << 30;
                /// The data structure of memtables. Default [`MemtableKind::SkipList`]. The files on disk do not depend on it.
                memtable_kind: MemtableKind = MemtableKind::SkipList;
                /// The number of frozen memtables that may wait for their flush before writes stall. Default 1; 1 to 64.
                immutable_memtables: usize = 1, 1..=64;
                /// The ratio between the sizes of a level and the one above, or the maximum number of runs of a level: see [`Compaction`]. With one
                /// run on a level, larger ratios rewrite more and keep less obsolete data; with several runs, it is the other way round. Default 10;
                /// 2 to 32.
                size_ratio: u64 = 10, 2..=32;
                /// The number of tables on level 0 at which writers begin to be slowed down, increasingly, so that compactions can catch up. Default
                /// 20; 1 to 1000. A value below `l0_trigger` + 1 is raised to that, because with fewer tables no compaction is due that could help.
                l0_slowdown: usize = 20, 1..=1000;
                /// The number of tables on level 0 at which writers, and callers of `flush`, wait for a compaction. Default 36; 1 to 1000. A value
                /// below `l0_trigger` + 1 is raised to that, because a wait for a compaction that is not due would never end. If no compaction can
                /// help, because a table that all of them need is damaged, writers get [`Error::Stalled`](crate::Error::Stalled) instead.
                l0_stop: usize = 36, 1..=1000;
                /// With leveled and partial compaction, the size of the data in bytes up to which one level below level 0 suffices. Larger data gets
                /// levels in between, each smaller than the one below it by `size_ratio`, up to the first one that is not larger than this, or that
                /// would be smaller than one compaction of level 0. Default 64 MiB; 1 KiB to 1 PiB.
                level1_bytes: u64 = 64 << 20, 1 << 10..=1 << 50;
                /// The size in bytes at which a compaction ends a table and begins the next; a table may exceed it by the versions of one key and by
                /// its index. If this is more than a 32nd of the data, tables end at a 32nd of the data, but not below `memtable_bytes`. Default 64
                /// MiB; 1 KiB to 16 GiB.
                table_file_bytes: u64 = 64 << 20, 1 << 10..=16 << 30;
                /// The number of compactions that may run at once, in addition to flushes, each on its own thread. Default 2; 1 to 64. One of the
                /// threads only takes tables off level 0, so that writers never wait for a compaction of deeper levels; if the value is 1, that
                /// thread is added to it.
                compaction_threads: usize = 2, 1..=64;
                /// The number of bytes of a table after which they are synced, while the rest of the table is still being written. So the final sync
                /// of a flush, for which writers may wait, does not queue after hundreds of megabytes that compactions have written. Default 4 MiB;
                /// 64 KiB to 16 GiB.
                bytes_per_sync: u64 = 4 << 20, 64 << 10..=16 << 30;
                /// Whether a write that waits for a flush, or for a compaction of level 0, still waits if that lacks disk space or file handles.
                /// Default false: the write returns the error, reads continue, and writes succeed again without a reopen once there is space.
                wait_for_space: bool = false;
                /// The size of a data block before compression, in bytes; a larger entry gets a block of its own. Default 4096; 512 to 65536.
                block_bytes: usize = 4096, 512..=64 << 10;
                /// The maximum size in bytes of a partition, which is a block with the filter and the index of neighbouring data blocks, at least
                /// one. A point read may have to read a partition. Smaller partitions need a larger root, which stays in memory while the table is
                /// open. Default 8192; 128 to 1048576.
                partition_bytes: usize = 8 << 10, 128..=1 << 20;
                /// Bits of filter for each key of a table; more bits cause fewer useless reads of absent keys. Default 10 (about 1 % of absent keys
                /// cause a useless read); 0 (no filter) to 32.
                filter_bits_per_key: u32 = 10, 0..=32;
                /// The bytes of decompressed blocks that the cache keeps: data blocks, and the filters and indexes of tables, which take up to half
                /// and are not evicted by data blocks. The memory of tables outside the cache (`Metrics::table_memory_bytes`) is subtracted from that
                /// of the data blocks, which keep at least an eighth. Default 32 MiB; 0 to 1 PiB.
                cache_bytes: u64 = 32 << 20, 0..=1 << 50;
                /// How tables are read. Default [`TableReads::Pread`]; [`TableReads::Mmap`] for data that is not compressed and mostly in the page
                /// cache. RocksDB calls this `allow_mmap_reads`.
                table_reads: TableReads = TableReads::Pread;
                /// The durability of a single insert or remove. Default [`Durability::Buffered`].
                durability: Durability = Durability::Buffered;
                /// The clock that determines when entries expire. The default is the system's clock.
                time_source: TimeSource = TimeSource::default();
                /// Bytes of memory for the reads and writes of one [`Transaction`](crate::Transaction): keys, values, and about a hundred bytes for
                /// each. A read or write that would need more returns [`Error::Full`](crate::Error::Full). The keys of the newest writes, which
                /// commits compare with their reads, take at most the same amount again. Default 64 MiB; 4 KiB to 1 GiB.
                max_transaction_bytes: usize = 64 << 20, 4 << 10..=1 << 30;
                /// Whether batches of 512 bytes and more are compressed in the log, with Zstandard if that saves 12 %. The thread that writes the
                /// batch compresses it. True needs the feature `zstd`. Default false; true or false.
                log_compression: bool = false;
                /// The treatment of damaged files by an open. Default [`RecoveryMode::Strict`].
                recovery_mode: RecoveryMode = RecoveryMode::Strict;
                /// Whether opening a directory without a database creates one. Default true.
                create_if_missing: bool = true;
                /// Whether the database is opened read-only. Then the open writes nothing, creates nothing and starts no thread, so it works on a
                /// file system that is read-only or full. The writes in the logs are replayed into memory ([`Options::replay_memory_bytes`]). A torn
                /// tail is reported and left in place; with [`RecoveryMode::Quarantine`] no file is renamed. Several read-only opens may exist at
                /// once, but not together with a writer: [`Error::Locked`](crate::Error::Locked); see [`Builder::reader`](crate::Builder::reader).
                /// Writes return [`Error::ReadOnly`](crate::Error::ReadOnly). Default false.
                ///
                /// If a directory has no `LOCK` file, such as a copy that was never opened, it is read without a lock: a writer could open it
                /// meanwhile.
                read_only: bool = false;
                /// Bytes of memory that a read-only open may use for writes that are only in logs. If they need more, it fails with
                /// [`Error::Full`](crate::Error::Full); an open for writing flushes them to tables, however many there are. Default 1 GiB; 64 KiB to
                /// 1 PiB.
                replay_memory_bytes: u64 = 1 << 30, 64 << 10..=1 << 50;
            }
            // Options without a fixed default: an unset value depends on other options.
            optional {
                /// The compaction policy. The default is that of the last open, and [`Compaction::Leveled`] for a new database.
                compaction: Compaction;
                /// The number of tables that level 0 may hold before some are compacted. Default 4. With [`Compaction::Tiered`] it is `size_ratio`,
                /// since level 0 is a tier like any other, but at most half of `l0_slowdown`. 1 to 1000. Tables that are tiny compared with those
                /// that they overlap below are compacted with each other first.
                l0_trigger: usize, 1..=1000;
                /// The bytes that a compaction writes before it replaces the inputs read so far by its output; it continues with the rest later. Such
                /// a piece ends with a full table, so a value below `table_file_bytes` is raised to that. A running compaction needs about this much
                /// additional space; if a shutdown interrupts it, no work is lost. Default a sixteenth of the data, but at least one full table and
                /// at most 4; 1 KiB to 1 PiB.
                max_compaction_bytes: u64, 1 << 10..=1 << 50;
                /// The number of table files that are kept open at once; a newly opened file replaces one that was not read for a while. The default
                /// is half of the process's limit (`RLIMIT_NOFILE`), at most 8,192, so that handles are left for the logs, the manifest and the rest
                /// of the program. 1 to 1,048,576. Each table that was read keeps about 11 KiB of memory for 64 MiB of data, open or not
                /// (`Metrics::table_memory_bytes`).
                max_open_files: usize, 1..=1 << 20;
            }
        }
    };
}

/// Defines the setters of `$owner`, which must have a method `options_mut`.
macro_rules! define_setters {
    (
        [$owner:ty]
        values { $($(#[$doc:meta])* $name:ident: $type:ty = $default:expr $(, $range:expr)?;)* }
        optional { $($(#[$doc_of_optional:meta])* $optional:ident: $type_of_optional:ty $(, $range_of_optional:expr)?;)* }
    ) => {
        impl $owner {
            $(
                $(#[$doc])*
                pub fn $name(mut self, value: $type) -> Self {
                    self.options_mut().$name = value;
                    self
                }
            )*

            $(
                $(#[$doc_of_optional])*
                pub fn $optional(mut self, value: $type_of_optional) -> Self {
                    self.options_mut().$optional = Some(value);
                    self
                }
            )*

            /// Opens the database as a reader, beside a process that writes to it or may begin to. Any number of processes may read.
            ///
            /// A reader shows one moment: all writes that were acknowledged before the open, buffered ones too, and each batch as a whole.
            /// [`Db::refresh`](crate::Db::refresh) moves it on. Snapshots and iterators stay at their moment. Writes return
            /// [`Error::ReadOnly`](crate::Error::ReadOnly), and [`Db::checkpoint`](crate::Db::checkpoint) copies the moment.
            ///
            /// A reader takes no lock and changes no file, so neither side waits for the other or can do it harm, whenever one of them is killed. But it
            /// takes space: a table that the writer has removed keeps its space on the disk as long as a reader, or a snapshot or an iterator of one,
            /// holds it open. Refresh a reader that lives long.
            /// It works on a read-only mount of a directory to which another machine's processes do not write: writer and readers must share the
            /// memory in which the system keeps files, which network file systems do not. The writes that are only in logs are kept in memory
            /// ([`Options::replay_memory_bytes`]). All tables of the moment stay open, so the process needs a file handle for each: with more tables
            /// than the limit of the process (`RLIMIT_NOFILE`), or than [`Options::max_open_files`] if it is set, an open or a refresh returns
            /// [`Error::Full`](crate::Error::Full). On systems other than Unix, an open returns
            /// [`Error::InvalidArgument`](crate::Error::InvalidArgument).
            ///
            /// In rare cases a reader shows a write for which the writer then gets an error: one that fails because the disk is full. After a
            /// failed sync it shows what the writer shows.
            ///
            /// ```
            /// # fn main() -> mini_engine::Result<()> {
            /// # let dir = tempfile::tempdir().unwrap();
            /// use mini_engine::Db;
            ///
            /// let writer = Db::open(dir.path())?;
            /// writer.insert("tea", "3.20")?;
            /// let reader = Db::builder(dir.path()).reader().open()?; // usually in another process
            /// assert_eq!(reader.get("tea")?.as_deref(), Some(&b"3.20"[..]));
            /// writer.insert("tea", "3.50")?;
            /// assert_eq!(reader.get("tea")?.as_deref(), Some(&b"3.20"[..]));
            /// reader.refresh()?;
            /// assert_eq!(reader.get("tea")?.as_deref(), Some(&b"3.50"[..]));
            /// # Ok(())
            /// # }
            /// ```
            pub fn reader(mut self) -> Self {
                self.options_mut().follows = true;
                self
            }

            /// The compression of data blocks, the same on every level. See [`Options::compression_per_level`].
            pub fn compression(self, compression: Compression) -> Self {
                self.compression_per_level([compression])
            }

            /// The compression of data blocks on each level: the first one is for level 0, the last one for its level and all below. Existing tables
            /// keep their compression until they are rewritten. The default is none on levels 0 and 1, which are small and soon rewritten, and
            /// [`Compression::Lz4`] below; 1 to 8 levels.
            pub fn compression_per_level(mut self, levels: impl Into<Vec<Compression>>) -> Self {
                self.options_mut().compression = levels.into();
                self
            }
        }
    };
}

pub(crate) use {define_setters, with_options};
