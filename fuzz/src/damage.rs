//! Damages bytes in the files of a small database, and corrects the checksums over them or not. No bytes may cause a panic, and every failure
//! is a typed error. Without right checksums, no wrong data is read.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use mini_engine::dump::{self, PartKind};
use mini_engine::fs::FileSystem;
use mini_engine::{Builder, Compression, Db, Durability, Error, WriteBatch};
use proof::disk::{Disk, MemFs};

use crate::Met;
use crate::models::input::Input;
use crate::seal::{FileKind, Part, places, seal};

const DIR: &str = "/db";
const KEYS: usize = 9;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// An undamaged database and every state of its history.
struct Base {
    compression: Compression,
    disk: Disk,
    states: Vec<Map>,
    /// One for each of [`Part::ALL`].
    targets: Vec<Target>,
}

/// An undamaged file, and the part of it to damage.
struct Target {
    path: PathBuf,
    number: u64,
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
    /// The parts of the sound file, as text.
    parts: Vec<(PartKind, String)>,
}

/// A database with a damaged file.
struct Damage {
    base: &'static Base,
    target: &'static Target,
    mem: MemFs,
    /// The damaged file.
    bytes: Vec<u8>,
    /// Where it was damaged.
    place: Range<usize>,
    /// Whether the checksums match the damaged bytes.
    sealed: bool,
    met: Met,
}

/// Replay of a damaged log.
pub fn log_replay(input: &[u8]) -> Met {
    damaged(Part::Log, input)
}

/// A damaged data block of a table.
pub fn table_block(input: &[u8]) -> Met {
    damaged(Part::Block, input)
}

/// A damaged partition of a table.
pub fn table_partition(input: &[u8]) -> Met {
    damaged(Part::Partition, input)
}

/// A damaged root of a table.
pub fn table_root(input: &[u8]) -> Met {
    damaged(Part::Root, input)
}

/// Damaged properties, or a damaged footer, of a table.
pub fn table_footer(input: &[u8]) -> Met {
    damaged(if input.first().is_some_and(|byte| byte % 4 == 3) { Part::Properties } else { Part::Footer }, input)
}

/// A damaged manifest.
pub fn manifest(input: &[u8]) -> Met {
    damaged(Part::Manifest, input)
}

fn builder(mem: &MemFs, compression: Compression) -> Builder {
    let builder =
        Db::builder(DIR).memtable_bytes(64 << 10).block_bytes(512).partition_bytes(128).l0_trigger(100).cache_bytes(0);
    builder.compression(compression).file_system(Arc::new(mem.clone()))
}

fn open(mem: &MemFs, compression: Compression) -> Result<Db, Error> {
    builder(mem, compression).open()
}

/// The result of a read of a key: its value, or the name of the error.
type Shown = Result<Option<Vec<u8>>, &'static str>;

/// The result of a read of each key by a read-only open; `None` if the open is refused.
fn look(mem: &MemFs, compression: Compression) -> Option<Vec<Shown>> {
    mem.record();
    let shown = match builder(mem, compression).read_only(true).open() {
        Ok(db) => Some((0..KEYS).map(|n| read(&db, n)).collect()),
        Err(error) => {
            // Panics at an error that damage must not cause.
            refusal(&error);
            None
        }
    };
    assert!(mem.take_record().is_empty(), "a read-only open wrote");
    shown
}

fn read(db: &Db, n: usize) -> Shown {
    let value = db.get(key(n)).map_err(|error| refusal(&error))?;
    Ok(value.map(|value| value.to_vec()))
}

fn key(n: usize) -> Vec<u8> {
    format!("key{n}").into_bytes()
}

/// A database with two tables, a manifest with an edit for each, and a later log in the reused file of a previous log.
fn base(compression: Compression) -> Base {
    let mem = MemFs::default();
    let db = open(&mem, compression).expect("a sound disk");
    let mut states = vec![Map::new()];
    for n in 0..36 {
        let mut state = states[n].clone();
        let mut batch = WriteBatch::new();
        let (set, value) = (key(n % KEYS), vec![b'a' + n as u8 % 26; 10 + 7 * (n % 9)]);
        batch.insert(&set, &value).expect("within limits");
        state.insert(set, value);
        if n % 4 == 0 {
            batch.remove(key((n + 2) % KEYS)).expect("within limits");
            state.remove(&key((n + 2) % KEYS));
        }
        // The engine reuses only files of synced logs.
        let durability = if n == 13 { Durability::Synced } else { Durability::Buffered };
        db.write(batch, durability).expect("a sound disk");
        states.push(state);
        if n == 13 || n == 27 {
            db.flush().expect("a sound disk");
        }
        // The worker keeps the file after the flush.
        while n == 13 && !mem.exists(&Path::new(DIR).join("SPARE")).expect("a sound disk") {
            std::thread::yield_now();
        }
    }
    drop(db);
    let targets: Vec<Target> = Part::ALL.map(|part| target(part, &mem)).into();
    assert_ne!(targets[Part::Log as usize].bytes[32..40], [0; 8], "the log has a file of its own");
    Base { compression, disk: mem.disk(), states, targets }
}

