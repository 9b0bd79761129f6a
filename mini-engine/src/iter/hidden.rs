//! [`Hidden`]: the entries that range tombstones hide from a scan, looked up during the scan.
//!
//! Each source is searched for the span around the scan's key: the adjacent keys that are all covered by the same range tombstones of the source, or
//! by none. It is searched again when the scan leaves its span, in either direction. So the cost of a scan depends on the spans in which it finds
//! entries, however many range tombstones there are.
//!
//! Every version of a key in a source is newer than its versions in later sources (V4), and a range tombstone is a version of each key that it
//! covers. So if one source covers a span of keys, they are completely hidden in all later sources: the scan need not step through them there.

use std::sync::Arc;

use crate::error::Result;
use crate::types::{RangeTombstones, SeqNo, Span};

/// The number of hidden entries of one span that are stepped over before a seek skips the others.
const STEPS_BEFORE_SEEK: u32 = 16;

/// The range tombstones of one source of a scan.
pub(crate) trait RangeSource: Send + Sync {
    /// The span around `key`: the keys that the same range tombstones cover, and the newest of those tombstones with a number <= `seqno`.
    fn span(&mut self, key: &[u8], seqno: SeqNo) -> Result<Span>;
}

/// Range tombstones that are in memory.
pub(crate) struct RangesInMemory {
    ranges: Arc<RangeTombstones>,
    /// The position of the last key.
    near: usize,
}

impl RangesInMemory {
    pub(crate) fn new(ranges: Arc<RangeTombstones>) -> Self {
        Self { ranges, near: 0 }
    }
}

impl RangeSource for RangesInMemory {
    fn span(&mut self, key: &[u8], seqno: SeqNo) -> Result<Span> {
        Ok(self.ranges.span_near(&mut self.near, key, seqno))
    }
}

struct Source {
    /// The input of the merge that has the entries of this source.
    child: usize,
    ranges: Box<dyn RangeSource>,
    /// The span that was found last.
    span: Option<Span>,
}

/// The range tombstones of all sources, for a scan at a snapshot.
pub(crate) struct Hidden {
    snapshot: SeqNo,
    sources: Vec<Source>,
    /// The common span of all sources around the last key.
    span: Option<Span>,
    /// The number of hidden entries that were found in that span.
    found: u32,
}

impl Hidden {
    /// A value that hides nothing.
    pub(crate) fn new(snapshot: SeqNo) -> Self {
        Self { snapshot, sources: Vec::new(), span: None, found: 0 }
    }

    /// Adds the `ranges` of the source whose entries are input `child` of the merge. Newer sources come first.
    pub(crate) fn add(&mut self, child: usize, ranges: Box<dyn RangeSource>) {
        self.sources.push(Source { child, ranges, span: None });
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether a version is hidden. Searches the sources whose last spans do not contain its key.
    ///
    /// # Errors
    /// Errors: those of opening the table that contains the key, if it has range tombstones.
    pub(crate) fn hides(&mut self, key: &[u8], seqno: SeqNo) -> Result<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        if !contains(&self.span, key) {
            self.look_up(key)?;
        }
        let hides = self.span.as_ref().is_some_and(|span| span.newest > Some(seqno));
        self.found = self.found.saturating_add(u32::from(hides));
        Ok(hides)
    }

    fn look_up(&mut self, key: &[u8]) -> Result<()> {
        (self.span, self.found) = (None, 0);
        let mut all = Span::default();
        for Source { ranges, span, .. } in &mut self.sources {
            if !contains(span, key) {
                *span = None;
                *span = Some(ranges.span(key, self.snapshot)?);
            }
            span.iter().for_each(|own| all.narrow(own));
        }
        self.span = Some(all);
        Ok(())
    }

    /// The span around `key` that a newer source hides completely in input `child`; `None` as long as only a few hidden entries were found in it.
    pub(crate) fn hidden_of(&self, child: usize, key: &[u8]) -> Option<&Span> {
        if self.found < STEPS_BEFORE_SEEK {
            return None;
        }
        let newer = self.sources.iter().filter(|source| source.child < child).filter_map(|source| source.span.as_ref());
        newer.filter(|span| span.newest.is_some()).find(|span| span.contains(key))
    }
}

fn contains(span: &Option<Span>, key: &[u8]) -> bool {
    span.as_ref().is_some_and(|span| span.contains(key))
}
