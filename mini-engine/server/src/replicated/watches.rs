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
            Kind::Check => {}
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
        // Mostly nobody watches anything.
        if self.keys.is_empty() {
            return;
        }
        let args = request.args();
        let Some(command) = commands::find(args).ok().filter(|command| command.writes()) else { return };
        match command.named(args) {
            Ok(Named::Keys(keys)) => keys.into_iter().filter_map(|key| self.keys.remove(key)).for_each(set),
            Ok(Named::Range(from, to)) => self.touch_all(|key| from <= key && (to.is_empty() || key < to)),
            Ok(Named::Prefix(prefix)) => self.touch_all(|key| key.starts_with(prefix)),
            Ok(Named::Any) => self.touch_all(|_| true),
            // The group refuses such a request.
            Err(_) => {}
        }
    }

    fn touch_all(&mut self, is_touched: impl Fn(&[u8]) -> bool) {
        self.keys.retain(|key, watches| {
            let is_touched = is_touched(key);
            if is_touched {
                set(std::mem::take(watches));
            }
            !is_touched
        });
    }
}

/// Marks the watches of a key as changed.
fn set(watches: Vec<Weak<AtomicBool>>) {
    watches.iter().filter_map(Weak::upgrade).for_each(|watch| Changed(watch).set());
}
