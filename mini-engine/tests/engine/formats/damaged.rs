//! The reader made from the page and the engine agree on truncated or damaged databases.

use crate::formats::database::{self, Files, Map};
use crate::formats::workload::write;
use crate::support::*;
use proof::damage::{Damage, files as files_with_data, is_typed};
use proof::environment::step;

fn builder(mem: &MemFs) -> Builder {
    let builder = in_memory(mem).block_bytes(512).partition_bytes(128).l0_trigger(2).compression(Compression::Lz4);
    builder.log_compression(true).memtable_bytes(16 << 10).immutable_memtables(4)
}

fn files(disk: &Disk) -> Files {
    let names = MemFs::on(disk.clone()).read_dir(Path::new(DB)).unwrap_or_default();
    let file = |name: std::ffi::OsString| {
        let bytes = disk.read(&Path::new(DB).join(&name)).unwrap().to_vec();
        (name.into_string().unwrap(), bytes)
    };
    names.into_iter().map(file).collect()
}

/// The contents that the engine finds and whether a log was torn, or the first damage that it reports. Checks that, under any damage, each
/// key has its value in `sound`, or cannot be read.
fn by_engine(builder: &Builder, sound: &Map) -> Result<(Map, bool), Error> {
    let db = builder.clone().create_if_missing(false).open()?;
    let is_right = |(key, value): (&Vec<u8>, &Vec<u8>)| match db.get(key) {
        Ok(found) => found.as_deref() == Some(value),
        Err(error) => is_typed(&error, DB),
    };
    assert!(sound.iter().all(is_right), "a wrong value");
    let entry = |(key, value): (Slice, Slice)| (key.to_vec(), value.to_vec());
    let scanned = db.iter().map(|read| read.map(entry)).collect::<Result<Map, _>>();
    match (scanned, db.verify().unwrap().problems.into_iter().next()) {
        (Ok(found), None) => {
            assert!(found.iter().all(|(key, value)| db.get(key).unwrap().as_deref() == Some(value)));
            Ok((found, db.recovery().torn.is_some()))
        }
        (Err(error), None) => panic!("a scan meets damage that a verification does not find: {error}"),
        (_, Some(problem)) => Err(problem),
    }
}

/// The number of cases in which both found everything sound, and in which both found damage.
#[derive(Debug, Default)]
struct Agreed {
    sound: usize,
    damaged: usize,
    /// The number of cases with a torn log.
    torn: usize,
    /// Batches that were compressed.
    compressed: usize,
    /// The number of cases in which a log had frames of a previous log behind its own.
    recycled: usize,
}

impl Agreed {
    fn compare(&mut self, disk: &Disk, builder: &Builder, sound: &Map, context: impl Fn() -> String) {
        let by_page = database::read(&files(disk));
        match (&by_page, by_engine(builder, sound)) {
            (Ok(database), Ok((found, is_torn))) => {
                assert!(database.state(u64::MAX) == found, "{}: by the page it holds something else", context());
                let torn = database.logs.iter().any(|(_, log)| log.is_torn);
                // The engine also reports a log as torn if a later log does not continue it.
                assert!(is_torn || !torn, "{}: a log that is torn by the page", context());
                self.sound += 1;
                self.torn += usize::from(torn);
                self.compressed += database.logs.iter().map(|(_, log)| log.compressed).sum::<usize>();
                self.recycled += usize::from(database.logs.iter().any(|(_, log)| log.has_previous));
            }
            (Err(_), Err(error)) => {
                assert!(is_typed(&error, DB), "{}: {error}", context());
                self.damaged += 1;
            }
            (Ok(_), Err(error)) => panic!("{}: sound by the page, the engine says {error}", context()),
            (Err(what), Ok(_)) => panic!("{}: {what} by the page, the engine finds nothing", context()),
        }
    }

