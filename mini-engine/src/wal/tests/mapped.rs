//! What a log asks of its mapping.

use std::io::Result as IoResult;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::fs::{File, FileSystem, Mapping};
use crate::types::Durability;
use crate::wal::format::Identity;
use crate::wal::segment::Segment;

/// A file, and how many bytes of it were populated.
#[derive(Clone, Debug)]
struct Watched(Arc<dyn File>, Arc<AtomicU64>);

impl File for Watched {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> IoResult<usize> {
        self.0.write_at(buf, offset)
    }

    fn sync(&self) -> IoResult<()> {
        self.0.sync()
    }

    fn truncate(&self, len: u64) -> IoResult<()> {
        self.0.truncate(len)
    }

    fn len(&self) -> IoResult<u64> {
        self.0.len()
    }

    fn map_mut(&self, _: u64) -> IoResult<Box<dyn Mapping>> {
        Ok(Box::new(self.clone()))
    }
}

impl Mapping for Watched {
    fn write(&self, bytes: &[u8], offset: u64) {
        self.0.write_all_at(bytes, offset).expect("there is space");
    }

    fn populate(&self, _: u64, len: u64) {
        self.1.fetch_add(len, Ordering::Relaxed);
    }
}

#[test]
fn pages_are_populated_only_where_no_sync_would_write_them_for_nothing() {
    // Catches a first sync that writes all of a recycled log to the device: what is populated is dirty.
    for (durability, expected) in [(Durability::Buffered, 100_000), (Durability::Synced, 0)] {
        let (dir, populated) = (dir(), Arc::default());
        let file = Watched(StdFs.create_new(&path(&dir, 1)).expect("a new file"), Arc::clone(&populated));
        let identity = Identity { number: 1, salt: 1 };
        let segment = Segment::new(Arc::new(file), path(&dir, 1), identity, 40, None, Arc::default());
        let mut writer = Writer::at_start(segment, None);
        writer.reserve(100_000, durability).expect("reserved");
        assert_eq!(populated.load(Ordering::Relaxed), expected, "{durability:?}");
    }
}
