//! Lines for cost against size or threads, as SVG.

use plotters::prelude::*;

use crate::report::mark;

const SIZE: (u32, u32) = (720, 400);

/// A name, whether it is one of ours, and points from left to right.
pub(crate) type Series = (String, bool, Vec<(f64, f64)>);

/// A picture of lines on logarithmic axes; `None` unless there is a line to draw. A test checks that drawing does not fail.
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
    let mut svg = String::new();
    let draw = |svg: &mut String| {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let mut on = ChartBuilder::on(&area);
        let on = on.caption(title, ("sans-serif", 18)).x_label_area_size(30).y_label_area_size(56);
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
        area.present()
    };
    draw(&mut svg).ok()?;
    Some(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_high_as_their_values_say() {
        // Catches a reversed axis, another scale, and text that breaks the page.
        let points = vec![(10.0, 10.0), (100.0, 100.0), (1000.0, 1000.0)];
        let svg = lines("<script>", &[("m".into(), true, points)]).expect("lines");
        let numbers = |attribute: &str| -> Vec<f64> {
            let circles = svg.split("<circle").skip(1);
            circles.filter_map(|of| of.split(attribute).nth(1)?.split('"').nth(1)?.parse().ok()).collect()
        };
        let (x, y) = (numbers(" cx="), numbers(" cy="));
        assert!(x.is_sorted() && y.iter().rev().is_sorted() && x.len() == 3, "{x:?} {y:?}");
        assert!([x, y].iter().all(|at| (at[1] - (at[0] + at[2]) / 2.0).abs() <= 1.0), "{svg}");
        assert!(lines("t", &[]).is_none() && !svg.contains("<script>"));
    }
}
