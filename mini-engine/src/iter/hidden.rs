//! [`Hidden`]: what range tombstones hide from a scan, looked up as the scan goes.
//!
//! Each source is asked for the span around the scan's key: the keys that the same of its range tombstones, or none, cover. A source is
//! asked again when the scan leaves its span, in whichever direction. So a scan pays for the spans in which it finds entries, however
//! many range tombstones there are.
//!
//! Every version of a key in a source is newer than its versions in the sources behind it (V4), and a range tombstone is a version of each
//! key that it covers. So what covers keys in one source hides all that the sources behind it have of them: there they need not be
//! stepped through.

use std::sync::Arc;

use crate::error::Result;
use crate::types::{RangeTombstones, SeqNo, Span};

/// Hidden entries of one span that are stepped over before a seek is made past the others.
const STEPS_BEFORE_SEEK: u32 = 16;

/// The range tombstones of one source of a scan.
pub(crate) trait RangeSource: Send + Sync {
    /// Keys around `key` that the same of them cover, and the newest of these that is not newer than `seqno`.
    fn span(&mut self, key: &[u8], seqno: SeqNo) -> Result<Span>;
}

/// Range tombstones that are in memory.
pub(crate) struct RangesInMemory {
    ranges: Arc<RangeTombstones>,
    /// Where the last key was.
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
    /// Which input of the merge has its entries.
    child: usize,
    ranges: Box<dyn RangeSource>,
    /// Where it was asked last.
    span: Option<Span>,
}

/// What the range tombstones of all sources hide from a snapshot.
pub(crate) struct Hidden {
    snapshot: SeqNo,
    sources: Vec<Source>,
    /// What all of them say of the keys around the last one.
    span: Option<Span>,
    /// Hidden entries that were found in it.
    found: u32,
}

impl Hidden {
    /// Nothing.
    pub(crate) fn new(snapshot: SeqNo) -> Self {
        Self { snapshot, sources: Vec::new(), span: None, found: 0 }
    }

    /// What `ranges` hide too. They are of the source that is input `child` of the merge, where newer sources come first.
    pub(crate) fn add(&mut self, child: usize, ranges: Box<dyn RangeSource>) {
        self.sources.push(Source { child, ranges, span: None });
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether a version is hidden. Asks the sources whose spans do not contain its key.
    ///
    /// # Errors
    /// As of opening the table that the key is in, if that has range tombstones.
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

    /// Keys around `key` of which input `child` has nothing to show, since a newer source hides them; none as long as few entries were
    /// hidden there.
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
