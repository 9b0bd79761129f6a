//! Transactions: what they see, what they conflict with, and whether they are serializable.

mod conflicts;
mod costs;
mod expiry;
mod history;
mod keyspaces;
mod limits;
mod serial;
mod view;
