//! The setters of options, which [`Options`](super::Options) and [`Builder`](crate::Builder) have alike.

/// Defines the setters of `$type`, whose options are its field `$options` if one is named, and itself otherwise.
macro_rules! option_setters {
    ($type:ty $(, $options:ident)?) => {
        impl $type {
            /// Bytes of memory at which a memtable is frozen and written to a table. Default 64 MiB; 4 KiB to 16 GiB.
            pub fn memtable_bytes(mut self, bytes: usize) -> Self {
                self$(.$options)?.memtable_bytes = bytes;
                self
            }

            /// How memtables keep what is written. Default [`MemtableKind::SkipList`]. Nothing on disk depends on it.
            pub fn memtable_kind(mut self, kind: MemtableKind) -> Self {
                self$(.$options)?.memtable_kind = kind;
                self
            }

            /// How many frozen memtables may wait for their flush before writes stall. Default 1; 1 to 64.
            pub fn immutable_memtables(mut self, count: usize) -> Self {
                self$(.$options)?.immutable_memtables = count;
                self
            }

            /// How tables are compacted. Default: as when the database was opened last; [`Compaction::Leveled`] for a new one.
            pub fn compaction(mut self, policy: Compaction) -> Self {
                self$(.$options)?.compaction = Some(policy);
                self
            }

            /// How many times larger each level is than the one above, or how many runs a level holds: see [`Compaction`].
            /// Larger ratios rewrite more and hold less obsolete data with levels of one run, the other way round with several.
            /// Default 10; 2 to 32.
            pub fn size_ratio(mut self, ratio: u64) -> Self {
                self$(.$options)?.size_ratio = ratio;
                self
            }

            /// How many tables level 0 may hold before some are compacted. Default 4; with [`Compaction::Tiered`] `size_ratio`, since level
            /// 0 is a tier like any other, but at most half of `l0_slowdown`. 1 to 1000. Tables that are tiny beside what they overlap
            /// below are compacted with each other first.
            pub fn l0_trigger(mut self, tables: usize) -> Self {
                self$(.$options)?.l0_trigger = Some(tables);
                self
            }

            /// The number of tables on level 0 from which on writers are slowed down, ever more, so that compactions catch up.
            /// Default 20; 1 to 1000. Counts as `l0_trigger` + 1 where that is more: below it no compaction is due that could help.
            pub fn l0_slowdown(mut self, tables: usize) -> Self {
                self$(.$options)?.l0_slowdown = tables;
                self
            }

            /// The number of tables on level 0 at which writers wait for a compaction, and callers of `flush` too. Default 36; 1 to 1000.
            /// Counts as `l0_trigger` + 1 where that is more: a wait for a compaction that is not due would have no end. Where no
            /// compaction can help, since a table that all of them need is damaged, writers get [`Error::Stalled`](crate::Error::Stalled)
            /// instead.
            pub fn l0_stop(mut self, tables: usize) -> Self {
                self$(.$options)?.l0_stop = tables;
                self
            }

            /// Bytes up to which one level below level 0 is enough, with leveled and partial compaction. Above that levels come
            /// between, each `size_ratio` times smaller than the one below it, up to the first that is not larger than this, or that
            /// would be smaller than what level 0 brings down at once. Default 64 MiB; 1 KiB to 1 PiB.
            pub fn level1_bytes(mut self, bytes: u64) -> Self {
                self$(.$options)?.level1_bytes = bytes;
                self
            }

            /// Bytes at which a compaction ends a table and begins the next; a table is longer by what the versions of one key and its
            /// index take. Where that is more than a 32nd of the data, tables end at a 32nd, but not below `memtable_bytes`.
            /// Default 64 MiB; 1 KiB to 16 GiB.
            pub fn table_file_bytes(mut self, bytes: u64) -> Self {
                self$(.$options)?.table_file_bytes = bytes;
                self
            }

            /// Bytes that a compaction writes before it puts its tables in the place of what it has read, and goes on with the rest later.
            /// It ends with a full table, so this counts as `table_file_bytes` where that is more. While it runs, a compaction needs about
            /// so much space beside the data; a compaction that a shutdown ends loses nothing. Default a sixteenth of the data, but at
            /// least one full table and at most 4; 1 KiB to 1 PiB.
            pub fn max_compaction_bytes(mut self, bytes: u64) -> Self {
                self$(.$options)?.max_compaction_bytes = Some(bytes);
                self
            }

            /// How many compactions may run at once, beside flushes, each on a thread of its own. Default 2; 1 to 64. One of the threads
            /// takes tables off level 0 and does nothing else, so that writers never wait for a compaction of deeper levels; where 1 is
            /// asked for, there is such a thread beside that one.
            pub fn compaction_threads(mut self, threads: usize) -> Self {
                self$(.$options)?.compaction_threads = threads;
                self
            }

            /// Bytes of a table that are written before they are synced, while the rest of the table is still to be written. So the
            /// sync at the end of a flush, which writers may wait for, does not queue behind hundreds of megabytes that compactions
            /// have written. Default 4 MiB; 64 KiB to 16 GiB.
            pub fn bytes_per_sync(mut self, bytes: u64) -> Self {
                self$(.$options)?.bytes_per_sync = bytes;
                self
            }

            /// Whether a write that has to wait for a flush, or for a compaction of level 0, goes on waiting while that finds no disk space
            /// or no file handle. Default false: the write fails with the error, reads go on, and writes are taken again by themselves once
            /// there is room.
            pub fn wait_for_space(mut self, waits: bool) -> Self {
                self$(.$options)?.wait_for_space = waits;
                self
            }

            /// Bytes of a data block before compression; an entry larger than that gets a block of its own.
            /// Default 4096; 512 to 65536.
            pub fn block_bytes(mut self, bytes: usize) -> Self {
                self$(.$options)?.block_bytes = bytes;
                self
            }

            /// Bytes up to which the filter and the index of neighbouring data blocks share one block, a partition; it holds those of one
            /// data block at least. A point read may have to read one. Smaller ones leave a larger root, which stays in memory while
            /// the table is open. Default 8192; 128 to 1048576.
            pub fn partition_bytes(mut self, bytes: usize) -> Self {
                self$(.$options)?.partition_bytes = bytes;
                self
            }

            /// Bits of filter for each key of a table; more bits make fewer useless reads of absent keys.
            /// Default 10 (about 1 % of absent keys are read in vain); 0 (no filter) to 32.
            pub fn filter_bits_per_key(mut self, bits: u32) -> Self {
                self$(.$options)?.filter_bits_per_key = bits;
                self
            }

            /// How data blocks are compressed, on every level alike. See [`Options::compression_per_level`].
            pub fn compression(self, compression: Compression) -> Self {
                self.compression_per_level([compression])
            }

            /// How data blocks are compressed on each level: the first for level 0, the last for its level and all below.
            /// Tables that are there already keep theirs until a compaction rewrites them. Default none on levels 0 and 1, which are
            /// small and soon rewritten, and [`Compression::Lz4`] below; 1 to 8 levels.
            pub fn compression_per_level(mut self, levels: impl Into<Vec<Compression>>) -> Self {
                self$(.$options)?.compression = levels.into();
                self
            }

            /// Bytes of blocks kept in memory, decompressed: data blocks, and the filters and indexes of tables, which data blocks do not
            /// evict and which take up to half. Default 32 MiB; 0 to 1 PiB.
            pub fn cache_bytes(mut self, bytes: u64) -> Self {
                self$(.$options)?.cache_bytes = bytes;
                self
            }

            /// How tables are read. Default [`TableReads::Pread`]; [`TableReads::Mmap`] for data that is not compressed and mostly in
            /// the page cache. RocksDB calls this `allow_mmap_reads`.
            pub fn table_reads(mut self, reads: TableReads) -> Self {
                self$(.$options)?.table_reads = reads;
                self
            }

            /// How many files of tables are kept open at once; a file that is read and not open takes the place of one that was not
            /// read for a while. Default: half of what the process may open (`RLIMIT_NOFILE`), so that the logs, the manifest and the
            /// rest of the program have theirs; at most 8,192. 1 to 1,048,576. Each table that was read keeps some 7 KiB of memory
            /// for 64 MiB of data, open or not (`Metrics::table_memory_bytes`).
            pub fn max_open_files(mut self, files: usize) -> Self {
                self$(.$options)?.max_open_files = Some(files);
                self
            }

            /// The durability of a single insert or remove. Default [`Durability::Buffered`].
            pub fn durability(mut self, durability: Durability) -> Self {
                self$(.$options)?.durability = durability;
                self
            }

            /// Whether batches of 512 bytes and more are compressed in the log (Zstandard, where that saves 12 %). The writer of the
            /// batch spends the time. Default false; true or false.
            pub fn log_compression(mut self, compress: bool) -> Self {
                self$(.$options)?.log_compression = compress;
                self
            }

            /// What opening does about damage. Default [`RecoveryMode::Strict`].
            pub fn recovery_mode(mut self, mode: RecoveryMode) -> Self {
                self$(.$options)?.recovery_mode = mode;
                self
            }

            /// Whether opening a directory without a database makes one. Default true.
            pub fn create_if_missing(mut self, create: bool) -> Self {
                self$(.$options)?.create_if_missing = create;
                self
            }

            /// Whether the database is only read. Then opening it writes nothing, creates nothing and starts no thread, so it works
            /// on a file system that is read-only or full. What the logs hold is kept in memory
            /// ([`Options::replay_memory_bytes`]). A torn tail is reported and stays; with [`RecoveryMode::Quarantine`] no file is
            /// renamed. Read-only opens go beside each other, but not beside a writer: [`Error::Locked`](crate::Error::Locked).
            /// Writes are [`Error::ReadOnly`](crate::Error::ReadOnly). Default false.
            ///
            /// A directory without a `LOCK` file, a copy that was never opened, is read without a lock: nothing keeps a writer
            /// from opening it meanwhile.
            pub fn read_only(mut self, read_only: bool) -> Self {
                self$(.$options)?.read_only = read_only;
                self
            }

            /// Bytes of memory that a read-only open may take for what logs hold and no table does yet. If they hold more, it fails
            /// with [`Error::Full`](crate::Error::Full); an open for writing puts them into tables, whatever their size.
            /// Default 1 GiB; 64 KiB to 1 PiB.
            pub fn replay_memory_bytes(mut self, bytes: u64) -> Self {
                self$(.$options)?.replay_memory_bytes = bytes;
                self
            }
        }
    };
}

pub(crate) use option_setters;
