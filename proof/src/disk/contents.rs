//! [`Disk`]: files and directories in memory, and the durable part of each.
//!
//! A disk is a plain value: a clone of it is the state after a killed process, and [`Disk::after_power_cut`] is a state after a power cut. A disk
//! changes only by [`Operation`]s, so a record of them can reproduce every state that it had.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proof::Random;

use super::content::Content;
use super::directory::{Change, Directory, Entries, Entry};
use super::losses::Losses;

/// The maximum length of a file: a larger offset is a mistake, and would take all memory.
const MAX_LEN: u64 = 1 << 32;

/// `len` in whole blocks.
pub(super) fn blocks(len: u64) -> u64 {
    len.next_multiple_of(4096)
}

/// A change of a disk, as a [`MemFs`](super::MemFs) records it.
#[derive(Clone, Debug)]
pub struct Operation {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) thread: String,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Create { path: PathBuf },
    Write { file: u64, offset: u64, bytes: Arc<[u8]> },
    Truncate { file: u64, len: u64 },
    Sync { file: u64 },
    FailedSync { file: u64 },
    Rename { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
    Link { from: PathBuf, to: PathBuf },
    CreateDir { path: PathBuf },
    RemoveDir { path: PathBuf },
    SyncDir { path: PathBuf },
}

impl Operation {
    /// The name of the file or directory, without its parents; for a rename, the new name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the thread that made the change; empty if the thread has none.
    pub fn thread(&self) -> &str {
        &self.thread
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.kind {
            Kind::Create { .. } => write!(f, "create {name}"),
            Kind::Write { offset, bytes, .. } => write!(f, "write {} bytes at {offset} of {name}", bytes.len()),
            Kind::Truncate { len, .. } => write!(f, "truncate {name} to {len}"),
            Kind::Sync { .. } => write!(f, "sync {name}"),
            Kind::FailedSync { .. } => write!(f, "sync {name} in vain"),
            Kind::Rename { from, .. } => write!(f, "rename {} to {name}", from.display()),
            Kind::Remove { .. } => write!(f, "remove {name}"),
            Kind::Link { from, .. } => write!(f, "link {} to {name}", from.display()),
            Kind::CreateDir { .. } => write!(f, "create directory {name}"),
            Kind::RemoveDir { .. } => write!(f, "remove directory {name}"),
            Kind::SyncDir { .. } => write!(f, "sync directory {name}"),
        }
    }
}

/// A disk in memory. The directory `/` exists from the start.
#[derive(Clone, Debug)]
pub struct Disk {
    files: BTreeMap<u64, Content>,
    directories: BTreeMap<u64, Directory>,
    /// The number of the next file or directory.
    next_number: u64,
}

/// The number of the directory `/`.
const ROOT: u64 = 0;

impl Default for Disk {
    fn default() -> Self {
        Self { files: BTreeMap::new(), directories: BTreeMap::from([(ROOT, Directory::default())]), next_number: 1 }
    }
}

impl Disk {
    /// A state after a power cut: all synced data, and random parts of the other data, chosen by `seed`.
    pub fn after_power_cut(&self, seed: u64) -> (Disk, Losses) {
        let (mut random, mut losses) = (Random(seed), Losses::default());
        let mut left = Disk { files: BTreeMap::new(), directories: BTreeMap::new(), next_number: self.next_number };
        self.cut(ROOT, &mut left, &mut random, &mut losses);
        (left, losses)
    }

    /// Copies to `left` the part of directory `number` that survives a power cut. If a directory's name is lost, its contents are lost too.
    fn cut(&self, number: u64, left: &mut Disk, random: &mut Random, losses: &mut Losses) {
        // A directory whose removal was lost is empty, since only an empty directory can be removed.
        let entries = self.directories.get(&number).map(|directory| directory.after_power_cut(random, losses));
        let entries = entries.unwrap_or_default();
        for entry in entries.values() {
            // A file with two names is one file, so its content is chosen once.
            if let Entry::File(file) = entry
                && !left.files.contains_key(file)
            {
                let content = self.files.get(file).map(|file| file.after_power_cut(random, losses));
                left.files.insert(*file, content.unwrap_or_default());
            }
        }
        for entry in entries.values() {
            if let Entry::Directory(number) = entry {
                self.cut(*number, left, random, losses);
            }
        }
        left.directories.insert(number, Directory::durable(entries));
    }

    /// Whether no power cut can change the disk.
    pub fn is_durable(&self) -> bool {
        self.files.values().all(Content::is_durable) && self.directories.values().all(Directory::is_durable)
    }

    /// Bytes of all files whose names end with `end`.
    pub fn bytes_of(&self, end: &str) -> u64 {
        let entries = self.directories.values().flat_map(Directory::now);
        let len = |(name, entry): (&OsString, &Entry)| match entry {
            Entry::File(file) if name.to_string_lossy().ends_with(end) => {
                self.files.get(file).map_or(0, |content| content.now().len() as u64)
            }
            Entry::File(_) | Entry::Directory(_) => 0,
        };
        entries.map(len).sum()
    }

    /// The bytes of all files with a name, in whole blocks.
    pub fn used_bytes(&self) -> u64 {
        let entries = self.directories.values().flat_map(Directory::now);
        let file = |(_, entry): (_, &Entry)| if let Entry::File(file) = entry { Some(*file) } else { None };
        let files: BTreeSet<u64> = entries.filter_map(file).collect();
        files.iter().filter_map(|file| self.files.get(file)).map(|content| blocks(content.now().len() as u64)).sum()
    }

    /// Repeats a recorded operation.
    ///
    /// # Errors
    /// The errors of the recorded call, if this disk differs from the recorded one.
    pub fn apply(&mut self, operation: &Operation) -> Result<()> {
        self.perform(&operation.kind)
    }

