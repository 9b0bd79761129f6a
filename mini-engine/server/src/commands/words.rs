//! Words and numbers among the arguments of commands.

use crate::protocol::reply::Refusal;
use crate::protocol::request::parse_number;

/// Whether `word` equals `name`, without regard to case.
pub(super) fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

/// A number among the arguments.
pub(super) fn integer(text: &[u8]) -> Result<i64, Refusal> {
    parse_number(text).ok_or_else(|| Refusal::new("ERR value is not an integer or out of range"))
}

/// The number of a database among the arguments.
pub(super) fn database_number(text: &[u8]) -> Result<usize, Refusal> {
    let number = i32::try_from(integer(text)?)
        .map_err(|_| Refusal::new("ERR value is out of range, value must between -2147483648 and 2147483647"))?;
    usize::try_from(number).map_err(|_| Refusal::new("ERR DB index is out of range"))
}

/// A number with a fraction among the arguments, or in a value.
pub(super) fn float(text: &[u8]) -> Result<f64, Refusal> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.filter(|number: &f64| !number.is_nan()).ok_or_else(|| Refusal::new("ERR value is not a valid float"))
}

/// The part of a word that error texts show.
pub(super) fn shown(word: &[u8]) -> impl std::fmt::Display {
    word[..word.len().min(128)].escape_ascii()
}
