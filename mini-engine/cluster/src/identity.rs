//! The file `node.json`: the node and the cluster to which a directory belongs, and the groups that are in it.
//!
//! The file is written whenever its contents change: to a temporary file, which is synced and renamed. A directory that has data but not this file is
//! refused: under another number the node could vote twice. Files of groups that are not listed in `node.json` are ignored, and removed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use mini_engine::fs::FileSystem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result, io};
use crate::settings::MAX_GROUPS;
use crate::types::Position;

const FILE: &str = "node.json";
/// The version of the file's format.
const FORMAT: u32 = 2;
/// The version in which every node had all groups.
const ALL_GROUPS: u32 = 1;

/// A node's place in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The number of the cluster, drawn at random when the cluster was created.
    pub cluster: u64,
    /// The node's number. The cluster never uses the number again.
    pub node: u64,
    /// The number of groups, which never changes.
    pub groups: u32,
}

/// The groups of a node, by their numbers. The value is the log position from which on the node is a member; `None` while it is being added.
pub(crate) type Joined = BTreeMap<u32, Option<Position>>;

/// The contents of `node.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    format: u32,
    cluster: u64,
    node: u64,
    groups: u32,
    /// The groups that are in this directory.
    pub(crate) joined: Joined,
    /// Groups that an older version removed from this directory, with their votes: the node never joins them again.
    pub(crate) left: BTreeSet<u32>,
    /// Groups that were removed from this directory since, and may be back, with the position that their logs must reach before the node votes.
    #[serde(default)]
    pub(crate) last: BTreeMap<u32, Position>,
    /// The addresses of other nodes, which are queried at the start for the places of groups.
    pub(crate) others: BTreeSet<String>,
}

impl Record {
    /// The record of a node that has no groups yet.
    pub(crate) fn new(Identity { cluster, node, groups }: Identity) -> Self {
        let (joined, left, last, others) = Default::default();
        Self { format: FORMAT, cluster, node, groups, joined, left, last, others }
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity { cluster: self.cluster, node: self.node, groups: self.groups }
    }

    /// Adds groups to the record. If a group is there already, the later position at which the node became a member counts.
    pub(crate) fn join(&mut self, joined: Joined) {
        for (group, since) in joined {
            let present = self.joined.entry(group).or_default();
            *present = (*present).max(since);
        }
    }

    /// The record of directory `dir`, if there is one.
    pub(crate) fn read(files: &dyn FileSystem, dir: &Path) -> Result<Option<Self>> {
        let file = dir.join(FILE);
        let Some(mut stored) = read_json::<Map<String, Value>>(files, &file)? else {
            return without_file(files, dir, file).map(|()| None);
        };
        if stored.len() == 4 && stored.get("format") == Some(&json!(ALL_GROUPS)) {
            let groups = stored.get("groups").and_then(Value::as_u64).unwrap_or(0).min(MAX_GROUPS.into());
            let joined: BTreeMap<String, Position> =
                (0..groups).map(|group| (group.to_string(), Position::default())).collect();
            stored.extend(
                [("joined", json!(joined)), ("left", json!([])), ("others", json!([]))]
                    .map(|(name, value)| (name.into(), value)),
            );
            stored.insert("format".into(), json!(FORMAT));
        }
        let record = serde_json::from_value::<Self>(stored.into()).map_err(|error| error.to_string());
        let record = record.and_then(|record| record.check().map(|()| record));
        record.map(Some).map_err(|reason| Error::unusable(file, reason))
    }

    /// Checks that a node with this identity and these groups is possible.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        if self.node == 0 || !(1..=MAX_GROUPS).contains(&self.groups) {
            let found = self.identity();
            return Err(format!("expected a node from 1 and 1 to {MAX_GROUPS} groups, found {found:?}"));
        }
        if self.format != FORMAT {
            return Err(format!(
                "expected the fields of format {ALL_GROUPS} or {FORMAT}, found format {}",
                self.format
            ));
        }
        if let Some(group) = self.joined.keys().find(|group| **group >= self.groups) {
            return Err(format!("expected groups below {}, found {group}", self.groups));
        }
        match self.joined.keys().find(|group| self.left.contains(group)) {
            None => Ok(()),
            Some(group) => Err(format!(
                "it was in group {group} and was removed, and has forgotten its votes there: add a node with an empty directory"
            )),
        }
    }

    /// Writes this record to directory `dir`, durably.
    pub(crate) fn write(&self, files: &dyn FileSystem, dir: &Path) -> Result<()> {
        write_json(files, dir, FILE, self)
    }
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read_json<T: DeserializeOwned>(files: &dyn FileSystem, file: &Path) -> Result<Option<T>> {
    let read = || {
        let open = files.open(file)?;
        let mut bytes = vec![0; open.len()? as usize];
        open.read_exact_at(&mut bytes, 0).map(|()| bytes)
    };
    match read() {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::unusable(file, error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("read", file.display())(error)),
    }
}

