//! Plots as SVG: bars that compare subjects, and lines for cost and throughput against size or threads.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::Serialize;

use crate::spec::{Role, Subject};
use crate::text::{grouped, nanos};

const WIDTH: u32 = 680;
const LINES_HEIGHT: u32 = 400;
const BAR_STEP: u32 = 28;
const TIMELINE_STEP: u32 = 44;
const LEGEND_WIDTH: i32 = 190;
const LEGEND_STEP: i32 = 20;
/// The width for labels beside the plotting area: enough for the longest name of our subjects.
const LABELS: u32 = 180;
const INK: RGBColor = RGBColor(27, 31, 36);
const SOFT: RGBColor = RGBColor(89, 99, 110);
const GRID: RGBColor = RGBColor(223, 227, 232);

/// A finished plot.
#[derive(Debug, Serialize)]
pub(super) struct Plot {
    /// The name of its file, without extension.
    pub(super) name: String,
    pub(super) svg: String,
}

/// One bar.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) subject: Subject,
    pub(super) label: String,
    pub(super) value: f64,
    /// The smallest and the largest measurement, if there were several.
    pub(super) spread: Option<(f64, f64)>,
    /// The text beside the bar.
    pub(super) note: String,
}

/// One line of a plot: a subject and its points, from left to right.
pub(super) type Series = (Subject, Vec<(f64, f64)>);

fn colour(subject: Subject) -> RGBColor {
    let [_, red, green, blue] = subject.colour().to_be_bytes();
    RGBColor(red, green, blue)
}

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

fn text(size: i32, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour)
}

/// Draws into a picture with a title and a line of explanation; `None` if that fails (a test checks that it does not).
fn draw(
    name: &str,
    title: &str,
    unit: &str,
    height: u32,
    draw: impl FnOnce(Area<'_>) -> Result<(), Box<dyn Error>>,
) -> Option<Plot> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).ok()?;
        root.draw_text(title, &text(18, INK), (12, 10)).ok()?;
        root.draw_text(unit, &text(14, SOFT), (12, 33)).ok()?;
        draw(root.margin(54, 6, 8, 8)).ok()?;
        root.present().ok()?;
    }
    let label = title.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let head = format!("<svg class=\"plot\" role=\"img\" aria-label=\"{label}\" ");
    Some(Plot { name: name.into(), svg: svg.replacen("<svg ", &head, 1) })
}

/// Draws bars; `None` if there are none.
pub(super) fn bars(name: &str, title: &str, unit: &str, bars: &[Bar]) -> Option<Plot> {
    // The notes are right of the bars. The picture may cut whiskers off, so that one slow round does not make all bars short.
    let longest = bars.iter().map(|bar| bar.value).max_by(f64::total_cmp).filter(|longest| *longest > 0.0)?;
    let (end, notes) = (longest * 1.7, longest * 1.15);
    draw(name, title, unit, 64 + BAR_STEP * bars.len() as u32, |area| {
        let rows = bars.len() as f64;
        let mut chart = ChartBuilder::on(&area).margin_left(LABELS).build_cartesian_2d(0.0..end, rows..0.0)?;
        for (row, bar) in bars.iter().enumerate() {
            let (top, middle, bottom) = (row as f64 + 0.18, row as f64 + 0.5, row as f64 + 0.82);
            let colour = colour(bar.subject);
            let fill = if bar.subject.role() == Role::Own { colour.to_rgba() } else { colour.mix(0.6) };
            let at = |x: f64, text: &str, side, gap: i32| {
                EmptyElement::at((x, middle))
                    + Text::new(text.to_owned(), (gap, 0), style(bar.subject).pos(Pos::new(side, VPos::Center)))
            };
            let bar_area = Rectangle::new([(0.0, top), (bar.value, bottom)], fill.filled());
            chart.draw_series([bar_area])?;
            chart.draw_series([at(0.0, &bar.label, HPos::Right, -8)])?;
            chart.draw_series([at(notes, &bar.note, HPos::Left, 0)])?;
            if let Some((least, most)) = bar.spread {
                let (least, most) = (least.min(longest * 1.1), most.min(longest * 1.1));
                let tick = |x| PathElement::new([(x, middle - 0.16), (x, middle + 0.16)], INK.mix(0.7));
                let line = PathElement::new([(least, middle), (most, middle)], INK.mix(0.7));
                chart.draw_series([line, tick(least), tick(most)])?;
            }
        }
        Ok(())
    })
}

