//! Draws the levels of a database, with the size and the cost of each.

use std::io::{self, Write};

use indicatif::BinaryBytes;
use mini_engine::{LevelMetrics, Metrics};

use crate::size::counted;

/// The width of the name and the bar, so that a line has 80 columns.
const BAR_WIDTH: usize = 25;
/// Parts of a character cell, an eighth each.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Draws a line for each level that holds data or has caused compaction work, with a bar in proportion to the largest level.
pub(crate) fn draw(out: &mut dyn Write, metrics: &Metrics) -> io::Result<()> {
    let most = metrics.levels.iter().map(|level| level.bytes).max().unwrap_or(0);
    writeln!(out, "{:<BAR_WIDTH$} runs tables        size        read     written  w-amp", "level")?;
    for (number, level) in metrics.levels.iter().enumerate() {
        if *level == LevelMetrics::default() {
            continue;
        }
        line(out, &format!("L{number} {}", bar(level.bytes, most, BAR_WIDTH - 4)), level, level.write_amplification())?;
    }
    let mut total = LevelMetrics::default();
    for level in &metrics.levels {
        total.runs += level.runs;
        total.tables += level.tables;
        total.bytes += level.bytes;
        total.read += level.read;
        total.written += level.written;
    }
    line(out, "total", &total, metrics.write_amplification())?;
    writeln!(out)?;
    let figures = [
        ("write amplification", metrics.write_amplification(), "bytes of tables written for each byte flushed, ever"),
        ("space amplification", metrics.space_amplification(), "at most: bytes of all tables by the oldest run's"),
        ("read amplification", Some(total.runs as f64), "at most: sorted runs that a get has to look into"),
    ];
    for (name, figure, meaning) in figures {
        writeln!(out, "{name:<20} {:>6}  {meaning}", shown(figure))?;
    }
    if total.runs > 1 {
        let newer = total.bytes.saturating_sub(metrics.oldest_run_bytes);
        let runs = counted(total.runs - 1, "newer run", "newer runs");
        writeln!(out, "{} in {runs} are not compacted into the oldest run yet. How much", BinaryBytes(newer))?;
        writeln!(out, "of the oldest run they replace is unknown: nothing if all their keys are new")?;
    }
    let running = match (metrics.compactions_running, metrics.compaction_due) {
        (0, false) => "none is due".to_owned(),
        (0, true) => "one is due".to_owned(),
        (n, _) => format!("{n} under way"),
    };
    writeln!(out, "{} compaction: {running}", metrics.compaction.name())?;
    let mut damaged = metrics.damaged_files.iter();
    damaged.try_for_each(|file| writeln!(out, "compactions go around {}, which could not be read", file.display()))
}

fn line(out: &mut dyn Write, name: &str, level: &LevelMetrics, amplification: Option<f64>) -> io::Result<()> {
    let bytes = |n: u64| if n == 0 { "-".to_owned() } else { BinaryBytes(n).to_string() };
    writeln!(
        out,
        "{name:<BAR_WIDTH$} {:>4} {:>6} {:>11} {:>11} {:>11} {:>6}",
        level.runs,
        level.tables,
        bytes(level.bytes),
        bytes(level.read),
        bytes(level.written),
        shown(amplification)
    )
}

fn shown(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.2}"))
}

/// A bar of at most `width` cells; a part that is not 0 is at least an eighth of a cell.
fn bar(part: u64, whole: u64, width: usize) -> String {
    let eighths = u128::from(part) * width as u128 * 8 / u128::from(whole.max(1));
    let eighths = (eighths as usize).max(usize::from(part > 0));
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Metrics {
        let level = |runs, tables, bytes, arrived, read, written| {
            let mut level = LevelMetrics::default();
            (level.runs, level.tables, level.bytes) = (runs, tables, bytes);
            (level.arrived, level.read, level.written) = (arrived, read, written);
            level
        };
        let mut metrics = Metrics::default();
        metrics.levels = vec![
            level(2, 2, 1 << 20, 9 << 20, 8 << 20, 9 << 20),
            LevelMetrics::default(),
            level(1, 9, 16 << 20, 8 << 20, 30 << 20, 34 << 20),
        ];
        (metrics.flushed_user_bytes, metrics.oldest_run_bytes) = (8 << 20, 16 << 20);
        metrics
    }

    fn drawn(metrics: &Metrics) -> String {
        let mut drawn = Vec::new();
        draw(&mut drawn, metrics).unwrap();
        let drawn = String::from_utf8(drawn).unwrap();
        assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
        drawn
    }

    #[test]
    fn the_picture_shows_what_each_level_holds_and_costs_within_80_columns() {
        // Catches a bar scaled by the sum instead of the largest level, a line that wraps in a terminal, an empty level that is drawn, and a
        // figure under a wrong name.
        let drawn = drawn(&metrics());
        let line = |start: &str| drawn.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
        assert!(line("L0").starts_with("L0 █▎ "), "{drawn}");
        assert!(line("L0").ends_with("   2      2    1.00 MiB    8.00 MiB    9.00 MiB   1.00"), "{drawn}");
        assert!(line("L2").starts_with(&format!("L2 {} ", "█".repeat(21))), "{drawn}");
        assert!(line("L2").ends_with("   1      9   16.00 MiB   30.00 MiB   34.00 MiB   4.25"), "{drawn}");
        assert_eq!(line("L1"), "");
        assert!(line("total").ends_with("   3     11   17.00 MiB   38.00 MiB   43.00 MiB   5.38"), "{drawn}");
        assert!(line("write amplification").contains("  5.38 "), "{drawn}");
        assert!(line("space amplification").contains("  1.06 "), "{drawn}");
        assert!(line("read amplification").contains("  3.00  at most: sorted runs"), "{drawn}");
        assert!(drawn.contains("1.00 MiB in 2 newer runs are not compacted into the oldest run yet"), "{drawn}");
        assert!(line("leveled compaction: ").ends_with("none is due"), "{drawn}");
        // A number just below the next unit has the longest text.
        let mut metrics = metrics();
        for level in &mut metrics.levels {
            (level.bytes, level.read, level.written) = (1023 << 20, 1023 << 20, 1023 << 20);
        }
        self::drawn(&metrics);
    }

    #[test]
    fn a_bar_is_in_proportion_and_never_blank_for_something() {
        // Catches a small level that vanishes, and a bar that is longer than its column.
        assert_eq!(bar(0, 100, 10), "");
        assert_eq!(bar(1, 1_000_000, 10), "▏");
        assert_eq!(bar(50, 100, 10), "█████");
        assert_eq!(bar(100, 100, 3), "███");
        assert_eq!(bar(0, 0, 3), "");
    }
}
