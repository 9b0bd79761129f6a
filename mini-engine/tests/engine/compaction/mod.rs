//! Compactions: as a caller sees them, piece by piece, and what snapshots keep from them.

mod pieces;
mod pins;
mod requests;
