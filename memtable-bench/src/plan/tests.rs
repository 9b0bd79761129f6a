//! Tests of plans: which arguments make which plan.

use clap::Parser;

use super::*;

#[derive(Parser)]
enum CommandLine {
    Memtable(Box<MemtableArgs>),
    Engine(Box<EngineArgs>),
}

fn plan(line: &str, memory: Option<u64>) -> Result<Plan, String> {
    let command = CommandLine::try_parse_from(format!("bench {line}").split_whitespace());
    let plan = match command.map_err(|error| error.to_string())? {
        CommandLine::Memtable(args) => Plan::of_tables(&args, memory),
        CommandLine::Engine(args) => Plan::of_engines(&args, memory),
    };
    plan.map_err(|failure| failure.to_string())
}

#[track_caller]
fn only_cell(line: &str) -> Cell {
    let mut cells = plan(&format!("memtable {line}"), None).expect("a plan").cells;
    assert_eq!(cells.len(), 1, "{line}");
    cells.remove(0)
}

/// The subjects that this build contains.
fn built(store: Store) -> Vec<Subject> {
    Subject::of(store).filter(|subject| subject.missing_feature().is_none()).collect()
}

#[test]
fn everything_is_measured_once_unless_arguments_say_otherwise() {
    // Catches defaults that leave a subject out or have no work for one, --quick that overrides explicit arguments, a
    // combination that is left out or measured twice, and hours spent on inserts that search from the head.
    let all = only_cell("--entries 10K");
    assert_eq!((all.subjects, all.workloads), (built(Store::Table), Workload::of(Store::Table).collect()));
    let shapes = ["", "--quick", "--quick --entries 2K"].map(|line| only_cell(line).shape);
    assert_eq!(shapes, [3_000_000, 100_000, 2000].map(|entries| Shape::new(KeySet::Random, entries)));
    let searched = only_cell("--workloads get,reverse").subjects;
    assert!(!searched.contains(&Subject::Vec) && searched.contains(&Subject::Btreemap));
    assert!(!searched.contains(&Subject::Skl));
    assert_eq!(only_cell("--subjects vec").workloads, [Workload::Insert, Workload::Sort]);
    let matrix =
        "memtable --keys random,paths --access uniform,zipfian --entries 1K,2K --threads 1,2 --value-len 8,100";
    assert_eq!(plan(matrix, None).map(|plan| plan.cells.len()), Ok(32));
    only_cell("--keys paths,paths --entries 1000,1K --subjects memtable,memtable --workloads get,get");
}

