//! The scripts that the server recognises and clients have sent, by the hashes that EVALSHA uses.

use std::collections::HashMap;

use super::keyspace::Keyspace;
use crate::protocol::reply::Outcome;

/// The maximum number of texts that are kept: each script can be written in many ways.
const MOST: usize = 1000;

/// A script that the server recognises.
pub(crate) struct Script {
    /// The text of the script, in one of its spellings.
    pub(crate) text: &'static str,
    /// The number of keys that the script uses, if not all, and the number of arguments.
    pub(crate) uses: (Option<usize>, usize),
    /// The function that does the work of the script.
    pub(crate) run: fn(&mut Keyspace, Call<'_>) -> Outcome,
}

impl Script {
    /// A script that uses this number of keys and this number of arguments.
    pub(crate) const fn of_first(
        keys: usize,
        args: usize,
        run: fn(&mut Keyspace, Call<'_>) -> Outcome,
        text: &'static str,
    ) -> Self {
        Self { text, uses: (Some(keys), args), run }
    }
}

/// The keys and arguments of a script.
pub(crate) struct Call<'a> {
    pub(crate) keys: Vec<&'a [u8]>,
    pub(crate) args: Vec<&'a [u8]>,
}

#[derive(Default)]
pub(crate) struct Scripts(HashMap<String, &'static Script>);

impl Scripts {
    /// Keeps the script whose text has this hash.
    pub(crate) fn keep(&mut self, hash: &str, script: &'static Script) {
        if self.0.len() == MOST {
            // Clients send a text again when its hash is unknown.
            self.0.clear();
        }
        self.0.insert(hash.to_owned(), script);
    }

    /// The script whose text has this hash; the hash may have digits of either case.
    pub(crate) fn find(&self, hash: &[u8]) -> Option<&'static Script> {
        self.0.get(&String::from_utf8(hash.to_ascii_lowercase()).ok()?).copied()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
