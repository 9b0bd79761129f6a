//! The README's table: the headline's figures as Markdown, and where they come from.

use std::fmt::Write;

use super::book::{Book, median};
use crate::memtable::{Role, Shape, Subject, Workload};
use crate::numbers::nanos;

const ROWS: [(Workload, &str); 8] = [
    (Workload::Insert, "insert"),
    (Workload::Get, "get"),
    (Workload::GetMany, "get, 256 at a time"),
    (Workload::Miss, "get of absent keys"),
    (Workload::Seek, "seek and read 100"),
    (Workload::Scan, "scan, an entry"),
    (Workload::Mixed, "half reads, half writes"),
    (Workload::Delete, "delete"),
];

/// # Errors
/// A run in which there is nothing to compare with.
pub(super) fn table(book: &Book) -> Result<String, String> {
    let Some(shape) = book.headline() else {
        return Err(
            "expected a cell of random keys, one thread, ours and a skip list among the peers; found none".into()
        );
    };
    let mut table = String::from("| ns per operation |");
    let subjects: Vec<_> = Subject::ALL.into_iter().filter(|subject| row(book, *subject, &shape)).collect();
    for subject in &subjects {
        write!(table, " {} |", subject.name()).ok();
    }
    table += " fastest of ours to fastest skip list |\n|---|";
    table += &"---:|".repeat(subjects.len() + 1);
    table.push('\n');
    for (workload, name) in ROWS.into_iter().filter(|(workload, _)| book.best_own(&shape, *workload).is_some()) {
        write!(table, "| {name} |").ok();
        for &subject in &subjects {
            let figures = book.figures(&shape, workload);
            let cell = figures.iter().find(|figure| figure.subject == subject);
            write!(table, " {} |", cell.map_or_else(|| "–".into(), |figure| nanos(median(figure)))).ok();
        }
        let times = book.best_own(&shape, workload).and_then(|own| own.times_best_skip_list_peer);
        writeln!(table, " {} |", times.map_or_else(|| "–".into(), |times| format!("**{times:.1}x**"))).ok();
    }
    Ok(table + "\n" + &source(book, &shape.to_string()))
}

/// Whether a subject has anything to show; floors are no rows of a comparison.
fn row(book: &Book, subject: Subject, shape: &Shape) -> bool {
    let has = |workload| book.figures(shape, workload).iter().any(|figure| figure.subject == subject);
    subject.role() != Role::Floor && ROWS.iter().any(|(workload, _)| has(*workload))
}

fn source(book: &Book, shape: &str) -> String {
    let Some(run) = book.documents.first() else { return String::new() };
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
    use crate::memtable::{Cell, Document, shape};

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
        let table = table(&book(&[Subject::Memtable, Subject::CrossbeamSkiplist, Subject::Vec])).expect("a table");
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(
            lines[0],
            "| ns per operation | memtable | crossbeam-skiplist | fastest of ours to fastest skip list |"
        );
        assert_eq!(lines[1], "|---|---:|---:|---:|");
        assert_eq!(lines[2], "| insert | 400 | 1,200 | **3.0x** |");
        assert_eq!(lines[3], "| get | 400 | 1,200 | **3.0x** |");
        assert!(lines[5].starts_with("1,000,000 entries, random keys"), "{table}");
    }

    #[test]
    fn a_run_without_peers_has_no_table() {
        // Catches a table without anything to compare with.
        assert!(table(&book(&[Subject::Memtable])).is_err());
    }
}
