//! Damage to the manifest edits with the names of keyspaces: a repair keeps all entries, and keeps keyspaces separate, whichever byte is damaged.

use crate::support::*;
use proof::environment::step;

const NEW: &str = "/new";

/// The keyspaces at the end, by number; `gone`, which was dropped, had number 3.
const NAMES: [(u32, &str); 4] = [(1, "users"), (2, "emails"), (4, "logs"), (5, "sessions")];

/// The contents of each keyspace by its name.
type Contents = BTreeMap<String, Map>;

/// Each keyspace has one entry, its own name. Each open begins a manifest whose first edit has all keyspaces so far; the last manifest also has an
/// edit for each later one, and for the drop.
fn database() -> Disk {
    let mem = MemFs::default();
    let session = |names: &[&str]| {
        let db = in_memory(&mem).open().unwrap();
        db.insert("default", "default").unwrap();
        for name in names {
            let options = match *name {
                "logs" => KeyspaceOptions::default().compression(Compression::Zstd { level: 3 }),
                "sessions" => KeyspaceOptions::default().expire_after(Duration::from_secs(3600)),
                _ => KeyspaceOptions::default(),
            };
            db.keyspace_with(name, options).unwrap().insert_with_expiry("name", name, None).unwrap();
        }
        db
    };
    drop(session(&["users"]));
    let db = session(&["emails", "gone", "logs", "sessions"]);
    db.drop_keyspace("gone").unwrap();
    db.close().unwrap();
    mem.disk()
}

/// The contents of a database that repair makes from the damaged one.
fn repaired(mem: MemFs) -> Result<Contents, Error> {
    let builder = |dir: &str| Db::builder(dir).file_system(Arc::new(mem.clone()));
    let report = builder(DB).salvage()?.write_to(NEW)?;
    let db = builder(NEW).create_if_missing(false).open()?;
    let keyspaces = db.keyspaces().into_iter().map(|name| (name.clone(), pairs(db.keyspace(&name).unwrap().iter())));
    let default = (String::new(), pairs(db.iter()));
    let contents = keyspaces.chain([default]).map(|(name, entries)| (name, entries.into_iter().collect()));
    let contents: Contents = contents.collect();
    assert_eq!(contents.values().map(Map::len).sum::<usize>() as u64, report.keys, "{report}");
    Ok(contents)
}

/// The numbers of the keyspaces that have lost their names; checks the contents.
fn check(contents: &Contents) -> Vec<u32> {
    let entry = |key: &str, value: &str| Map::from([(key.into(), value.into())]);
    assert_eq!(contents[""], entry("default", "default"));
    let mut renamed = Vec::new();
    for (number, name) in NAMES {
        let made = format!("recovered-{number}");
        let found: Vec<&String> =
            contents.iter().filter(|(_, entries)| **entries == entry("name", name)).map(|(name, _)| name).collect();
        assert!(found == [name] || found == [&made], "{name} is found as {found:?}");
        if found == [&made] {
            renamed.push(number);
        }
    }
    // If the drop is lost, the dropped keyspace may come back, but no other.
    let others = contents
        .keys()
        .filter(|name| !NAMES.iter().any(|(number, known)| name == known || **name == format!("recovered-{number}")));
    assert!(others.filter(|name| !name.is_empty()).all(|name| name == "gone" || name == "recovered-3"), "{contents:?}");
    renamed
}

#[test]
fn a_repair_keeps_the_entries_of_all_keyspaces_whatever_byte_of_a_manifest_is_damaged() {
    // Catches a repair that fails because a keyspace with a lost name has a smaller number than one with a known name, and entries that get into
    // another keyspace.
    let disk = database();
    let path = paths_on(&MemFs::on(disk.clone()), "MANIFEST").remove(0);
    let bytes = disk.read(&path).unwrap().to_vec();
    let place = |name: &str| bytes.windows(name.len()).position(|window| window == name.as_bytes()).unwrap();
    let bits = (0..bytes.len()).map(|at| (at, 1 << (at % 8)));
    // Damages a letter of a name, the length before it, and the checksum of an edit.
    let places = [place("users"), place("users") - 1, place("emails"), place("emails") - 1, place("gone") - 4];
    let patterns = places.into_iter().flat_map(|at| (1..=u8::MAX).step_by(step(17)).map(move |pattern| (at, pattern)));
    let mut lost = BTreeMap::<Vec<u32>, usize>::new();
    for (at, pattern) in bits.chain(patterns) {
        let mem = MemFs::on(disk.clone());
        mem.open_write(&path).unwrap().write_all_at(&[bytes[at] ^ pattern], at as u64).unwrap();
        let contents = repaired(mem).unwrap_or_else(|error| panic!("byte {at} with {pattern:#x}: {error}"));
        *lost.entry(check(&contents)).or_default() += 1;
    }
    // Each edit was damaged, including the first one.
    for number in [vec![1], vec![2], vec![4], vec![5]] {
        assert!(lost.get(&number).is_some_and(|times| *times > 8), "{lost:?}");
    }
}
