//! Shows a person which round runs and how long the rest takes. Drawn on stderr, and only when that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const REDRAW: Duration = Duration::from_millis(500);
const TEMPLATE: &str = "{wide_bar} {pos}/{len} rounds, {eta} left, {msg}";

/// The progress of one run.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(rounds: u64) -> Self {
        let bar = ProgressBar::new(rounds);
        let bar = match ProgressStyle::with_template(TEMPLATE) {
            Ok(style) => bar.with_style(style),
            // Indicatif's plain bar: a picture is no reason to stop. A test sees that it is never needed.
            Err(_) => bar,
        };
        if !bar.is_hidden() {
            bar.enable_steady_tick(REDRAW);
        }
        Self { bar }
    }

    /// Says what runs while `work` does, and counts it when it is done.
    pub(crate) fn during<R>(&self, what: &'static str, work: impl FnOnce() -> R) -> R {
        self.bar.set_message(what);
        let result = work();
        self.bar.inc(1);
        result
    }

    /// Does `work`, which prints, without the bar in its way.
    pub(crate) fn aside<R>(&self, work: impl FnOnce() -> R) -> R {
        self.bar.suspend(work)
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
    fn the_template_can_be_read() {
        // Catches a typing error in it, which would leave a bar without time and subject.
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
