//! [`Slot`]: a shared pointer that readers load without counting it and without a lock, and that writers exchange.
//!
//! A reader [pins](pin) the present epoch. A value that is taken out of its slot is [`Retired`]: it is freed after every thread that was pinned at that
//! moment has unpinned. `crossbeam-epoch` finds out when; a pin costs one read-modify-write or fence, on a cache line of the thread's own.
//!
//! Z1 A pinned thread reads memory, and takes only locks that are never held for long: it reads no file, mapped or not, sleeps on no condition, and
//!    returns to no caller of the engine. The only code of a caller that it may run is the clock of the options, when an entry may have expired.
//!    So what is retired is freed soon, unless the system stops a thread while it is pinned.
//! Z2 A slot owns one count of its value. A reader that needs the value for longer than a pin [counts it](Loaded::to_arc).
//! Z3 Retired values wait in the collector's queue and not in the thread that has retired them, so any thread that works frees them.
//! Z4 Blocks that wait count among the bytes of their cache (`cache/mod.rs`). Views that wait are not bounded: a thread that is stopped while pinned
//!    keeps the view that it reads and all later ones, with their memtables and files, until it continues. `Metrics::retired_views` shows their number.
//!
//! Shown by the models of `loom-tests`, which compile this file.

use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

use crate::sync::{AtomicPtr, Ordering, epoch, ord};

/// The calls of [`collect`] that free what was retired before, if no thread is pinned and little else waits: the epoch advances twice.
pub(crate) const TURNS: usize = 3;

/// Keeps what a thread loads from slots from being freed.
pub(crate) struct Pin(epoch::Guard);

/// Pins the present epoch, as long as the result exists.
#[inline]
pub(crate) fn pin() -> Pin {
    Pin(epoch::enter())
}

/// Advances the epoch if all pinned threads have seen it, and frees some of the retired values that no thread can read any more.
pub(crate) fn collect() {
    pin().0.flush();
}

/// A place for a value, which may be empty.
#[derive(Debug)]
pub(crate) struct Slot<T>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> Default for Slot<T> {
    fn default() -> Self {
        Self::new(None)
    }
}

impl<T: Send + Sync + 'static> Slot<T> {
    pub(crate) fn new(value: Option<Arc<T>>) -> Self {
        Self(AtomicPtr::new(into_raw(value)))
    }

    /// The value, as long as both the pin and the slot exist.
    #[inline]
    #[expect(unsafe_code, reason = "a slot hands out its value without counting it")]
    pub(crate) fn load<'a>(&'a self, _pin: &'a Pin) -> Option<Loaded<'a, T>> {
        let pointer = self.pointer();
        // SAFETY: null, or from `into_raw`. Its count is given back after the pin ends (`Retired`), or after the slot does (`Slot::drop`).
        unsafe { pointer.as_ref() }.map(|value| Loaded { value, pointer })
    }

    /// The value with a count of its own.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.load(&pin()).map(Loaded::to_arc)
    }

    /// Puts `value` into the slot, and returns what was there before.
    #[expect(unsafe_code, reason = "takes over the count that the slot has owned")]
    pub(crate) fn swap(&self, value: Option<Arc<T>>) -> Option<Retired<T>> {
        // ORDERING(slot): AcqRel; the release pairs with `pointer`, and the acquire with the release of the swap that has put the old value here. Weaker:
        // the old value could be freed before it is written (loom `value_of_another_thread_is_freed_whole_z2`).
        let old = self.0.swap(into_raw(value), ord("slot.swap", Ordering::AcqRel));
        // SAFETY: from `into_raw`; the one swap that removes a pointer from its slot takes its count.
        (!old.is_null()).then(|| Retired(Some(unsafe { Arc::from_raw(old) })))
    }
}

impl<T> Slot<T> {
    #[inline]
    fn pointer(&self) -> *mut T {
        // ORDERING(slot): Acquire; pairs with the release in `swap`. Weaker: a reader could see the pointer before what it points to (loom
        // `loaded_value_is_whole_and_stays_z2`).
        self.0.load(ord("slot.load", Ordering::Acquire))
    }
}

