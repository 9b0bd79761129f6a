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

use crate::cluster::{LogId, Vote, Write};

pub(crate) const REGISTERS: u64 = 5;
const EVENTS_SHOWN: usize = 60;

#[derive(Default)]
pub(crate) struct History {
    pub(crate) steps: u64,
    pub(crate) trace: DefaultHasher,
    last: VecDeque<String>,
    /// The rule that was broken first, and the events before it.
    pub(crate) failure: Option<String>,
    /// By index: the id of the entry, and its write.
    applied: BTreeMap<u64, (LogId, Option<Write>)>,
    /// By node: the last vote that it has granted.
    votes: BTreeMap<u64, Vote>,
    /// By register: the greatest index of an operation that has ended.
    ended: [u64; REGISTERS as usize],
    /// By value: `ended` of its register when its write began.
    begun: BTreeMap<u64, u64>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl History {
    /// Notes a step of the run, of one `kind`.
    pub(crate) fn note(&mut self, at: std::time::Duration, kind: &'static str, event: String) {
        self.steps += 1;
        *self.counts.entry(kind).or_default() += 1;
        (at, kind, &event).hash(&mut self.trace);
        if self.last.len() == EVENTS_SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(format!("{at:?} {kind} {event}"));
    }

    pub(crate) fn fail(&mut self, rule: String) {
        let last: Vec<&str> = self.last.iter().map(String::as_str).collect();
        self.failure.get_or_insert_with(|| format!("{rule}\nthe last events:\n{}", last.join("\n")));
    }

    pub(crate) fn applied(&mut self, node: u64, id: LogId, write: Option<Write>) {
        let known = self.applied.entry(id.index).or_insert_with(|| (id, write.clone())).clone();
        if known != (id, write.clone()) {
            self.fail(format!("node {node} applies {id} {write:?}, where {known:?} was applied"));
        }
        let Some(Write { register, value }) = write else { return };
        match self.begun.get(&value) {
            Some(before) if *before < id.index => {}
            before => self.fail(format!(
                "the write of {value} to register {register} has index {}, but began when {before:?} had ended",
                id.index
            )),
        }
    }

    /// A node answers a candidate with its vote, which is durable if it grants it.
    pub(crate) fn voted(&mut self, node: u64, vote: Vote, is_granted: bool) {
        let granted = self.votes.get(&node).filter(|granted| granted.leader_id > vote.leader_id).copied();
        if let Some(granted) = granted {
            self.fail(format!("node {node} has the vote {vote}, and has granted {granted}"));
        } else if is_granted {
            self.votes.insert(node, vote);
        }
    }

    /// Returns the index that a read, which begins now, must see.
    pub(crate) fn ended(&self, register: u64) -> u64 {
        self.ended[register as usize]
    }

    pub(crate) fn write_begins(&mut self, write: &Write) {
        self.begun.insert(write.value, self.ended(write.register));
    }

    pub(crate) fn write_ends(&mut self, write: &Write, id: LogId) {
        if self.applied.get(&id.index) != Some(&(id, Some(write.clone()))) {
            self.fail(format!(
                "{write:?} was acknowledged at {id}, where {:?} was applied",
                self.applied.get(&id.index)
            ));
        }
        self.ends(write.register, id.index);
    }

    /// Checks the value that a read has found, with the index of its write.
    pub(crate) fn read_ends(&mut self, node: u64, register: u64, began: u64, found: Option<(u64, u64)>) {
        let index = found.map_or(0, |(_, index)| index);
        let written = self.applied.get(&index).and_then(|(_, write)| write.clone());
        if index < began || written != found.map(|(value, _)| Write { register, value }) {
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
        let writes = self.applied.iter().filter_map(|(index, (_, write))| Some((index, write.as_ref()?)));
        let expected = writes.map(|(index, write)| (write.register, (write.value, *index))).collect();
        if *contents != expected {
            self.fail(format!("node {node} ends with {contents:?}, expected {expected:?}"));
        }
    }

    pub(crate) fn last_index(&self) -> u64 {
        self.applied.last_key_value().map_or(0, |(index, _)| *index)
    }
}
