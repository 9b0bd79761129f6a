//! [`Clock`]: keeps blocks in memory, or files open, up to a capacity; readers find them in [`CacheSlot`]s without a lock.
//!
//! Each block has a slot in its parent: a partition's slot is in the root of its table, a data block's slot is in its partition. A cache hit loads
//! the slot and counts a use with one store, unless the block already has the maximum number of uses. So most hits write no shared cache line.
//!
//! Only a thread that has read a block from the file locks the clock and changes slots. The eviction policy resembles CLOCK-Pro (Jiang, Chen and
//! Zhang 2005) and S3-FIFO (Yang et al. 2023). A new block is cold, and is evicted first unless it was used. A used block is hot, and is evicted when
//! the hand has passed it more often than it was used. Evicted blocks are remembered for a while as ghosts, and are hot if they are read again. So a
//! scan, whose blocks are used once, displaces only the few cold blocks; the hot ones stay in the cache.
//!
//! E1 A block is in its slot if and only if it is in the clock: both change under the clock's lock.
//! E2 The weights of the blocks in the clock never exceed its capacity. What readers may still use of an evicted block goes to the caller.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Deref;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use crate::epoch::{Retired, Slot};
use crate::lock::lock;

/// The maximum number of rounds of the hand that a block can survive.
const MOST_USES: u8 = 3;
/// Part of the capacity that hot blocks may take, in percent.
const HOT_PERCENT: u64 = 97;

/// An item that can be evicted.
pub(crate) trait Evict: Sized {
    /// Whether the item is whole and not only the remainder of an evicted one.
    fn is_resident(&self) -> bool {
        true
    }

    /// The part that stays in the slot after eviction and takes no capacity.
    fn remainder(&self) -> Option<Self> {
        None
    }
}

impl<T: ?Sized> Evict for Arc<T> {}

/// A block in memory, which takes `weight` of the capacity.
#[derive(Debug)]
pub(crate) struct Cached<T> {
    value: T,
    weight: u64,
    uses: AtomicU8,
}

impl<T> Cached<T> {
    pub(crate) fn new(value: T, weight: u64) -> Arc<Self> {
        Arc::new(Self { value, weight, uses: AtomicU8::new(0) })
    }

    /// Counts a use. Relaxed: if two threads count at once, a lost use costs the block at most one round.
    #[inline]
    pub(crate) fn mark(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses < MOST_USES {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// Removes one use, if there is one.
    fn unmark(&self) -> bool {
        let uses = self.uses.load(Ordering::Relaxed);
        self.uses.store(uses.saturating_sub(1), Ordering::Relaxed);
        uses > 0
    }
}

impl<T> Deref for Cached<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

/// The slot of a block that may be in memory.
pub(crate) trait CacheSlot: Sized {
    type Item: Evict;
    /// What readers may still use of a block that was taken out of its slot.
    type Out;

    fn empty() -> Self;

    fn get(&self) -> Option<Arc<Cached<Self::Item>>>;

    fn replace(&self, cached: Option<Arc<Cached<Self::Item>>>) -> Option<Self::Out>;

    fn several(count: usize) -> Arc<[Self]> {
        (0..count).map(|_| Self::empty()).collect()
    }
}

/// Blocks are read while the reader is pinned, without counting them.
impl<T: Evict + Send + Sync + 'static> CacheSlot for Slot<Cached<T>> {
    type Item = T;
    type Out = Retired<Cached<T>>;

    fn empty() -> Self {
        Self::new(None)
    }

    fn get(&self) -> Option<Arc<Cached<T>>> {
        Self::get(self)
    }

    fn replace(&self, cached: Option<Arc<Cached<T>>>) -> Option<Self::Out> {
        self.swap(cached)
    }
}

/// Files are counted: a read of a file takes so long that a lock does not matter, and a file must be closed as soon as it has no reader.
impl<T: Evict> CacheSlot for Mutex<Option<Arc<Cached<T>>>> {
    type Item = T;
    type Out = Arc<Cached<T>>;

    fn empty() -> Self {
        Self::new(None)
    }

    fn get(&self) -> Option<Arc<Cached<T>>> {
        lock(self).clone()
    }

