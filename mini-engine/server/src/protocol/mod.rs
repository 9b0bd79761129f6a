//! The protocol: requests as bytes, replies as bytes, and numbers as keys.

pub(crate) mod cursors;
pub(crate) mod numbers;
pub(crate) mod output;
pub(crate) mod reply;
pub(crate) mod request;
