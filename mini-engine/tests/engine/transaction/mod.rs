//! Transactions: their views, their conflicts, and their serializability.

mod conflicts;
mod costs;
mod exclusive;
mod expiry;
mod history;
mod keyspaces;
mod limits;
mod serial;
mod view;
