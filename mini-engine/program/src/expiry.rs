//! The time at which a record expires: in arguments, and in JSON as milliseconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;

use crate::number;

/// The arguments that let a record expire.
#[derive(Args)]
pub(crate) struct ExpiryArgs {
    /// The key is there for this long only: a number of seconds, or with ms, s, m, h or d behind it
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    expire_in: Option<Duration>,
    /// The key is there until this time only, in milliseconds since 1970
    #[arg(long, value_name = "MILLIS", conflicts_with = "expire_in", value_parser = number::parse::<0>)]
    expire_at: Option<u64>,
}

impl ExpiryArgs {
    /// The time from which on the key is absent, if any; `now` is the time of the database's clock.
    pub(crate) fn time(&self, now: SystemTime) -> Result<Option<SystemTime>, String> {
        match (self.expire_in, self.expire_at) {
            (Some(after), _) => now.checked_add(after).map(Some).ok_or_else(too_late),
            (None, Some(at)) => of_millis(at).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// The time `millis` milliseconds after the beginning of 1970.
pub(crate) fn of_millis(millis: u64) -> Result<SystemTime, String> {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis)).ok_or_else(too_late)
}

/// Milliseconds since 1970.
pub(crate) fn as_millis(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

fn too_late() -> String {
    "a time later than this machine can express".into()
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit_millis = match text[digits.len()..].trim_start() {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("expected a time, such as 90, 500ms, 15m, 2h or 7d".into()),
    };
    let number: u64 = number::parse::<0>(digits)?;
    number.checked_mul(unit_millis).map(Duration::from_millis).ok_or_else(too_late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        // Catches units that are mixed up, and a number that overflows into a short time.
        for (text, millis) in
            [("90", 90_000), ("500ms", 500), ("15 m", 900_000), ("2h", 7_200_000), ("7d", 604_800_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "m", "-1", "1.5h", "5 minutes", "99999999999999999999"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(parse_duration(&format!("{}d", u64::MAX)), Err(too_late()));
        assert_eq!(of_millis(1500).map(as_millis), Ok(1500));
    }
}
