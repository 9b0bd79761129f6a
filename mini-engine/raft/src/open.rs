//! Opens a database of a node.

use std::io;
use std::path::Path;
use std::sync::Arc;

use mini_engine::fs::FileSystem;
use mini_engine::{Db, Error, Options, REPAIRED};

/// Opens the database in `dir`, or creates it. A repaired database is refused: a node without votes or entries that it has acknowledged must not vote.
pub(crate) fn open(dir: &Path, options: Options, fs: &Arc<dyn FileSystem>) -> io::Result<Db> {
    if fs.exists(&dir.join(REPAIRED))? {
        let what = "expected a database of this node, found the file REPAIRED: a repaired database may lack what the node has acknowledged; remove the \
                    node from its cluster, and add it with an empty directory";
        return Err(Error::InvalidArgument(format!("{}: {what}", dir.display())).into());
    }
    Ok(Db::builder(dir).options(options).file_system(Arc::clone(fs)).open()?)
}