    /// Compares with each bit flipped, with every fifth length, and with each 512 bytes replaced by zeros. Opens read-only, because that is
    /// faster and shows the same.
    fn compare_damaged(&mut self, disk: &Disk) {
        let (all, _) = by_engine(&builder(&MemFs::on(disk.clone())), &Map::new()).unwrap();
        for (path, len) in files_with_data(disk, DB) {
            // A truncated log or manifest leads to an older state.
            let is_table = path.extension().is_some_and(|kind| kind == "sst");
            let sound = if is_table { all.clone() } else { Map::new() };
            let damages = (0..len).flat_map(|at| {
                let flip = at.is_multiple_of(step(3)).then_some(Damage::Flip(at));
                let zeros = at.is_multiple_of(512).then_some(Damage::Zeros(at));
                [flip, zeros, at.is_multiple_of(5).then_some(Damage::Cut(at))].into_iter().flatten()
            });
            for damage in damages {
                let mem = damage.to(disk, &path);
                let reader = builder(&mem).read_only(true);
                self.compare(&mem.disk(), &reader, &sound, || format!("{}, {damage:?}", path.display()));
            }
        }
    }
}

#[test]
fn after_a_kill_or_a_power_cut_at_any_operation_the_page_and_the_engine_find_the_same() {
    // Catches a rule for the end of a log or a manifest that the page leaves out.
    let mem = MemFs::default();
    let states = states_during(&mem, || {
        let db = builder(&mem).open().unwrap();
        let mut map = Map::new();
        write(&db, 0, 30, &mut map);
        // Then there is a file for the next log, even with a slow worker.
        flush_to_the_end(&db);
        write(&db, 30, 60, &mut map);
        db.close().unwrap();
    });
    let mut agreed = Agreed::default();
    for (at, (operation, disk)) in states.enumerate() {
        let cut = (0..2).map(|draw| disk.after_power_cut(at as u64 * 2 + draw).0);
        for (way, disk) in std::iter::once(disk.clone()).chain(cut).enumerate() {
            // Without the pointer file there is no database yet.
            if disk.read(&Path::new(DB).join("CURRENT")).is_ok() {
                let writer = builder(&MemFs::on(disk.clone()));
                agreed.compare(&disk, &writer, &Map::new(), || format!("operation {at}, {operation}, way {way}"));
            }
        }
    }
    println!("{agreed:?}");
    assert!(agreed.sound > 200 && agreed.damaged == 0, "{} sound, {} not", agreed.sound, agreed.damaged);
    assert!(agreed.torn > 0 && agreed.recycled > 0 && agreed.compressed > 0, "{agreed:?}");
}

/// A compaction that was killed after one piece: a manifest with narrowed tables and a compact pointer.
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
    states.find(|(_, disk)| is_in_pieces(disk)).expect("no compaction took a piece").1
}

/// A database with two tables, a manifest with an edit for each, and a log that records a sync, goes on after it, and has
/// frames of a previous log behind its own.
fn small() -> Disk {
    let mem = MemFs::default();
    let db = builder(&mem).l0_trigger(100).open().unwrap();
    for n in 1..=24u32 {
        let mut batch = WriteBatch::new();
        // Longer values come first, so that frames of the first log are left behind those of the third.
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
    // The disk of a killed process: a close would cut off the frames of the previous log.
    mem.disk()
}

#[test]
fn of_damage_to_any_byte_and_of_any_cut_the_page_and_the_engine_say_the_same() {
    // Catches a check that the page requires but the engine leaves out, and one that the engine makes but the page leaves out.
    let mut agreed = Agreed::default();
    for disk in [small(), in_pieces()] {
        agreed.compare_damaged(&disk);
    }
    println!("{agreed:?}");
    assert!(agreed.sound > 0 && agreed.damaged > 0, "{} sound, {} not", agreed.sound, agreed.damaged);
    assert!(agreed.torn > 0 && agreed.recycled > 0, "{agreed:?}");
}
