//! Recognizes the directory of a cluster's node. Only the node may change it: without entries or votes that it has acknowledged, it must not take part.
//! The library has no such guard.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

/// The advice where a node's database is damaged, or would be repaired.
pub(crate) const IF_DAMAGED: &str = "next: `mini-engine cluster remove` that node, and `mini-engine cluster add` a node with an empty directory. get, \
     scan, count, export, stats and verify read the databases of a stopped node, and `mini-engine scan DB --skip-damaged` prints what is readable. To \
     repair what a node has left, copy the database itself elsewhere: `cp -r NODE/state-0/state-000000 DB`; a node does not start with a repaired one";

/// The advice where a sound database would be changed or copied.
pub(crate) const IF_SOUND: &str = "next: change it through the cluster's clients. get, scan, count, export, stats and verify read the databases of a \
     stopped node. To change a copy, copy the database itself elsewhere: `cp -r NODE/state-0/state-000000 DB`";

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
    inside.is_none_or(|name| name == "log" || name.starts_with("state-")) && is_node(dir)
}

/// Whether a directory has a node's file, which may be damaged, or has lost it. Some other file of that name is none.
fn is_node(dir: &Path) -> bool {
    let has_fields = |found: Value| ["format", "cluster", "node", "groups"].iter().all(|field| found[*field].is_u64());
    match fs::read(dir.join("node.json")) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_or(true, has_fields),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            ["log", "state-0"].iter().all(|name| dir.join(name).is_dir())
        }
        Err(error) => error.kind() != ErrorKind::NotADirectory,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_node_is_recognized_by_its_file_also_through_links_and_nothing_else_is() {
        // Catches a guard that a link or damage evades, and a database that nobody can write to because of a file beside it.
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| dir.path().join(name);
        for made in ["node/log", "disk/state-000000", "plain/log", "torn/log", "lost/log", "lost/state-0"] {
            fs::create_dir_all(at(made)).expect("created");
        }
        fs::write(at("node/node.json"), r#"{"format":2,"cluster":1,"node":1,"groups":1}"#).expect("written");
        fs::write(at("plain/node.json"), r#"{"name":"a package of node.js"}"#).expect("written");
        fs::write(at("torn/node.json"), r#"{"format":2,"clu"#).expect("written");
        for (to, link) in [("node", "link"), ("node/log", "log-link"), ("disk", "node/state-0")] {
            symlink(at(to), at(link)).expect("a link");
        }
        let inside =
            "node node/log node/log/000001.log link/log log-link log-link/new link/state-9/new torn/log lost/log";
        for inside in inside.split(' ') {
            assert!(of(&at(inside)).is_some_and(|node| node.join("log").exists()), "{inside}");
        }
        assert!(of(&at("node/state-0/state-000000")).is_some() && of(&at("plain/../node/log")).is_some());
        for outside in ["plain", "plain/log", "disk", "node/other", "node/log/../../plain", "none/at/all"] {
            assert_eq!(of(&at(outside)), None, "{outside}");
        }
    }
}
