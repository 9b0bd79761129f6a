//! `import` on a disk that is really full: it says so, how far it came, and how to go on.

use mini_engine::Db;

use crate::mount::Mount;
use crate::program::{DISK, ENOUGH, in_time, program, value};

#[test]
fn an_import_that_a_full_disk_stops_says_how_many_lines_are_in_and_how_to_go_on() {
    // Catches an import that waits for space for ever, a number that is not that of the lines, and `--skip` that is not said.
    let name = "an_import_that_a_full_disk_stops_says_how_many_lines_are_in_and_how_to_go_on";
    for options in [&["--batch", "100"][..], &["--synced"]] {
        let Some(mount) = Mount::new(DISK, name) else { return };
        let inputs = tempfile::tempdir().expect("a temporary directory");
        let input = inputs.path().join("input").display().to_string();
        let lines = 60_000;
        let text: String = (0..lines).map(|n| format!("{n:08}\t{}\n", value(n))).collect();
        std::fs::write(&input, text).expect("write");
        let db = mount.path("db");
        let import = |args: &[&str]| {
            let child = program("import", &db, &[&[input.as_str()], options, args].concat()).spawn().expect("spawn");
            let output = in_time(child);
            (output.status.code(), String::from_utf8(output.stderr).expect("text"))
        };
        let (code, said) = import(&[]);
        assert_eq!(code, Some(4), "{said}");
        let (_, told) = said.trim_end().rsplit_once("give the same input again with --skip ").expect(&said);
        let told: u64 = told.parse().expect("a number");
        assert!(said.contains("No space left on device") && (1..lines).contains(&told), "{said}");
        assert!(said.contains(&format!("; the first {told} lines of the input are in. ")), "{said}");
        mount.resize(ENOUGH);
        let count = || Db::open(&db).expect("open").iter().map(Result::unwrap).count() as u64;
        assert_eq!(count(), told, "{said}");
        let (code, said) = import(&["--skip", &told.to_string()]);
        assert_eq!((code, count()), (Some(0), lines), "{said}");
    }
}
