//! Whole numbers in arguments.

/// The number in `text`, if it is `LEAST` or more.
pub(crate) fn parse<const LEAST: u64>(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if number >= LEAST => Ok(number),
        _ => Err(format!("expected a whole number, {LEAST} or more")),
    }
}
