//! Bar plots: subjects beside each other at one thing, the best first.

use super::svg::{Anchor, Canvas, Plot, class, stroke};
use crate::memtable::Subject;

const WIDTH: f64 = 680.0;
const LEFT: f64 = 164.0;
const RIGHT: f64 = 176.0;
const TOP: f64 = 58.0;
const STEP: f64 = 28.0;
const THICKNESS: f64 = 18.0;

/// One bar.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) subject: Subject,
    pub(super) label: String,
    pub(super) value: f64,
    /// From the least to the most, if it was measured more than once.
    pub(super) spread: Option<(f64, f64)>,
    /// Beside it.
    pub(super) note: String,
}

/// Draws it; `None` without bars.
pub(super) fn plot(name: &str, title: &str, unit: &str, bars: &[Bar]) -> Option<Plot> {
    // Whiskers may end where the picture does: one slow round must not make all bars short.
    let longest = bars.iter().map(|bar| bar.value).max_by(f64::total_cmp).filter(|longest| *longest > 0.0)? * 1.12;
    let x = |value: f64| LEFT + (value / longest).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT);
    let mut canvas = Canvas::new(WIDTH, TOP + STEP * bars.len() as f64 + 8.0);
    canvas.text(12.0, 24.0, "title", Anchor::Start, title);
    canvas.text(12.0, 43.0, "axis", Anchor::Start, unit);
    for (index, bar) in bars.iter().enumerate() {
        let middle = TOP + STEP * (index as f64 + 0.5);
        let (colour, role) = (class(bar.subject), stroke(bar.subject));
        let weight = if role == "own" { "label strong" } else { "label" };
        canvas.text(LEFT - 10.0, middle + 4.5, weight, Anchor::End, &bar.label);
        canvas.rect(
            (LEFT, middle - THICKNESS / 2.0),
            (x(bar.value) - LEFT, THICKNESS),
            &format!("{colour} bar {role}"),
        );
        if let Some((least, most)) = bar.spread {
            canvas.line((x(least), middle), (x(most), middle), "whisker");
            canvas.line((x(least), middle - 4.0), (x(least), middle + 4.0), "whisker");
            canvas.line((x(most), middle - 4.0), (x(most), middle + 4.0), "whisker");
        }
        canvas.text(WIDTH - RIGHT + 12.0, middle + 4.5, "label", Anchor::Start, &bar.note);
    }
    let bottom = TOP + STEP * bars.len() as f64;
    canvas.line((LEFT, TOP), (LEFT, bottom), "base");
    Some(canvas.finish(name, title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values_say() {
        // Catches bars that do not begin at zero: ratios could not be seen.
        let bar = |value| Bar {
            subject: Subject::Memtable,
            label: "m".into(),
            value,
            spread: Some((value / 2.0, value * 100.0)),
            note: String::new(),
        };
        let svg = plot("x", "t", "u", &[bar(10.0), bar(20.0)]).expect("bars").inline();
        let widths: Vec<f64> = svg
            .split("<rect ")
            .skip(1)
            .filter_map(|rect| rect.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert!(widths.len() == 2 && (widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
        assert!(plot("x", "t", "u", &[]).is_none());
    }
}
