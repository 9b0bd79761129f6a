//! What a plan makes of arguments.

use clap::Parser;

use super::*;

const GIB: u64 = 1 << 30;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    args: MemtableArgs,
}

fn plan(line: &str, memory: Option<u64>) -> Result<Plan, String> {
    let args = CommandLine::try_parse_from(format!("bench {line}").split_whitespace());
    Plan::new(&args.map_err(|error| error.to_string())?.args, memory).map_err(|failure| failure.to_string())
}

#[track_caller]
fn only_cell(line: &str) -> Cell {
    let mut cells = plan(line, None).expect("a plan").cells;
    assert_eq!(cells.len(), 1, "{line}");
    cells.remove(0)
}

#[track_caller]
fn refused(line: &str, expected: &str) {
    let refusal = plan(line, Some(8 * GIB)).expect_err(line);
    assert!(refusal.contains(expected), "{line}: {refusal}");
}

#[test]
fn everything_is_measured_unless_arguments_say_otherwise() {
    // Catches defaults that leave a subject out, and --quick that overrules what is asked for.
    let all = only_cell("--entries 10K");
    let built: Vec<_> = Subject::all().iter().copied().filter(|subject| subject.missing_feature().is_none()).collect();
    assert_eq!((&all.subjects[..], &all.workloads[..]), (&built[..], Workload::all()));
    assert_eq!(only_cell("").shape, Shape::new(KeySet::Random, 3_000_000));
    assert_eq!(plan("", None).map(|plan| plan.rounds), Ok(5));
    assert_eq!(only_cell("--quick").shape.entries, 100_000);
    assert_eq!(only_cell("--quick --entries 2K").shape.entries, 2000);
}

#[test]
fn what_is_not_named_is_what_the_named_can_do() {
    // Catches default subjects without work, and default workloads that nobody does.
    let searched = only_cell("--workloads get,reverse").subjects;
    assert!(!searched.contains(&Subject::Vec) && searched.contains(&Subject::FastskipPublished));
    assert_eq!(only_cell("--subjects vec").workloads, [Workload::Insert, Workload::Sort]);
}

#[test]
fn lists_make_a_matrix() {
    // Catches a combination that is left out, or measured twice.
    let line = "--keys random,paths --access uniform,zipfian --entries 1K,2K --threads 1,2 --value-len 8,100";
    let shapes: Vec<_> = plan(line, None).expect("a plan").cells.into_iter().map(|cell| cell.shape).collect();
    assert_eq!((shapes.len(), repeated(&shapes)), (32, None));
    let last =
        Shape { keys: KeySet::Paths, access: Access::Zipfian, entries: 2000, threads: 2, key_len: 16, value_len: 100 };
    assert_eq!(shapes.last(), Some(&last));
}

#[test]
fn presets_can_be_narrowed_and_made_small() {
    // Catches a narrowed preset with cells of nothing, and small ones that measure the same table many times.
    let narrow = plan("--preset engines --subjects vec,fastskip --at-most 1K", None).expect("a plan");
    assert_eq!((narrow.preset.as_deref(), narrow.cells.len()), (Some("engines"), 2));
    assert!(narrow.cells.iter().all(|cell| cell.subjects == [Subject::Fastskip, Subject::Vec]));
    assert!(narrow.cells.iter().all(|cell| cell.shape.entries == 1000));
    assert!(narrow.cells.iter().all(|cell| !cell.workloads.contains(&Workload::GetMany)));
    refused("--preset published --subjects vec,vec", "--subjects names vec twice");
    refused("--preset published --keys paths", "cannot be used with");
    refused("--preset published --quick", "cannot be used with");
    refused("--preset all", "invalid value 'all'");
}

#[test]
fn names_and_numbers_without_meaning_are_refused() {
    // Catches a typing error that silently leaves a subject out, and a run without rounds, which would print an empty table.
    for (line, expected) in [
        ("--subjects fastskip,rocksdb", "invalid value 'rocksdb'"),
        ("--workloads compact", "invalid value 'compact'"),
        ("--keys urls", "invalid value 'urls'"),
        ("--access skewed", "invalid value 'skewed'"),
        ("--subjects vec,vec", "subject vec is named twice"),
        ("--workloads get,scan,get", "workload get is named twice"),
        ("--keys paths,paths", "--keys names paths twice"),
        ("--entries 1000,1K", "--entries names 1000 twice"),
        ("--threads 2,2", "--threads names 2 twice"),
        ("--subjects memtable,vec --workloads get", "subject vec can do none of the workloads"),
        ("--subjects memtable --workloads get,sort", "none of the subjects can do workload sort"),
        ("--subjects hashmap --workloads scan", "subject hashmap can do none of the workloads"),
        ("--rounds 0", "0 is not in 1.."),
        ("--entries 0", "expected at least 1, found 0"),
        ("--entries 1K,0", "expected at least 1, found 0"),
        ("--threads 0", "--threads"),
        ("--threads 11 --entries 10", "expected at most as many threads as entries, 10, found 11"),
        ("--threads 2000", "expected at most 1024 threads, found 2000"),
        ("--key-len 15", "15 is not in 16..=1024"),
        ("--value-len 7", "7 is not in 8..=1048576"),
        ("--at-most 0", "expected at least 1, found 0"),
    ] {
        refused(line, expected);
    }
    // Catches a unit that is off by a factor, and 0 that gets through by its unit.
    let parsed = ["7", "100K", "100k", "3M"].map(|text| parse_count(text).map(NonZeroUsize::get));
    assert_eq!(parsed, [Ok(7), Ok(100_000), Ok(100_000), Ok(3_000_000)]);
    for wrong in ["", "K", "0", "0M", "-1", "1.5M", "10G", "99999999999999999999", "18446744073709551615K"] {
        assert!(parse_count(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn sizes_that_do_not_fit_in_memory_are_refused() {
    // Catches a machine that swaps, or kills the bench, an hour later; also where the estimate itself overflows, and where
    // only one cell of many is too large.
    refused("--entries 1000M", "do not fit in memory: a round needs up to");
    refused("--entries 1K,1000M", "1000000000 entries do not fit in memory");
    refused(&format!("--entries {}", usize::MAX), "do not fit in memory");
    assert!(plan(&format!("--entries {}", usize::MAX), None).is_err());
    assert!(plan("--entries 10M --keys paths", Some(16 * GIB)).is_ok());
    assert!(plan("--entries 10M --keys paths", Some(GIB)).is_err());
    refused("--entries 1M --value-len 100000", "do not fit in memory");
}

#[test]
fn a_subject_that_would_take_for_ever_or_was_not_built_is_left_out_or_refused() {
    // Catches hours spent on inserts that search from the head, and a peer that is silently missing.
    let large = only_cell("--entries 100K");
    assert!(!large.subjects.contains(&Subject::Skl) && large.subjects.contains(&Subject::CrossbeamSkiplist));
    assert_eq!(only_cell("--entries 10K").subjects.contains(&Subject::Skl), cfg!(feature = "skl"));
    let reason = "100000 entries are too many for subject skl: its inserts take O(n)";
    let reason = if cfg!(feature = "skl") { reason } else { "subject skl was not built: add --features skl" };
    refused("--entries 100K --subjects fastskip,skl", reason);
    refused("--entries 10K,100K --subjects skl", reason);
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    // Catches a result that is lost after the run.
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().display();
    refused(&format!("--json {directory}"), "it is a directory");
    refused(&format!("--json {directory}/no/out.json"), "is not a directory");
    assert!(plan(&format!("--json {directory}/out.json"), None).is_ok());
    assert!(plan("--json out.json", None).is_ok());
}