fn bases() -> &'static [Base] {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    BASES.get_or_init(|| [Compression::None, Compression::Lz4, Compression::Zstd { level: 3 }].map(base).into())
}

fn target(part: Part, mem: &MemFs) -> Target {
    let names = mem.read_dir(Path::new(DIR)).expect("a directory");
    let wanted = |name: &&std::ffi::OsString| {
        let name = name.to_string_lossy();
        match part.file() {
            FileKind::Log => name.ends_with(".log"),
            FileKind::Manifest => name.starts_with("MANIFEST"),
            FileKind::Table => name.ends_with(".sst"),
        }
    };
    let name = names.iter().rfind(wanted).expect("each kind is there").to_string_lossy().into_owned();
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    let path = PathBuf::from(DIR).join(name);
    let bytes = mem.disk().read(&path).expect("there").to_vec();
    let mut parts = Vec::new();
    dump_file(part, mem, &path, |part| parts.push((part.kind, part.to_string()))).expect("a sound file");
    Target { number: digits.parse().expect("a number"), places: places(part, &bytes), path, bytes, parts }
}

fn dump_file(part: Part, mem: &MemFs, path: &Path, mut visit: impl FnMut(dump::Part<'_>)) -> Result<(), Error> {
    let parts = &mut |part: dump::Part<'_>| {
        visit(part);
        ControlFlow::Continue(())
    };
    let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
    match part.file() {
        FileKind::Log => dump::log(&fs, path, parts),
        FileKind::Manifest => dump::manifest(&fs, path, parts),
        FileKind::Table => dump::table(&fs, path, parts),
    }
}

/// Damages `part` of a database as `input` directs.
fn damage(part: Part, input: &[u8]) -> Damage {
    let mut input = Input::new(input);
    let sealed = !input.byte().is_multiple_of(4);
    let base = &bases()[usize::from(input.byte()) % bases().len()];
    let target = &base.targets[part as usize];
    let mut bytes = target.bytes.clone();
    let place = target.places[usize::from(input.byte()) % target.places.len()].clone();
    let mut met = Met::new();
    while !input.is_empty() {
        let at = place.start + (usize::from(input.byte()) << 8 | usize::from(input.byte())) % place.len();
        met.insert(change(&mut bytes[..place.end], at, &mut input).to_owned());
    }
    if sealed {
        seal(part, &mut bytes, place.clone(), target.number);
    }
    let mem = MemFs::on(base.disk.clone());
    let file = mem.open_write(&target.path).expect("there");
    file.write_all_at(&bytes, 0).expect("room");
    Damage { base, target, mem, bytes, place, sealed, met }
}

/// Damages `part` of a database as `input` directs, and reads all of it.
fn damaged(part: Part, input: &[u8]) -> Met {
    let Damage { base, mem, bytes, place, sealed, mut met, .. } = damage(part, input);
    // A last frame of zeros looks like the end of the log: no reader can detect the difference.
    let is_gone = part == Part::Log && bytes[place].iter().all(|&byte| byte == 0);
    let outcome = read_all(&mem, base, (!sealed && !is_gone).then_some(part));
    met.insert(format!("{}: {outcome}", if sealed { "sealed" } else { "not sealed" }));
    met
}

/// The most parts that a dump may have: more than any of these files can hold, even if a block is compressed well.
const MOST_PARTS: usize = 1 << 20;

/// A damaged file of any kind, decoded by itself. Without a database around it, a run can try many more files.
pub fn file_dump(input: &[u8]) -> Met {
    let (part, rest) = input.split_first().unwrap_or((&0, &[]));
    let part = Part::ALL[usize::from(*part) % Part::ALL.len()];
    let Damage { target, mem, bytes, place, sealed, mut met, .. } = damage(part, rest);
    let (mut count, mut parts) = (0, Vec::new());
    let told = dump_file(part, &mem, &target.path, |part| {
        count += 1;
        if !sealed {
            parts.push((part.kind, part.to_string()));
        }
    });
    assert!(count < MOST_PARTS, "{count} parts of {} bytes", bytes.len());
    if !sealed && bytes != target.bytes {
        let damaged = &bytes[place];
        assert!(is_found_out(part, &told, damaged, &parts, &target.parts), "{part:?} says after damage: {parts:#?}");
    }
    let outcome = told.as_ref().map_or_else(refusal, |()| "told");
    met.insert(format!("{part:?}, {}: {outcome}", if sealed { "sealed" } else { "not sealed" }));
    met
}

/// Whether a dump of a file with wrong checksums reports them, and shows only frames of a log or manifest that were written. The only exception is
/// a frame `damaged` to zeros: it looks like the end of the log.
fn is_found_out(
    part: Part,
    told: &Result<(), Error>,
    damaged: &[u8],
    parts: &[(PartKind, String)],
    sound: &[(PartKind, String)],
) -> bool {
    let is_written =
        |(kind, _): &&(PartKind, String)| matches!(kind, PartKind::Frame | PartKind::Entry | PartKind::Edit);
    let before = parts.iter().take_while(is_written).count();
    let is_torn = || parts.get(before).is_some_and(|(kind, _)| *kind == PartKind::Torn);
    // A dump describes a frame behind damage with another text.
    let text = |(_, text): &(PartKind, String)| text.replace("whole frame behind the tear", "frame");
    let are_sound = sound.starts_with(&parts[..before])
        && parts.iter().filter(is_written).all(|shown| sound.iter().any(|(_, sound)| *sound == text(shown)));
    match part.file() {
        FileKind::Log => are_sound && (told.is_err() || is_torn() || damaged.iter().all(|&byte| byte == 0)),
        FileKind::Manifest => are_sound && (told.is_err() || is_torn()),
        FileKind::Table => told.is_err(),
    }
}

