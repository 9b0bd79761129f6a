//! [`Watches`]: the keys that clients of a leader watch, and the writes of these keys.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use crate::commands::{self, Named};
use crate::groups::{Changed, Kind, Request, Write};

/// The number of keys from which on keys that are no longer watched are dropped.
const SWEEP_AT: usize = 64;

/// The watched keys of a group, on the group's leader. It is called for each write before the write goes into the log.
#[derive(Debug, Default)]
pub struct Watches {
    /// The watches of each key. Each watch ends with its EXEC, UNWATCH or connection.
    keys: BTreeMap<Vec<u8>, Vec<Weak<AtomicBool>>>,
    sweep_at: usize,
}

impl Watches {
    /// Records a write that is proposed next; called for all writes of the group, in the order of its log.
    pub fn note(&mut self, write: &mut Write) {
        match &mut write.0 {
            Kind::Watch { keys, changed } => keys.iter().for_each(|key| self.watch(key, changed)),
            Kind::Request(request) => self.touch(request),
            Kind::Transaction(transaction) => {
                transaction.is_changed = transaction.watched.iter().any(|watched| watched.changed.get());
                if !transaction.is_changed {
                    transaction.requests.iter().for_each(|request| self.touch(request));
                }
            }
        }
    }

    fn watch(&mut self, key: &[u8], changed: &Changed) {
        let is_alive = |watch: &Weak<AtomicBool>| watch.strong_count() > 0;
        if self.keys.len() >= self.sweep_at.max(SWEEP_AT) {
            self.keys.retain(|_, watches| watches.iter().any(is_alive));
            self.sweep_at = self.keys.len() * 2;
        }
        let watches = self.keys.entry(key.to_vec()).or_default();
        if watches.len() == watches.capacity() {
            watches.retain(is_alive);
        }
        watches.push(Arc::downgrade(&changed.0));
    }

    fn touch(&mut self, request: &Request) {
        let args = request.args();
        let Ok(command) = commands::find(args) else { return };
        if self.keys.is_empty() || !command.writes() {
            return;
        }
        let Ok(named) = command.named(args) else { return };
        if let Named::Keys(keys) = named {
            return keys.into_iter().for_each(|key| set(self.keys.remove(key)));
        }
        let is_touched = |key: &[u8]| match named {
            Named::Range(from, to) => from <= key && (to.is_empty() || key < to),
            Named::Prefix(prefix) => key.starts_with(prefix),
            Named::Keys(_) | Named::Any => true,
        };
        self.keys.retain(|key, watches| {
            let is_left = !is_touched(key);
            if !is_left {
                set(Some(std::mem::take(watches)));
            }
            is_left
        });
    }
}

/// Marks the watches of a key as changed.
fn set(watches: Option<Vec<Weak<AtomicBool>>>) {
    for watch in watches.into_iter().flatten().filter_map(|watch| watch.upgrade()) {
        Changed(watch).set();
    }
}
