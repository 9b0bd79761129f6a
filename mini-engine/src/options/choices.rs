//! The values that some options choose among.

#[cfg(doc)]
use super::Options;
use super::{ZSTD_LEVEL, out_of_range, without_zstd};
use crate::codec::HAS_ZSTD;
use crate::error::Result;

/// How the data blocks of tables are compressed. A block that does not shrink by 12 % is stored as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4: fast, for data that is read often.
    #[default]
    Lz4,
    /// Zstandard: denser and slower. It needs the feature `zstd`. Without it an open of a log that uses it, and each read or compaction of a
    /// table that does, is [`Unsupported`](crate::Error::Unsupported), and the blocks of a keyspace whose option it is are stored as they are.
    Zstd {
        /// 1 (fastest) to 22 (densest); 3 is a usual choice.
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

/// Declares [`Compaction`]: for each policy its documentation, its variant, and its name in options. The position is its number on disk, so a new
/// policy comes last.
macro_rules! policies {
    ($($(#[$documentation:meta])* $name:ident = $written:literal,)*) => {
        /// Decides which tables are compacted, and when, and thus the cost of writes, reads and space. May be changed at each open: any policy
        /// continues with the tables that another has left.
        ///
        /// A *run* is a sorted sequence of tables; a read may have to ask each run, though filters rule most of them out.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Compaction {
            $($(#[$documentation])* $name,)*
        }

        impl Compaction {
            /// Every policy.
            pub const ALL: &'static [Compaction] = &[$(Compaction::$name),*];

            /// Its name as users write it: `lazy-leveled`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $written,)*
                }
            }
        }
    };
}

policies! {
    /// One run on each level below level 0, each [`Options::size_ratio`] times as large as the one above. Least space and fewest runs, most
    /// rewriting. This is the default of LevelDB and RocksDB.
    #[default]
    Leveled = "leveled",
    /// Up to [`Options::size_ratio`] runs on each level; that many are compacted into one run of the next level. Least rewriting, most runs and
    /// space. The space is bounded as in RocksDB's universal compaction: newer runs that together have grown as large as the oldest one are
    /// compacted with it.
    Tiered = "tiered",
    /// Many runs on each level but the last, which is one run (Dostoevsky, Dayan and Idreos 2018): nearly the space of
    /// leveled, and less rewriting.
    LazyLeveled = "lazy-leveled",
    /// Leveled, one table at a time: compactions are small and even, and need little additional space.
    Partial = "partial",
}

impl Compaction {
    /// Its number on disk, from 1 on.
    pub(crate) fn id(self) -> u64 {
        self as u64 + 1
    }

    pub(crate) fn from_id(id: u64) -> Option<Compaction> {
        Self::ALL.iter().copied().find(|policy| policy.id() == id)
    }
}

/// The treatment of damaged or missing files when a database is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryMode {
    /// The open fails, and changes nothing.
    #[default]
    Strict,
    /// The open continues with the sound files. Every table is read completely, which takes time in proportion to the database. A damaged table is
    /// renamed to `{name}.aside`, never deleted, and reads in its key range fail from then on, in later opens of either mode too, until
    /// [`Db::drop_quarantined`](crate::Db::drop_quarantined). In damaged logs the writes before the damage are kept, and everything behind it is
    /// set aside. The recovery report lists the findings. A damaged manifest or `CURRENT` still makes the open fail: without them nothing is known
    /// of the rest.
    Quarantine,
}

/// The way in which reads get the blocks of tables into memory. Compactions, and `verify`, always read the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableReads {
    /// By system calls, into the block cache.
    #[default]
    Pread,
    /// Through a mapping of the file: blocks that are not compressed are searched directly in the page cache, and values are views of it. The block
    /// cache holds partitions and compressed blocks. Each block is checked when it is first touched. A file is open only for reads by system calls:
    /// of compressed blocks, and of all blocks if the file cannot be mapped.
    ///
    /// A device that fails under a mapped page ends the process (`SIGBUS`), and so does another program that truncates a table. With
    /// [`TableReads::Pread`] a failing device is an error of that one read.
    Mmap,
}

/// The data structure for the newest writes in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemtableKind {
    /// A lock-free skip list: always sorted, for reads and writes.
    #[default]
    SkipList,
    /// A list in the order of the writes, sorted when it is written to a table: for loads with many writes and few reads. A read returns the same
    /// results, but a point read looks at every entry in memory, and a scan first sorts a copy of them.
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
