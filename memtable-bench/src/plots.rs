//! Plots as SVG: bars that compare subjects, and lines for cost against size or threads.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::report::mark;
use crate::results::Spread;
use crate::spec::{Role, Subject};

const WIDTH: u32 = 720;
const STEP: u32 = 26;
/// The width for labels beside the plotting area: enough for the longest name of our subjects.
const LABELS: u32 = 180;

pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) is_own: bool,
    pub(crate) times: Spread,
}

/// A name, whether it is one of ours, and points from left to right.
pub(crate) type Series = (String, bool, Vec<(f64, f64)>);

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

pub(crate) fn is_own(subject: Subject) -> bool {
    subject.role() == Role::Own
}

fn text(is_own: bool) -> TextStyle<'static> {
    let font = ("sans-serif", 14).into_font();
    (if is_own { font.style(FontStyle::Bold) } else { font }).color(&BLACK)
}

/// A picture with a title; `None` if that fails (a test checks that it does not).
fn draw(title: &str, height: u32, draw: impl FnOnce(Area<'_>) -> Drawn) -> Option<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).ok()?;
        draw(root.titled(title, ("sans-serif", 18)).ok()?).ok()?;
        root.present().ok()?;
    }
    Some(svg)
}

/// Bars from zero, so that their lengths show ratios; `None` without bars. The picture may cut the ticks of slow rounds off.
pub(crate) fn bars(title: &str, bars: &[Bar]) -> Option<String> {
    let longest = bars.iter().map(|bar| bar.times.median).max_by(f64::total_cmp).filter(|longest| *longest > 0.0)?;
    draw(title, 40 + STEP * bars.len() as u32, |area| {
        let rows = bars.len() as f64;
        let mut chart =
            ChartBuilder::on(&area).margin_left(LABELS).build_cartesian_2d(0.0..longest * 1.3, rows..0.0)?;
        for (Bar { label, is_own, times }, row) in bars.iter().zip(0..) {
            let middle = f64::from(row) + 0.5;
            let colour = if *is_own { BLUE.mix(0.6) } else { BLACK.mix(0.3) };
            chart.draw_series([Rectangle::new(
                [(0.0, middle - 0.35), (times.median, middle + 0.35)],
                colour.filled(),
            )])?;
            let at = |x: f64, gap: i32, text_of: String, side| {
                EmptyElement::at((x, middle))
                    + Text::new(text_of, (gap, 0), text(*is_own).pos(Pos::new(side, VPos::Center)))
            };
            chart.draw_series([at(0.0, -8, label.clone(), HPos::Right)])?;
            chart.draw_series([at(longest * 1.12, 0, mark(times.median), HPos::Left)])?;
            for x in [times.min, times.max].map(|x| x.min(longest * 1.1)) {
                chart.draw_series([PathElement::new([(x, middle - 0.2), (x, middle + 0.2)], BLACK)])?;
            }
        }
        Ok(())
    })
}

/// Lines on logarithmic axes; `None` unless there is a line to draw.
pub(crate) fn lines(title: &str, series: &[Series]) -> Option<String> {
    let points = || series.iter().flat_map(|(.., points)| points.iter().copied());
    let range = |of: fn((f64, f64)) -> f64| {
        let (least, most) = (points().map(of).min_by(f64::total_cmp)?, points().map(of).max_by(f64::total_cmp)?);
        Some(least / 1.15..most * 1.15)
    };
    let (across, up) = (range(|point| point.0)?, range(|point| point.1)?);
    let marks = (-1..9).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    let marks = marks.filter(|mark| up.contains(mark)).collect();
    // Two fifths of the width are for the legend.
    let end = across.start * (across.end / across.start).powf(1.6);
    draw(title, 400, |area| {
        let mut on = ChartBuilder::on(&area);
        let on = on.x_label_area_size(30).y_label_area_size(56);
        let mut chart =
            on.build_cartesian_2d((across.start..end).log_scale(), up.log_scale().with_key_points(marks))?;
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).x_label_formatter(&|x| mark(*x)).y_label_formatter(&|y| mark(*y)).draw()?;
        for (number, (label, is_own, points)) in series.iter().enumerate() {
            let colour = Palette99::pick(number).stroke_width(if *is_own { 3 } else { 1 });
            let line = chart.draw_series(LineSeries::new(points.iter().copied(), colour).point_size(3))?;
            line.label(label).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
        }
        let mut legend = chart.configure_series_labels();
        legend.position(SeriesLabelPosition::MiddleRight).label_font(("sans-serif", 14)).draw()?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers behind `attribute` in the elements that begin with `element`.
    fn numbers(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
        let elements = svg.split(element).skip(1).map(|rest| rest.split('>').next().unwrap_or_default());
        let value = |element: &str| element.split(attribute).nth(1)?.split('"').nth(1)?.parse().ok();
        elements.filter_map(value).collect()
    }

    #[test]
    fn bars_are_as_long_and_lines_as_high_as_their_values_say() {
        // Catches bars that do not begin at zero (which would hide ratios), a reversed axis, another scale, and text that breaks the page.
        let bar = |median| {
            let times = Spread { median, min: median / 2.0, max: median * 100.0 };
            Bar { label: "</text><script>".into(), is_own: true, times }
        };
        let svg = bars("a \"title\"", &[bar(10.0), bar(20.0)]).expect("bars");
        let widths = &numbers(&svg, "<rect", " width=")[1..];
        assert!(widths.len() == 2 && (widths[1] / widths[0] - 2.0).abs() < 0.02 && !svg.contains("<script>"), "{svg}");
        let points = vec![(10.0, 10.0), (100.0, 100.0), (1000.0, 1000.0)];
        let svg = lines("t", &[("m".into(), true, points)]).expect("lines");
        let (x, y) = (numbers(&svg, "<circle", " cx="), numbers(&svg, "<circle", " cy="));
        assert!(x.is_sorted() && y.iter().rev().is_sorted() && x.len() == 3, "{x:?} {y:?}");
        assert!([x, y].iter().all(|at| (at[1] - (at[0] + at[2]) / 2.0).abs() <= 1.0), "{svg}");
        assert!(bars("t", &[]).is_none() && lines("t", &[]).is_none());
    }
}
