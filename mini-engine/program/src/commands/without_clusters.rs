//! `cluster`, if the program is built without clusters.

use clap::Args;

use crate::failure::{Exit, Failure};
use crate::node::without_clusters;

/// Not in this program: it was built without clusters. See `serve --help`
#[derive(Args)]
pub(crate) struct ClusterArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<String>,
}

pub(crate) fn run(_: &ClusterArgs) -> Result<Exit, Failure> {
    Err(without_clusters())
}
