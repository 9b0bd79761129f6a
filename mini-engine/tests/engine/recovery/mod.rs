//! What an open finds and makes of it, after a crash, a fault, or a first time.

mod directory;
mod logs;
