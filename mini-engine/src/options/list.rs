//! Every option, once: its documentation, which is that of its setters, its name, type and default, and the range of its value.

/// Calls the macro `$callback` with `$arguments` and the list of options.
macro_rules! with_options {
    ($callback:ident $($arguments:tt)*) => {
        $callback! {
            [$($arguments)*]
            values {
                /// Bytes of memory at which a memtable is frozen and written to a table. Default 64 MiB; 4 KiB to 16 GiB.
                memtable_bytes: usize = 64 << 20, 4 << 10..=16 << 30;
                /// How memtables keep what is written. Default [`MemtableKind::SkipList`]. Nothing on disk depends on it.
                memtable_kind: MemtableKind = MemtableKind::SkipList;
                /// How many frozen memtables may wait for their flush before writes stall. Default 1; 1 to 64.
                immutable_memtables: usize = 1, 1..=64;
                /// How many times larger each level is than the one above, or how many runs a level holds: see [`Compaction`].
                /// Larger ratios rewrite more and hold less obsolete data with levels of one run, the other way round with several.
                /// Default 10; 2 to 32.
                size_ratio: u64 = 10, 2..=32;
                /// The number of tables on level 0 from which on writers are slowed down, ever more, so that compactions catch up.
                /// Default 20; 1 to 1000. Counts as `l0_trigger` + 1 where that is more: below it no compaction is due that could help.
                l0_slowdown: usize = 20, 1..=1000;
                /// The number of tables on level 0 at which writers wait for a compaction, and callers of `flush` too. Default 36; 1 to 1000.
                /// Counts as `l0_trigger` + 1 where that is more: a wait for a compaction that is not due would have no end. Where no
                /// compaction can help, since a table that all of them need is damaged, writers get [`Error::Stalled`](crate::Error::Stalled)
                /// instead.
                l0_stop: usize = 36, 1..=1000;
                /// Bytes up to which one level below level 0 is enough, with leveled and partial compaction. Above that levels come
                /// between, each `size_ratio` times smaller than the one below it, up to the first that is not larger than this, or that
                /// would be smaller than what level 0 brings down at once. Default 64 MiB; 1 KiB to 1 PiB.
                level1_bytes: u64 = 64 << 20, 1 << 10..=1 << 50;
                /// Bytes at which a compaction ends a table and begins the next; a table is longer by what the versions of one key and its
                /// index take. Where that is more than a 32nd of the data, tables end at a 32nd, but not below `memtable_bytes`.
                /// Default 64 MiB; 1 KiB to 16 GiB.
                table_file_bytes: u64 = 64 << 20, 1 << 10..=16 << 30;
                /// How many compactions may run at once, beside flushes, each on a thread of its own. Default 2; 1 to 64. One of the threads
                /// takes tables off level 0 and does nothing else, so that writers never wait for a compaction of deeper levels; where 1 is
                /// asked for, there is such a thread beside that one.
                compaction_threads: usize = 2, 1..=64;
                /// Bytes of a table that are written before they are synced, while the rest of the table is still to be written. So the
                /// sync at the end of a flush, which writers may wait for, does not queue behind hundreds of megabytes that compactions
                /// have written. Default 4 MiB; 64 KiB to 16 GiB.
                bytes_per_sync: u64 = 4 << 20, 64 << 10..=16 << 30;
                /// Whether a write that has to wait for a flush, or for a compaction of level 0, goes on waiting while that finds no disk space
                /// or no file handle. Default false: the write fails with the error, reads go on, and writes are taken again by themselves once
                /// there is room.
                wait_for_space: bool = false;
                /// Bytes of a data block before compression; an entry larger than that gets a block of its own.
                /// Default 4096; 512 to 65536.
                block_bytes: usize = 4096, 512..=64 << 10;
                /// Bytes up to which the filter and the index of neighbouring data blocks share one block, a partition; it holds those of one
                /// data block at least. A point read may have to read one. Smaller ones leave a larger root, which stays in memory while
                /// the table is open. Default 8192; 128 to 1048576.
                partition_bytes: usize = 8 << 10, 128..=1 << 20;
                /// Bits of filter for each key of a table; more bits make fewer useless reads of absent keys.
                /// Default 10 (about 1 % of absent keys are read in vain); 0 (no filter) to 32.
                filter_bits_per_key: u32 = 10, 0..=32;
                /// Bytes of blocks kept in memory, decompressed: data blocks, and the filters and indexes of tables, which data blocks do not
                /// evict and which take up to half. Default 32 MiB; 0 to 1 PiB.
                cache_bytes: u64 = 32 << 20, 0..=1 << 50;
                /// How tables are read. Default [`TableReads::Pread`]; [`TableReads::Mmap`] for data that is not compressed and mostly in
                /// the page cache. RocksDB calls this `allow_mmap_reads`.
                table_reads: TableReads = TableReads::Pread;
                /// The durability of a single insert or remove. Default [`Durability::Buffered`].
                durability: Durability = Durability::Buffered;
                /// Whether batches of 512 bytes and more are compressed in the log (Zstandard, where that saves 12 %). The writer of the
                /// batch spends the time. Default false; true or false.
                log_compression: bool = false;
                /// What opening does about damage. Default [`RecoveryMode::Strict`].
                recovery_mode: RecoveryMode = RecoveryMode::Strict;
                /// Whether opening a directory without a database makes one. Default true.
                create_if_missing: bool = true;
                /// Whether the database is only read. Then opening it writes nothing, creates nothing and starts no thread, so it works
                /// on a file system that is read-only or full. What the logs hold is kept in memory
                /// ([`Options::replay_memory_bytes`]). A torn tail is reported and stays; with [`RecoveryMode::Quarantine`] no file is
                /// renamed. Read-only opens go beside each other, but not beside a writer: [`Error::Locked`](crate::Error::Locked).
                /// Writes are [`Error::ReadOnly`](crate::Error::ReadOnly). Default false.
                ///
                /// A directory without a `LOCK` file, a copy that was never opened, is read without a lock: nothing keeps a writer
                /// from opening it meanwhile.
                read_only: bool = false;
                /// Bytes of memory that a read-only open may take for what logs hold and no table does yet. If they hold more, it fails
                /// with [`Error::Full`](crate::Error::Full); an open for writing puts them into tables, whatever their size.
                /// Default 1 GiB; 64 KiB to 1 PiB.
                replay_memory_bytes: u64 = 1 << 30, 64 << 10..=1 << 50;
            }
            // Without a default: what counts where they are not set depends on others.
            optional {
                /// How tables are compacted. Default: as when the database was opened last; [`Compaction::Leveled`] for a new one.
                compaction: Compaction;
                /// How many tables level 0 may hold before some are compacted. Default 4; with [`Compaction::Tiered`] `size_ratio`, since level
                /// 0 is a tier like any other, but at most half of `l0_slowdown`. 1 to 1000. Tables that are tiny beside what they overlap
                /// below are compacted with each other first.
                l0_trigger: usize, 1..=1000;
                /// Bytes that a compaction writes before it puts its tables in the place of what it has read, and goes on with the rest later.
                /// It ends with a full table, so this counts as `table_file_bytes` where that is more. While it runs, a compaction needs about
                /// so much space beside the data; a compaction that a shutdown ends loses nothing. Default a sixteenth of the data, but at
                /// least one full table and at most 4; 1 KiB to 1 PiB.
                max_compaction_bytes: u64, 1 << 10..=1 << 50;
                /// How many files of tables are kept open at once; a file that is read and not open takes the place of one that was not
                /// read for a while. Default: half of what the process may open (`RLIMIT_NOFILE`), so that the logs, the manifest and the
                /// rest of the program have theirs; at most 8,192. 1 to 1,048,576. Each table that was read keeps some 7 KiB of memory
                /// for 64 MiB of data, open or not (`Metrics::table_memory_bytes`).
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

            /// How data blocks are compressed, on every level alike. See [`Options::compression_per_level`].
            pub fn compression(self, compression: Compression) -> Self {
                self.compression_per_level([compression])
            }

            /// How data blocks are compressed on each level: the first for level 0, the last for its level and all below.
            /// Tables that are there already keep theirs until a compaction rewrites them. Default none on levels 0 and 1, which are
            /// small and soon rewritten, and [`Compression::Lz4`] below; 1 to 8 levels.
            pub fn compression_per_level(mut self, levels: impl Into<Vec<Compression>>) -> Self {
                self.options_mut().compression = levels.into();
                self
            }
        }
    };
}

pub(crate) use {define_setters, with_options};
