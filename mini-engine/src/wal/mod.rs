//! The write-ahead log: one file (a segment) for each memtable, one frame for each batch.
//!
//! [`Writer`] assigns places to frames, [`Segment`] stores and syncs them without the writer's lock, [`replay()`] reads them back. The checksums of a
//! frame are seeded with the log's number, its random salt and the frame's offset. So bytes of another log, at another offset or inside a value are
//! never mistaken for a frame. Each frame also records the [`Position`] up to which the logs were synced when it was written. This record
//! distinguishes a torn tail, which was never synced, from damage. The file of an obsolete log can be reused for a later log ([`Segment::retire`],
//! [`Writer::create_on`], `recycle.rs`). `format.rs` and `docs/src/formats.md` describe the layout.

mod follow;
mod format;
mod group_commit;
mod payload;
mod recycle;
mod refusing;
mod replay;
mod segment;
mod space;
mod walk;
mod window;
mod writer;

pub(crate) use follow::LogTail;
pub(crate) use format::{Position, file_name, parse_file_name};

pub(crate) use payload::{Payload, compress};
pub(crate) use recycle::{SPARE, Spare};
pub(crate) use replay::{is_unused, keep_torn, may_hold_batches, newest_sync_record, replay, truncate_torn};
pub(crate) use segment::{Claim, Segment};
pub(crate) use walk::{Frame, Part, Reading, Tail, Walked, walk};
pub(crate) use writer::Writer;

#[cfg(test)]
mod tests;
