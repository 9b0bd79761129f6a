//! The communication between nodes: frames on a socket, the proof that both sides have the secret, and the messages.
//!
//! # Changing a message
//!
//! During an upgrade, nodes of the last release and of this one serve together: both sides of a connection speak the newest version of which both are
//! capable (`version`). An encoding has neither names nor lengths of fields, so only the writer's own types read it, and these rules follow:
//!
//! 1. A released encoding stays. A changed one is a new version: raise `OWN.newest`. `OWN.oldest` is at most the newest version of the last release.
//! 2. Enums grow at the end. A new variant is sent only on a connection whose version has it: the handshake must return the version then.
//! 3. A struct with other fields is a new type, in a new variant; the old one stays readable, and is sent to peers of the old version.
//! 4. All nodes of a group apply the same entries, in the log for a long time. So old entries stay readable, and keep their effect. A leader proposes an
//!    entry that is new, or has a new effect (also one of a command of clients), only if all members speak a version that has it; they tell each
//!    other in [`Description::protocol`](control::Description::protocol). First, all members raise `format` in `node.json`, so that no older program
//!    opens such a log again, and from then on `add` must refuse a node whose newest version is below.
//! 5. The parts of a snapshot are files of the engine. A format of files that the last release cannot read is written only if all members can read it.
//! 6. `Hello` and `Challenge` of the handshake never change: they are read before both sides know the version.
//!
//! The directory has its own version, `format` in `node.json`: a program refuses a directory, and with it a log, of a format that it does not know.
//! `tests/formats.rs` compares messages and entries with recorded bytes.

pub(crate) mod control;
pub(crate) mod frames;
pub(crate) mod handshake;
pub(crate) mod message;
pub(crate) mod tls;
pub(crate) mod version;
