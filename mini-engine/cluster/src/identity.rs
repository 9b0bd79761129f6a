//! Which node of which cluster a directory belongs to: the file `node.json`.
//!
//! It is written once, when the node becomes a member of a cluster: to a temporary file, which is synced and renamed. A directory with data and
//! without it is refused: under another number a node could vote twice.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, io};
use crate::settings::MAX_GROUPS;

const FILE: &str = "node.json";
const TEMPORARY: &str = "node.json.new";
/// The version of the file's format.
const FORMAT: u32 = 1;

/// A node's place in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    format: u32,
    /// The number of the cluster, drawn when it was made.
    pub cluster: u64,
    /// The node's number. It is never used again in the cluster.
    pub node: u64,
    /// The number of groups, which never changes.
    pub groups: u32,
}

impl Identity {
    pub(crate) fn new(cluster: u64, node: u64, groups: u32) -> Self {
        Self { format: FORMAT, cluster, node, groups }
    }

    /// The identity in directory `dir`, if it has one.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>> {
        let file = dir.join(FILE);
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return without_file(dir, file).map(|()| None),
            Err(error) => return Err(io("read", file.display())(error)),
        };
        let invalid = |reason: String| Error::Identity { file: file.clone(), reason };
        let found: Self = serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        if found.format != FORMAT {
            return Err(invalid(format!("expected format {FORMAT}, found {}", found.format)));
        }
        found.check().map_err(invalid)?;
        Ok(Some(found))
    }

    /// Whether such a node can be.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        match self.node > 0 && (1..=MAX_GROUPS).contains(&self.groups) {
            true => Ok(()),
            false => Err(format!("expected a node from 1 and 1 to {MAX_GROUPS} groups, found {self:?}")),
        }
    }

    /// Makes it the identity of directory `dir`, durably.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let (file, temporary) = (dir.join(FILE), dir.join(TEMPORARY));
        let written = || {
            let mut bytes = serde_json::to_vec_pretty(self)?;
            bytes.push(b'\n');
            let mut new = File::create(&temporary)?;
            new.write_all(&bytes)?;
            new.sync_all()?;
            fs::rename(&temporary, &file)?;
            File::open(dir)?.sync_all()
        };
        written().map_err(io("write", file.display()))
    }
}

/// Fails if the directory has a state, although it has no identity.
fn without_file(dir: &Path, file: PathBuf) -> Result<()> {
    let state = dir.join("state-0");
    match state.try_exists().map_err(io("look for", state.display()))? {
        false => Ok(()),
        true => Err(Error::Identity {
            file,
            reason: "expected the number of this node, found no file, although there is data beside it; remove this node from its cluster and add \
                     it with an empty directory"
                .into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_was_written_and_a_wrong_one_is_refused() {
        // Catches a node that starts under another number, or as a new one beside data of an old one, and so votes twice.
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Identity::read(dir.path()).unwrap(), None);
        let identity = Identity::new(u64::MAX, 7, 3);
        identity.write(dir.path()).unwrap();
        assert_eq!(Identity::read(dir.path()).unwrap(), Some(identity));
        assert!(!dir.path().join(TEMPORARY).exists());
        for wrong in [
            "",
            "{}",
            r#"{"format":2,"cluster":1,"node":1,"groups":1}"#,
            r#"{"format":1,"cluster":1,"node":0,"groups":1}"#,
            r#"{"format":1,"cluster":1,"node":1,"groups":0}"#,
            r#"{"format":1,"cluster":1,"node":1,"groups":1000000}"#,
            r#"{"format":1,"cluster":1,"node":1,"groups":1,"more":1}"#,
        ] {
            fs::write(dir.path().join(FILE), wrong).unwrap();
            let error = Identity::read(dir.path()).unwrap_err().to_string();
            assert!(error.contains("node.json: "), "{wrong}: {error}");
        }
        fs::remove_file(dir.path().join(FILE)).unwrap();
        fs::create_dir(dir.path().join("state-0")).unwrap();
        let error = Identity::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("found no file, although there is data"), "{error}");
    }
}