    fn replace(&self, cached: Option<Arc<Cached<T>>>) -> Option<Self::Out> {
        std::mem::replace(&mut *lock(self), cached)
    }
}

/// A block in the clock, and the position of its slot.
struct Entry<S: CacheSlot> {
    /// A hash of the block's identity.
    id: u64,
    cached: Arc<Cached<S::Item>>,
    slots: Arc<[S]>,
    at: u32,
}

impl<S: CacheSlot> Entry<S> {
    fn leave_slot(self, out: &mut Vec<S::Out>) {
        if let Some(slot) = self.slots.get(self.at as usize) {
            out.extend(slot.replace(self.cached.value.remainder().map(|rest| Cached::new(rest, 0))));
        }
    }
}

/// Uses a hash unchanged except that its halves are swapped: the hashes of one shard share their lowest bits.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u64(&mut self, id: u64) {
        self.0 = id.rotate_left(32);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes of identities are hashed")
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Blocks in memory, in the order in which the hand visits them.
pub(crate) struct Clock<S: CacheSlot> {
    cold: VecDeque<Entry<S>>,
    cold_bytes: u64,
    hot: VecDeque<Entry<S>>,
    hot_bytes: u64,
    /// Hashes of blocks that were evicted unused: the oldest first, and at most half as many as there are blocks.
    ghosts: VecDeque<u64>,
    is_ghost: HashSet<u64, BuildHasherDefault<IdHasher>>,
    capacity: u64,
}

impl<S: CacheSlot> Clock<S> {
    pub(crate) fn new(capacity: u64) -> Self {
        let (cold, hot, ghosts) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { cold, cold_bytes: 0, hot, hot_bytes: 0, ghosts, is_ghost: HashSet::default(), capacity }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.cold_bytes + self.hot_bytes
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether a block of this weight can be in the clock.
    pub(crate) fn fits(&self, weight: u64) -> bool {
        weight <= self.hot_capacity()
    }

    pub(crate) fn len(&self) -> usize {
        self.cold.len() + self.hot.len()
    }

    fn hot_capacity(&self) -> u64 {
        // Rounded up: a clock with room for one block has room for a hot one.
        (u128::from(self.capacity) * u128::from(HOT_PERCENT)).div_ceil(100) as u64
    }

    /// Puts a block into slot `at` of `slots`, unless it is too large. Blocks that it displaces go to `out`.
    /// Returns the block that is now in the slot, or `cached` itself if it did not fit.
    pub(crate) fn insert(
        &mut self,
        (slots, at): (&Arc<[S]>, usize),
        id: u64,
        cached: Arc<Cached<S::Item>>,
        out: &mut Vec<S::Out>,
    ) -> Arc<Cached<S::Item>> {
        let (Some(slot), Ok(index)) = (slots.get(at), u32::try_from(at)) else { return cached };
        // Another thread may have read the block too.
        if let Some(there) = slot.get().filter(|there| there.value.is_resident()) {
            return there;
        }
        let weight = cached.weight;
        if !self.fits(weight) {
            return cached;
        }
        let is_hot = self.is_ghost.remove(&id) || self.hot_bytes + weight <= self.hot_capacity();
        self.shrink_to(self.capacity - weight, out);
        out.extend(slot.replace(Some(cached.clone())));
        let entry = Entry { id, cached: cached.clone(), slots: slots.clone(), at: index };
        let (list, bytes) =
            if is_hot { (&mut self.hot, &mut self.hot_bytes) } else { (&mut self.cold, &mut self.cold_bytes) };
        list.push_back(entry);
        *bytes += weight;
        self.cool(out);
        cached
    }

    /// Changes the capacity, and evicts the excess.
    pub(crate) fn set_capacity(&mut self, capacity: u64, out: &mut Vec<S::Out>) {
        self.capacity = capacity;
        self.shrink_to(capacity, out);
        self.cool(out);
    }

    /// Removes all blocks whose slots are in `slots`.
    pub(crate) fn forget(&mut self, slots: &Arc<[S]>, out: &mut Vec<S::Out>) {
        let lists = [(&mut self.cold, &mut self.cold_bytes), (&mut self.hot, &mut self.hot_bytes)];
        for (list, bytes) in lists {
            let (gone, rest) = std::mem::take(list).into_iter().partition(|entry| Arc::ptr_eq(&entry.slots, slots));
            *list = rest;
            for entry in gone {
                *bytes -= entry.cached.weight;
                entry.leave_slot(out);
            }
        }
    }

    /// Evicts blocks until at most `capacity` is used.
    pub(crate) fn shrink_to(&mut self, capacity: u64, out: &mut Vec<S::Out>) {
        while self.bytes() > capacity {
            match self.cold.pop_front() {
                Some(entry) => self.judge(entry, out),
                None => self.turn_hot(out),
            }
        }
    }

    /// Makes a cold block hot if it was used, and otherwise evicts it.
    fn judge(&mut self, entry: Entry<S>, out: &mut Vec<S::Out>) {
        self.cold_bytes -= entry.cached.weight;
        if entry.cached.unmark() {
            self.hot_bytes += entry.cached.weight;
            self.hot.push_back(entry);
            return self.cool(out);
        }
        if self.is_ghost.insert(entry.id) {
            self.ghosts.push_back(entry.id);
        }
        entry.leave_slot(out);
        while self.ghosts.len() > self.len() / 2 {
            let Some(oldest) = self.ghosts.pop_front() else { break };
            self.is_ghost.remove(&oldest);
        }
    }

    fn cool(&mut self, out: &mut Vec<S::Out>) {
        while self.hot_bytes > self.hot_capacity() {
            self.turn_hot(out);
        }
    }

    /// Advances the hand of the hot blocks by one, and evicts that block if it has no use left.
    fn turn_hot(&mut self, out: &mut Vec<S::Out>) {
        let Some(entry) = self.hot.pop_front() else { return };
        if entry.cached.unmark() {
            return self.hot.push_back(entry);
        }
        self.hot_bytes -= entry.cached.weight;
        entry.leave_slot(out);
    }
}
