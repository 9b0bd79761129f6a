//! `checkpoint`: copies the database into a new directory.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure, refuse_node};
use crate::node_directory;

/// Copy the database into a new directory, which is then a database of its own
///
/// The copy shares the bytes of the tables (hard links) where it is on the same file system, so it
/// takes next to no time and space; elsewhere the tables are copied. When this returns, the copy
/// survives power loss. A directory that exists is refused, and so is one in a directory that does
/// not. DIR is there only with the whole: a copy that fails leaves nothing, one that is interrupted
/// leaves DIR.incomplete, which the next try removes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine checkpoint files.db monday.db
  mini-engine checkpoint files.db /mnt/backup/files.db && mini-engine verify /mnt/backup/files.db")]
pub(crate) struct CheckpointArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Directory of the copy, which must not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(crate) fn run(args: &CheckpointArgs) -> Result<Exit, Failure> {
    check_parent("checkpoint", &args.directory)?;
    let db = args.database.open(OpenFor::Copying)?;
    db.checkpoint(&args.directory)?;
    db.close()?;
    Ok(Exit::Done)
}

/// Refuses a directory whose parent does not exist: it is more likely mistyped than intended; and one in the directory of a node.
pub(crate) fn check_parent(command: &str, directory: &Path) -> Result<(), Failure> {
    refuse_node(directory, node_directory::IF_SOUND)?;
    match directory.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        None => Ok(()),
        Some(parent) => {
            let (directory, parent) = (directory.display(), parent.display());
            Err(Failure::Usage(format!("{command}: cannot make {directory}: there is no directory {parent}")))
        }
    }
}
