//! The latest write of a node's key and version, where later writes replace earlier ones.
//!
//! I10 replacement: a replaceable node stays where it is in the list, and the word before its link names the node that was written last for
//! its key and version: 0 for itself. Such a node is written in full, is never linked, and is never replaced itself. One swap of the word
//! commits a replacement, so replacements of an entry have one order, that of the swaps, and a reader sees the one or the other. Nothing
//! else about the list changes: not its order, not its hints.

use super::id::NodeId;
use super::read::{Node, Record};
use crate::mem::storage::{Storage, WORD};
use crate::sync::{AtomicU64, Ordering, ord};

impl<'a> Node<'a> {
    /// The word before the link.
    ///
    /// # Safety
    /// A replaceable node of this storage.
    #[inline]
    unsafe fn latest_word(self) -> &'a AtomicU64 {
        // SAFETY: such a node was allocated with a word before its link, which is only ever an atomic.
        unsafe { self.storage.word(self.off - 1) }
    }

    /// Makes the word at `off`, behind which a replaceable node is to be written, say that nothing replaced it yet. Returns
    /// where the node begins.
    ///
    /// # Safety
    /// The word at `off` was allocated to the caller, and used for nothing else.
    pub(crate) unsafe fn write_latest(storage: &Storage, off: u32) -> u32 {
        storage.unpoison(off, WORD);
        // SAFETY: the caller's, and an atomic from the start. Relaxed: published with the node.
        unsafe { storage.word(off) }.store(0, Ordering::Relaxed);
        off + 1
    }

    /// The node that was written last for this one's key and version, unless that is this one.
    ///
    /// # Safety
    /// A replaceable node of this storage that was linked.
    #[inline]
    pub(crate) unsafe fn latest(self) -> Option<NodeId> {
        // SAFETY: the caller's promise.
        let word = unsafe { self.latest_word() };
        // ORDERING(latest.read): Acquire; pairs with `latest.swap`. Weaker: the new value could be read before it is written (loom
        // `replaced_value_is_seen_whole`).
        let latest = word.load(ord("latest.read", Ordering::Acquire));
        // SAFETY: 0, or what `replace` stored of an id of this table, and acquired.
        unsafe { NodeId::from_stored(latest as u32) }
    }

    /// Makes `by` the latest node, and returns what was it before, unless that is this one.
    ///
    /// # Safety
    /// A replaceable node of this storage that was linked; `by` is another one with its key and version that was not.
    pub(crate) unsafe fn replace(self, by: NodeId) -> Option<NodeId> {
        // SAFETY: the caller's promise.
        let word = unsafe { self.latest_word() };
        // ORDERING(latest.swap): Release; pairs with `latest.read`, see there. And Acquire; pairs with itself. Weaker: the length of what is
        // replaced, which is counted, could be read before it is written (loom `last_of_two_replacements_stays`).
        let before = word.swap(by.to_stored().into(), ord("latest.swap", Ordering::AcqRel));
        // SAFETY: 0, or what `replace` stored of an id of this table, and acquired.
        unsafe { NodeId::from_stored(before as u32) }
    }

    /// What the latest write of its key and version stored, whatever that is.
    ///
    /// # Safety
    /// A linked node of this storage, not the head, made with `meta` meta words.
    #[inline(never)]
    pub(super) unsafe fn latest_record(self, meta: usize) -> Record<'a> {
        // SAFETY: the caller's promise.
        let (own, is_replaceable) = unsafe { self.own_record(meta) };
        if !is_replaceable {
            return own;
        }
        // SAFETY: replaceable, as was just read.
        match unsafe { self.latest() } {
            None => own,
            // SAFETY: of this table, and made as this one was.
            Some(latest) => unsafe { Node::new(self.storage, latest).own_record(meta) }.0,
        }
    }
}
