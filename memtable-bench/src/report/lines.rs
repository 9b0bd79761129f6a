//! Line plots: how cost grows with the table, and throughput with threads.

use super::svg::{Anchor, Canvas, Plot, class, stroke};
use crate::memtable::Subject;
use crate::numbers::{grouped, nanos};

const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 192.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 52.0;
/// Between the lines of the legend.
const LEGEND_STEP: f64 = 19.0;

/// One line.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) subject: Subject,
    pub(super) label: String,
    /// Where it is known.
    pub(super) points: Vec<(f64, f64)>,
}

/// What the axes say.
#[derive(Debug)]
pub(super) struct Axes<'a> {
    pub(super) title: &'a str,
    pub(super) across: &'a str,
    pub(super) up: Up,
    /// Places across, with their names.
    pub(super) ticks: Vec<(f64, String)>,
}

/// The scale upwards. Both scales across are logarithmic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Up {
    /// ns per operation.
    LogNanos,
    /// Millions of operations a second.
    LinearMillions,
}

/// Draws it; `None` unless there is a line to draw.
pub(super) fn plot(name: &str, axes: &Axes<'_>, series: &[Series]) -> Option<Plot> {
    let all = || series.iter().flat_map(|series| &series.points);
    let (first, last) = (axes.ticks.first()?.0, axes.ticks.last()?.0);
    let least = all().map(|point| point.1).min_by(f64::total_cmp)?;
    let most = all().map(|point| point.1).max_by(f64::total_cmp)?;
    if first >= last {
        return None;
    }
    let scale = Scale { across: (first.ln(), last.ln()), up: Range::of(axes.up, least, most) };
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    frame(&mut canvas, axes, &scale);
    for series in series {
        let points: Vec<_> = series.points.iter().map(|&(x, y)| (scale.x(x), scale.y(y))).collect();
        let (colour, stroke) = (class(series.subject), stroke(series.subject));
        canvas.polyline(&points, &format!("{colour} {stroke}"));
        let radius = if stroke == "own" { 4.2 } else { 3.0 };
        for (place, (_, value)) in points.iter().zip(&series.points) {
            canvas.circle(*place, radius, &colour, &format!("{}: {}", series.label, axes.up.show(*value)));
        }
    }
    legend(&mut canvas, &scale, series);
    Some(canvas.finish(name, axes.title))
}

impl Up {
    fn show(self, value: f64) -> String {
        match self {
            Self::LogNanos => format!("{} ns", nanos(value)),
            Self::LinearMillions => format!("{value:.2} M/s"),
        }
    }
}

/// The values upwards, with marks.
struct Range {
    up: Up,
    from: f64,
    to: f64,
    marks: Vec<f64>,
}

impl Range {
    fn of(up: Up, least: f64, most: f64) -> Self {
        match up {
            Up::LogNanos => {
                let marks: Vec<f64> = (-1..7)
                    .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
                    .filter(|mark| *mark >= least / 2.0 && *mark <= most * 2.0)
                    .collect();
                Self { up, from: (least / 1.15).ln(), to: (most * 1.15).ln(), marks }
            }
            Up::LinearMillions => {
                let step = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0].into_iter().find(|step| most / step <= 6.0);
                let step = step.unwrap_or(most);
                let marks = (0..=(most * 1.08 / step) as u32).map(|mark| f64::from(mark) * step).collect();
                Self { up, from: 0.0, to: most * 1.08, marks }
            }
        }
    }

    fn place(&self, value: f64) -> f64 {
        let value = if self.up == Up::LogNanos { value.ln() } else { value };
        (value - self.from) / (self.to - self.from)
    }
}

struct Scale {
    across: (f64, f64),
    up: Range,
}

impl Scale {
    fn x(&self, value: f64) -> f64 {
        let (from, to) = self.across;
        LEFT + (value.ln() - from) / (to - from) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.up.place(value) * (HEIGHT - TOP - BOTTOM)
    }
}

