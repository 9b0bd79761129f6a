//! Shows a person how far the import is: rate and time left for a file, rate alone for a pipe.
//!
//! Drawn on stderr, and only when that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const REDRAW: Duration = Duration::from_millis(100);

const FILE: &str = "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}, {eta} left, {msg}";
const PIPE: &str = "{spinner} {binary_bytes} {binary_bytes_per_sec}, {msg}";

/// The progress of one import.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// `bytes` is the size of the input where it is known.
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        let (bar, template) = match bytes {
            Some(bytes) => (ProgressBar::new(bytes), FILE),
            None => (ProgressBar::new_spinner(), PIPE),
        };
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            // Indicatif's plain bar: a picture is no reason to stop an import. A test sees that it is never needed.
            Err(_) => bar,
        };
        if !bar.is_hidden() {
            bar.enable_steady_tick(REDRAW);
        }
        Self { bar }
    }

    pub(crate) fn advance(&self, bytes: u64, lines: u64) {
        self.bar.set_position(bytes);
        self.bar.set_message(format!("{lines} lines"));
    }

    /// Runs what writes to the terminal while the bar is out of the way.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_templates_can_be_read() {
        // Catches a typing error in a template, which would leave a bar without rate and time.
        for template in [FILE, PIPE] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
