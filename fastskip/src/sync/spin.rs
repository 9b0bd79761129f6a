//! The locks of `std`, by the same names, for targets without it.
//!
//! A thread that waits for a lock spins. It waits only for a thread that makes a table's first write, begins to freeze a table, asks for the state of
//! one that has no memory yet, or uses a pool. All other writes and reads take no lock.

use core::cell::{OnceCell, UnsafeCell};
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use super::atomic::{AtomicBool, Ordering, ord, yield_now};

/// A lock. A panic of its holder unlocks it.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    is_locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessed only through a guard, and there is at most one.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// Locks until it is dropped. Neither `Send` nor `Sync`.
pub(crate) struct MutexGuard<'a, T>(&'a Mutex<T>, PhantomData<*mut T>);

/// As in `std`; but no lock is ever poisoned, so this has no value.
pub(crate) struct PoisonError<G>(Infallible, PhantomData<G>);

impl<G> PoisonError<G> {
    pub(crate) fn into_inner(self) -> G {
        match self.0 {}
    }
}

/// As in `std`.
pub(crate) enum TryLockError<G> {
    #[expect(dead_code, reason = "has no value either")]
    Poisoned(PoisonError<G>),
    WouldBlock,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { is_locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    pub(crate) fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError<MutexGuard<'_, T>>> {
        // ORDERING(spin.lock): Acquire; pairs with `spin.unlock`. Weaker: the holder could miss earlier writes (loom `locks_without_std`).
        let was_locked = self.is_locked.swap(true, ord("spin.lock", Ordering::Acquire));
        if was_locked { Err(TryLockError::WouldBlock) } else { Ok(MutexGuard(self, PhantomData)) }
    }

    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, T>, PoisonError<MutexGuard<'_, T>>> {
        loop {
            if let Ok(guard) = self.try_lock() {
                return Ok(guard);
            }
            yield_now();
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one of the lock, and is borrowed.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one of the lock, and is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // ORDERING(spin.unlock): Release; pairs with `spin.lock`, see there.
        self.0.is_locked.store(false, ord("spin.unlock", Ordering::Release));
    }
}

/// A value that is set once.
#[derive(Default)]
pub(crate) struct OnceLock<T> {
    is_claimed: AtomicBool,
    is_set: AtomicBool,
    value: OnceCell<T>,
}

// SAFETY: one thread claims the value and sets it; others read it only after they have acquired `is_set`.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self { is_claimed: AtomicBool::new(false), is_set: AtomicBool::new(false), value: OnceCell::new() }
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&T> {
        // ORDERING(once.get): Acquire; pairs with `once.set`. Weaker: a reader could miss writes to the value (loom `value_set_once`).
        if self.is_set.load(ord("once.get", Ordering::Acquire)) { self.value.get() } else { None }
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// Never waits: returns the value if another thread has set one, or is about to.
    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        // Relaxed: the swap of one thread alone finds `false`, and publishes nothing.
        if self.is_claimed.swap(true, Ordering::Relaxed) {
            return Err(value);
        }
        let set = self.value.set(value);
        // ORDERING(once.set): Release; pairs with `once.get`, see there.
        self.is_set.store(true, ord("once.set", Ordering::Release));
        set
    }

    /// Unlike in `std`, concurrent calls may each make a value; all but one are dropped.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if self.get().is_none() {
            drop(self.set(make()));
        }
        loop {
            if let Some(value) = self.get() {
                return value;
            }
            // Another thread is between its two steps in `set`.
            yield_now();
        }
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        Self { is_claimed: AtomicBool::new(true), is_set: AtomicBool::new(true), value: value.into() }
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceLock").field(&self.get()).finish()
    }
}
