//! The names of the directories of a state machine, and their removal.

use std::path::Path;

use mini_engine::fs::{FileSystem, remove_dir_all};

/// The kind of a directory's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    State,
    Snapshot,
    Incoming,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::State, Kind::Snapshot, Kind::Incoming];

    fn prefix(self) -> &'static str {
        match self {
            Kind::State => "state-",
            Kind::Snapshot => "snapshot-",
            Kind::Incoming => "incoming-",
        }
    }

    pub(super) fn name(self, number: u64) -> String {
        format!("{}{number:06}", self.prefix())
    }
}

/// The end of the name of a checkpoint that is being made.
const INCOMPLETE: &str = ".incomplete";

/// Whether a directory of this name was made by a state machine, whole or not.
pub(super) fn is_ours(name: &str) -> bool {
    parse(name.strip_suffix(INCOMPLETE).unwrap_or(name)).is_some()
}

/// The kind and the number of a directory of this name; `None` if the name is not that of a whole directory of ours.
pub(super) fn parse(name: &str) -> Option<(Kind, u64)> {
    let of_kind = |kind: Kind| {
        let number = name.strip_prefix(kind.prefix())?.parse().ok()?;
        (kind.name(number) == name).then_some((kind, number))
    };
    Kind::ALL.into_iter().find_map(of_kind)
}

/// The greatest number of a state among these names of directories.
pub(super) fn newest<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<u64> {
    let found = names.into_iter().filter_map(parse).filter(|(kind, _)| *kind == Kind::State);
    found.map(|(_, number)| number).max()
}

/// Removes a directory of files. A failure is logged: the next open tries again.
pub(super) fn remove_directory(fs: &dyn FileSystem, dir: &Path) {
    if let Err(error) = remove_dir_all(fs, dir) {
        tracing::warn!(dir = %dir.display(), %error, "could not remove a directory that nothing needs");
    }
}

#[cfg(test)]
mod tests {
    use mini_engine::incomplete_directory;

    use super::*;

    #[test]
    fn only_our_own_names_are_taken_for_ours() {
        // Catches a removal of a foreign directory, and a state that is not found again.
        for kind in Kind::ALL {
            assert_eq!(parse(&kind.name(7)), Some((kind, 7)));
            assert_eq!(parse(&kind.name(1_234_567)), Some((kind, 1_234_567)));
            assert!(is_ours(&kind.name(7)));
        }
        let made_now = incomplete_directory(Kind::Snapshot.name(7));
        assert!(is_ours(made_now.to_str().unwrap()) && parse(made_now.to_str().unwrap()).is_none());
        for name in ["state", "state-7", "state-+00007", "state-000007.incomplete", "old-state-000007", "notes"] {
            assert_eq!(parse(name), None, "{name}");
            assert!(!is_ours(name) || name.ends_with(INCOMPLETE), "{name}");
        }
    }
}
