//! The lines that are not records: the first ones are reported individually, the others are counted.

use crate::{output, size};

/// The most lines that are reported individually: in an input of the wrong format, all lines are bad.
const REPORTED: u64 = 20;

/// The bad lines of one input.
pub(crate) struct Rejects {
    input: String,
    count: u64,
}

impl Rejects {
    pub(crate) fn new(input: &str) -> Self {
        Self { input: input.into(), count: 0 }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// A message with the fault and the line.
    pub(crate) fn describe(&self, line: u64, why: &str) -> String {
        format!("{} line {line}: {why}", self.input)
    }

    pub(crate) fn add(&mut self, line: u64, why: &str) {
        self.count += 1;
        if self.count <= REPORTED {
            output::say(format_args!("{}", self.describe(line, why)));
        }
    }

    /// Prints the number of bad lines that were not reported.
    pub(crate) fn finish(&self) {
        if self.count > REPORTED {
            let more = size::counted(self.count - REPORTED, "more line", "more lines");
            output::say(format_args!("{}: {more} rejected", self.input));
        }
    }
}
