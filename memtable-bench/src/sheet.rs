//! Tables of texts, for the terminal, the README and the page of `report`.

use std::collections::BTreeSet;
use std::fmt;

use crate::results::CellResults;
use crate::spec::{Role, Subject, Workload, name};

/// The first row is the head. The first column is aligned to the left, all others to the right.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sheet(pub(crate) Vec<Vec<String>>);

/// Markdown, with columns that are aligned for a terminal, too.
impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(head) = self.0.first() else { return Ok(()) };
        let width = |column: usize| self.0.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let rule: Vec<_> = (0..head.len()).map(|at| if at == 0 { "---".into() } else { "---:".to_owned() }).collect();
        for row in [head, &rule].into_iter().chain(&self.0[1..]) {
            for (column, cell) in row.iter().enumerate() {
                let width = width(column);
                if column == 0 { write!(f, "| {cell:<width$} |")? } else { write!(f, " {cell:>width$} |")? }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The table under a title; nothing if it has no rows.
pub(crate) fn titled(title: &str, sheet: Sheet) -> String {
    if sheet.0.len() > 1 { format!("\n{title}\n\n{sheet}") } else { String::new() }
}

/// A figure in three digits, with a comma after every three: 1,350, 68 or 7.4.
pub(crate) fn figure(value: f64) -> String {
    match value {
        large if large.abs() >= 99.95 => {
            let digits = format!("{large:.0}");
            let group = |(at, digit): (usize, char)| {
                let is_after_group = at > 0 && (digits.len() - at).is_multiple_of(3);
                is_after_group.then_some(',').into_iter().chain([digit])
            };
            digits.chars().enumerate().flat_map(group).collect()
        }
        middle if middle.abs() >= 9.995 => format!("{middle:.0}"),
        small => format!("{small:.2}"),
    }
}

/// A figure that may be missing.
fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), figure)
}

/// The tables of a cell: times, costs beside time, and failed rounds.
pub(crate) fn cell(results: &CellResults) -> String {
    let shape = results.cell.shape;
    let head = ["subject", "failed rounds", "the first reason"].map(Into::into).to_vec();
    let failed = |(subject, (rounds, reason)): (_, (usize, &str))| vec![subject, rounds.to_string(), reason.to_owned()];
    let failed = Sheet([head].into_iter().chain(results.failures().into_iter().map(failed)).collect());
    titled(&format!("{shape}: ns per operation"), times(results))
        + &titled(&format!("{shape}: beside time"), facts(results))
        + &titled(&format!("{shape}: failed"), failed)
}

/// The fastest of the subjects that have one of `roles`.
fn best(results: &CellResults, workload: Workload, roles: &[Role]) -> Option<f64> {
    results
        .ranking(workload)
        .into_iter()
        .find(|(subject, _)| roles.contains(&subject.role()))
        .map(|(_, times)| times.median)
}

/// Medians: a row for each workload, a column for each subject. The last column is the time of the best peer divided by that of the best of ours.
fn times(results: &CellResults) -> Sheet {
    let subjects = &results.cell.subjects;
    let names = subjects.iter().map(|&subject| name(subject));
    let head = ["".to_owned()].into_iter().chain(names).chain(["ours to the best peer".into()]).collect();
    let row = |&workload: &Workload| {
        let peer = best(results, workload.of_peers(), &[Role::ClosePeer, Role::OtherPeer]);
        let ours = best(results, workload, &[Role::Own]);
        let ratio = peer.zip(ours).map_or_else(String::new, |(peer, ours)| format!("{:.2}x", peer / ours));
        let of = |&subject: &Subject| or_dash(results.nanos(subject, workload));
        [name(workload)].into_iter().chain(subjects.iter().map(of)).chain([ratio]).collect()
    };
    Sheet([head].into_iter().chain(results.cell.workloads.iter().map(row)).collect())
}

/// Costs beside time, and latencies of single operations: a row for each workload of a subject, a column for each that any of them has.
fn facts(results: &CellResults) -> Sheet {
    let samples = || results.rounds.iter().flat_map(|turn| &turn.samples);
    let names: BTreeSet<&String> =
        samples().flat_map(|sample| sample.facts.keys().chain(sample.latency.keys())).collect();
    let head = ["".to_owned()].into_iter().chain(names.iter().map(|name| name.replace('_', " "))).collect();
    let row = |(workload, subject): (&Workload, &Subject)| {
        let of: Vec<_> = names.iter().map(|fact| results.fact(*subject, *workload, fact)).collect();
        let shown = of.iter().any(Option::is_some);
        let title = format!("{} {}", name(*subject), name(*workload));
        shown.then(|| [title].into_iter().chain(of.into_iter().map(or_dash)).collect())
    };
    let all = itertools::iproduct!(&results.cell.workloads, &results.cell.subjects);
    Sheet([head].into_iter().chain(all.filter_map(row)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_columns_are_aligned() {
        // Catches too many digits for the precision of a measurement, a misplaced comma, and a table that is not Markdown.
        let shown = [0.994, 7.44, 9.996, 68.4, 999.6, 1350.2, 1_234_567.0].map(figure);
        assert_eq!(shown, ["0.99", "7.44", "10", "68", "1,000", "1,350", "1,234,567"]);
        let sheet =
            Sheet([["", "ns"], ["vec", "7"], ["tree<", "1,350"]].map(|row| row.map(Into::into).to_vec()).to_vec());
        assert_eq!(sheet.to_string(), "|       |    ns |\n| ---   |  ---: |\n| vec   |     7 |\n| tree< | 1,350 |\n");
    }
}
