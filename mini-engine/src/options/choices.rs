//! The types of those options that select one of several values.

#[cfg(doc)]
use super::Options;
use super::{ZSTD_LEVEL, out_of_range, without_zstd};
use crate::codec::HAS_ZSTD;
use crate::error::Result;

/// How the data blocks of tables are compressed. A block that compression does not shrink by 12 % is stored uncompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    None,
    /// LZ4: fast, for data that is read often.
    #[default]
    Lz4,
    /// Zstandard: it compresses better but is slower. This needs the feature `zstd`. Without it, opening a log that uses Zstandard returns
    /// [`Unsupported`](crate::Error::Unsupported), and so does each read or compaction of such a table; blocks of keyspaces with this option are
    /// stored uncompressed.
    Zstd {
        /// 1 (fastest) to 22 (smallest); 3 is a usual choice.
        level: i32,
    },
}

impl Compression {
    pub(super) fn validate(&self) -> Result<()> {
        match *self {
            Self::Zstd { level } if !ZSTD_LEVEL.contains(&level) => {
                let (low, high) = ZSTD_LEVEL.into_inner();
                Err(out_of_range("compression zstd level", i128::from(level), low.to_string(), high.to_string()))
            }
            Self::Zstd { .. } if !HAS_ZSTD => Err(without_zstd("compression")),
            Self::None | Self::Lz4 | Self::Zstd { .. } => Ok(()),
        }
    }
}

/// Declares [`Compaction`]: the documentation, the variant and the option name of each policy. The position in the list is the policy's number on
/// disk, so a new policy is added at the end.
macro_rules! policies {
    ($($(#[$documentation:meta])* $name:ident = $written:literal,)*) => {
        /// Determines which tables are compacted, and when, and thus the cost of writes, reads and space. It may be changed at each open: any policy
        /// continues with the tables that another has left.
        ///
        /// A *run* is a sorted sequence of tables; a read may have to search each run, though filters exclude most of them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Compaction {
            $($(#[$documentation])* $name,)*
        }

        impl Compaction {
            /// Every policy.
            pub const ALL: &'static [Compaction] = &[$(Compaction::$name),*];

            /// The name of the policy in options and output, for example `lazy-leveled`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $written,)*
                }
            }
        }
    };
}

policies! {
    /// One run on each level below level 0, each [`Options::size_ratio`] times as large as the one above. This needs the least space and has the
    /// fewest runs, but rewrites the most. This is the default of LevelDB and RocksDB.
    #[default]
    Leveled = "leveled",
    /// Up to [`Options::size_ratio`] runs on each level; when a level has that number, they are compacted into one run of the next level. This
    /// rewrites the least, but has the most runs and needs the most space. The space is bounded as in RocksDB's universal compaction: when the newer
    /// runs together are as large as the oldest one, they are compacted with it.
    Tiered = "tiered",
    /// Several runs on each level except the last, which is one run (Dostoevsky, Dayan and Idreos 2018): this needs hardly more space than leveled
    /// compaction, and rewrites less.
    LazyLeveled = "lazy-leveled",
    /// Leveled, one table at a time: compactions are small and even, and need little additional space.
    Partial = "partial",
}

impl Compaction {
    /// The number of the policy on disk, from 1 on.
    pub(crate) fn id(self) -> u64 {
        self as u64 + 1
    }

    pub(crate) fn from_id(id: u64) -> Option<Compaction> {
        Self::ALL.iter().copied().find(|policy| policy.id() == id)
    }
}

/// The treatment of damaged or missing files by an open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryMode {
    /// The open fails, and changes nothing.
    #[default]
    Strict,
    /// The open continues with the sound files. Every table is read completely, which takes time in proportion to the database. A damaged table is
    /// renamed to `{name}.aside`, never deleted. From then on reads in its key range fail, in later opens of either mode too, until
    /// [`Db::drop_quarantined`](crate::Db::drop_quarantined). In damaged logs the writes before the damage are kept, and everything after it is set
    /// aside. The recovery report lists the findings. A damaged manifest or `CURRENT` still makes the open fail: without them it is unknown which
    /// other files are valid.
    Quarantine,
}

/// How reads load the blocks of tables into memory. Compactions and `verify` always read from the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableReads {
    /// With system calls, into the block cache.
    #[default]
    Pread,
    /// Through a mapping of the file: blocks that are not compressed are searched directly in the page cache, and values are slices of the mapping.
    /// The block cache then contains only partitions and compressed blocks. The checksum of each block is verified when it is first used. A file
    /// handle is needed only for reads with system calls: of compressed blocks, and of all blocks if the file cannot be mapped.
    ///
    /// If a device fails under a mapped page, or another program truncates a table, the system kills the process (`SIGBUS`). With
    /// [`TableReads::Pread`] a failing device only makes that read return an error.
    Mmap,
}

/// The data structure for the newest writes in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemtableKind {
    /// A lock-free skip list: always sorted, for reads and writes.
    #[default]
    SkipList,
    /// A list in the order of the writes, sorted when it is flushed to a table: for loads with many writes and few reads. Reads return the same
    /// results, but a point read examines every entry of the memtable, and a scan first sorts a copy of them.
    Vector,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_known_by_their_numbers() {
        // Catches a policy that cannot be read back, and two policies with the same number.
        use Compaction::{LazyLeveled, Leveled, Partial, Tiered};
        let numbers = [(Leveled, 1), (Tiered, 2), (LazyLeveled, 3), (Partial, 4)];
        let found: Vec<_> = Compaction::ALL.iter().map(|policy| (*policy, policy.id())).collect();
        assert_eq!(found, numbers, "a new policy comes last, here too");
        assert!(Compaction::ALL.iter().all(|policy| Compaction::from_id(policy.id()) == Some(*policy)));
        let past = Compaction::ALL.len() as u64 + 1;
        assert_eq!((Compaction::from_id(0), Compaction::from_id(past)), (None, None));
    }
}
