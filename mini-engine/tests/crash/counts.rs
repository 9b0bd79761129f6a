//! Counts the situations that occurred in an exploration.

use crate::prelude::*;

/// Counts of the situations that an exploration must meet, by name:
/// * `points`: crashes whose recovery was judged; `kills`: those of them that were kills; `nested`: crashes during a recovery or after it, before
///   the database was closed;
/// * `cut flushes`, `cut compactions`, the latter also by the number of their policy: crashes before the worker's next operation;
/// * `below level 0`, `several runs` (on a level below), `narrowed` (a compaction had finished a piece and had more to
///   do) and `range tombstones`: recoveries of a database with such tables;
/// * `expired` and `expiring`: recoveries of a database with expired entries, and with entries that will expire; `expired elsewhere`: with expired
///   entries in a keyspace other than the default one; `expired by default`, `expiring by default`: with entries whose expiry is the default of
///   their keyspace;
/// * `keyspaces`: recoveries of a database with keyspaces that had entries; `dropped`: recoveries after which a keyspace with entries was gone;
///   `created again`: recoveries after which there was a new keyspace with its name;
/// * `cut creations`, `cut drops`: recoveries after which the call at the crash had taken effect; `uncut creations`, `uncut drops`: recoveries
///   after which it had not;
/// * `cut batches`: recoveries from a crash during a batch that spans keyspaces; `outlived`: recoveries that found a keyspace, and not a batch before
///   its creation;
/// * `refused transactions`: runs in which a transaction was refused;
/// * `holes`, `torn blocks`, `lost entries`, and `reordered entries` (an entry after a lost one is kept): losses by a power cut;
/// * `torn tails`, `torn manifests`, `set aside`, `orphans`: recoveries with such a finding;
/// * `recycled`: recoveries that found a log in the reused file of another log; `recycled torn`: those whose logs were also torn;
/// * `torn fills`, `torn kills`: recoveries after a kill that found the logs torn, in a run without errors. `torn fills` had a write in
///   progress; `torn kills` had none, so their logs should not be torn;
/// * `shortened`: recoveries with fewer batches than were acknowledged; none of the lost ones was acknowledged as synced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(BTreeMap<String, u64>);

impl Counts {
    pub(crate) fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Adds each number of `other` to the number of the same name.
    pub(crate) fn add(&mut self, other: &Counts) {
        other.0.iter().for_each(|(name, more)| *self.0.entry(name.clone()).or_default() += more);
    }

    pub(crate) fn note(&mut self, name: impl Into<String>, is_met: bool) {
        *self.0.entry(name.into()).or_default() += u64::from(is_met);
    }

    pub(crate) fn note_losses(&mut self, losses: Losses) {
        self.note("holes", losses.holes > 0);
        self.note("torn blocks", losses.torn_blocks > 0);
        self.note("lost entries", losses.lost_entries > 0);
        self.note("reordered entries", losses.reordered_entries > 0);
    }

    /// Notes the `entries` that a recovery has found.
    pub(crate) fn note_entries(&mut self, entries: &Entries, time: u64) {
        let all = || entries.iter().flat_map(|(name, map)| map.values().map(|(_, at)| (*name, *at)));
        let is_over = |at: Option<u64>| at.is_some_and(|at| at <= time);
        self.note("expired", all().any(|(_, at)| is_over(at)));
        self.note("expired elsewhere", all().any(|(name, at)| !name.is_empty() && is_over(at)));
        self.note("expiring", all().any(|(_, at)| at.is_some() && !is_over(at)));
        self.note("keyspaces", all().any(|(name, _)| !name.is_empty()));
    }

    /// Notes entries with the default expiry of their keyspace, after a recovery that has kept the events `kept`.
    pub(crate) fn note_lifetimes(&mut self, kept: &[Event], time: u64) {
        let entries = entries_after(kept);
        let changes = kept.iter().filter_map(Event::batch).flat_map(|batch| batch.iter());
        let expiries = || {
            changes.clone().filter_map(|(name, change)| match change {
                Change::SetByDefault(key, value, at) => {
                    let is_there = entries.get(name)?.get(key) == Some(&(value.clone(), Some(*at)));
                    is_there.then_some(*at)
                }
                _ => None,
            })
        };
        self.note("expired by default", expiries().any(|at| at <= time));
        self.note("expiring by default", expiries().any(|at| at > time));
    }

    /// Notes the effects on keyspaces of a recovery that has `found` a part of `events` after a run with this `progress`.
    pub(crate) fn note_keyspaces(&mut self, events: &[Event], progress: Progress, found: Kept) {
        let kept = found.of(events);
        let (mut dropped, mut created_again) = (BTreeSet::new(), false);
        for (at, event) in kept.iter().enumerate() {
            match event {
                Event::Drop(name) if entries_after(&kept[..at])[name].is_empty() => {}
                Event::Drop(name) => {
                    dropped.insert(*name);
                }
                Event::Create(name) => created_again |= dropped.contains(name),
                Event::Batch(_) => {}
            }
        }
        self.note("dropped", !dropped.is_empty());
        self.note("created again", created_again);
        let under_way = events[progress.acknowledged..progress.begun].first();
        let is_there = found.keyspaces == progress.begun;
        self.note("cut creations", is_there && matches!(under_way, Some(Event::Create(_))));
        self.note("cut drops", is_there && matches!(under_way, Some(Event::Drop(_))));
        self.note("uncut creations", !is_there && matches!(under_way, Some(Event::Create(_))));
        self.note("uncut drops", !is_there && matches!(under_way, Some(Event::Drop(_))));
        self.note("cut batches", under_way.is_some_and(Event::spans_keyspaces));
        let mut lost = events[found.batches..found.keyspaces].iter().skip_while(|event| event.batch().is_none());
        self.note("outlived", lost.any(|event| matches!(event, Event::Create(_))));
    }
}