/// Writes a file in directory `dir`, or replaces it, durably.
pub(crate) fn write_json(files: &dyn FileSystem, dir: &Path, name: &str, contents: &impl Serialize) -> Result<()> {
    let (file, temporary) = (dir.join(name), dir.join(format!("{name}.new")));
    let written = || {
        let mut bytes = serde_json::to_vec_pretty(contents)?;
        bytes.push(b'\n');
        if files.exists(&temporary)? {
            files.remove(&temporary)?;
        }
        let new = files.create_new(&temporary)?;
        new.write_all_at(&bytes, 0)?;
        new.sync()?;
        files.rename(&temporary, &file)?;
        files.sync_dir(dir)
    };
    written().map_err(io("write", file.display()))
}

/// A random number, for a new cluster, a new node, or a start.
pub(crate) fn draw() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| io("draw", "a number")(error.into()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// The directory of a group's state in the directory of a node.
pub(crate) fn state_of(dir: &Path, group: u32) -> PathBuf {
    dir.join(format!("state-{group}"))
}

/// Fails if the directory has a state but no record.
fn without_file(files: &dyn FileSystem, dir: &Path, file: PathBuf) -> Result<()> {
    for group in 0..MAX_GROUPS {
        let state = state_of(dir, group);
        if files.exists(&state).map_err(io("look for", state.display()))? {
            let reason = "expected the number of this node, found no file, although there is data beside it; remove this node from its cluster and add \
                          it with an empty directory";
            return Err(Error::unusable(file, reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use mini_engine::fs::{StdFs, in_open_directory};

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_wrong_one_is_refused() {
        // Catches a node that votes twice, because it starts under another number or with the data of an old node; and a group that is joined again.
        let dir = proof::TempDir::new().unwrap();
        assert_eq!(Record::read(&StdFs, dir.path()).unwrap(), None);
        let identity = Identity { cluster: u64::MAX, node: 7, groups: 3 };
        let position = Position { term: 2, leader: 1, index: 9 };
        let record = Record {
            joined: BTreeMap::from([(0, Some(position)), (2, None)]),
            left: BTreeSet::from([1]),
            last: BTreeMap::from([(2, position)]),
            others: BTreeSet::from(["h:1".to_owned()]),
            ..Record::new(identity)
        };
        record.write(&StdFs, dir.path()).unwrap();
        assert_eq!(Record::read(&StdFs, dir.path()).unwrap(), Some(record));
        assert!(!dir.path().join("node.json.new").exists());
        for wrong in [
            "",
            "{}",
            r#"{"format":3,"cluster":1,"node":1,"groups":1,"joined":{},"left":[],"others":[]}"#,
            r#"{"format":2,"cluster":1,"node":1,"groups":1}"#,
            r#"{"format":2,"cluster":1,"node":1,"groups":1,"joined":{"1":null},"left":[],"others":[]}"#,
            r#"{"format":2,"cluster":1,"node":1,"groups":1,"joined":{"0":null},"left":[0],"others":[]}"#,
            r#"{"format":1,"cluster":1,"node":1,"groups":1,"joined":{},"left":[],"others":[]}"#,
            r#"{"format":1,"cluster":1,"node":0,"groups":1}"#,
            r#"{"format":1,"cluster":1,"node":1,"groups":0}"#,
            r#"{"format":1,"cluster":1,"node":1,"groups":1000000}"#,
            r#"{"format":1,"cluster":1,"node":1,"groups":1,"more":1}"#,
        ] {
            fs::write(dir.path().join(FILE), wrong).unwrap();
            let error = Record::read(&StdFs, dir.path()).unwrap_err().to_string();
            assert!(error.contains("node.json: "), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_record_of_a_directory_that_is_moved_goes_with_it() {
        // Catches a node that writes its number, or the groups that it left, to the directory of another node that now has its old name.
        let dir = proof::TempDir::new().unwrap();
        let [old, moved] = ["node", "moved"].map(|name| dir.path().join(name));
        fs::create_dir(&old).unwrap();
        let files: Arc<dyn FileSystem> = Arc::new(StdFs);
        let opened = in_open_directory(&files, &old).unwrap();
        let record = |node| Record::new(Identity { cluster: 5, node, groups: 3 });
        record(1).write(&*opened, &old).unwrap();
        fs::rename(&old, &moved).unwrap();
        fs::create_dir(&old).unwrap();
        record(2).write(&*files, &old).unwrap();
        let left = Record { left: BTreeSet::from([1]), ..record(1) };
        left.write(&*opened, &old).unwrap();
        assert_eq!(Record::read(&*opened, &old).unwrap(), Some(left.clone()));
        assert_eq!(Record::read(&*files, &moved).unwrap(), Some(left));
        assert_eq!(Record::read(&*files, &old).unwrap(), Some(record(2)));
    }
}
