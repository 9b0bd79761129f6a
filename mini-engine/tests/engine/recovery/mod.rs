//! Opens of a database: after a crash, after a fault, or for the first time.

mod closed;
mod directory;
mod logs;
