//! Words and numbers among the arguments of commands.

use crate::protocol::reply::Refusal;
use crate::protocol::request::parse_number;

/// Whether `word` is `name`, in letters of either case.
pub(super) fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

/// A number among the arguments.
pub(super) fn integer(text: &[u8]) -> Result<i64, Refusal> {
    parse_number(text).ok_or_else(|| Refusal::new("ERR value is not an integer or out of range"))
}