/// The label style, which emphasises our subjects.
fn style(subject: Subject) -> TextStyle<'static> {
    let font = ("sans-serif", 14).into_font();
    let font = if subject.role() == Role::Own { font.style(FontStyle::Bold) } else { font };
    font.color(&INK)
}

/// Draws lines over `ticks`, the values of the x axis and their names; `None` unless there is a line to draw. Both axes are logarithmic.
pub(super) fn lines(
    [name, title, unit, across]: [&str; 4],
    ticks: &[(f64, String)],
    series: &[Series],
) -> Option<Plot> {
    let values = || series.iter().flat_map(|(_, points)| points.iter().map(|point| point.1));
    let (least, most) = (values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?);
    let (from, to, first, last) = (least / 1.15, most * 1.15, ticks.first()?.0, ticks.last()?.0);
    if first >= last {
        return None;
    }
    let marks = (-2..7).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    let marks = marks.filter(|mark| (from..to).contains(mark)).collect();
    let name_of = |x: &f64| ticks.iter().find(|(tick, _)| tick == x).map_or_else(String::new, |(_, name)| name.clone());
    draw(name, title, unit, LINES_HEIGHT, |area| {
        let (left, legend) = area.split_horizontally(WIDTH as i32 - LEGEND_WIDTH);
        let x = (first..last).log_scale().with_key_points(ticks.iter().map(|tick| tick.0).collect());
        let y = (from..to).log_scale().with_key_points(marks);
        let mut on = ChartBuilder::on(&left);
        let on = on.margin_right(14).x_label_area_size(44).y_label_area_size(56);
        let mut chart = on.build_cartesian_2d(x, y)?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().light_line_style(TRANSPARENT).bold_line_style(GRID).axis_style(SOFT);
        mesh.x_labels(ticks.len()).x_label_formatter(&name_of).y_label_formatter(&|y| nanos(*y));
        mesh.label_style(text(14, SOFT)).x_desc(across).draw()?;
        // The legend has the names in the order in which the lines end.
        let mut ends: Vec<_> = series.iter().collect();
        ends.sort_by(|(_, a), (_, b)| b.last().map_or(0.0, |end| end.1).total_cmp(&a.last().map_or(0.0, |end| end.1)));
        for (row, (subject, points)) in ends.into_iter().enumerate() {
            let (width, radius) = if subject.role() == Role::Own { (3, 4) } else { (2, 3) };
            let line = LineSeries::new(points.iter().copied(), colour(*subject).stroke_width(width));
            chart.draw_series(line.point_size(radius))?;
            let y = 12 + row as i32 * LEGEND_STEP;
            legend.draw(&Rectangle::new([(0, y - 2), (14, y + 2)], colour(*subject).filled()))?;
            let style = style(*subject).pos(Pos::new(HPos::Left, VPos::Center));
            legend.draw_text(&crate::text::name(*subject), &style, (20, y))?;
        }
        Ok(())
    })
}

