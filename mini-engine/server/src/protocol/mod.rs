//! The protocol: the encoding of requests and replies as bytes, and of numbers as keys.

pub(crate) mod cursors;
pub(crate) mod numbers;
pub(crate) mod output;
pub(crate) mod reply;
pub(crate) mod request;
