//! The list of all options: for each its documentation, which its setters share, its name, type and default, and the range of its value.

/// Calls the macro `$callback` with `$arguments` and the list of options.
macro_rules! with_options {
    ($callback:ident $($arguments:tt)*) => {
        $callback! {
            [$($arguments)*]
            values {
                /// Bytes of memory at which a memtable is frozen and written to a table. Default 64 MiB; 4 KiB to 16 GiB.
                memtable_bytes: usize = 64 << 20, 4 << 10..=16 << 30;
                /// The data structure of memtables. Default [`MemtableKind::SkipList`]. Nothing on disk depends on it.
                memtable_kind: MemtableKind = MemtableKind::SkipList;
                /// The number of frozen memtables that may wait for their flush before writes stall. Default 1; 1 to 64.
                immutable_memtables: usize = 1, 1..=64;
                /// The size of each level relative to the one above, or the number of runs of a level: see [`Compaction`]. With one run on a level,
                /// larger ratios rewrite more and hold less obsolete data; with several, it is the other way round.
                /// Default 10; 2 to 32.
                size_ratio: u64 = 10, 2..=32;
                /// The number of tables on level 0 at which writers begin to be slowed down, ever more, so that compactions catch up. Default 20; 1
                /// to 1000. The value is raised to `l0_trigger` + 1 if it is smaller: below that no compaction is due that could help.
                l0_slowdown: usize = 20, 1..=1000;
                /// The number of tables on level 0 at which writers, and callers of `flush`, wait for a compaction. Default 36; 1 to 1000. The
                /// value is raised to `l0_trigger` + 1 if it is smaller, because a wait for a compaction that is not due would have no end. If no
                /// compaction can help, because a table that all of them need is damaged, writers get [`Error::Stalled`](crate::Error::Stalled)
                /// instead.
                l0_stop: usize = 36, 1..=1000;
                /// The size in bytes up to which one level below level 0 is enough, with leveled and partial compaction. Larger data gets levels in
                /// between, each `size_ratio` times smaller than the one below it, up to the first that is not larger than this, or that would be
                /// smaller than one compaction of level 0. Default 64 MiB; 1 KiB to 1 PiB.
                level1_bytes: u64 = 64 << 20, 1 << 10..=1 << 50;
                /// Bytes at which a compaction ends a table and begins the next; a table may be longer by the versions of one key and by its index.
                /// If this is more than a 32nd of the data, tables end at a 32nd, but not below `memtable_bytes`.
                /// Default 64 MiB; 1 KiB to 16 GiB.
                table_file_bytes: u64 = 64 << 20, 1 << 10..=16 << 30;
                /// The number of compactions that may run at once, beside flushes, each on its own thread. Default 2; 1 to 64. One of the threads
                /// only takes tables off level 0, so that writers never wait for a compaction of deeper levels; if the value is 1, this thread is
                /// an additional one.
                compaction_threads: usize = 2, 1..=64;
                /// Bytes of a table that are written before they are synced, while the rest of the table is still to be written. So the
                /// sync at the end of a flush, which writers may wait for, does not queue behind hundreds of megabytes that compactions
                /// have written. Default 4 MiB; 64 KiB to 16 GiB.
                bytes_per_sync: u64 = 4 << 20, 64 << 10..=16 << 30;
                /// Whether a write that waits for a flush, or for a compaction of level 0, continues to wait while that finds no disk space or no
                /// file handle. Default false: the write fails with the error, reads continue, and writes succeed again without a reopen once there
                /// is room.
                wait_for_space: bool = false;
                /// Bytes of a data block before compression; an entry larger than that gets a block of its own.
                /// Default 4096; 512 to 65536.
                block_bytes: usize = 4096, 512..=64 << 10;
                /// The maximum size in bytes of a partition, a block with the filter and the index of neighbouring data blocks; it has those of at
                /// least one data block. A point read may have to read one. Smaller partitions need a larger root, which stays in memory while the
                /// table is open. Default 8192; 128 to 1048576.
                partition_bytes: usize = 8 << 10, 128..=1 << 20;
                /// Bits of filter for each key of a table; more bits make fewer useless reads of absent keys. Default 10 (about 1 % of absent keys
                /// cause a useless read); 0 (no filter) to 32.
                filter_bits_per_key: u32 = 10, 0..=32;
                /// Bytes of blocks kept in memory, decompressed: data blocks, and the filters and indexes of tables, which take up to half and are
                /// not evicted by data blocks. The memory of tables outside the cache (`Metrics::table_memory_bytes`) is taken from the data blocks,
                /// which keep at least an eighth. Default 32 MiB; 0 to 1 PiB.
                cache_bytes: u64 = 32 << 20, 0..=1 << 50;
                /// The way in which tables are read. Default [`TableReads::Pread`]; [`TableReads::Mmap`] for data that is not compressed and mostly
                /// in
                /// the page cache. RocksDB calls this `allow_mmap_reads`.
                table_reads: TableReads = TableReads::Pread;
                /// The durability of a single insert or remove. Default [`Durability::Buffered`].
                durability: Durability = Durability::Buffered;
                /// The clock by which entries expire. Default: the system's.
                time_source: TimeSource = TimeSource::default();
                /// Bytes of memory that the reads and writes of one [`Transaction`](crate::Transaction) may take: keys, values, and about a hundred
                /// bytes for each. A read or write that would need more is [`Error::Full`](crate::Error::Full). The keys of the newest writes, with
                /// which commits compare what was read, take as much at most. Default 64 MiB; 4 KiB to 1 GiB.
                max_transaction_bytes: usize = 64 << 20, 4 << 10..=1 << 30;
                /// Whether batches of 512 bytes and more are compressed in the log (Zstandard, where that saves 12 %). The writer of the batch
                /// spends the time for it. True needs the feature `zstd`. Default false; true or false.
                log_compression: bool = false;
                /// The treatment of damage by an open. Default [`RecoveryMode::Strict`].
                recovery_mode: RecoveryMode = RecoveryMode::Strict;
                /// Whether opening a directory without a database creates one. Default true.
                create_if_missing: bool = true;
                /// Whether the database is only read. Then opening it writes nothing, creates nothing and starts no thread, so it works on a file
                /// system that is read-only or full. The writes in the logs are kept in memory ([`Options::replay_memory_bytes`]). A torn tail is
                /// reported and stays; with [`RecoveryMode::Quarantine`] no file is renamed. Read-only opens go beside each other, but not beside a
                /// writer: [`Error::Locked`](crate::Error::Locked).
                /// Writes are [`Error::ReadOnly`](crate::Error::ReadOnly). Default false.
                ///
                /// A directory without a `LOCK` file, such as a copy that was never opened, is read without a lock: a writer could open it
                /// meanwhile.
                read_only: bool = false;
                /// Bytes of memory that a read-only open may take for writes that are only in logs. If they need more, it fails with
                /// [`Error::Full`](crate::Error::Full); an open for writing puts them into tables, whatever their size. Default 1 GiB; 64 KiB to 1
                /// PiB.
                replay_memory_bytes: u64 = 1 << 30, 64 << 10..=1 << 50;
            }
            // Options without a default: an unset value depends on other options.
            optional {
                /// The compaction policy. Default: that of the last open; [`Compaction::Leveled`] for a new database.
                compaction: Compaction;
                /// The number of tables that level 0 may hold before some are compacted. Default 4; with [`Compaction::Tiered`] `size_ratio`, since
                /// level 0 is a tier like any other, but at most half of `l0_slowdown`. 1 to 1000. Tables that are tiny beside the tables that they
                /// overlap below are compacted with each other first.
                l0_trigger: usize, 1..=1000;
                /// Bytes that a compaction writes before it replaces the inputs that it has read by its tables, and continues with the rest later.
                /// It ends with a full table, so the value is raised to `table_file_bytes` if it is smaller. While it runs, a compaction needs
                /// about this much additional space; a compaction that a shutdown interrupts loses nothing. Default a sixteenth of the data, but at
                /// least one full table and at most 4; 1 KiB to 1 PiB.
                max_compaction_bytes: u64, 1 << 10..=1 << 50;
                /// The number of table files that are kept open at once; a newly opened file takes the place of one that was not read for a while.
                /// Default: half of the process's limit (`RLIMIT_NOFILE`), so that the logs, the manifest and the rest of the program have theirs;
                /// at most 8,192. 1 to 1,048,576. Each table that was read keeps some 11 KiB of memory for 64 MiB of data, open or not
                /// (`Metrics::table_memory_bytes`).
                max_open_files: usize, 1..=1 << 20;
            }
        }
    };
}

/// Defines the setters of `$owner`, which has a method `options_mut`.
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

            /// The compression of data blocks, the same on every level. See [`Options::compression_per_level`].
            pub fn compression(self, compression: Compression) -> Self {
                self.compression_per_level([compression])
            }

            /// The compression of data blocks on each level: the first one for level 0, the last one for its level and all below. Existing tables
            /// keep theirs until a compaction rewrites them. Default none on levels 0 and 1, which are small and soon rewritten, and
            /// [`Compression::Lz4`] below; 1 to 8 levels.
            pub fn compression_per_level(mut self, levels: impl Into<Vec<Compression>>) -> Self {
                self.options_mut().compression = levels.into();
                self
            }
        }
    };
}

pub(crate) use {define_setters, with_options};
