//! `CURRENT`: the name of the database's manifest. The file is one line of text with its own checksum:
//!
//! `mini-engine {format version} MANIFEST-{number:06} {checksum of everything before this space, 16 hex digits}\n`
//!
//! The file is replaced, never changed: the new line is written to `CURRENT.tmp` and synced, the file is renamed over the old one, and the directory
//! is synced. A reader always finds either the old line or the new one. The content is synced before the rename, since a rename may reach the disk
//! before the bytes of the file (rule 4).

use std::ffi::OsStr;
use std::path::Path;

use crate::codec::checksum;
use crate::error::{Error, Result, is_want_of_handles};
use crate::fs::{FileSystem, read_bytes};
use crate::manifest::names::{CURRENT, CURRENT_TMP, FileKind, manifest_name};

const NAME: &str = "mini-engine";
/// The newest format version of the line that this build can read; it writes this version.
const FORMAT_VERSION: u32 = 1;
/// The operation that fails when the pointer has changed already for the system, though perhaps not on the device.
pub(super) const SYNC_POINTER: &str = "sync the renamed pointer in";
/// More bytes than any line can have.
const MAX_LEN: u64 = 256;

/// Makes `CURRENT` in `dir` refer to manifest `number`, which must be synced, and so must its name.
pub(crate) fn store(fs: &dyn FileSystem, dir: &Path, number: u64) -> Result<()> {
    let (tmp, current) = (dir.join(CURRENT_TMP), dir.join(CURRENT));
    if fs.exists(&tmp).map_err(Error::io("look for", &tmp))? {
        // A process that ended between the two steps has left this file; it never became `CURRENT`.
        fs.remove(&tmp).map_err(Error::io("remove", &tmp))?;
    }
    let file = fs.create_new(&tmp).map_err(Error::io("create", &tmp))?;
    file.write_all_at(line(number).as_bytes(), 0).map_err(Error::io("write", &tmp))?;
    file.sync().map_err(Error::io("sync", &tmp))?;
    drop(file);
    // Once the pointer has changed, the step cannot be undone. So a file handle is reserved for the last step.
    let manifest = dir.join(manifest_name(number));
    let reserved = fs.open(&manifest).map_err(Error::io("open", &manifest))?;
    fs.rename(&tmp, &current).map_err(Error::io("rename", &tmp))?;
    let mut synced = fs.sync_dir(dir);
    if synced.as_ref().is_err_and(is_want_of_handles) {
        // Nothing was synced in this case. The reserved handle is released only now; otherwise another thread could have used it.
        drop(reserved);
        synced = fs.sync_dir(dir);
    }
    synced.map_err(Error::io(SYNC_POINTER, dir))
}

/// The number of the manifest to which `CURRENT` in `dir` refers; `None` if there is no `CURRENT`.
pub(crate) fn load(fs: &dyn FileSystem, dir: &Path) -> Result<Option<u64>> {
    let path = dir.join(CURRENT);
    if !fs.exists(&path).map_err(Error::io("look for", &path))? {
        return Ok(None);
    }
    let file = fs.open(&path).map_err(Error::io("open", &path))?;
    let len = file.len().map_err(Error::io("read", &path))?;
    if len > MAX_LEN {
        return Err(Error::corruption(&path, 0, format!("expected at most {MAX_LEN} bytes, found {len}")));
    }
    parse(&path, &read_bytes(&*file, &path, 0, len)?).map(Some)
}

fn line(number: u64) -> String {
    sealed(&format!("{NAME} {FORMAT_VERSION} {}", manifest_name(number)))
}

/// The line that begins with `text`: in all versions it ends with the checksum of the text before.
fn sealed(text: &str) -> String {
    format!("{text} {:016x}\n", checksum(text.as_bytes(), 0))
}

fn is_sealed(line: &str) -> bool {
    line.rsplit_once(' ').is_some_and(|(text, _)| sealed(text) == line)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<u64> {
    let damaged = |what: String| Error::corruption(path, 0, what);
    let malformed = || damaged(format!("expected a pointer to a manifest, found b\"{}\"", bytes.escape_ascii()));
    let text = std::str::from_utf8(bytes).map_err(|_| malformed())?;
    let mut words = text.split(' ');
    if words.next() != Some(NAME) {
        return Err(malformed());
    }
    let version: u32 = words.next().and_then(|word| word.parse().ok()).ok_or_else(malformed)?;
    // The rest of the line may differ in a newer version. The version is trusted only after the checksum was verified: a flipped bit in it is damage.
    if version > FORMAT_VERSION && is_sealed(text) {
        return Err(Error::UnsupportedVersion { file: path.to_path_buf(), found: version, supported: FORMAT_VERSION });
    }
    let name = words.next().ok_or_else(malformed)?;
    let FileKind::Manifest(number) = FileKind::of(OsStr::new(name)) else { return Err(malformed()) };
    // There is exactly one valid line for a number: comparing all of it checks version, spaces, checksum and length at once.
    let expected = line(number);
    if text != expected {
        return Err(damaged(format!("expected {expected:?}, found {text:?}")));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_round_trips() {
        // Catches a writer and a reader that do not agree.
        for number in [1, 999_999, 1_000_000, u64::MAX >> 1] {
            assert_eq!(parse(Path::new(CURRENT), line(number).as_bytes()).unwrap(), number);
        }
    }

    #[test]
    fn rule_1_every_damaged_byte_of_current_is_noticed() {
        // Catches a pointer without a checksum: after one flipped bit it would refer to another manifest, perhaps an old one.
        let good = line(7).into_bytes();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut damaged = good.clone();
                damaged[at] ^= 1 << bit;
                let error = parse(Path::new(CURRENT), &damaged).unwrap_err();
                assert!(matches!(error, Error::Corruption { .. }), "{error}");
            }
            assert!(parse(Path::new(CURRENT), &good[..at]).is_err());
        }
    }
}
