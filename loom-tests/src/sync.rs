//! The models' door to atomics and blocking primitives: the same names as `fastskip/src/sync.rs`, from loom.
//!
//! `Arc` is the standard one: its counting is not what is modelled, and every handle is dropped after the threads of a
//! model are joined.

pub(crate) use core::sync::atomic::Ordering;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
pub(crate) use loom::sync::{Condvar, Mutex};
pub(crate) use std::sync::{Arc, PoisonError};

pub(crate) use crate::weaken::ord;

/// Watches who reads and who writes what stands beside it.
pub(crate) type Watch<T> = loom::cell::UnsafeCell<T>;