/// Makes one change at `at`.
fn change(bytes: &mut [u8], at: usize, input: &mut Input<'_>) -> &'static str {
    match input.byte() % 5 {
        0 => {
            bytes[at] ^= 1 << (input.byte() % 8);
            "flip"
        }
        1 => {
            bytes[at] = input.byte();
            "set"
        }
        2 => {
            bytes[at] = input.choose(&[0, 1, 0x7f, 0x80, 0xff]);
            "set to an end"
        }
        3 => {
            let end = bytes.len().min(at + 1 + usize::from(input.byte() % 12));
            bytes[at..end].fill(0);
            "zeros"
        }
        _ => {
            let from = usize::from(input.byte()) % bytes.len();
            let len = (usize::from(input.byte()) % 24).min(bytes.len() - at.max(from));
            bytes.copy_within(from..from + len, at);
            "copy"
        }
    }
}

/// Reads everything and returns the outcome. `unsealed` is the part that has wrong checksums.
fn read_all(mem: &MemFs, base: &Base, unsealed: Option<Part>) -> &'static str {
    salvage(mem, base, unsealed.is_some());
    let shown = look(mem, base.compression);
    let db = match open(mem, base.compression) {
        Ok(db) => db,
        Err(error) => return refusal(&error),
    };
    assert_eq!(shown, Some((0..KEYS).map(|n| read(&db, n)).collect()), "a read-only open shows something else");
    let problems = db.verify().expect("open").problems;
    assert!(problems.iter().all(|problem| !refusal(problem).is_empty()));
    let mut found = Map::new();
    let mut failed = None;
    for entry in db.iter() {
        match entry {
            Ok((key, value)) => drop(found.insert(key.to_vec(), value.to_vec())),
            Err(error) => failed = Some(refusal(&error)),
        }
    }
    db.iter().rev().filter_map(Result::err).for_each(|error| failed = Some(refusal(&error)));
    let mut read = BTreeMap::new();
    for key in (0..KEYS).map(key) {
        match db.get(&key) {
            Ok(value) => drop(read.insert(key, value.map(|value| value.to_vec()))),
            Err(error) => failed = Some(refusal(&error)),
        }
    }
    let newest = base.states.last().expect("the state of an empty database, if no other");
    let whole = *newest == found;
    if unsealed.is_some() {
        // A log may end early, and so may a scan after a failed read. The entries read before that are right nevertheless.
        let truth = if failed.is_some() { newest } else { &found };
        assert!(found.iter().all(|(key, value)| truth.get(key) == Some(value)), "{found:?}");
        assert!(read.iter().all(|(key, value)| truth.get(key) == value.as_ref()), "{read:?}");
    }
    if unsealed.is_some() && failed.is_none() {
        let prefix = unsealed == Some(Part::Log) && base.states.contains(&found);
        let reported = whole || !db.recovery().findings().is_empty();
        assert!((whole || prefix) && reported, "wrong, and nothing says so: {:?}", db.recovery());
    }
    match (failed, problems.is_empty()) {
        (Some(_), false) => "reads fail, verify says so",
        (Some(_), true) => panic!("reads fail with {failed:?}, and verify finds nothing"),
        (None, false) => "verify finds something",
        (None, true) if whole => "harmless",
        (None, true) => "other contents",
    }
}

/// Checks that all salvaged data was once written, unless the damaged data has valid checksums.
fn salvage(mem: &MemFs, base: &Base, is_unsealed: bool) {
    let builder = Db::builder(DIR).file_system(Arc::new(mem.clone()));
    let entries = match builder.salvage().and_then(|salvage| salvage.range(..)) {
        Ok(entries) => entries,
        Err(error) => {
            refusal(&error);
            return;
        }
    };
    for entry in entries {
        let (key, value) = match entry {
            Ok(entry) => entry,
            Err(error) => {
                refusal(&error);
                return;
            }
        };
        let was_written = |state: &Map| state.get(&*key).is_some_and(|was| *was == *value);
        assert!(!is_unsealed || base.states.iter().any(was_written), "{key:?} = {value:?} was never written");
    }
}

/// The name of a typed error of a file.
fn refusal(error: &Error) -> &'static str {
    match error {
        Error::Corruption { file, .. } if file.starts_with(DIR) => "corruption",
        Error::UnsupportedVersion { file, .. } if file.starts_with(DIR) => "unsupported version",
        Error::Unsupported { file, .. } if file.starts_with(DIR) => "unsupported",
        other => panic!("damage is answered by {other}"),
    }
}
