//! The communication between nodes: frames on a socket, the proof that both sides have the secret, and the messages.

pub(crate) mod control;
pub(crate) mod frames;
pub(crate) mod handshake;
pub(crate) mod message;
pub(crate) mod tls;
