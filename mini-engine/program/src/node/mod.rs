//! A node of a cluster: what `serve --cluster` runs, and what `cluster status` prints.

mod failure;
pub(crate) mod runtime;
pub(crate) mod security;
pub(crate) mod serve;
pub(crate) mod status;
