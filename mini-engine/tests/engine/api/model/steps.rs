//! The steps of the model test, and how they are drawn.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::*;

/// A keyspace of the model.
pub(super) struct Space {
    pub(super) name: &'static str,
    pub(super) compression: Option<Compression>,
    /// The seconds after which its entries expire by default.
    pub(super) lifetime: Option<u64>,
}

/// The default keyspace comes first.
pub(super) const SPACES: [Space; 3] = [
    Space { name: "", compression: None, lifetime: None },
    Space { name: "a", compression: None, lifetime: Some(6) },
    Space { name: "b", compression: Some(Compression::Zstd { level: 1 }), lifetime: None },
];

impl Space {
    pub(super) fn options(&self) -> KeyspaceOptions {
        let mut options = KeyspaceOptions::default();
        if let Some(compression) = self.compression {
            options = options.compression(compression);
        }
        if let Some(seconds) = self.lifetime {
            options = options.expire_after(Duration::from_secs(seconds));
        }
        options
    }
}

pub(super) type Key = Vec<u8>;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Insert(Key, usize),
    /// For this many seconds, or for ever, whatever the keyspace's lifetime.
    InsertFor(Key, usize, Option<u64>),
    /// From now on for this many seconds, or for ever.
    SetExpiry(Key, Option<u64>),
    /// Seconds pass.
    Pass(u64),
    Remove(Key),
    RemoveRange(Bound<Key>, Bound<Key>),
    Batch(Vec<BatchStep>, bool),
    /// The operations of a transaction; before its commit another one writes to a key of this keyspace.
    Transact(Vec<BatchStep>, Option<(usize, Key)>),
    /// Sorted entries from outside, of this many keys.
    Load(Vec<Key>, usize),
    PopFirst,
    PopLast,
    Flush,
    Persist,
    TakeSnapshot,
    DropSnapshot,
    /// Steps go on in another keyspace.
    Enter(usize),
    /// The keyspace of the steps is dropped, and made again.
    DropKeyspace,
    /// By `close`, or by a plain drop; and with other options.
    Reopen(bool, Chosen),
    CompactRange(Bound<Key>, Bound<Key>),
    WaitForCompactions,
    /// A walk of a range from both ends, in the order that the bits give, with a seek in between.
    Walk(Bound<Key>, Bound<Key>, Vec<bool>, Option<Key>),
    Prefix(Key),
    Cursor(Key, Vec<bool>),
}

/// An operation of a batch or a transaction.
#[derive(Clone, Debug)]
pub(super) enum BatchStep {
    Insert(Key, usize),
    InsertFor(Key, usize, Option<u64>),
    Remove(Key),
    RemoveRange(Bound<Key>, Bound<Key>),
}

/// Short keys of few letters, or many neighbours that share so much that they are copied in one chunk, or in several.
fn key() -> impl Strategy<Value = Key> {
    let neighbour = (prop::sample::select(&[0usize, 15, 16, 17, 37][..]), 0u8..60);
    prop_oneof![
        3 => vec(prop::sample::select(&[0u8, b'a', b'b', 0xff][..]), 0..4),
        2 => neighbour.prop_map(|(shared, last)| [std::vec![b'a'; shared], std::vec![last]].concat()),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Key>> {
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)]
}

/// Options that must not change the results of reads.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) policy: Compaction,
    pub(super) ratio: u64,
    pub(super) memtable: MemtableKind,
    pub(super) filter_bits: u32,
}

const MEMTABLES: [MemtableKind; 2] = [MemtableKind::SkipList, MemtableKind::Vector];

pub(super) fn chosen() -> impl Strategy<Value = Chosen> {
    let options = (prop::sample::select(&POLICIES[..]), 2..5u64, prop::sample::select(&MEMTABLES[..]), any::<bool>());
    options.prop_map(|(policy, ratio, memtable, is_filtered)| Chosen {
        policy,
        ratio,
        memtable,
        filter_bits: if is_filtered { 10 } else { 0 },
    })
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let len = 0..900usize;
    let seconds = || prop::option::weighted(0.8, 0..9u64);
    let in_batch = prop_oneof![
        6 => (key(), len.clone()).prop_map(|(key, len)| BatchStep::Insert(key, len)),
        2 => (key(), len.clone(), seconds()).prop_map(|(key, len, seconds)| BatchStep::InsertFor(key, len, seconds)),
        6 => key().prop_map(BatchStep::Remove),
        1 => (bound(), bound()).prop_map(|(lower, upper)| BatchStep::RemoveRange(lower, upper)),
    ]
    .boxed();
    let batch = || vec(in_batch.clone(), 0..20);
    let foreign = prop::option::of((0..SPACES.len(), key()));
    prop_oneof![
        12 => (key(), len.clone()).prop_map(|(key, len)| Step::Insert(key, len)),
        5 => (key(), len.clone(), seconds()).prop_map(|(key, len, seconds)| Step::InsertFor(key, len, seconds)),
        2 => (key(), prop::option::of(0..9u64)).prop_map(|(key, seconds)| Step::SetExpiry(key, seconds)),
        3 => (1..5u64).prop_map(Step::Pass),
        5 => key().prop_map(Step::Remove),
        3 => (bound(), bound()).prop_map(|(lower, upper)| Step::RemoveRange(lower, upper)),
        // Up to several memtables in one batch.
        4 => (batch(), any::<bool>()).prop_map(|(ops, synced)| Step::Batch(ops, synced)),
        3 => (batch(), foreign).prop_map(|(ops, foreign)| Step::Transact(ops, foreign)),
        2 => (vec(key(), 1..9), len.clone()).prop_map(|(keys, len)| Step::Load(keys, len)),
        2 => Just(Step::PopFirst),
        2 => Just(Step::PopLast),
        1 => Just(Step::Flush),
        1 => Just(Step::Persist),
        2 => Just(Step::TakeSnapshot),
        1 => Just(Step::DropSnapshot),
        5 => (0..SPACES.len()).prop_map(Step::Enter),
        1 => Just(Step::DropKeyspace),
        2 => (any::<bool>(), chosen()).prop_map(|(close, chosen)| Step::Reopen(close, chosen)),
        1 => (bound(), bound()).prop_map(|(lower, upper)| Step::CompactRange(lower, upper)),
        1 => Just(Step::WaitForCompactions),
        4 => (bound(), bound(), vec(any::<bool>(), 0..30), prop::option::of(key()))
            .prop_map(|(lower, upper, ends, seek)| Step::Walk(lower, upper, ends, seek)),
        1 => key().prop_map(Step::Prefix),
        2 => (key(), vec(any::<bool>(), 0..20)).prop_map(|(key, moves)| Step::Cursor(key, moves)),
    ]
}
