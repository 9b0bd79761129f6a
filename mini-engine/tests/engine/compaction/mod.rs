//! Compactions: as a caller sees them, in pieces, and the versions that snapshots keep from them.

mod pieces;
mod pins;
mod requests;
