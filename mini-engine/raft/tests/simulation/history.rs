//! [`History`]: what happened in a run, and the rules that it must obey. Each rule is checked at once, so a failure comes with the events before it.
//!
//! * State machine safety: all processes of all nodes apply the same entry at an index.
//! * Linearizability: values are unique, and the index of its entry is the place of a write in the order; a read comes after the write that it found.
//!   This order is that of the registers by construction, so it remains to compare it with time: an operation that began after another had ended
//!   must not come before it.
//! * Votes: a node never goes back behind a vote that it has granted.
//! * No loss: an acknowledged write is the entry that was applied at the acknowledged index.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use crate::cluster::{LogId, Vote};

pub(crate) const REGISTERS: u64 = 5;
const EVENTS_SHOWN: usize = 60;

/// The register to which a value is written.
pub(crate) fn register_of(value: u64) -> u64 {
    value % REGISTERS
}

#[derive(Default)]
pub(crate) struct History {
    pub(crate) steps: u64,
    /// The time of the last step.
    pub(crate) time: Duration,
    /// A hash of all events.
    pub(crate) trace: DefaultHasher,
    last: VecDeque<String>,
    /// The rule that was broken first, and the events before it.
    pub(crate) failure: Option<String>,
    /// By index: the id of the entry, and the value that it writes.
    applied: BTreeMap<u64, (LogId, Option<u64>)>,
    /// By node: the greatest vote that it has granted.
    votes: BTreeMap<u64, Vote>,
    /// By register: the greatest index of an operation that has ended.
    ended: [u64; REGISTERS as usize],
    /// By value: `ended` of its register when its write began.
    begun: BTreeMap<u64, u64>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl History {
    /// Notes a step of the run, of one `kind`.
    pub(crate) fn note(&mut self, at: Duration, kind: &'static str, event: String) {
        self.steps += 1;
        self.time = at;
        *self.counts.entry(kind).or_default() += 1;
        (at, kind, &event).hash(&mut self.trace);
        if self.last.len() == EVENTS_SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(format!("\n{at:?} {kind} {event}"));
    }

    pub(crate) fn fail(&mut self, rule: String) {
        let last = || self.last.iter().map(String::as_str).collect::<String>();
        self.failure.get_or_insert_with(|| format!("{rule}\nthe last events:{}", last()));
    }

    pub(crate) fn applied(&mut self, node: u64, id: LogId, write: Option<u64>) {
        let known = *self.applied.entry(id.index).or_insert((id, write));
        if known != (id, write) {
            self.fail(format!("node {node} applies {id} {write:?}, where {known:?} was applied"));
        }
        let before = write.map(|value| self.begun.get(&value).copied());
        if before.is_some_and(|before| before.is_none_or(|before| before >= id.index)) {
            self.fail(format!("the write of {write:?} has index {}, but began when {before:?} had ended", id.index));
        }
    }

    /// Returns the vote behind which an answer to a candidate, whose message arrives now, must not go back.
    pub(crate) fn granted(&self, node: u64) -> Option<Vote> {
        self.votes.get(&node).copied()
    }

    /// A node answers a candidate with its vote, which is durable if it grants it.
    pub(crate) fn voted(&mut self, node: u64, granted: Option<Vote>, vote: Vote, is_granted: bool) {
        if let Some(granted) = granted.filter(|granted| granted.leader_id > vote.leader_id) {
            self.fail(format!("node {node} has the vote {vote}, and has granted {granted}"));
        } else if is_granted {
            let last = self.votes.entry(node).or_insert(vote);
            *last = if last.leader_id < vote.leader_id { vote } else { *last };
        }
    }

    /// Returns the index that a read, which begins now, must see.
    pub(crate) fn ended(&self, register: u64) -> u64 {
        self.ended[register as usize]
    }

    /// Returns the value that is to be written.
    pub(crate) fn write_begins(&mut self, register: u64) -> u64 {
        let value = self.begun.len() as u64 * REGISTERS + register;
        self.begun.insert(value, self.ended(register));
        value
    }

    pub(crate) fn write_ends(&mut self, value: u64, id: LogId) {
        let applied = self.applied.get(&id.index);
        if applied != Some(&(id, Some(value))) {
            self.fail(format!("{value} was acknowledged at {id}, where {applied:?} was applied"));
        }
        self.ends(register_of(value), id.index);
    }

    /// Checks the value that a read has found, with the index of its write.
    pub(crate) fn read_ends(&mut self, node: u64, register: u64, began: u64, found: Option<(u64, u64)>) {
        let (value, index) = found.unzip();
        let index = index.unwrap_or(0);
        let written = self.applied.get(&index).and_then(|(_, write)| *write);
        if index < began || written != value || value.is_some_and(|value| register_of(value) != register) {
            self.fail(format!("node {node}: a read of register {register} found {found:?}, expected {began} or later"));
        }
        self.ends(register, index);
    }

    fn ends(&mut self, register: u64, index: u64) {
        let ended = &mut self.ended[register as usize];
        *ended = index.max(*ended);
    }

    /// Compares the contents of a node that has applied all entries: of each register, the value and its index.
    pub(crate) fn ends_with(&mut self, node: u64, contents: &BTreeMap<u64, (u64, u64)>) {
        let writes = self.applied.iter().filter_map(|(index, (_, write))| Some(((*write)?, *index)));
        let expected = writes.map(|(value, index)| (register_of(value), (value, index))).collect();
        if *contents != expected {
            self.fail(format!("node {node} ends with {contents:?}, expected {expected:?}"));
        }
    }

    pub(crate) fn last_index(&self) -> u64 {
        self.applied.last_key_value().map_or(0, |(index, _)| *index)
    }
}
