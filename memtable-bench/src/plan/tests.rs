//! What a plan makes of arguments.

use clap::Parser;

use super::*;

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

#[test]
fn everything_is_measured_once_unless_arguments_say_otherwise() {
    // Catches defaults that leave a subject out or have no work for one, --quick that overrules what is asked for, a combination
    // that is left out or measured twice, and hours spent on inserts that search from the head.
    let all = only_cell("--entries 10K");
    let built = Subject::of(Store::Table).filter(|subject| subject.missing_feature().is_none()).collect();
    assert_eq!((all.subjects, all.workloads), (built, Workload::of(Store::Table).collect()));
    let shapes = ["", "--quick", "--quick --entries 2K"].map(|line| only_cell(line).shape);
    assert_eq!(shapes, [3_000_000, 100_000, 2000].map(|entries| Shape::new(KeySet::Random, entries)));
    let searched = only_cell("--workloads get,reverse").subjects;
    assert!(!searched.contains(&Subject::Vec) && searched.contains(&Subject::FastskipPublished));
    assert!(!searched.contains(&Subject::Skl));
    assert_eq!(only_cell("--subjects vec").workloads, [Workload::Insert, Workload::Sort]);
    let matrix = "--keys random,paths --access uniform,zipfian --entries 1K,2K --threads 1,2 --value-len 8,100 \
                  --backing touched,untouched --pages huge,small";
    assert_eq!(plan(matrix, None).map(|plan| plan.cells.len()), Ok(128));
    only_cell("--keys paths,paths --entries 1000,1K --subjects memtable,memtable --workloads get,get");
}

#[test]
fn presets_can_be_narrowed_and_made_small() {
    // Catches a narrowed preset with cells of nothing, small ones that measure the same table many times, counts of a table that
    // was not asked for, and a preset of counts that is refused for want of cells.
    let narrow = plan("--preset engines --subjects vec,fastskip --at-most 1K", None).expect("a plan");
    assert_eq!((narrow.preset.as_deref(), narrow.cells.len()), (Some("engines"), 2));
    for cell in &narrow.cells {
        assert_eq!((&cell.subjects[..], cell.shape.entries), (&[Subject::Fastskip, Subject::Vec][..], 1000));
        assert!(!cell.workloads.contains(&Workload::GetMany));
    }
    let patterns = |line: &str| plan(line, None).map(|plan| (plan.cells.len(), plan.patterns));
    assert_eq!(patterns("--preset patterns --at-most 1K"), Ok((0, Some(1000))));
    assert_eq!(patterns("--preset patterns --subjects memtable"), Ok((0, Some(patterns::ENTRIES))));
}

#[derive(Parser)]
struct EngineLine {
    #[command(flatten)]
    args: EngineArgs,
}

fn engine_plan(line: &str) -> Result<Plan, String> {
    let args = EngineLine::try_parse_from(format!("bench {line}").split_whitespace());
    Plan::of_engines(&args.map_err(|error| error.to_string())?.args, None).map_err(|failure| failure.to_string())
}

