//! [`Clock`]: keeps blocks in memory, or files open, up to a capacity; readers find them in [`CacheSlot`]s without a lock.
//!
//! Each block has a slot in its parent: a partition's slot is in the root of its table, a data block's slot is in its partition. A cache hit loads
//! the slot and counts a use with one store, unless the block already has the maximum number of uses. So a hit writes only one shared cache line:
//! that of the block's reference count.
//!
//! Only a thread that has read a block from the file locks the clock and changes slots. The eviction policy resembles CLOCK-Pro (Jiang, Chen and
//! Zhang 2005) and S3-FIFO (Yang et al. 2023). A new block is cold, and is evicted first unless it was used. A used block is hot, and is evicted when
//! the hand has passed it more often than it was used. Evicted blocks are remembered for a while as ghosts, and are hot if they are read again. So a
//! scan, whose blocks are used once, displaces only the few cold blocks; the hot ones stay in the cache.
//!
//! E1 A block is in its slot if and only if it is in the clock: both change under the clock's lock.
//! E2 The weights of the blocks in the clock never exceed its capacity. An evicted block is freed when the last reader drops it.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use arc_swap::{ArcSwapOption, Guard};

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
    fn mark(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses < MOST_USES {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    /// Removes one use, if there is one.
    fn unmark(&self) -> bool {
        let uses = self.uses.load(Ordering::Relaxed);
        self.uses.store(uses.saturating_sub(1), Ordering::Relaxed);
        uses > 0
    }
}

/// The slot of a block that may be in memory.
#[derive(Debug)]
pub(crate) struct CacheSlot<T>(ManuallyDrop<ArcSwapOption<Cached<T>>>);

impl<T> CacheSlot<T> {
    pub(crate) fn several(count: usize) -> Arc<[Self]> {
        (0..count).map(|_| Self(ManuallyDrop::new(ArcSwapOption::empty()))).collect()
    }

    /// The content of the slot; not counted as a use.
    #[inline]
    pub(crate) fn get(&self) -> Option<Hit<T>> {
        let guard = self.0.load();
        guard.is_some().then_some(Hit(guard))
    }
}

/// When an `ArcSwap` is dropped, even an empty one, it searches the records of all threads for readers, which takes some hundred loads. A partition
/// has a hundred slots, and with a small cache few of them were ever filled. An empty slot holds nothing to drop, so this skips the search.
impl<T> Drop for CacheSlot<T> {
    fn drop(&mut self) {
        if self.0.load().is_some() {
            self.0.store(None);
        }
    }
}

/// The content of a slot when it was read.
#[derive(Debug)]
pub(crate) struct Hit<T>(Guard<Option<Arc<Cached<T>>>>);

impl<T> Hit<T> {
    /// A hit for a block that need not be in a slot.
    pub(crate) fn of(cached: Arc<Cached<T>>) -> Self {
        Self(Guard::from_inner(Some(cached)))
    }

    #[inline]
    fn cached(&self) -> &Arc<Cached<T>> {
        // Both constructors have checked that there is a block.
        self.0.as_ref().expect("a hit is of a block")
    }

    #[inline]
    pub(crate) fn mark(&self) {
        self.cached().mark();
    }

    #[inline]
    pub(crate) fn weight(&self) -> u64 {
        self.cached().weight
    }
}

impl<T> Clone for Hit<T> {
    fn clone(&self) -> Self {
        Self::of(self.cached().clone())
    }
}

impl<T> Deref for Hit<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.cached().value
    }
}

/// A block in the clock, and the position of its slot.
pub(crate) struct Entry<T> {
    /// A hash of the block's identity.
    id: u64,
    cached: Arc<Cached<T>>,
    slots: Arc<[CacheSlot<T>]>,
    at: u32,
}

