//! Makes every named ordering of the sources weaker, one at a time: a model must fail. Each run is a process of its own, because a failed model
//! leaves its threads behind. This command prints the table of orderings, with the failure of each model: `cargo test -p loom-tests --test
//! ordering_mutants -- --nocapture`.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use loom_tests::mutants::ALL;
use loom_tests::sources::{Site, ordering, sites};
use loom_tests::weaken::{Weakening, weaker};

/// Runs a weakened model as deeply as `tests/suite/models.rs` runs the unweakened one, so that only the weakening can make it fail.
fn model(name: &str, weakening: &Weakening) -> Output {
    let mut model = Command::new(env!("CARGO_BIN_EXE_model"));
    model.args([name, "--quick", "--weaken", &weakening.to_string()]);
    model.env("RUST_BACKTRACE", "0").output().expect("the program of the models runs")
}

/// The panic message of a failed model: the line after the one with the source position.
fn complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let mut lines = said.lines().skip_while(|line| !line.contains("panicked at"));
    lines.nth(1).unwrap_or_default().to_owned()
}

/// Catches an ordering that was added, changed or removed without a change of `mutants.rs`.
#[test]
fn every_weakening_has_its_model() {
    let sites = sites();
    assert_eq!(sites.iter().map(|site| &site.name).collect::<BTreeSet<_>>().len(), sites.len(), "one ordering a name");
    let of = |site: &Site| {
        let promise = ordering(&site.ordering).expect("an ordering that the models know");
        weaker(promise).iter().map(|to| (site.name.clone(), format!("{to:?}"))).collect::<Vec<_>>()
    };
    let possible: BTreeSet<_> = sites.iter().flat_map(of).collect();
    let listed: BTreeSet<_> = ALL.iter().map(|mutant| (mutant.site.to_owned(), mutant.to.to_owned())).collect();
    assert_eq!(possible, listed, "in the sources on the left, listed on the right");
    assert_eq!(listed.len(), ALL.len(), "listed twice");
}

/// Catches an ordering that could be dropped, in the sources or in the models, without a failing model.
#[test]
fn each_weakening_is_killed_by_its_model() {
    let mut survivors = Vec::new();
    println!("{:20} {:8} {:55} what it said", "site", "to", "killed by");
    for mutant in ALL {
        let weakening: Weakening = format!("{}={}", mutant.site, mutant.to).parse().expect("a site and an ordering");
        let output = model(mutant.killed_by, &weakening);
        let complaint = complaint(&output);
        println!("{:20} {:8} {:55} {complaint}", mutant.site, mutant.to, mutant.killed_by);
        if output.status.success() || complaint.is_empty() {
            survivors.push(weakening);
        }
    }
    assert!(survivors.is_empty(), "survived: {survivors:?}");
    println!("{} of {} weakenings killed", ALL.len(), ALL.len());
}