fn frame(canvas: &mut Canvas, axes: &Axes<'_>, scale: &Scale) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    canvas.text(12.0, 24.0, "title", Anchor::Start, axes.title);
    for &mark in scale.up.marks.iter().filter(|mark| (0.0..=1.0).contains(&scale.up.place(**mark))) {
        let y = scale.y(mark);
        canvas.line((LEFT, y), (right, y), "grid");
        let name = if mark < 1.0 && mark > 0.0 { format!("{mark:.1}") } else { grouped(mark as usize) };
        canvas.text(LEFT - 8.0, y + 4.5, "axis", Anchor::End, &name);
    }
    for (mark, name) in &axes.ticks {
        canvas.line((scale.x(*mark), bottom), (scale.x(*mark), bottom + 5.0), "base");
        canvas.text(scale.x(*mark), bottom + 21.0, "axis", Anchor::Middle, name);
    }
    canvas.line((LEFT, bottom), (right, bottom), "base");
    canvas.text((LEFT + right) / 2.0, HEIGHT - 10.0, "axis", Anchor::Middle, axes.across);
    let unit = match axes.up {
        Up::LogNanos => "ns per operation, lower is better",
        Up::LinearMillions => "million operations a second, higher is better",
    };
    canvas.text(12.0, 43.0, "axis", Anchor::Start, unit);
}

/// The names at the right, each as near to its line's end as the others allow.
fn legend(canvas: &mut Canvas, scale: &Scale, series: &[Series]) {
    let right = WIDTH - RIGHT;
    let end = |series: &Series| series.points.last().map(|&(x, y)| (scale.x(x), scale.y(y)));
    let mut names: Vec<_> = series.iter().filter_map(|series| Some((end(series)?, series))).collect();
    names.sort_by(|((_, a), _), ((_, b), _)| a.total_cmp(b));
    let places = spread(&names.iter().map(|((_, y), _)| *y).collect::<Vec<_>>(), TOP + 4.0, HEIGHT - 12.0);
    for (((x, y), series), place) in names.into_iter().zip(places) {
        let colour = class(series.subject);
        canvas.line((x + 6.0, y), (right + 22.0, place), &format!("{colour} leader"));
        canvas.line((right + 22.0, place), (right + 36.0, place), &format!("{colour} swatch"));
        let weight = if stroke(series.subject) == "own" { "label strong" } else { "label" };
        canvas.text(right + 42.0, place + 4.5, weight, Anchor::Start, &series.label);
    }
}

/// Moves ascending `wanted` places apart, within `top..=bottom` if they fit.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = Vec::with_capacity(wanted.len());
    let mut least = top;
    for &place in wanted {
        let place = place.max(least);
        places.push(place);
        least = place + LEGEND_STEP;
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LEGEND_STEP;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_lie_on_each_other() {
        // Catches a legend that cannot be read where lines end together, at either edge.
        for wanted in [vec![100.0; 12], vec![415.0; 5], vec![10.0, 11.0, 400.0, 401.0, 402.0]] {
            let places = spread(&wanted, 50.0, 420.0);
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LEGEND_STEP - 1e-9), "{places:?}");
            assert!(places.iter().all(|place| (50.0..=420.0).contains(place)), "{places:?}");
        }
        assert_eq!(spread(&[60.0, 200.0], 50.0, 420.0), [60.0, 200.0]);
    }

    #[test]
    fn faster_lies_lower_and_larger_lies_to_the_right() {
        // Catches an axis upside down.
        let scale = Scale { across: (10_f64.ln(), 1000_f64.ln()), up: Range::of(Up::LogNanos, 10.0, 1000.0) };
        assert!(scale.y(10.0) > scale.y(1000.0) && scale.x(10.0) < scale.x(1000.0));
        assert!((scale.x(100.0) - (scale.x(10.0) + scale.x(1000.0)) / 2.0).abs() < 1e-6);
    }

    #[test]
    fn nothing_is_drawn_of_one_size() {
        // Catches an axis without length, and a picture that shows nothing.
        let series = Series { subject: Subject::Memtable, label: "m".into(), points: vec![(10.0, 5.0)] };
        let axes = Axes { title: "t", across: "a", up: Up::LogNanos, ticks: vec![(10.0, "10".into())] };
        assert!(plot("x", &axes, &[series]).is_none());
        assert!(plot("x", &axes, &[]).is_none());
    }
}
