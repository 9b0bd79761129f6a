//! Paths like those of a file system: a tree of directories with about a dozen files in each, and names from few
//! words. Neighbours in order share most of their bytes, and differ in a few near the end.
//!
//! Directory `d` below the eight roots is one of the eight children of directory `d / 8 - 1`, as in a heap. Siblings get
//! different words, so all directories differ. A file's name ends in its number, so all files of a directory differ.

use std::array;
use std::sync::LazyLock;

use rand::{Rng, RngExt};

use crate::rng;

const SHORTEST: usize = 40;
const FILES_PER_DIRECTORY: u64 = 12;
/// Also the number of roots.
const FANOUT: u64 = 8;

/// The roots, the words, and the endings of files.
static NAMES: LazyLock<[Vec<&str>; 3]> = LazyLock::new(|| {
    let mut lines = include_str!("paths.txt").lines().map(|line| line.split(' ').collect());
    array::from_fn(|_| lines.next().unwrap_or_default())
});

/// A tree with room for a number of files.
#[derive(Debug)]
pub(crate) struct Tree {
    directories: u64,
}

impl Tree {
    pub(crate) fn for_files(files: u64) -> Self {
        Self { directories: (files / FILES_PER_DIRECTORY).max(FANOUT) }
    }

    /// Appends the path of file number `file`.
    pub(crate) fn push_path(&self, file: u64, out: &mut Vec<u8>) {
        let start = out.len();
        let mut random = rng(file);
        let directory = random.random_range(0..self.directories);
        push_directory(directory, out);
        out.push(b'/');
        let mut in_directory = rng(!directory);
        // Each directory has four stems, so that siblings share their first word.
        push_word(in_directory.next_u64().wrapping_add(random.random_range(0..4)), out);
        out.push(b'-');
        push_word(random.next_u64(), out);
        out.push(b'-');
        let ending = NAMES[2][in_directory.random_range(0..NAMES[2].len())];
        while out.len() - start + ending.len() + 2 < SHORTEST {
            push_word(random.next_u64(), out);
            out.push(b'-');
        }
        out.extend_from_slice(format!("{file:x}.{ending}").as_bytes());
    }

    /// Appends web address number `page`: a host for every thousand files, most of them of one site.
    pub(crate) fn push_url(&self, page: u64, out: &mut Vec<u8>) {
        let mut random = rng(page);
        out.extend_from_slice(b"https://");
        push_word(random.random_range(0..=self.directories * FILES_PER_DIRECTORY / 1000), out);
        out.extend_from_slice(b".example.org");
        for _ in 0..random.random_range(2..4) {
            out.push(b'/');
            push_word(random.next_u64(), out);
        }
        out.extend_from_slice(format!("/{}?page={page:08x}&ref=", page % 97).as_bytes());
        push_word(random.next_u64(), out);
    }
}

fn push_directory(directory: u64, out: &mut Vec<u8>) {
    let Some(parent) = (directory / FANOUT).checked_sub(1) else {
        out.extend_from_slice(NAMES[0][directory as usize].as_bytes());
        return;
    };
    push_directory(parent, out);
    out.push(b'/');
    let mut random = rng(!parent);
    // An odd step through 64 words gives eight siblings eight words.
    let (first, step) = (random.next_u64(), random.next_u64() | 1);
    push_word(first.wrapping_add((directory % FANOUT).wrapping_mul(step)), out);
}

fn push_word(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(NAMES[1][(number % 64) as usize].as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SEED;

    #[test]
    fn paths_are_40_to_110_bytes_long_and_share_most_of_them_with_their_neighbours() {
        // Catches a tree so deep that paths are longer than in any file system of that size, and one so flat that the first
        // bytes distinguish keys: goal N8 would be met without merit.
        for files in [10, 2000, 20_000, 10_000_000] {
            let tree = Tree::for_files(files);
            let path = |file| {
                let mut out = Vec::new();
                tree.push_path(file, &mut out);
                out
            };
            let spread = (0..4 * files).step_by((files / 1000).max(1) as usize).map(path);
            spread.for_each(|path| assert!((SHORTEST..=110).contains(&path.len()), "{}", path.escape_ascii()));
            let mut paths: Vec<_> = (0..files.min(20_000)).map(path).collect();
            paths.sort_unstable();
            let shared = |pair: &[Vec<u8>]| pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b).count();
            let (shared, bytes) = (paths.windows(2).map(shared).sum::<usize>(), paths.concat().len());
            assert!(shared * 2 > bytes || files != 20_000, "{shared} of {bytes} bytes are shared (seed {SEED:#x})");
        }
    }
}
