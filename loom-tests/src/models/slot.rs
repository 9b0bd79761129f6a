//! Z1, Z2: the slots of the engine's epochs. What a pinned thread has loaded is whole, and is freed after the pin.

use std::sync::Arc;

use crate::check::Program;
use crate::epoch::{Slot, pin};
use crate::sync::Watch;

/// A value that is written when it is made and when it is freed: loom reports a read that neither comes after the former nor before the latter.
pub(super) struct Value(Watch<u64>);

// SAFETY: loom checks each access.
unsafe impl Sync for Value {}

impl Value {
    fn new(number: u64) -> Option<Arc<Self>> {
        let value = Self(Watch::new(0));
        value.write(number);
        Some(Arc::new(value))
    }

    fn write(&self, number: u64) {
        // SAFETY: the value is not shared yet, or not any more; if it were, loom would report the race before.
        self.0.with_mut(|place| unsafe { *place = number });
    }

    fn read(&self) -> u64 {
        // SAFETY: as above.
        self.0.with(|place| unsafe { *place })
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.write(u64::MAX);
    }
}

/// One thread replaces the value; the other reads it twice while it is pinned.
pub(super) fn load() -> Program<Slot<Value>> {
    Program::new(|| Slot::new(Value::new(1)))
        .thread(|slot| drop(slot.swap(Value::new(2))))
        .thread(|slot| {
            let pin = pin();
            let value = slot.load(&pin).expect("never empty");
            let seen = value.read();
            assert_eq!(value.read(), seen, "freed while it was read");
            seen.to_string()
        })
        .expects(&["1", "2"])
}

/// One thread fills the slot; the other empties it, and so frees what the first has written.
pub(super) fn take() -> Program<Slot<Value>> {
    Program::new(|| Slot::new(None))
        .thread(|slot| assert!(slot.swap(Value::new(1)).is_none()))
        .thread(|slot| if slot.swap(None).is_some() { "taken" } else { "empty" })
        .expects(&["empty", "taken"])
}
