//! State that a server keeps between requests and that its commands use.

pub(crate) mod clients;
pub(crate) mod clock;
pub(crate) mod command_stats;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod damage;
pub(crate) mod databases;
pub(crate) mod figures;
pub(crate) mod glob;
pub(crate) mod job;
pub(crate) mod key_state;
pub(crate) mod keyspace;
pub(crate) mod listing;
pub(crate) mod metrics;
pub(crate) mod monitors;
mod overlay;
pub(crate) mod process;
pub(crate) mod refused;
pub(crate) mod saves;
pub(crate) mod scripts;
pub(crate) mod shared;
pub(crate) mod slow_log;
pub(crate) mod syncs;
pub(crate) mod watched;