impl<T> Drop for Slot<T> {
    #[expect(unsafe_code, reason = "gives back the slot's count")]
    fn drop(&mut self) {
        let value = self.pointer();
        if !value.is_null() {
            // SAFETY: from `into_raw`. What was loaded from the slot has borrowed it, so no thread uses it now.
            drop(unsafe { Arc::from_raw(value) });
        }
    }
}

fn into_raw<T>(value: Option<Arc<T>>) -> *mut T {
    value.map_or(ptr::null_mut(), |value| Arc::into_raw(value).cast_mut())
}

/// A value that was loaded from a slot.
#[derive(Debug)]
pub(crate) struct Loaded<'a, T> {
    value: &'a T,
    /// The pointer from `into_raw`, which may also be used to count the value: a reference may not.
    pointer: *const T,
}

impl<T> Clone for Loaded<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Loaded<'_, T> {}

impl<'a, T> Loaded<'a, T> {
    #[inline]
    pub(crate) fn get(self) -> &'a T {
        self.value
    }

    /// The value with a count of its own.
    #[expect(unsafe_code, reason = "counts a value whose `Arc` is in the slot, or retired")]
    pub(crate) fn to_arc(self) -> Arc<T> {
        // SAFETY: from `into_raw`, and its count is at least one while it is loaded.
        unsafe { Arc::increment_strong_count(self.pointer) };
        // SAFETY: takes the count that was just added.
        unsafe { Arc::from_raw(self.pointer) }
    }
}

impl<T> Deref for Loaded<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

/// A value that was taken out of its slot, and that pinned threads may still read. When this is dropped, the value is freed after they have unpinned.
#[derive(Debug)]
pub(crate) struct Retired<T: Send + Sync + 'static>(Option<Arc<T>>);

impl<T: Send + Sync> Drop for Retired<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        if value.is_some() {
            defer(move || drop(value));
        }
    }
}

impl<T: Send + Sync> Deref for Retired<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("the value is taken only by the drop and by `reclaim`")
    }
}

/// Passes the values to `free` once no thread can read them. Any thread may run it: it must not wait.
pub(crate) fn reclaim<T: Send + Sync + 'static>(
    retired: impl IntoIterator<Item = Retired<T>>,
    free: impl FnOnce(Vec<Arc<T>>) + Send + 'static,
) {
    let values = retired.into_iter().filter_map(|mut retired| retired.0.take()).collect();
    defer(move || free(values));
}

fn defer(free: impl FnOnce() + Send + 'static) {
    let Pin(guard) = pin();
    guard.defer(free);
    guard.flush();
}

/// Held by each test that stops a pinned reader for long, and by each that counts what is freed: all share the collector.
#[cfg(test)]
pub(crate) static STOPPED_READERS: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_stopped_reader_keeps_its_value_and_any_thread_frees_it_afterwards() {
        // Catches a value that is freed although a thread that has loaded it is still pinned, and one that waits in the thread that has retired it.
        let _turn = STOPPED_READERS.lock();
        let (slot, together) = (Slot::new(Some(Arc::new(7))), Barrier::new(2));
        let value = slot.get().expect("filled");
        thread::scope(|scope| {
            scope.spawn(|| {
                let pin = pin();
                let loaded = slot.load(&pin).expect("filled");
                together.wait();
                together.wait();
                assert_eq!(*loaded, 7);
            });
            together.wait();
            scope.spawn(|| assert!(slot.swap(None).is_some())).join().expect("retired");
            (0..1000).for_each(|_| collect());
            assert_eq!(Arc::strong_count(&value), 2, "freed while a thread was pinned");
            together.wait();
        });
        // Threads of other tests may be pinned for a moment.
        let is_freed = || {
            collect();
            thread::yield_now();
            Arc::strong_count(&value) == 1
        };
        assert!((0..1_000_000).any(|_| is_freed()));
    }

    #[test]
    fn an_idle_thread_frees_at_once_what_it_retires() {
        // Catches an epoch that advances less often than `TURNS` promises. Others may delay it, but not each time.
        let _turn = STOPPED_READERS.lock();
        let turns = |_| {
            let slot = Slot::new(Some(Arc::new(7)));
            let value = slot.get().expect("filled");
            drop(slot.swap(None));
            (0..TURNS).for_each(|_| collect());
            Arc::strong_count(&value)
        };
        assert!((0..1000).map(turns).any(|count| count == 1));
    }
}