impl<T: Evict> Entry<T> {
    fn leave_slot(&self) {
        if let Some(slot) = self.slots.get(self.at as usize) {
            slot.0.store(self.cached.value.remainder().map(|rest| Cached::new(rest, 0)));
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
pub(crate) struct Clock<T> {
    cold: VecDeque<Entry<T>>,
    cold_bytes: u64,
    hot: VecDeque<Entry<T>>,
    hot_bytes: u64,
    /// Hashes of blocks that were evicted unused: the oldest first, and at most half as many as there are blocks.
    ghosts: VecDeque<u64>,
    is_ghost: HashSet<u64, BuildHasherDefault<IdHasher>>,
    capacity: u64,
}

impl<T: Evict> Clock<T> {
    pub(crate) fn new(capacity: u64) -> Self {
        let (cold, hot, ghosts) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { cold, cold_bytes: 0, hot, hot_bytes: 0, ghosts, is_ghost: HashSet::default(), capacity }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.cold_bytes + self.hot_bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.cold.len() + self.hot.len()
    }

    fn hot_capacity(&self) -> u64 {
        // Rounded up: a clock with room for one block has room for a hot one.
        (u128::from(self.capacity) * u128::from(HOT_PERCENT)).div_ceil(100) as u64
    }

    /// Puts a block into slot `at` of `slots`, unless it is too large. Blocks that it displaces go to `evicted`, to be dropped after the lock is
    /// released. Returns the block that is now in the slot, or `cached` itself if it did not fit.
    pub(crate) fn insert(
        &mut self,
        (slots, at): (&Arc<[CacheSlot<T>]>, usize),
        id: u64,
        cached: Arc<Cached<T>>,
        evicted: &mut Vec<Entry<T>>,
    ) -> Hit<T> {
        let (Some(slot), Ok(index)) = (slots.get(at), u32::try_from(at)) else { return Hit::of(cached) };
        // Another thread may have read the block too.
        if let Some(there) = slot.get().filter(|there| there.is_resident()) {
            return there;
        }
        let (weight, hot_capacity) = (cached.weight, self.hot_capacity());
        if weight > hot_capacity {
            return Hit::of(cached);
        }
        let is_hot = self.is_ghost.remove(&id) || self.hot_bytes + weight <= hot_capacity;
        self.shrink_to(self.capacity - weight, evicted);
        slot.0.store(Some(cached.clone()));
        let hit = Hit::of(cached.clone());
        let entry = Entry { id, cached, slots: slots.clone(), at: index };
        let (list, bytes) =
            if is_hot { (&mut self.hot, &mut self.hot_bytes) } else { (&mut self.cold, &mut self.cold_bytes) };
        list.push_back(entry);
        *bytes += weight;
        self.cool(evicted);
        hit
    }

    /// Changes the capacity, and evicts the excess.
    pub(crate) fn set_capacity(&mut self, capacity: u64, evicted: &mut Vec<Entry<T>>) {
        self.capacity = capacity;
        self.shrink_to(capacity, evicted);
        self.cool(evicted);
    }

    /// Removes all blocks whose slots are in `slots`.
    pub(crate) fn forget(&mut self, slots: &Arc<[CacheSlot<T>]>) {
        let lists = [(&mut self.cold, &mut self.cold_bytes), (&mut self.hot, &mut self.hot_bytes)];
        for (list, bytes) in lists {
            list.retain(|entry| {
                let stays = !Arc::ptr_eq(&entry.slots, slots);
                if !stays {
                    entry.leave_slot();
                    *bytes -= entry.cached.weight;
                }
                stays
            });
        }
    }

    /// Evicts blocks until at most `capacity` is used.
    pub(crate) fn shrink_to(&mut self, capacity: u64, evicted: &mut Vec<Entry<T>>) {
        while self.bytes() > capacity {
            match self.cold.pop_front() {
                Some(entry) => self.judge(entry, evicted),
                None => self.turn_hot(evicted),
            }
        }
    }

    /// Makes a cold block hot if it was used, and otherwise evicts it.
    fn judge(&mut self, entry: Entry<T>, evicted: &mut Vec<Entry<T>>) {
        self.cold_bytes -= entry.cached.weight;
        if entry.cached.unmark() {
            self.hot_bytes += entry.cached.weight;
            self.hot.push_back(entry);
            return self.cool(evicted);
        }
        entry.leave_slot();
        if self.is_ghost.insert(entry.id) {
            self.ghosts.push_back(entry.id);
        }
        evicted.push(entry);
        while self.ghosts.len() > self.len() / 2 {
            let Some(oldest) = self.ghosts.pop_front() else { break };
            self.is_ghost.remove(&oldest);
        }
    }

    fn cool(&mut self, evicted: &mut Vec<Entry<T>>) {
        while self.hot_bytes > self.hot_capacity() {
            self.turn_hot(evicted);
        }
    }

    /// Advances the hand of the hot blocks by one, and evicts that block if it has no use left.
    fn turn_hot(&mut self, evicted: &mut Vec<Entry<T>>) {
        let Some(entry) = self.hot.pop_front() else { return };
        if entry.cached.unmark() {
            return self.hot.push_back(entry);
        }
        self.hot_bytes -= entry.cached.weight;
        entry.leave_slot();
        evicted.push(entry);
    }
}
