//! Keys of the models in other orders than that of bytes. The example `orders` has the orders themselves.

use std::any::Any;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::Bound;

use fastskip::{Bytewise, Order};

use super::input::Input;

#[path = "../../examples/orders.rs"]
#[allow(dead_code, missing_docs, reason = "an example")]
mod example;
pub(crate) use example::{Columns, Folded, Latest, Reversed};

/// An order in which a model draws keys.
pub(crate) trait Modelled: Order {
    fn key(input: &mut Input<'_>) -> Vec<u8> {
        input.key()
    }
}

/// `table` as one of the default order, which alone has the method `prefix`.
pub(crate) fn bytewise<T: 'static>(table: &dyn Any) -> Option<&T> {
    table.downcast_ref()
}

impl Modelled for Bytewise {}
impl Modelled for Reversed {}
impl<const LEN: usize> Modelled for Latest<LEN> {}
impl Modelled for Columns {}

impl Modelled for Folded {
    /// Upper and lower case.
    fn key(input: &mut Input<'_>) -> Vec<u8> {
        input.key().into_iter().map(|byte| if byte == 1 { b'A' } else { byte }).collect()
    }
}

/// An order whose sort keys distinguish nothing.
pub(crate) struct OnlyTies;

impl Order for OnlyTies {
    type SortKey<'k> = [u8; 0];

    fn sort_key(_: &[u8]) -> [u8; 0] {
        []
    }

    fn break_tie(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

impl Modelled for OnlyTies {}

/// A key of a model, in an order.
pub(crate) struct Key<O> {
    pub(crate) bytes: Vec<u8>,
    order: PhantomData<O>,
}

impl<O> Key<O> {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), order: PhantomData }
    }
}

/// Bounds of a range of keys, as bounds of the model.
pub(crate) fn keys<O>((lower, upper): (Bound<&[u8]>, Bound<&[u8]>)) -> (Bound<Key<O>>, Bound<Key<O>>) {
    (lower.map(Key::new), upper.map(Key::new))
}

impl<O> Clone for Key<O> {
    fn clone(&self) -> Self {
        Self::new(&self.bytes)
    }
}

impl<O: Order> Ord for Key<O> {
    fn cmp(&self, other: &Self) -> Ordering {
        O::compare(&self.bytes, &other.bytes)
    }
}

impl<O: Order> PartialOrd for Key<O> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<O: Order> PartialEq for Key<O> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<O: Order> Eq for Key<O> {}
