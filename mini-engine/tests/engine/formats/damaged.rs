//! Of databases that were cut off or damaged the page's reader says what the engine says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mini_engine::fs::{Disk, FileSystem, MemFs};
use mini_engine::{Builder, Compression, Db, Durability, Slice, WriteBatch};

use crate::formats::database::{self, Files, Map};
use crate::formats::workload::write;
use crate::support::disks::states_during;
use crate::support::hook::flush_to_the_end;

const DIR: &str = "/db";

fn builder(mem: &MemFs) -> Builder {
    let builder = Db::builder(DIR)
        .block_bytes(512)
        .partition_bytes(128)
        .l0_trigger(2)
        .compression(Compression::Lz4)
        .log_compression(true);
    builder.memtable_bytes(16 << 10).immutable_memtables(4).file_system(Arc::new(mem.clone()))
}

fn files(disk: &Disk) -> Files {
    let names = MemFs::on(disk.clone()).read_dir(Path::new(DIR)).unwrap_or_default();
    let file = |name: std::ffi::OsString| {
        let bytes = disk.read(&Path::new(DIR).join(&name)).unwrap().to_vec();
        (name.into_string().unwrap(), bytes)
    };
    names.into_iter().map(file).collect()
}

/// All that the engine finds, if it finds no damage.
fn by_engine(disk: &Disk) -> Result<Map, String> {
    let db = builder(&MemFs::on(disk.clone())).create_if_missing(false).open().map_err(|error| error.to_string())?;
    let entry = |(key, value): (Slice, Slice)| (key.to_vec(), value.to_vec());
    let found = db.iter().map(|read| read.map(entry)).collect::<Result<Map, _>>().map_err(|error| error.to_string())?;
    match db.verify().unwrap().problems.first() {
        None => Ok(found),
        Some(problem) => Err(problem.to_string()),
    }
}

/// How often both found all sound, and how often both found damage.
#[derive(Debug, Default)]
struct Agreed {
    sound: usize,
    damaged: usize,
    /// How often a log was torn.
    torn: usize,
    /// How often a log had frames of a previous one behind its own.
    recycled: usize,
}

impl Agreed {
    fn compare(&mut self, disk: &Disk, context: impl Fn() -> String) {
        let by_page = database::read(&files(disk));
        match (&by_page, by_engine(disk)) {
            (Ok(database), Ok(found)) => {
                assert!(database.state(u64::MAX) == found, "{}: by the page it holds something else", context());
                self.sound += 1;
                self.torn += usize::from(database.logs.iter().any(|(_, log)| log.is_torn));
                self.recycled += usize::from(database.logs.iter().any(|(_, log)| log.has_previous));
            }
            (Err(_), Err(_)) => self.damaged += 1,
            (Ok(_), Err(error)) => panic!("{}: sound by the page, the engine says {error}", context()),
            (Err(what), Ok(_)) => panic!("{}: {what} by the page, the engine finds nothing", context()),
        }
    }

    /// Each bit of a byte in turn, and each fifth length.
    fn compare_damaged(&mut self, disk: &Disk) {
        for (name, bytes) in files(disk).iter().filter(|(name, _)| *name != "LOCK") {
            let path = PathBuf::from(DIR).join(name);
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                self.compare(&damaged(disk, &path, &flipped), || format!("{name}, flipped at {at}"));
                if at.is_multiple_of(5) {
                    self.compare(&damaged(disk, &path, &bytes[..at]), || format!("{name}, cut at {at}"));
                }
            }
        }
    }
}

