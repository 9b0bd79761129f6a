//! What nodes say to each other: frames on a socket, the proof that both sides know the secret, and the messages.

pub(crate) mod control;
pub(crate) mod frames;
pub(crate) mod handshake;
pub(crate) mod message;
pub(crate) mod tls;