#[test]
fn engines_are_measured_at_everything_or_at_what_is_asked_for() {
    // Catches a table among the engines, a goal's cell left out because its entries are few, peers that this program lacks, and a
    // matrix that a preset overrules.
    for (line, preset, rounds) in
        [("", "engine", 5), ("--quick", "engine-quick", 3), ("--quick --rounds 1", "engine-quick", 1)]
    {
        let plan = engine_plan(line).expect("a plan");
        assert_eq!((plan.preset.as_deref(), plan.rounds), (Some(preset), rounds));
        let workloads: Vec<_> = plan.cells.iter().flat_map(|cell| &cell.workloads).collect();
        assert!(Workload::of(Store::Engine).all(|workload| workloads.contains(&&workload)), "{line}");
        let subjects = plan.cells.iter().flat_map(|cell| cell.subjects.iter().map(move |of| (cell.shape.store, *of)));
        assert!(
            subjects.clone().all(|(store, of)| store != Store::Table && Subject::of(store).any(|other| other == of))
        );
        assert!(subjects.map(|(_, subject)| subject).all(|subject| subject.missing_feature().is_none()));
    }
    let matrix = engine_plan(
        "--entries 1K,2K --store engine,small-cache --subjects fjall,mini-engine --threads 2 --workloads get",
    );
    let cells = matrix.expect("a plan").cells;
    let shapes = cells.iter().map(|cell| (cell.shape.entries, cell.shape.store, cell.shape.threads));
    let expected = iproduct!([1000, 2000], [Store::Engine, Store::SmallCache], [2]);
    assert!(shapes.eq(expected) && cells.iter().all(|cell| cell.subjects == [Subject::MiniEngine, Subject::Fjall]));
    assert_eq!(
        engine_plan("--at-most 20").map(|plan| plan.cells.iter().map(|of| of.shape.entries).max()),
        Ok(Some(32))
    );
    for (line, expected) in [
        ("--subjects btreemap", "the preset has none of the subjects"),
        ("--entries 10 --subjects btreemap", "none of the subjects is one of engines"),
        ("--workloads insert", "none of the workloads is one of engines"),
        ("--workloads ycsb-a --threads 2", "workload ycsb-a takes one thread, found 2"),
        ("--workloads open --subjects log", "subject log can do none of the workloads"),
        ("--workloads replay --subjects lmdb", "subject lmdb can do none of the workloads"),
        ("--store table", "invalid value 'table'"),
    ] {
        let refusal = engine_plan(line).expect_err(line);
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }
    if !cfg!(feature = "rocksdb") {
        let refusal = engine_plan("--subjects rocksdb --entries 10").expect_err("not built");
        assert!(refusal.contains("subject rocksdb was not built: add --features rocksdb"), "{refusal}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    // Catches a run without rounds, which would print an empty table, a machine that swaps an hour later, also where the estimate
    // itself overflows, a result that is lost after the run, a unit that is off by a factor, and 0 that gets through by its unit.
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().display();
    let skl = if cfg!(feature = "skl") { "100000 entries are too many for subject skl" } else { "add --features skl" };
    for (line, expected) in [
        ("--preset published --keys paths", "cannot be used with"),
        ("--preset patterns --subjects vec", "the preset has none of the subjects"),
        ("--subjects memtable,vec --workloads get", "subject vec can do none of the workloads"),
        ("--subjects memtable --workloads get,sort", "none of the subjects can do workload sort"),
        ("--entries 10K,100K --subjects skl", skl),
        ("--rounds 0", "0 is not in 1.."),
        ("--threads 0", "expected at least 1, found 0"),
        ("--threads 11 --entries 10", "expected at most as many threads as entries, and 1024: 10, found 11"),
        ("--threads 2000", "and 1024: 1024, found 2000"),
        ("--key-len 15", "15 is not in 16..=1024"),
        ("--value-len 7", "7 is not in 8..=1048576"),
        ("--at-most 0K", "expected at least 1, found 0"),
        ("--entries 1.5M", "expected a number such as 100K, found 1.5M"),
        ("--entries 18446744073709551615K", "is more than this machine can count"),
        ("--entries 18446744073709551615", "do not fit in memory"),
        ("--entries 1K,1000M", "1000000000 entries do not fit in memory: a round needs up to"),
        ("--entries 1M --value-len 100000", "do not fit in memory"),
        ("--entries 15M --workloads insert-latency", "do not fit in memory"),
        (&format!("--json {directory}"), "it is a directory"),
        (&format!("--json {directory}/no/out.json"), "is not a directory"),
    ] {
        let refusal = plan(line, Some(8 << 30)).expect_err(line);
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }
    assert!(plan(&format!("--entries {}", usize::MAX), None).is_err());
    assert!(plan("--entries 10M --keys paths", Some(16 << 30)).is_ok());
    assert!(plan("--entries 15M --workloads insert", Some(8 << 30)).is_ok());
    assert!(plan(&format!("--json {directory}/out.json"), None).is_ok() && plan("--json out.json", None).is_ok());
    assert_eq!(["7", "100K", "100k", "3M"].map(parse_count), [Ok(7), Ok(100_000), Ok(100_000), Ok(3_000_000)]);
}
