//! Recognizes the directory of a cluster's node. Only the node may change it: without entries or votes that it has acknowledged, it must not take part.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

/// The advice for a directory of a node.
pub(crate) const NEXT: &str = "next: `mini-engine cluster remove` that node, and `mini-engine cluster add` a node with an empty directory. get, scan, \
     count, export, stats and verify read the databases of a stopped node, and `mini-engine scan DB --skip-damaged` prints what is readable. To change \
     or repair what a node has left, copy the database itself elsewhere: `cp -r NODE/state-0/state-000000 DB`; a node does not start with a repaired one";

/// The directory of the node to which a database, or a file in one, belongs. The database need not exist.
pub(crate) fn of(path: &Path) -> Option<PathBuf> {
    let given = std::path::absolute(path).ok()?;
    // A link may lead into the directory of a node; and a part of that directory may be a link to another disk.
    let resolved = given.ancestors().find_map(|above| {
        let rest = given.strip_prefix(above).ok()?;
        Some(fs::canonicalize(above).ok()?.join(rest))
    });
    let as_given = Some(&given).filter(|path| !path.components().any(|part| part == Component::ParentDir));
    resolved.iter().chain(as_given).find_map(|full| full.ancestors().find(|dir| has(dir, full)).map(Path::to_path_buf))
}

/// Whether `dir` is the directory of a node, and `path` lies where the node has its databases.
fn has(dir: &Path, path: &Path) -> bool {
    let inside = path.strip_prefix(dir).ok().and_then(|rest| rest.iter().next()).and_then(OsStr::to_str);
    inside.is_none_or(|name| name == "log" || name.starts_with("state-")) && is_node(&dir.join("node.json"))
}

/// Whether a file is a node's, and no other of that name.
fn is_node(file: &Path) -> bool {
    let contents = fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    contents.is_some_and(|found| ["format", "cluster", "node", "groups"].iter().all(|field| found[*field].is_u64()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_node_is_recognized_by_its_file_also_through_links_and_nothing_else_is() {
        // Catches a guard that a link evades, and a database that nobody can write to because of a file beside it.
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| dir.path().join(name);
        for made in ["node/log", "disk/state-000000", "plain/log"] {
            fs::create_dir_all(at(made)).expect("created");
        }
        fs::write(at("node/node.json"), r#"{"format":2,"cluster":1,"node":1,"groups":1}"#).expect("written");
        fs::write(at("plain/node.json"), r#"{"name":"a package of node.js"}"#).expect("written");
        for (to, link) in [("node", "link"), ("node/log", "log-link"), ("disk", "node/state-0")] {
            symlink(at(to), at(link)).expect("a link");
        }
        for inside in
            ["node", "node/log", "node/log/000001.log", "link/log", "log-link", "log-link/new", "link/state-9/new"]
        {
            assert!(of(&at(inside)).is_some_and(|node| node.join("node.json").exists()), "{inside}");
        }
        assert!(of(&at("node/state-0/state-000000")).is_some() && of(&at("plain/../node/log")).is_some());
        for outside in ["plain", "plain/log", "disk", "node/other", "node/log/../../plain", "none/at/all"] {
            assert_eq!(of(&at(outside)), None, "{outside}");
        }
    }
}
