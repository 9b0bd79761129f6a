//! The values that some options choose among.

#[cfg(doc)]
use super::Options;
use super::{ZSTD_LEVEL, out_of_range};
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
    /// Zstandard: denser and slower.
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
            Self::None | Self::Lz4 | Self::Zstd { .. } => Ok(()),
        }
    }
}

/// Declares [`Compaction`]: of each policy its documentation, its name, and what people write for it. Its place is its number on disk, so a
/// new one comes last.
macro_rules! policies {
    ($($(#[$documentation:meta])* $name:ident = $written:literal,)*) => {
        /// Which tables are compacted, and when: that decides what writes, reads and space cost. May be changed at each open: any policy
        /// goes on from what another has left.
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

            /// As people write it: `lazy-leveled`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $written,)*
                }
            }
        }
    };
}

policies! {
    /// One run on each level below level 0, each [`Options::size_ratio`] times as large as the one above. Least space and
    /// fewest runs, most rewriting: as LevelDB and RocksDB do by default.
    #[default]
    Leveled = "leveled",
    /// Up to [`Options::size_ratio`] runs on each level, compacted into one of the next level once that many are there. Least
    /// rewriting, most runs and space, which is held back as RocksDB's universal compaction does: runs that together have
    /// grown as large as the oldest one are compacted with it.
    Tiered = "tiered",
    /// Many runs on each level but the last, which is one run (Dostoevsky, Dayan and Idreos 2018): nearly the space of
    /// leveled, and less rewriting.
    LazyLeveled = "lazy-leveled",
    /// Leveled, one table at a time: compactions are small and even, and take few bytes beside what is there.
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

/// What opening a database does about files that are damaged or missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryMode {
    /// It fails, and changes nothing.
    #[default]
    Strict,
    /// It goes on with what is sound. Every table is read whole, which takes time in proportion to the database. A
    /// damaged table is renamed to `{name}.aside`, never deleted, and reads in the range of its keys fail from then on,
    /// in later opens of either mode too, until [`Db::drop_quarantined`](crate::Db::drop_quarantined). Of damaged logs
    /// the writes before the damage are kept, all behind it is set aside. The recovery report says what was found. A
    /// damaged manifest or `CURRENT` still fails: without them nothing is known of the rest.
    Quarantine,
}

/// How the blocks of tables come into memory for reads. Compactions, and `verify`, always read the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableReads {
    /// By calls, into the block cache.
    #[default]
    Pread,
    /// Through a mapping of the file: blocks that are not compressed are searched where they lie in the page cache, and values are
    /// views of it. The block cache has partitions and compressed blocks. Each block is checked when it is first touched. A file is
    /// open only for what is read by calls: compressed blocks, and all of it where a file cannot be mapped.
    ///
    /// A device that fails under a mapped page ends the process (`SIGBUS`), and so does another program that cuts a table. With
    /// [`TableReads::Pread`] the first is an error of the one read.
    Mmap,
}

/// How the newest writes are kept in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemtableKind {
    /// A lock-free skip list: always sorted, for reads and writes.
    #[default]
    SkipList,
    /// A list in the order of the writes, sorted when it is written to a table: for loads that write and hardly read. A read
    /// is right all the same, but a point read looks at every entry in memory, and a scan sorts a copy of them first.
    Vector,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_known_by_their_numbers() {
        // Catches a policy that is written and not read back, and a number taken for another policy's.
        use Compaction::{LazyLeveled, Leveled, Partial, Tiered};
        assert_eq!([Leveled, Tiered, LazyLeveled, Partial].map(Compaction::id), [1, 2, 3, 4]);
        assert!(Compaction::ALL.iter().all(|policy| Compaction::from_id(policy.id()) == Some(*policy)));
        let past = Compaction::ALL.len() as u64 + 1;
        assert_eq!((Compaction::from_id(0), Compaction::from_id(past)), (None, None));
    }
}
