//! Damage to the files of a database on a simulated disk.

use std::path::{Path, PathBuf};

use mini_engine::Error;
use mini_engine::fs::FileSystem;

use crate::disk::{Disk, MemFs};

/// The damage to a file.
#[derive(Clone, Copy, Debug)]
pub enum Damage {
    /// The file is gone.
    Removed,
    /// The file is truncated to this length.
    Cut(usize),
    /// A bit of the byte at this place is flipped.
    Flip(usize),
    /// The sector of 512 bytes from this place on is zeroed.
    Zeros(usize),
}

impl Damage {
    /// `disk` with the damage to `path`.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn to(self, disk: &Disk, path: &Path) -> MemFs {
        let fs = MemFs::on(disk.clone());
        if let Damage::Removed = self {
            fs.remove(path).unwrap();
            return fs;
        }
        let mut bytes = disk.read(path).unwrap().to_vec();
        match self {
            Damage::Removed => {}
            Damage::Cut(len) => bytes.truncate(len),
            Damage::Flip(at) => bytes[at] ^= 1 << (at % 8),
            Damage::Zeros(at) => bytes.iter_mut().skip(at).take(512).for_each(|byte| *byte = 0),
        }
        let file = fs.open_write(path).unwrap();
        file.truncate(0).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        fs
    }
}

/// The files that hold the database in `dir`, with their lengths: all but the lock and the reserve.
///
/// # Panics
/// If there is no such directory.
pub fn files(disk: &Disk, dir: &str) -> Vec<(PathBuf, usize)> {
    let names = MemFs::on(disk.clone()).read_dir(Path::new(dir)).unwrap();
    let paths = names.iter().filter(|name| *name != "LOCK" && *name != "RESERVE").map(|name| Path::new(dir).join(name));
    paths.map(|path| (path.clone(), disk.read(&path).unwrap().len())).collect()
}

/// Whether `error` is one that damage to a file in `dir` may cause.
pub fn is_typed(error: &Error, dir: &str) -> bool {
    match error {
        Error::Corruption { file, .. } | Error::UnsupportedVersion { file, .. } => file.starts_with(dir),
        _ => false,
    }
}
