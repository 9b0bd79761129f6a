//! The write-ahead log: one file (segment) for each memtable, a frame for each batch, one write for a group of frames.
//!
//! [`Writer`] appends frames, [`Segment`] syncs them without the writer's lock, [`replay`] reads them back. A frame's
//! checksums are seeded with the log's number, its random salt and the frame's own offset, so bytes of another log, of
//! another place, or inside a value are never taken for a frame. Each frame also records up to which [`Position`] the
//! logs were synced when it was written: that is what tells a torn tail (never synced) from damage. A log that tables have
//! replaced may leave its file to a later one ([`Segment::retire`], [`Writer::create_on`], the module [`recycle`]). The layout
//! is in [`format`]; `docs/src/formats.md` describes it for strangers.

mod dump;
mod format;
mod payload;
mod recycle;
mod replay;
mod window;
mod writer;

pub(crate) use dump::dump;
pub(crate) use format::{Position, file_name, parse_file_name};
pub(crate) use payload::{Payload, compress};
pub(crate) use recycle::{SPARE, Spare};
pub(crate) use replay::{Frame, Tail, keep_torn, newest_sync_record, replay, truncate_torn};
pub(crate) use writer::{Append, Segment, Writer};

#[cfg(test)]
mod tests;
