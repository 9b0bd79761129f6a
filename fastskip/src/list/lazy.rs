//! A list that is made by the first write, so an untouched table reserves no memory. To reads, and to operations that store nothing, it is empty.
//!
//! If the system refuses the memory, that write fails, and the next write asks again. A table that is frozen before its list was made never gets
//! memory. Concurrent first writes wait on a lock while one of them makes the list; the same lock excludes `freeze`.

use super::state::List;
use super::stats::Stats;
use crate::bounds::KeyBounds;
use crate::builder::Config;
use crate::error::{InsertError, Refusal};
use crate::index::Estimate;
use crate::node::Schema;
use crate::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The state of a list while it is not made.
#[derive(Debug, Default)]
struct Unmade {
    /// Whether it was frozen: then the list is never made.
    is_frozen: bool,
    /// Inserts that were refused.
    refused: u64,
}

/// The settings of a list, and the list once a write has made it. From then on a use costs one load and a branch that always goes the same way.
#[derive(Debug)]
pub struct LazyList<S: Schema> {
    pub(crate) config: Config,
    list: OnceLock<List<S>>,
    /// Locked while the list is made.
    unmade: Mutex<Unmade>,
}

impl<S: Schema> LazyList<S> {
    /// A list that reserves its memory when it is first written to.
    pub(crate) fn new(config: Config) -> Self {
        Self { config, list: OnceLock::new(), unmade: Mutex::new(Unmade::default()) }
    }

    /// A list that reserves its memory at once.
    ///
    /// # Errors
    /// Returns an error if the system refuses the address range.
    pub(crate) fn reserved(config: Config) -> Result<Self, Refusal> {
        let list = List::new(config.clone())?.into();
        Ok(Self { list, ..Self::new(config) })
    }

    /// The list, if it was made; for reads, `None` means an empty list. Once this is `Some`, it stays so.
    #[inline(always)]
    pub(crate) fn made(&self) -> Option<&List<S>> {
        self.list.get()
    }

    /// The list, to which `attempts` inserts will be made.
    ///
    /// # Errors
    /// [`Full`](InsertError::Full) if the system refuses the list's memory, [`Frozen`](InsertError::Frozen) if the table was frozen before the list
    /// was made.
    #[inline(always)]
    pub(crate) fn for_writes(&self, attempts: u64) -> Result<&List<S>, InsertError> {
        match self.made() {
            Some(list) => Ok(list),
            None => self.make(attempts),
        }
    }

    #[cold]
    fn make(&self, attempts: u64) -> Result<&List<S>, InsertError> {
        let mut unmade = self.unmade();
        if let Some(list) = self.made() {
            return Ok(list);
        }
        let refusal = match unmade.is_frozen {
            true => InsertError::Frozen,
            false => match List::new(self.config.clone()) {
                Ok(list) => {
                    list.shard(0).gate.count_attempts(unmade.refused);
                    return Ok(self.list.get_or_init(|| list));
                }
                Err(_) => InsertError::Full,
            },
        };
        unmade.refused += attempts;
        Err(refusal)
    }

    fn unmade(&self) -> MutexGuard<'_, Unmade> {
        self.unmade.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns away every later writer.
    pub(crate) fn begin_freeze(&self) {
        let mut unmade = self.unmade();
        unmade.is_frozen = self.made().is_none();
        drop(unmade);
        self.made().into_iter().for_each(List::begin_freeze);
    }

    /// Turns away every later writer, and returns when none is inside.
    pub(crate) fn freeze(&self) {
        self.begin_freeze();
        self.made().into_iter().for_each(List::wait_until_drained);
    }

    /// Whether every later write is refused. Writers inside may still finish.
    pub(crate) fn is_frozen(&self) -> bool {
        self.made().map_or_else(|| self.unmade().is_frozen, List::is_frozen)
    }

    /// Whether the list is frozen and no writer is inside: its contents are final.
    pub(crate) fn is_drained(&self) -> bool {
        self.made().map_or_else(|| self.unmade().is_frozen, List::is_drained)
    }

    /// Whether the configured part of a limit is used up, now or at any earlier time, or that of the budget now.
    pub(crate) fn is_under_backpressure(&self) -> bool {
        self.made().map_or_else(|| self.config.is_budget_pressed(), List::is_under_backpressure)
    }

    /// Estimates the nodes within `bounds`. O(log n).
    pub(crate) fn estimate(&self, bounds: impl KeyBounds) -> Estimate {
        self.made().map_or_else(Estimate::default, |list| list.index.estimate(&bounds))
    }

    /// All statistics; `len` counts live entries.
    pub(crate) fn stats(&self) -> Stats {
        self.made().map_or_else(
            || {
                let Unmade { is_frozen, refused } = *self.unmade();
                Stats::of_untouched(&self.config, is_frozen, refused)
            },
            List::stats,
        )
    }

    /// Removes every entry and accepts writes again. A list that got a smaller range than its settings request is made again by the next write.
    pub(crate) fn reset(&mut self) {
        self.unmade = Mutex::new(Unmade::default());
        match self.list.get_mut() {
            Some(list) if list.nodes().arena.is_short() => self.list = OnceLock::new(),
            Some(list) => list.reset(),
            None => {}
        }
    }
}
