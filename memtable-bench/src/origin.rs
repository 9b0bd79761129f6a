//! Where a result comes from: the date, the commit, and whether its code was optimised.

use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Whether this build's figures mean anything.
pub(crate) const OPTIMISED: bool = !cfg!(debug_assertions);

/// The commit that is checked out where this program was built, followed by `-changed` if files differ from it. `None`
/// without that place, git or a repository.
pub(crate) fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain"])?;
    Some(if changed.is_empty() { commit } else { commit + "-changed" })
}

fn git(arguments: &[&str]) -> Option<String> {
    // Not the current directory: that may be another repository.
    let git = Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR")])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|git| git.status.success())?;
    Some(String::from_utf8(git.stdout).ok()?.trim().to_owned())
}

/// Now, in UTC, as `2026-02-28T13:45:00Z`.
pub(crate) fn now() -> String {
    // A clock before 1970 is as wrong as one that stands at it.
    timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

fn timestamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of a day after 1970-01-01. Counts in eras of 400 years that begin on the first of March, so that the
/// leap day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let march_based = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_based + 2) / 5 + 1;
    let month = if march_based < 10 { march_based + 3 } else { march_based - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // Catches slips at leap days, at the ends of years and in the order of the fields. Checked with date -u -d @N.
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_210_096, "2024-02-29T12:34:56Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(timestamp(seconds), date);
        }
    }
}
