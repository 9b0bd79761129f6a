//! The README's table: the headline's figures as Markdown, and where they come from.

use std::fmt::Write;

use super::book::{Book, median};
use crate::memtable::{Document, Role, Shape, Subject, Workload};
use crate::numbers::nanos;

/// A workload, whether it comes 256 at a time, and its name.
const ROWS: [(Workload, bool, &str); 9] = [
    (Workload::Insert, false, "insert"),
    (Workload::Insert, true, "insert, 256 at a time"),
    (Workload::Get, false, "get"),
    (Workload::GetMany, true, "get, 256 at a time"),
    (Workload::Miss, false, "get of absent keys"),
    (Workload::Seek, false, "seek and read 100"),
    (Workload::Scan, false, "scan, an entry"),
    (Workload::Mixed, false, "half reads, half writes"),
    (Workload::Delete, false, "delete"),
];

/// # Errors
/// A run in which there is nothing to compare with.
pub(super) fn table(book: &Book) -> Result<String, String> {
    let Some(shape) = book.headline() else {
        return Err(
            "expected a cell of random keys, one thread, ours and a skip list among the peers; found none".into()
        );
    };
    let subjects: Vec<_> = Subject::ALL.into_iter().filter(|subject| has_column(book, *subject, &shape)).collect();
    let mut table = String::from("| ns per operation |");
    table.extend(subjects.iter().map(|subject| format!(" {} |", subject.name())));
    table += " fastest of ours to fastest skip list |\n|---|";
    table += &"---:|".repeat(subjects.len() + 1);
    table.push('\n');
    for (workload, batched, name) in ROWS {
        let Some(best) = book.best_own(&shape, workload, batched) else { continue };
        let cells = subjects.iter().map(|&subject| cell(book, &shape, subject, workload, batched));
        let times = best.times_best_skip_list_peer.map_or_else(|| "–".into(), |times| format!("**{times:.1}x**"));
        writeln!(table, "| {name} | {} | {times} |", cells.collect::<Vec<_>>().join(" | ")).ok();
    }
    Ok(table + "\n" + &source(book, &shape))
}

/// What stands in a subject's column: ours have their batches there too.
fn cell(book: &Book, shape: &Shape, subject: Subject, workload: Workload, batched: bool) -> String {
    let subject = if batched { subject.batched() } else { Some(subject) };
    let figures = book.figures(shape, workload);
    let figure = figures.iter().find(|figure| Some(figure.subject) == subject);
    figure.map_or_else(|| "–".into(), |figure| nanos(median(figure)))
}

/// Whether a subject has anything to show. Floors have no part in a comparison.
fn has_column(book: &Book, subject: Subject, shape: &Shape) -> bool {
    let has = |workload| book.figures(shape, workload).iter().any(|figure| figure.subject == subject);
    subject.role() != Role::Floor && !subject.is_batched() && ROWS.iter().any(|(workload, ..)| has(*workload))
}

/// The run that measured `shape`.
fn source(book: &Book, shape: &Shape) -> String {
    let has_shape = |run: &&Document| run.cells.iter().any(|cell| cell.shape == *shape);
    let Some(run) = book.documents.iter().find(has_shape) else { return String::new() };
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
    use crate::memtable::testing::measured;
    use crate::memtable::{Cell, shape};

    fn book(subjects: &[Subject]) -> Book {
        let cell = Cell::new(shape(KeySet::Random, 1_000_000), subjects, &[Workload::Insert, Workload::Get]);
        let nanos = |subject: Subject| if subject.role() == Role::Own { 400.0 } else { 1200.0 };
        let mut document = Document::new(None, 5);
        document.cells.push(measured(&cell, nanos, None));
        Book::new(vec![document]).expect("cells")
    }

    #[test]
    fn rows_are_workloads_and_the_last_column_is_the_ratio() {
        // Catches figures under another subject's name, and a ratio that does not follow from them.
        let subjects = [Subject::Memtable, Subject::MemtableBatch, Subject::CrossbeamSkiplist, Subject::Vec];
        let table = table(&book(&subjects)).expect("a table");
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(
            lines[0],
            "| ns per operation | memtable | crossbeam-skiplist | fastest of ours to fastest skip list |"
        );
        assert_eq!(lines[1], "|---|---:|---:|---:|");
        assert_eq!(lines[2], "| insert | 400 | 1,200 | **3.0x** |");
        assert_eq!(lines[3], "| insert, 256 at a time | 400 | – | **3.0x** |");
        assert_eq!(lines[4], "| get | 400 | 1,200 | **3.0x** |");
        assert!(lines[6].starts_with("1,000,000 entries, random keys"), "{table}");
    }

    #[test]
    fn the_source_is_the_run_that_measured_the_shape() {
        // Catches the rounds and the commit of another file under the figures of this one.
        let with = |entries, rounds| {
            let cell = Cell::new(
                shape(KeySet::Random, entries),
                &[Subject::Memtable, Subject::CrossbeamSkiplist],
                &[Workload::Insert],
            );
            let mut document = Document::new(None, rounds);
            document.cells.push(measured(&cell, |_| 400.0, None));
            document
        };
        let book = Book::new(vec![with(1000, 9), with(1_000_000, 5)]).expect("cells");
        assert!(table(&book).expect("a table").contains("medians of 5 rounds"));
    }

    #[test]
    fn a_run_without_peers_has_no_table() {
        // Catches a table without anything to compare with.
        assert!(table(&book(&[Subject::Memtable])).is_err());
    }
}
