//! Files of the operating system, mapped into memory: a log for writing ([`MappedFile`]), a table for reading ([`map`]).
//!
//! M1 Memory is written in words of 8 bytes, each by one relaxed atomic store. So threads that write to the same place do not race, and other
//! processes that map the file see whole words. The mapping guarantees no other order.
//! M2 The mapping lasts as long as the `MappedFile`, whose length never changes; the file may be renamed and unlinked meanwhile. If a file is
//! truncated, a write beyond its end makes the system kill the process (SIGBUS). This is not undefined behaviour.
//! M3 Only files on file systems that write in place are mapped. On those a page that was written once has its space, so writing it again cannot fail
//! for lack of space. On file systems that copy on write (Btrfs, ZFS, overlays above them) or on a network, `write` calls are used, which can fail.
//! M4 Only tables are mapped for reading. A table is written and synced before it is opened, and finally unlinked, but never changed or truncated
//! (rule 14), and the directory's lock excludes other engines. So its bytes do not change under a shared reference. If another program truncates a
//! file, or a device fails, the system kills the process (SIGBUS).

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(any(target_os = "linux", target_os = "android"))]
use memmap2::Advice;
use memmap2::{Mmap, MmapOptions, MmapRaw};

use super::Mapping;
use crate::types::MappedBytes;

/// The number of bytes that one store writes.
const WORD: usize = size_of::<u64>();
/// The number of words that one step of the loop writes.
const GROUP: usize = 4;

#[derive(Debug)]
pub(super) struct MappedFile(MmapRaw);

impl MappedFile {
    pub(super) fn new(file: &File, len: u64) -> Result<MappedFile> {
        let len = usize::try_from(len).map_err(|_| Error::from(ErrorKind::Unsupported))?;
        // With 32-bit addresses, a large range would leave the process too little address space.
        if !cfg!(target_pointer_width = "64") || !writes_in_place(file) {
            return Err(ErrorKind::Unsupported.into());
        }
        Ok(MappedFile(MmapOptions::new().len(len).map_raw(file)?))
    }

    #[expect(unsafe_code, reason = "nothing else makes memory of a mapping; see M1 and M2")]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: `MmapRaw` keeps `len` bytes mapped, readable and writable, as long as `self` lives (M2), and the system aligns
        // them to pages, which are multiples of 8. Every value is a valid `AtomicU64`. All accesses by this process are atomic
        // (M1); the reference allows others to write, since the words are atomics.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<AtomicU64>(), self.0.len() / WORD) }
    }
}

impl Mapping for MappedFile {
    fn write(&self, bytes: &[u8], offset: u64) {
        assert!(offset.is_multiple_of(WORD as u64), "M1: offset {offset} is no multiple of {WORD}");
        let first = usize::try_from(offset).map_or(usize::MAX, |offset| offset / WORD);
        let count = bytes.len().div_ceil(WORD);
        let words = self.words().get(first..first.saturating_add(count));
        let words = words.unwrap_or_else(|| panic!("{} bytes at {offset} are outside the mapping", bytes.len()));
        // ORDERING(mapping): Relaxed; pairs with nothing: readers of the file are other processes, or come after a sync.
        let store = |word: &AtomicU64, bytes: &[u8; WORD]| word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        // Several words at a time, because the compiler does not unroll a loop over atomics.
        let (whole, rest) = bytes.as_chunks();
        let (words, last) = words.split_at(whole.len());
        let ((groups, words), (grouped, whole)) = (words.as_chunks::<GROUP>(), whole.as_chunks::<GROUP>());
        for (group, bytes) in groups.iter().zip(grouped) {
            group.iter().zip(bytes).for_each(|(word, bytes)| store(word, bytes));
        }
        words.iter().zip(whole).for_each(|(word, bytes)| store(word, bytes));
        if let Some(last) = last.first() {
            store(last, &padded(bytes, rest));
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn populate(&self, offset: u64, len: u64) {
        // An older system rejects the advice; then the writers touch the pages.
        let advised = self.0.advise_range(Advice::PopulateWrite, offset as usize, len as usize);
        if let Err(error) = advised {
            tracing::trace!(%error, "pages of a mapping are not populated");
        }
    }
}

/// The last bytes of a write as a word, padded with zeros: `rest`, which is shorter than a word, is the end of `bytes`.
#[inline]
fn padded(bytes: &[u8], rest: &[u8]) -> [u8; WORD] {
    if let Some(last) = bytes.last_chunk() {
        // This is cheaper than a copy of unknown length.
        return (u64::from_le_bytes(*last) >> (8 * (WORD - rest.len()))).to_le_bytes();
    }
    let mut word = [0; WORD];
    word[..rest.len()].copy_from_slice(rest);
    word
}

/// Maps a file that nobody writes to any more (M4).
#[expect(unsafe_code, reason = "nothing else gives the bytes of a mapping; see M4")]
pub(super) fn map(file: &File) -> Result<MappedBytes> {
    // With 32-bit addresses, a large range would leave the process too little address space.
    if !cfg!(target_pointer_width = "64") {
        return Err(ErrorKind::Unsupported.into());
    }
    // SAFETY: the mapping is read-only, and the file never changes as long as it lives (M4).
    let pages = unsafe { Mmap::map(file)? };
    Ok(MappedBytes::of_pages(pages))
}

/// Whether the file system writes in place (M3).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn writes_in_place(file: &File) -> bool {
    // Magic numbers from `linux/magic.h`: ext2, ext3 and ext4; XFS; tmpfs.
    const IN_PLACE: [u64; 3] = [0xef53, 0x5846_5342, 0x0102_1994];
    rustix::fs::fstatfs(file).is_ok_and(|stat| IN_PLACE.contains(&(stat.f_type as u64 & 0xffff_ffff)))
}

/// False (M3). Other systems are not known well enough.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn writes_in_place(_: &File) -> bool {
    false
}
