//! Compares both tables with ordinary maps. Any bytes are decoded into a list of operations, which a table and a map both carry out; a difference
//! between the two is a panic. `tests/suite` draws random bytes. The crate `fuzz` includes these files, so that a fuzzer can search for bytes that
//! fail.
#![allow(unreachable_pub, reason = "`fuzz` exports them")]
#![allow(clippy::incompatible_msrv, reason = "only the crate itself promises an older compiler")]

pub(crate) mod input;
mod limits;
pub(crate) mod list;
pub(crate) mod memtable;
pub(crate) mod moves;
pub(crate) mod orders;
mod record;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Bound;

/// The outcomes that inputs produced: the name of an operation, or `operation: refusal`.
pub type Met = BTreeSet<String>;

/// Declares the operations that an input can contain.
macro_rules! operations {
    ($(#[$about:meta])* $name:ident: $($operation:ident)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is the method of that name, or says what is done otherwise")]
        pub enum $name {
            $($operation,)*
        }

        impl $name {
            /// Every operation.
            pub const ALL: &[Self] = &[$(Self::$operation,)*];
        }
    };
}
pub(crate) use operations;

/// Runs the operations that `input` encodes on both tables in another order than that of bytes; the first byte chooses it.
///
/// # Panics
/// If a table and its map differ.
#[allow(dead_code, reason = "not called without `std`")]
pub fn order_ops(input: &[u8]) -> Met {
    fn both<O: orders::Modelled>(input: &[u8]) -> Met {
        &list::skiplist_ops_in::<O>(input) | &memtable::memtable_ops_in::<O>(input)
    }

    let Some((order, input)) = input.split_first() else { return Met::new() };
    match order % 5 {
        0 => both::<orders::Reversed>(input),
        1 => both::<orders::Latest<1>>(input),
        2 => both::<orders::Columns>(input),
        3 => both::<orders::Folded>(input),
        _ => both::<orders::OnlyTies>(input),
    }
}

/// Every range between `a` and `b`: closed, open or without an end on either side.
fn ranges<T: Copy>(a: T, b: T) -> impl Iterator<Item = (Bound<T>, Bound<T>)> {
    let ends = |place| [Bound::Unbounded, Bound::Included(place), Bound::Excluded(place)];
    ends(a).into_iter().flat_map(move |lower| ends(b).map(|upper| (lower, upper)))
}

/// Compares a walk with its expected entries: forward, backward, and from both ends in turns.
fn compare_walk<T, I>(walk: impl Fn() -> I, expected: &[T])
where
    T: Debug + Copy,
    I: DoubleEndedIterator<Item: PartialEq<T> + Debug>,
{
    assert!(walk().eq(expected.iter().copied()));
    assert!(walk().rev().eq(expected.iter().rev().copied()));
    let (mut walk, mut rest) = (walk(), expected);
    while let Some((first, others)) = rest.split_first() {
        assert_eq!(walk.next().expect("one more"), *first);
        rest = others;
        if let Some((last, others)) = rest.split_last() {
            assert_eq!(walk.next_back().expect("one more"), *last);
            rest = others;
        }
    }
    // The back is tried first: it must not yield a key again that the front has yielded.
    assert!(walk.next_back().is_none() && walk.next().is_none());
}
