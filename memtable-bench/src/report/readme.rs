//! The README's table: the headline's figures as Markdown, and where they come from.

use super::results::{HEADLINES, Results};
use crate::results::Run;
use crate::sheet::Sheet;
use crate::spec::{Role, Shape, Subject, Workload};
use crate::text::{name, nanos, or_dash};

/// # Errors
/// A run in which there is nothing to compare with.
pub(super) fn table(results: &Results) -> Result<String, String> {
    let Some(shape) = results.headline() else {
        return Err(
            "expected a cell of random keys, one thread, ours and a skip list among the peers; found none".into()
        );
    };
    let subjects: Vec<_> = Subject::all().iter().copied().filter(|of| has_column(results, *of, &shape)).collect();
    let names = subjects.iter().copied().map(name);
    let ends = ["ns per operation".to_owned(), "fastest of ours to fastest skip list".to_owned()];
    let mut sheet = Sheet::new([&ends[..1], &names.collect::<Vec<_>>(), &ends[1..]].concat());
    for (workload, batched, title) in HEADLINES {
        let Some(best) = results.best_own(&shape, workload, batched) else { continue };
        let times = or_dash(best.times_best_skip_list_peer, "–", |times| format!("**{times:.1}x**"));
        let cells = subjects.iter().map(|&subject| cell(results, &shape, subject, workload, batched));
        sheet.rows.push([title.to_owned()].into_iter().chain(cells).chain([times]).collect());
    }
    Ok(sheet.markdown() + "\n" + &source(results, &shape))
}

/// The batches of ours are in the column of the same table.
fn cell(results: &Results, shape: &Shape, subject: Subject, workload: Workload, batched: bool) -> String {
    let subject = if batched { subject.batched() } else { Some(subject) };
    let figures = results.figures(shape, workload);
    let figure = figures.iter().find(|figure| Some(figure.subject) == subject);
    or_dash(figure, "–", |figure| nanos(figure.median()))
}

/// Whether a subject has anything to show. Floors have no part in a comparison.
fn has_column(results: &Results, subject: Subject, shape: &Shape) -> bool {
    let has = |workload| results.figures(shape, workload).iter().any(|figure| figure.subject == subject);
    subject.role() != Role::Floor && !subject.is_batched() && HEADLINES.iter().any(|(workload, ..)| has(*workload))
}

/// The run that measured `shape`.
fn source(results: &Results, shape: &Shape) -> String {
    let has_shape = |run: &&Run| run.cells.iter().any(|cell| cell.shape == *shape);
    let Some(run) = results.runs.iter().find(has_shape) else { return String::new() };
    let model = run.machine.model.as_deref().unwrap_or("unknown processor");
    let commit = run.commit.as_deref().unwrap_or("unknown");
    let date = run.date.split('T').next().unwrap_or(&run.date);
    let optimised = if run.optimised { "" } else { " NOT OPTIMISED: these times mean nothing." };
    format!(
        "{shape}; medians of {} rounds, subjects in turns. {} cores, {model}; {date}, commit {}.{optimised}\n",
        run.rounds,
        run.machine.cores,
        commit.get(..12).unwrap_or(commit)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySet;
    use crate::results::measured;
    use crate::spec::Cell;

    fn results(subjects: &[Subject]) -> Results {
        let cell = Cell::new(Shape::new(KeySet::Random, 1_000_000), subjects, &[Workload::Insert, Workload::Get]);
        let nanos = |subject: Subject| if subject.role() == Role::Own { 400.0 } else { 1200.0 };
        let mut run = Run::new(None, 5);
        run.cells.push(measured(&cell, nanos, None));
        Results::new(vec![run]).expect("cells")
    }

    #[test]
    fn rows_are_workloads_and_the_last_column_is_the_ratio() {
        // Catches figures under another subject's name, and a ratio that does not follow from them.
        let subjects = [Subject::Memtable, Subject::MemtableBatch, Subject::CrossbeamSkiplist, Subject::Vec];
        let table = table(&results(&subjects)).expect("a table");
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(
            lines[0],
            "| ns per operation | memtable | crossbeam-skiplist | fastest of ours to fastest skip list |"
        );
        assert_eq!(lines[1], "| --- | ---: | ---: | ---: |");
        assert_eq!(lines[2], "| insert | 400 | 1,200 | **3.0x** |");
        assert_eq!(lines[3], "| insert, 256 at a time | 400 | – | **3.0x** |");
        assert_eq!(lines[4], "| get | 400 | 1,200 | **3.0x** |");
        assert!(lines[6].starts_with("1,000,000 entries, random keys"), "{table}");
    }

    #[test]
    fn the_source_is_the_run_that_measured_the_shape_and_a_run_without_peers_has_no_table() {
        // Catches the rounds and the commit of another file under these figures, and a table with nothing to compare with.
        let with = |entries, rounds| {
            let subjects = [Subject::Memtable, Subject::CrossbeamSkiplist];
            let cell = Cell::new(Shape::new(KeySet::Random, entries), &subjects, &[Workload::Insert]);
            let mut run = Run::new(None, rounds);
            run.cells.push(measured(&cell, |_| 400.0, None));
            run
        };
        let both = Results::new(vec![with(1000, 9), with(1_000_000, 5)]).expect("cells");
        assert!(table(&both).expect("a table").contains("medians of 5 rounds"));
        assert!(table(&results(&[Subject::Memtable])).is_err());
    }
}
