//! Opening a database: after a crash, a fault, or a first time.

mod directory;
mod logs;