/// Draws a row for each subject, all with the same time span and height, so that a stall shows as a gap; `None` without subjects.
pub(super) fn timelines(name: &str, title: &str, series: &[Series]) -> Option<Plot> {
    let points = || series.iter().flat_map(|(_, points)| points);
    let end = points().map(|point| point.0).max_by(f64::total_cmp)?;
    let top = points().map(|point| point.1).max_by(f64::total_cmp).filter(|top| *top > 0.0)?;
    let unit =
        format!("operations a second over {end:.1} s; the highest row reaches {}", grouped(top.round() as usize));
    draw(name, title, &unit, 64 + TIMELINE_STEP * series.len() as u32, |area| {
        for (row, (subject, points)) in area.split_evenly((series.len(), 1)).iter().zip(series) {
            row.draw_text(&crate::text::name(*subject), &style(*subject), (0, TIMELINE_STEP as i32 / 2))?;
            let mut on = ChartBuilder::on(row);
            let mut chart = on.margin_left(LABELS).margin_top(6).build_cartesian_2d(0.0..end, 0.0..top)?;
            let (first, last) = (points.first().map_or(0.0, |of| of.0), points.last().map_or(0.0, |of| of.0));
            let outline =
                [(first, 0.0)].into_iter().chain(points.iter().copied()).chain([(last, 0.0)]).collect::<Vec<_>>();
            chart.draw_series([Polygon::new(outline, colour(*subject).mix(0.6))])?;
            chart.draw_series([PathElement::new([(0.0, 0.0), (end, 0.0)], GRID)])?;
        }
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
        // Catches bars that do not begin at zero (which would hide ratios), a reversed axis, a scale other than the named one,
        // text that breaks the page, and two lines that look alike.
        let bar = |value| {
            let (label, note) = ("m".into(), "</text><script>".into());
            Bar { subject: Subject::Memtable, label, value, spread: Some((value / 2.0, value * 100.0)), note }
        };
        let svg = bars("x", "a \"title\"", "u", &[bar(10.0), bar(20.0)]).expect("bars").svg;
        let widths = &numbers(&svg, "<rect", " width=")[1..];
        assert!(widths.len() == 2 && (widths[1] / widths[0] - 2.0).abs() < 0.02, "{widths:?}");
        assert!(!svg.contains("<script>") && svg.contains("aria-label=\"a &quot;title&quot;\""), "{svg}");

        let points = vec![(10.0, 10.0), (100.0, 100.0), (1000.0, 1000.0)];
        let ticks: Vec<_> = points.iter().map(|(x, _)| (*x, x.to_string())).collect();
        let (texts, series) = (["x", "t", "u", "<a>"], [(Subject::Memtable, points)]);
        let svg = lines(texts, &ticks, &series).expect("lines").svg;
        let (x, y) = (numbers(&svg, "<circle", " cx="), numbers(&svg, "<circle", " cy="));
        assert!(x.is_sorted() && y.iter().rev().is_sorted() && x.len() == 3, "{x:?} {y:?}");
        assert!(
            [x, y].iter().all(|at| (at[1] - (at[0] + at[2]) / 2.0).abs() <= 1.0) && svg.contains("&lt;a&gt;"),
            "{svg}"
        );
        // A row whose values end in the middle of the time is half as wide, and one with half the values half as high.
        let series = [(Subject::Lmdb, vec![(0.0, 4.0), (10.0, 4.0)]), (Subject::Redb, vec![(0.0, 2.0), (5.0, 2.0)])];
        let svg = timelines("x", "t", &series).expect("timelines").svg;
        let outlines: Vec<_> =
            svg.split("<polygon").skip(1).filter_map(|of| of.split("points=\"").nth(1)?.split('"').next()).collect();
        let extent = |outline: &str, axis: usize| {
            let all = outline.split_whitespace().filter_map(|point| point.split(',').nth(axis)?.parse::<f64>().ok());
            all.clone().fold(f64::MIN, f64::max) - all.fold(f64::MAX, f64::min)
        };
        let [wide, high] = [0, 1].map(|axis| extent(outlines[0], axis) / extent(outlines[1], axis));
        assert!((wide - 2.0).abs() < 0.1 && (high - 2.0).abs() < 0.15, "{wide} {high}: {svg}");
        let nothing = [
            timelines("x", "t", &[]),
            bars("x", "t", "u", &[]),
            lines(texts, &ticks[..1], &series),
            lines(texts, &ticks, &[]),
        ];
        assert!(nothing.iter().all(Option::is_none));

        let colours: std::collections::HashSet<_> = Subject::all().iter().map(|of| colour(*of).rgb()).collect();
        assert_eq!(colours.len(), Subject::all().len());
    }
}