#[test]
fn presets_can_be_done_narrowed_and_made_small() {
    // Catches a preset that is refused, a narrowed preset with empty cells, small presets that measure the same table many times or
    // leave out a workload, and subjects that this build lacks.
    for (line, preset) in [
        ("memtable --preset published", "published"),
        ("memtable --preset goals", "goals"),
        ("memtable --preset full", "full"),
        ("engine", "engine"),
    ] {
        let plan = plan(line, None).expect(line);
        assert_eq!((plan.preset.as_deref(), plan.rounds), (Some(preset), ROUNDS));
        for Cell { shape, subjects, .. } in &plan.cells {
            assert!(subjects.iter().all(|of| built(shape.store).contains(of)), "{line}");
        }
    }
    let narrow = plan("memtable --preset goals --subjects vec,fastskip --at-most 1K", None).expect("a plan");
    let shapes: Vec<_> = narrow.cells.iter().map(|cell| cell.shape).collect();
    assert!(shapes.iter().enumerate().all(|(at, shape)| !shapes[..at].contains(shape) && shape.entries <= 1000));
    let Cell { shape, subjects, workloads } = &narrow.cells[0];
    assert_eq!((*shape, &subjects[..]), (Shape::new(KeySet::Random, 1000), &[Subject::Fastskip, Subject::Vec][..]));
    assert!([Workload::Insert, Workload::Sort, Workload::InsertLatency].iter().all(|of| workloads.contains(of)));
    assert!(!workloads.contains(&Workload::GetMany));
    for (line, rounds, most) in [
        ("engine --quick", 3, QUICK_ENTRIES),
        ("engine --quick --rounds 1", 1, QUICK_ENTRIES),
        ("engine --at-most 20", 5, 32),
    ] {
        let plan = plan(line, None).expect(line);
        let workloads: Vec<_> = plan.cells.iter().flat_map(|cell| &cell.workloads).collect();
        assert!(Workload::of(Store::Engine).all(|workload| workloads.contains(&&workload)), "{line}");
        let largest = plan.cells.iter().map(|cell| cell.shape.entries).max();
        assert!(plan.rounds == rounds && largest <= Some(most), "{line}: {largest:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    // Catches a run without rounds, a cell too large for the memory (also if the estimate overflows), and a file that turns out
    // to be unwritable after the run. Also catches a unit that is off by a factor, an accepted 0 with a unit, and matrix
    // arguments that a preset silently overrides.
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().display();
    let skl = if cfg!(feature = "skl") { "100000 entries are too many for subject skl" } else { "add --features skl" };
    for (line, expected) in [
        ("memtable --preset published --keys paths", "cannot be used with"),
        ("memtable --preset published --subjects fjall", "the preset has none of the subjects"),
        ("memtable --subjects memtable,vec --workloads get", "subject vec can do none of the workloads"),
        ("memtable --subjects memtable --workloads get,sort", "none of the subjects can do workload sort"),
        ("memtable --entries 10K,100K --subjects skl", skl),
        ("memtable --rounds 0", "0 is not in 1.."),
        ("memtable --threads 0", "expected at least 1, found 0"),
        ("memtable --threads 11 --entries 10", "expected at most as many threads as entries, and 1024: 10, found 11"),
        ("memtable --threads 2000", "and 1024: 1024, found 2000"),
        ("memtable --key-len 15", "15 is not in 16..=1024"),
        ("memtable --value-len 7", "7 is not in 8..=1048576"),
        ("memtable --at-most 0K", "expected at least 1, found 0"),
        ("memtable --entries 1.5M", "expected a number such as 100K, found 1.5M"),
        ("memtable --entries 18446744073709551615K", "is more than this machine can count"),
        ("memtable --entries 18446744073709551615", "do not fit in memory"),
        ("memtable --entries 1K,1000M", "1000000000 entries do not fit in memory: a round needs up to"),
        ("memtable --entries 1M --value-len 100000", "do not fit in memory"),
        ("memtable --entries 13M --workloads insert-latency", "do not fit in memory"),
        (&format!("memtable --json {directory}"), "it is a directory"),
        (&format!("memtable --json {directory}/no/out.json"), "is not a directory"),
        ("engine --subjects btreemap", "the preset has none of the subjects"),
        ("engine --entries 10 --subjects btreemap", "none of the subjects is one of engines"),
        ("engine --workloads insert", "none of the workloads is one of engines"),
        ("engine --workloads ycsb-a --threads 2", "workload ycsb-a takes one thread, found 2"),
        ("engine --workloads open --subjects log", "subject log can do none of the workloads"),
        ("engine --workloads replay --subjects vec", "subject vec can do none of the workloads"),
        ("engine --store table", "invalid value 'table'"),
    ] {
        let refusal = plan(line, Some(8 << 30)).expect_err(line);
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }
    for (subject, feature, is_built) in
        [("fjall", "peers", cfg!(feature = "peers")), ("rocksdb", "rocksdb", cfg!(feature = "rocksdb"))]
    {
        let refusal = plan(&format!("engine --subjects {subject} --entries 10"), None).err().unwrap_or_default();
        let expected = format!("subject {subject} was not built: add --features {feature}");
        assert_eq!(refusal.contains(&expected), !is_built, "{refusal}");
    }
    let matrix =
        "engine --entries 1K,2K --store engine,small-cache --subjects log,mini-engine --threads 2 --workloads put";
    let cells = plan(matrix, None).expect("a plan").cells;
    let shapes = cells.iter().map(|cell| (cell.shape.entries, cell.shape.store, cell.shape.threads));
    let expected = iproduct!([1000, 2000], [Store::Engine, Store::SmallCache], [2]);
    assert!(shapes.eq(expected) && cells.iter().all(|cell| cell.subjects == [Subject::MiniEngine, Subject::Log]));
    assert!(plan(&format!("memtable --entries {}", usize::MAX), None).is_err());
    assert!(plan("memtable --entries 10M --keys paths", Some(16 << 30)).is_ok());
    assert!(plan("memtable --entries 13M --workloads insert", Some(8 << 30)).is_ok());
    assert!(plan(&format!("memtable --json {directory}/out.json"), None).is_ok());
    assert!(plan("memtable --json out.json", None).is_ok());
    assert_eq!(["7", "100K", "100k", "3M"].map(parse_count), [Ok(7), Ok(100_000), Ok(100_000), Ok(3_000_000)]);
}
