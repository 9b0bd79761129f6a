//! [`Clock`]: keeps blocks in memory, or files open, within a capacity; and [`CacheSlot`]s, in which readers find them without a lock.
//!
//! A block has its slot on the way to it: a partition's slot is in the root of its table, a data block's slot is in its partition. A hit loads the
//! slot and marks the block as used, by a store, until it has the maximum number of marks. So the only shared cache line that hits write is that of
//! the block's reference count.
//!
//! A thread that has read a block locks the clock, which changes the slots. It evicts like CLOCK-Pro (Jiang, Chen and Zhang 2005) and S3-FIFO (Yang
//! et al. 2023). A new block is cold, and leaves first unless it was used. A used block is hot, and is evicted when the hand has passed it more
//! often than it was used. Evicted blocks are remembered for a while, and are hot when they return. So a scan, whose blocks are used once, goes
//! through the few cold ones and leaves the hot ones in the cache.
//!
//! E1 A block is in its slot exactly as long as it is in the clock: both change under the clock's lock.
//! E2 The clock holds at most its capacity. An evicted block is freed when the last reader drops it.

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
    /// Whether it is a whole item and not only the remainder of an evicted one.
    fn is_resident(&self) -> bool {
        true
    }

    /// The remainder that stays in its slot when it is evicted, and takes no capacity.
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

    /// Takes a use back, if there is one.
    fn unmark(&self) -> bool {
        let uses = self.uses.load(Ordering::Relaxed);
        self.uses.store(uses.saturating_sub(1), Ordering::Relaxed);
        uses > 0
    }
}

/// The place of a block that may be in memory.
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

/// An `ArcSwap` that is dropped looks for readers in the records of all threads, some hundred loads, also if it is empty. A partition has a hundred
/// slots, of which few were ever filled where the cache is small. An empty one holds nothing that had to be dropped.
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
    /// A block that need not be in a slot.
    pub(crate) fn of(cached: Arc<Cached<T>>) -> Self {
        Self(Guard::from_inner(Some(cached)))
    }

    #[inline]
    fn cached(&self) -> &Arc<Cached<T>> {
        // Both constructors have checked this.
        self.0.as_ref().expect("a hit is of a block")
    }

    #[inline]
    pub(crate) fn mark(&self) {
        self.cached().mark();
    }

    /// Whether it was used before the use that was counted last. False, too, after the hand has taken uses back.
    #[inline]
    pub(crate) fn was_used(&self) -> bool {
        self.cached().uses.load(Ordering::Relaxed) > 1
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

/// A block in the clock, and the place of its slot.
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

/// Takes a hash as it is, but with its halves exchanged: those of a shard share their lowest bits.
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

/// Blocks in memory, in the order in which the hand comes to them.
pub(crate) struct Clock<T> {
    cold: VecDeque<Entry<T>>,
    cold_bytes: u64,
    hot: VecDeque<Entry<T>>,
    hot_bytes: u64,
    /// Blocks that left before they were used: the oldest first, and at most half as many as there are blocks.
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

    /// Puts a block into slot `at` of `slots`, unless it is too large, and the blocks that it displaces into `evicted`, to be dropped without the
    /// lock. Returns the block that is in the slot, or would be if there were room.
    pub(crate) fn insert(
        &mut self,
        (slots, at): (&Arc<[CacheSlot<T>]>, usize),
        id: u64,
        cached: Arc<Cached<T>>,
        evicted: &mut Vec<Entry<T>>,
    ) -> Hit<T> {
        let (Some(slot), Ok(index)) = (slots.get(at), u32::try_from(at)) else { return Hit::of(cached) };
        // Another thread may have read it too.
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

    /// Evicts until no more than `capacity` is taken.
    pub(crate) fn shrink_to(&mut self, capacity: u64, evicted: &mut Vec<Entry<T>>) {
        while self.bytes() > capacity {
            match self.cold.pop_front() {
                Some(entry) => self.judge(entry, evicted),
                None => self.turn_hot(evicted),
            }
        }
    }

    /// Makes a cold block hot if it was used, and evicts it if not.
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

    /// Moves the hand of the hot blocks by one, and evicts that block if it has no use left.
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