    /// The bytes of the file at `path`, as a reader sees them.
    pub fn read(&self, path: &Path) -> Result<&[u8]> {
        self.content(self.file(path)?)
    }

    pub(super) fn perform(&mut self, kind: &Kind) -> Result<()> {
        match kind {
            Kind::Create { path } => self.create(path),
            Kind::Write { file, offset, bytes } => {
                let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= MAX_LEN);
                end.ok_or(ErrorKind::FileTooLarge)?;
                self.content_mut(*file).map(|content| content.write(*offset as usize, bytes))
            }
            Kind::Truncate { len, .. } if *len > MAX_LEN => Err(ErrorKind::FileTooLarge.into()),
            Kind::Truncate { file, len } => self.content_mut(*file).map(|content| content.truncate(*len as usize)),
            Kind::Sync { file } => self.content_mut(*file).map(Content::sync),
            Kind::FailedSync { file } => self.content_mut(*file).map(Content::fail_sync),
            Kind::Rename { from, to } => self.rename(from, to),
            Kind::Remove { path } => self.file(path).and_then(|_| self.unlink(path)),
            Kind::Link { from, to } => self.name(to, Entry::File(self.file(from)?)),
            Kind::CreateDir { path } => self.create_dir(path),
            Kind::RemoveDir { path } => self.remove_dir(path),
            Kind::SyncDir { path } => self.directory_mut(path).map(Directory::sync),
        }
    }

    fn create(&mut self, path: &Path) -> Result<()> {
        self.name(path, Entry::File(self.next_number))?;
        self.files.insert(self.next_number, Content::default());
        self.next_number += 1;
        Ok(())
    }

    fn create_dir(&mut self, path: &Path) -> Result<()> {
        self.name(path, Entry::Directory(self.next_number))?;
        self.directories.insert(self.next_number, Directory::default());
        self.next_number += 1;
        Ok(())
    }

    fn remove_dir(&mut self, path: &Path) -> Result<()> {
        let number = self.directory(path).ok_or(ErrorKind::NotFound)?;
        if !self.names(path)?.is_empty() {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        self.unlink(path)?;
        self.directories.remove(&number);
        Ok(())
    }

    /// Gives `entry` the name `path`, which must be free.
    fn name(&mut self, path: &Path, entry: Entry) -> Result<()> {
        if self.exists(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let (directory, name) = self.place(path)?;
        directory.change(Change::Link { name, entry });
        Ok(())
    }

    fn unlink(&mut self, path: &Path) -> Result<()> {
        let (directory, name) = self.place(path)?;
        directory.change(Change::Unlink { name });
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<()> {
        if from.parent() != to.parent() {
            return Err(ErrorKind::CrossesDevices.into());
        }
        let entry = match self.directory(from) {
            Some(_) if self.exists(to) => return Err(ErrorKind::AlreadyExists.into()),
            Some(number) => Entry::Directory(number),
            None => Entry::File(self.file(from)?),
        };
        let new = to.file_name().ok_or(ErrorKind::InvalidInput)?.to_os_string();
        let (directory, old) = self.place(from)?;
        directory.change(Change::Rename { from: old, to: new, entry });
        Ok(())
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.is_dir(path) || self.file(path).is_ok()
    }

    pub(super) fn is_dir(&self, path: &Path) -> bool {
        self.directory(path).is_some()
    }

    /// The number of the directory at `path`.
    fn directory(&self, path: &Path) -> Option<u64> {
        let Some((above, name)) = path.parent().zip(path.file_name()) else { return Some(ROOT) };
        match self.directories.get(&self.directory(above)?)?.now().get(name)? {
            Entry::Directory(number) => Some(*number),
            Entry::File(_) => None,
        }
    }

    fn directory_mut(&mut self, path: &Path) -> Result<&mut Directory> {
        let number = self.directory(path).ok_or(ErrorKind::NotFound)?;
        self.directories.get_mut(&number).ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// The entries of the directory at `path`.
    fn entries(&self, path: &Path) -> Option<&Entries> {
        Some(self.directories.get(&self.directory(path)?)?.now())
    }

    /// The number of the file at `path`.
    pub(super) fn file(&self, path: &Path) -> Result<u64> {
        let entries = path.parent().and_then(|above| self.entries(above)).ok_or(ErrorKind::NotFound)?;
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
        match entries.get(name) {
            Some(Entry::File(file)) => Ok(*file),
            Some(Entry::Directory(_)) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn names(&self, dir: &Path) -> Result<Vec<OsString>> {
        match self.entries(dir) {
            Some(entries) => Ok(entries.keys().cloned().collect()),
            None if self.file(dir).is_ok() => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn content(&self, file: u64) -> Result<&[u8]> {
        self.files.get(&file).map(Content::now).ok_or_else(|| Error::from(ErrorKind::NotFound))
    }

    /// The number of changes of the file.
    pub(super) fn version(&self, file: u64) -> Result<u64> {
        self.files.get(&file).map(Content::version).ok_or_else(|| Error::from(ErrorKind::NotFound))
    }

    fn content_mut(&mut self, file: u64) -> Result<&mut Content> {
        self.files.get_mut(&file).ok_or_else(|| Error::from(ErrorKind::NotFound))
    }

    /// The parent directory of `path`, and the last name in `path`.
    fn place(&mut self, path: &Path) -> Result<(&mut Directory, OsString)> {
        let name = path.file_name().map(OsStr::to_os_string).ok_or(ErrorKind::InvalidInput)?;
        Ok((self.directory_mut(path.parent().ok_or(ErrorKind::InvalidInput)?)?, name))
    }
}
