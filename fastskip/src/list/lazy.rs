//! A list that is made by the first write, so that an untouched table reserves no memory: to reads it is an empty one.

use core::ops::Deref;
use std::io;

use super::state::List;
use crate::builder::Config;
use crate::nodes::Schema;
use crate::sync::OnceLock;

/// The settings of a list, and the list once it was used. It is dereferenced by what needs it: writes, `freeze`, and figures that its
/// memory is part of. Threads whose first such use comes at the same time wait for one of them to make it; from then on a use costs a
/// load and a branch that is always taken.
#[derive(Debug)]
pub(crate) struct LazyList<S: Schema> {
    config: Config,
    list: OnceLock<List<S>>,
}

impl<S: Schema> LazyList<S> {
    /// A list that reserves its memory when it is first needed.
    pub(crate) fn new(config: Config) -> Self {
        Self { config, list: OnceLock::new() }
    }

    /// A list that has reserved its memory.
    ///
    /// # Errors
    /// The system refuses the address range.
    pub(crate) fn reserved(config: Config) -> io::Result<Self> {
        let list = List::new(config.clone())?.into();
        Ok(Self { config, list })
    }

    /// The list, if it was made: for reads, to which an untouched table is an empty one. Once this is `Some`, it stays so.
    #[inline(always)]
    pub(crate) fn made(&self) -> Option<&List<S>> {
        self.list.get()
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Forgets every entry and opens the list again.
    pub(crate) fn reset(&mut self) {
        if let Some(list) = self.list.get_mut() {
            list.reset();
        }
    }

    #[cold]
    fn make(&self) -> &List<S> {
        self.list.get_or_init(|| List::new(self.config.clone()).unwrap_or_else(|_| List::smallest(&self.config)))
    }
}

impl<S: Schema> Deref for LazyList<S> {
    type Target = List<S>;

    #[inline(always)]
    fn deref(&self) -> &List<S> {
        match self.made() {
            Some(list) => list,
            None => self.make(),
        }
    }
}
