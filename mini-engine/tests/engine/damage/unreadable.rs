//! Logs that the device cannot read completely.

use crate::support::*;

const SECTOR: u64 = 512;

/// A log of a hundred batches.
fn filled(mem: &MemFs) -> PathBuf {
    let db = in_memory(mem).open().unwrap();
    (0..100).for_each(|n| db.insert(format!("key{n:02}"), "v".repeat(100)).unwrap());
    db.persist(Durability::Synced).unwrap();
    drop(db);
    paths_on(mem, ".log").remove(0)
}

#[test]
fn the_place_that_cannot_be_read_is_told_and_costs_what_is_behind_it_only() {
    // Catches a bad sector of a log that makes earlier batches unreadable, because they were read in one step with it. Also catches an error that
    // names offset 0 instead of the damage.
    let mem = MemFs::default();
    let log = filled(&mem);
    let len = mem.open(&log).unwrap().len().unwrap();
    let mut kept = Vec::new();
    for bad in (0..len).step_by(SECTOR as usize) {
        let faults = FaultFs::new(Arc::new(MemFs::on(mem.disk())));
        faults.spoil(".log", bad..bad + SECTOR);
        let builder = Db::builder(DB).file_system(Arc::new(faults));
        let error = builder.clone().open().unwrap_err();
        assert!(
            matches!(error, Error::Io { .. }) && error.to_string().contains(&format!("at offset {bad}: ")),
            "{error}"
        );
        let report = builder.salvage().unwrap().write_to("/new").unwrap();
        let [lost] = &report.lost_writes[..] else { panic!("{report}") };
        assert!(!lost.may_be_torn && report.damage.len() == 1, "{report}");
        assert!(report.damage[0].to_string().contains(&format!("at offset {bad}: ")), "{report}");
        // All whole batches before the bad sector are recovered.
        assert!(
            bad == 0 || lost.bytes.start <= bad && bad < lost.bytes.start + 256 && lost.bytes.end == len,
            "{report}"
        );
        kept.push(report.keys);
    }
    assert!(kept.is_sorted() && kept[0] == 0 && kept[1] > 0 && kept[kept.len() - 1] > 90, "{kept:?}");
}
