//! What the server counts and records, for INFO, SLOWLOG, Prometheus and the log.

use mini_engine::Error;

use super::command_stats::CommandStats;
use super::damage::Damage;
use super::refused::Refused;
use super::slow_log::SlowLog;
use crate::protocol::reply::{Outcome, Reply};

/// The numbers, and the records that have files of their own.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commands: u64,
    /// The number of commands per second in the last interval between two ticks.
    pub(crate) commands_per_second: u64,
    pub(crate) connections: u64,
    pub(crate) clients: usize,
    /// The bytes of requests and replies in memory: now, and at most so far.
    pub(crate) buffer_bytes: usize,
    pub(crate) most_buffer_bytes: usize,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    /// The number of key lookups that found the key; `misses` counts the others.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) stats: CommandStats,
    pub(crate) slow_log: SlowLog,
    pub(crate) refused: Refused,
    pub(crate) damage: Damage,
    pub(crate) writes: Writes,
}

impl Counters {
    /// Sets the counters to zero, except those whose differences the event loop computes and those that describe the present state.
    pub(crate) fn reset(&mut self) {
        (self.commands, self.connections, self.hits, self.misses) = (0, 0, 0, 0);
        (self.received_bytes, self.sent_bytes) = (0, 0);
        self.stats = CommandStats::default();
        self.refused.reset();
    }

    /// The reply for a result of a command. Damage in the result is recorded.
    pub(crate) fn reply(&mut self, outcome: Outcome) -> Reply {
        outcome.unwrap_or_else(|refusal| {
            if let Some(error) = refusal.cause() {
                self.damage.note(error);
            }
            refusal.into_reply()
        })
    }
}

/// The results of clients' writes, for INFO and for the log.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// The number of operations that were refused.
    pub(crate) refused: u64,
    /// The reason of the last refusal.
    pub(crate) last_refusal: Option<String>,
    /// Whether the last write was refused.
    pub(crate) are_refused: bool,
    /// The state at the last message in the log: the number of refused operations, and whether writes were still refused.
    said: (u64, bool),
}

impl Writes {
    /// Records that a batch of this many operations was written, or refused with an error.
    pub(crate) fn note(&mut self, operations: usize, refusal: Option<&Error>) {
        self.are_refused = refusal.is_some();
        if let Some(error) = refusal {
            self.refused += operations as u64;
            self.last_refusal = Some(error.to_string().replace(['\r', '\n'], " "));
        }
    }

    /// The message for the log, if something has changed.
    pub(crate) fn news(&mut self) -> Option<String> {
        let (said, is_said) = std::mem::replace(&mut self.said, (self.refused, self.are_refused));
        let cause = self.last_refusal.as_deref()?;
        match (is_said, self.are_refused) {
            (false, true) => Some(format!("writes are refused: {cause}")),
            (false, false) if said < self.refused => Some(format!("writes were refused, and are taken again: {cause}")),
            (true, false) => Some(format!("writes are taken again; refused so far: {}", self.refused)),
            _ => None,
        }
    }
}