#[test]
fn after_a_kill_or_a_power_cut_at_any_operation_the_page_and_the_engine_find_the_same() {
    // Catches a rule of where a log or a manifest ends that the page leaves out.
    let mem = MemFs::default();
    let states = states_during(&mem, || {
        let db = builder(&mem).open().unwrap();
        let mut map = Map::new();
        write(&db, 0, 30, &mut map);
        // So there is a file for the next log, however slow the worker is.
        flush_to_the_end(&db);
        write(&db, 30, 60, &mut map);
        db.close().unwrap();
    });
    let mut agreed = Agreed::default();
    for (at, (operation, disk)) in states.enumerate() {
        let cut = (0..2).map(|draw| disk.after_power_cut(at as u64 * 2 + draw).0);
        for (way, disk) in std::iter::once(disk.clone()).chain(cut).enumerate() {
            // Before there is a pointer there is no database.
            if disk.read(&Path::new(DIR).join("CURRENT")).is_ok() {
                agreed.compare(&disk, || format!("operation {at}, {operation}, way {way}"));
            }
        }
    }
    println!("{agreed:?}");
    assert!(agreed.sound > 200 && agreed.damaged == 0, "{} sound, {} not", agreed.sound, agreed.damaged);
    assert!(agreed.torn > 0 && agreed.recycled > 0, "{agreed:?}");
}

/// A merge that took a piece and was killed: a manifest with narrowed tables and a compact pointer.
fn in_pieces() -> Disk {
    let mem = MemFs::default();
    let builder = builder(&mem).l0_trigger(100).table_file_bytes(1024).max_compaction_bytes(1024);
    let db = builder.compression(Compression::None).open().unwrap();
    for table in 0..2u32 {
        (0..40).for_each(|n: u32| db.insert(format!("key{n:02}"), [table as u8; 40]).unwrap());
        flush_to_the_end(&db);
    }
    let is_in_pieces = |disk: &Disk| {
        let manifest = database::read(&files(disk)).map(|database| database.manifest);
        manifest.is_ok_and(|it| it.tables.iter().any(|table| table.narrowed) && !it.pointers.is_empty())
    };
    let mut states = states_during(&mem, || db.compact_range(..).unwrap());
    states.find(|(_, disk)| is_in_pieces(disk)).expect("no merge took a piece").1
}

/// Two tables, a manifest with an edit for each, and a log that records a sync, goes on after it, and has frames of a previous
/// log behind its own.
fn small() -> Disk {
    let mem = MemFs::default();
    let db = builder(&mem).l0_trigger(100).open().unwrap();
    for n in 1..=24u32 {
        let mut batch = WriteBatch::new();
        // Longer ones first, so that frames of the first log are left behind those of the third.
        let value = format!("value {n} ").repeat(if n <= 12 { 20 } else { 1 });
        batch.insert(format!("key{}", n % 7), value).unwrap();
        match n % 6 {
            0 => batch.insert("long", format!("{n} and ").repeat(100)).unwrap(),
            3 => batch.remove(format!("key{}", (n + 3) % 7)).unwrap(),
            _ => {}
        }
        // The first log was synced, so that the third takes over its file.
        db.write(batch, if n == 11 || n == 21 { Durability::Synced } else { Durability::Buffered }).unwrap();
        if n == 12 || n == 16 {
            flush_to_the_end(&db);
        }
    }
    drop(db);
    mem.disk()
}

fn damaged(disk: &Disk, path: &Path, bytes: &[u8]) -> Disk {
    let mem = MemFs::on(disk.clone());
    let file = mem.open_write(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.truncate(bytes.len() as u64).unwrap();
    mem.disk()
}

#[test]
fn of_damage_to_any_byte_and_of_any_cut_the_page_and_the_engine_say_the_same() {
    // Catches a check that the page asks for and the engine leaves out, or the other way round.
    let mut agreed = Agreed::default();
    for disk in [small(), in_pieces()] {
        agreed.compare_damaged(&disk);
    }
    println!("{agreed:?}");
    assert!(agreed.sound > 0 && agreed.damaged > 0, "{} sound, {} not", agreed.sound, agreed.damaged);
    assert!(agreed.torn > 0 && agreed.recycled > 0, "{agreed:?}");
}
