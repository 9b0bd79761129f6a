//! Corrupts the hints of a table at random, for tests (`index/test_scramble.rs`). Compiled only with the feature `scramble`.

use crate::memtable::Memtable;
use crate::order::Order;
use crate::skiplist::ConcurrentSkipList;

macro_rules! scramble {
    ($($table:ident),+) => {
        $(impl<O: Order> $table<O> {
            /// Corrupts the hints at which searches begin: every result stays right, but some searches cost more. For tests. O(n).
            #[doc(hidden)]
            pub fn scramble_hints(&self, seed: u64) {
                self.list.made().into_iter().for_each(|list| list.index.scramble_hints(seed));
            }

            /// Like `validate`, for a table whose hints are corrupted.
            #[doc(hidden)]
            pub fn validate_scrambled(&self) {
                self.list.made().into_iter().for_each(|list| list.validate(false));
            }
        })+
    };
}

scramble!(Memtable, ConcurrentSkipList);
