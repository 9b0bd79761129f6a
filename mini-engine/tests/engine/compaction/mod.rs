//! Merges: as a caller sees them, piece by piece, and what snapshots keep from them.

mod merges;
mod pieces;
mod pins;
