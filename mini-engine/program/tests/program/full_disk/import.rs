//! `import` on a full file system: it reports the error, the number of imported lines, and how to continue.

use super::{DISK, ENOUGH, key, value};
use crate::support::Room;
use crate::support::mount::Mount;

#[test]
fn an_import_that_a_full_disk_stops_says_how_many_lines_are_in_and_how_to_go_on() {
    // Catches an import that waits for space for ever, panics or reports success; a log that is cut into acknowledged data; a wrong number of
    // lines, and a missing hint to `--skip`. Sizes and threads decide whether the log or a table runs out of space first.
    let name = "an_import_that_a_full_disk_stops_says_how_many_lines_are_in_and_how_to_go_on";
    let lines = 60_000;
    let input: String = (0..lines).map(|n| format!("{}\t{}\n", key(n), value(n))).collect();
    let often = "--synced --batch 500";
    for (size, options) in
        [(1000 << 10, often), (2100 << 10, often), (3500 << 10, often), (DISK, "--batch 100"), (DISK, "--synced")]
    {
        let Some(mount) = Mount::new(size, name) else { return };
        let room = Room::within(mount.path("."));
        let import = |more: &str| room.import(&format!("- --memtable-bytes 1M {options} {more}"), input.as_bytes());
        let (acks, said) = import("").ended(4);
        let (_, told) = said.trim_end().rsplit_once("give the same input again with --skip ").expect(&said);
        let told: usize = told.parse().expect("a number");
        assert!(said.contains("No space left on device") && (1..lines as usize).contains(&told), "{said}");
        assert!(said.contains(&format!("; the first {told} lines of the input are in. ")), "{said}");
        let acked = acks.lines().last().map_or(0, |ack| ack["acked ".len()..].parse().expect("a number"));
        assert!(acked <= told && (acked > 0 || !options.contains("--synced")), "{acked}: {said}");
        mount.resize(ENOUGH);
        let records = room.records();
        let count = records.lines().count();
        assert!(input.starts_with(&records) && count == told, "{count} records: {said}");
        import(&format!("--skip {told}")).ended(0);
        assert!(room.records() == input, "the scan differs from the input");
    }
}
