//! Promises to callers: reads, writes, options, and the life of a database.

mod bounds;
mod checkpoint;
mod concurrency;
mod conditional;
mod drops;
mod expiry;
mod ingest;
mod keyspaces;
mod lifecycle;
mod limits;
mod model;
mod options;
mod queues;
mod ranges;
mod read_only;
mod readers;
mod reads;
mod typed;
