//! Replaces `node` in a build without clusters: an error that states how to add them.

use clap::Args;

use crate::failure::Failure;

/// The command that builds the program with clusters.
const BUILD: &str = "cargo install --path mini-engine/program --features cluster";

/// The options of a node, which are refused.
#[derive(Args)]
pub(crate) struct NodeArgs {
    /// Not in this program: it was built without clusters, which
    /// `cargo install --path mini-engine/program --features cluster` adds
    #[arg(long)]
    pub(crate) cluster: bool,
    #[arg(long, hide = true, value_name = "ADDR")]
    cluster_listen: Option<String>,
}

impl NodeArgs {
    /// Fails if an option of a node was given.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.cluster || self.cluster_listen.is_some() { Err(without_clusters()) } else { Ok(()) }
    }
}

pub(crate) fn without_clusters() -> Failure {
    Failure::Usage(format!("this program was built without clusters: for `cluster` and `serve --cluster`, run {BUILD}"))
}
