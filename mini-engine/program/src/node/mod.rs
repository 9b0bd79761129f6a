//! A node of a cluster: runs it for `serve --cluster`, and prints the output of `cluster status`.

mod failure;
pub(crate) mod runtime;
pub(crate) mod security;
pub(crate) mod serve;
pub(crate) mod status;
