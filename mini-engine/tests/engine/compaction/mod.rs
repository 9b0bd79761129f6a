//! Compactions: requests of callers, pieces, and the versions that snapshots retain.

mod pieces;
mod pins;
mod requests;
