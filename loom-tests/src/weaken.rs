//! Makes one named ordering of the sources weaker, for the whole process. If a model then fails, the ordering is needed, and the model tests it.

use core::fmt;
use core::str::FromStr;
use core::sync::atomic::Ordering;
use std::sync::OnceLock;

use crate::sources::ordering;

static CHOSEN: OnceLock<Weakening> = OnceLock::new();

/// A named ordering of the sources, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weakening {
    /// The name that the source gives to `ord`.
    pub site: String,
    /// The ordering that replaces the ordering in the source.
    pub to: Ordering,
}

impl Weakening {
    /// Weakens from now on. Call it once, before any model runs.
    ///
    /// # Errors
    /// Another weakening was already chosen; returns the argument.
    pub fn choose(self) -> Result<(), Self> {
        CHOSEN.set(self)
    }
}

impl fmt::Display for Weakening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?}", self.site, self.to)
    }
}

impl FromStr for Weakening {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (site, to) = text.split_once('=').ok_or(format!("expected site=Ordering, found {text}"))?;
        let to = ordering(to).ok_or(format!("expected the name of an ordering, found {to}"))?;
        Ok(Self { site: site.to_owned(), to })
    }
}

/// The orderings weaker than `ordering`, the weakest last.
#[must_use]
pub fn weaker(ordering: Ordering) -> &'static [Ordering] {
    match ordering {
        Ordering::AcqRel => &[Ordering::Acquire, Ordering::Release, Ordering::Relaxed],
        Ordering::Acquire | Ordering::Release => &[Ordering::Relaxed],
        _ => &[],
    }
}

/// The ordering of `site` in the source, unless this process weakens it.
pub(crate) fn ord(site: &'static str, ordering: Ordering) -> Ordering {
    match CHOSEN.get() {
        Some(chosen) if chosen.site == site => chosen.to,
        _ => ordering,
    }
}
