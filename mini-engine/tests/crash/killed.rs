//! A process that is killed again and again: in the middle of a record of the manifest, during recovery, anywhere. Its leftover files stay
//! small, and no acknowledged write is lost.

use crate::prelude::*;

const ROUNDS: usize = 150;
const WRITES: u64 = 60;
const KEYS: u64 = 40;
const MEMTABLE_BYTES: usize = 4096;
/// The most torn tails that may be set aside, and the most tables; each has at most twice the size of a memtable.
const MOST_ASIDE: usize = 16;

/// The place of a kill: after `steps` steps, or, if `tears`, in the middle of the last one, which writes a record of a manifest.
struct Kill {
    steps: usize,
    tears: bool,
}

fn appends_to_manifest(step: &Step) -> bool {
    let is_append = |operation: &Operation| {
        let words = operation.to_string();
        operation.name().starts_with("MANIFEST") && words.starts_with("write") && !words.contains("bytes at 0 of")
    };
    matches!(step, Step::Operation(operation) if is_append(operation))
}

impl Kill {
    fn draw(record: &[Step], random: &mut Random) -> Kill {
        let appends: Vec<usize> = (0..record.len()).filter(|&at| appends_to_manifest(&record[at])).collect();
        match random.below(3) {
            0 if !appends.is_empty() => Kill { steps: appends[random.index(appends.len())] + 1, tears: true },
            // During recovery.
            1 => Kill { steps: random.index(record.len().min(40)), tears: false },
            _ => Kill { steps: random.index(record.len()), tears: false },
        }
    }

    /// The remaining disk, and the number of acknowledged writes.
    fn strike(&self, mut disk: Disk, record: &[Step]) -> (Disk, usize) {
        let (mut acknowledged, mut manifest) = (0, "");
        for step in &record[..self.steps] {
            match step {
                Step::Operation(operation) => {
                    manifest = operation.name();
                    disk.apply(operation).expect("possible");
                }
                Step::Note(_) => acknowledged += 1,
            }
        }
        if !self.tears {
            return (disk, acknowledged);
        }
        let path = Path::new(DIR).join(manifest);
        let (mem, len) = (MemFs::on(disk.clone()), disk.read(&path).unwrap().len());
        mem.open_write(&path).unwrap().truncate(len as u64 - 1).unwrap();
        (mem.disk(), acknowledged)
    }
}

#[test]
fn files_stay_few_however_often_the_process_is_killed() {
    // Catches tables that stay for ever after a kill in the middle of a record of the manifest, and tables that are removed although no other
    // file has their entries.
    let mut random = Random(crate::points::seed());
    let (mut disk, mut before, mut torn, mut removed) = (Disk::default(), Map::new(), 0, 0);
    for round in 0..ROUNDS {
        let mem = MemFs::on(disk.clone());
        mem.record();
        let policy = POLICIES[round % POLICIES.len()];
        let builder = Db::builder(DIR).memtable_bytes(MEMTABLE_BYTES).table_file_bytes(2048).compaction(policy);
        let db = builder.l0_trigger(1).file_system(Arc::new(mem.clone())).open().unwrap();
        torn += usize::from(db.recovery().manifest_tail_dropped);
        removed += db.recovery().orphans_removed;
        let found = entries(&db);
        let aside = db.set_aside().unwrap();
        let bytes: u64 = aside.iter().map(|aside| aside.bytes).sum();
        let tails = aside.iter().filter(|aside| aside.file.to_string_lossy().ends_with(".tail.aside"));
        let tails = tails.count();
        assert!(tails.max(aside.len() - tails) <= MOST_ASIDE, "round {round}: {aside:?}");
        assert!(bytes <= (2 * MOST_ASIDE * 2 * MEMTABLE_BYTES) as u64, "round {round}: {bytes} bytes in {aside:?}");
        assert_eq!(found, before, "round {round}");
        let mut states = vec![found.clone()];
        for _ in 0..WRITES {
            let (key, value) = (random.below(KEYS).to_be_bytes(), random.next().to_be_bytes().repeat(30));
            db.insert(key, &value).unwrap();
            mem.note(0);
            let mut state = states.last().unwrap().clone();
            state.insert(key.to_vec(), value);
            states.push(state);
        }
        drop(db);
        let record = mem.take_record();
        let (left, acknowledged) = Kill::draw(&record, &mut random).strike(disk, &record);
        disk = left;
        // A write that had begun at the kill may be stored.
        let db = Db::builder(DIR).read_only(true).file_system(Arc::new(MemFs::on(disk.clone()))).open();
        before = db.map_or_else(|_| Map::new(), |db| entries(&db));
        let may_be = &states[acknowledged..states.len().min(acknowledged + 2)];
        assert!(may_be.contains(&before), "round {round}: {} keys, {acknowledged} acknowledged", before.len());
    }
    assert!(torn > ROUNDS / 6 && removed > ROUNDS, "{torn} torn manifests, {removed} files removed");
}
