//! Compares the page `docs/src/memory-ordering.md` with the sources and the models: they must agree on every atomic access.

use std::collections::{BTreeMap, BTreeSet};

use loom_tests::models;
use loom_tests::mutants;
use loom_tests::sources::{bare, sites};

const PAGE: &str = include_str!("../../../docs/src/memory-ordering.md");

/// The cells of the rows below the heading `section`, without backticks.
fn rows(section: &str) -> Vec<Vec<String>> {
    let (_, below) = PAGE.split_once(&format!("\n## {section}\n")).expect("the page has the section");
    let lines = below.lines().take_while(|line| !line.starts_with("## "));
    let rows = lines.filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()).collect()
}

/// Catches an ordered access that is missing from the page or the sources, or has another ordering or place there.
#[test]
fn every_ordered_access_is_on_the_page() {
    let listed: BTreeSet<_> =
        rows("Ordered accesses").into_iter().map(|row| [0, 1, 2].map(|i| row[i].clone())).collect();
    let found: BTreeSet<_> = sites().into_iter().map(|site| [site.name, site.file, site.ordering]).collect();
    assert_eq!(found, listed, "in the sources on the left, on the page on the right");
}

/// Catches a page that names a model other than the one that fails, or a wrong partner.
#[test]
fn the_page_names_partners_and_the_models_that_kill() {
    let names: BTreeSet<_> = models::ALL.iter().map(|model| model.name).collect();
    let orderings: BTreeMap<_, _> = sites().into_iter().map(|site| (site.name, site.ordering)).collect();
    for row in rows("Ordered accesses") {
        let killers: BTreeSet<_> =
            mutants::ALL.iter().filter(|mutant| mutant.site == row[0]).map(|mutant| mutant.killed_by).collect();
        assert_eq!(row[5].split(", ").collect::<BTreeSet<_>>(), killers, "{}", row[0]);
        assert!(killers.is_subset(&names), "{}: no such model", row[0]);
        for partner in row[3].split(", ") {
            let other = orderings.get(partner).unwrap_or_else(|| panic!("{}: no site {partner}", row[0]));
            assert!(
                *other != row[2] || *other == "AcqRel",
                "{} and {partner}: a release pairs with an acquire",
                row[0]
            );
        }
    }
}

/// Catches a relaxed access without a stated reason, and an ordering that has no name.
#[test]
fn relaxed_accesses_are_counted_on_the_page_and_others_have_names() {
    let listed: BTreeMap<_, usize> =
        rows("Relaxed accesses").into_iter().map(|row| (row[0].clone(), row[1].parse().expect("a count"))).collect();
    let mut found = BTreeMap::new();
    for (file, ordering) in bare() {
        assert_eq!(ordering, "Relaxed", "{file}: an ordering without a name");
        *found.entry(file).or_insert(0) += 1;
    }
    assert_eq!(found, listed, "in the sources on the left, on the page on the right");
}
