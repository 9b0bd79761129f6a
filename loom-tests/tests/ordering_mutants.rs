//! Every named ordering of the sources, made weaker one at a time: a model must fail, or a line of `EXCUSED` says why
//! none can. Each run is a process of its own, since a model that fails leaves its threads behind.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use loom_tests::sources::{ordering, sites};
use loom_tests::weaken::{Weakening, weaker};

/// Site, weakened to, and a model that fails.
const KILLED: &[(&str, &str, &str)] = &[
    ("arena.chunk", "Relaxed", "figures_never_show_more_idle_than_reserved_i6"),
    ("arena.chunk.read", "Relaxed", "figures_never_show_more_idle_than_reserved_i6"),
    ("arena.frontier", "Relaxed", "idle_chunk_is_no_pressure_i6"),
    ("arena.frontier.read", "Relaxed", "idle_chunk_is_no_pressure_i6"),
    ("clock.read", "Acquire", "snapshot_shows_an_insertion_always_or_never_i5"),
    ("clock.read", "Relaxed", "snapshot_shows_an_insertion_always_or_never_i5"),
    ("clock.snapshot", "Release", "snapshot_shows_an_insertion_always_or_never_i5"),
    ("clock.snapshot", "Relaxed", "snapshot_shows_an_insertion_always_or_never_i5"),
    ("delete.mark", "Relaxed", "who_sees_a_deletion_sees_what_led_to_it_i5"),
    ("gate.drained", "Relaxed", "seal_keeps_what_was_acknowledged_i7"),
    ("gate.enter", "Relaxed", "refused_writer_sees_what_led_to_the_freeze_i7"),
    ("gate.freeze", "Relaxed", "who_sees_the_freeze_sees_what_led_to_it_i7"),
    ("gate.frozen", "Relaxed", "who_sees_the_freeze_sees_what_led_to_it_i7"),
    ("gate.look", "Relaxed", "refused_writer_sees_what_led_to_the_freeze_i7"),
    ("gate.leave", "Relaxed", "seal_keeps_what_was_acknowledged_i7"),
    ("link.commit", "Relaxed", "publish_shows_whole_entries_i4"),
    ("link.next", "Relaxed", "publish_shows_whole_entries_i4"),
    ("link.raise", "Relaxed", "tower_stands_on_the_level_below_i2"),
    ("stamp.read", "Relaxed", "who_sees_a_deletion_sees_what_led_to_it_i5"),
];

/// Site, weakened to, and why no model can fail.
const EXCUSED: &[(&str, &str, &str)] = &[
    ("clock.read", "Release", CLOCK_OR_STAMP),
    ("clock.snapshot", "Acquire", CLOCK_OR_STAMP),
    ("stamp.set", "Acquire", CLOCK_OR_STAMP),
    ("stamp.set", "Relaxed", CLOCK_OR_STAMP),
    ("stamp.set", "Release", "not needed: the load of the value that it replaces acquires already"),
];

/// The one thing that needs them is that who saw a stamp takes a later snapshot.
const CLOCK_OR_STAMP: &str = "one of two is not needed: a release in clock.snapshot that clock.read acquires, or one \
    in stamp.set that stamp.read acquires";

/// The models, in the process that runs one.
fn model(args: &[&str]) -> Output {
    let mut model = Command::new(env!("CARGO_BIN_EXE_model"));
    model.args(args).env("RUST_BACKTRACE", "0").output().expect("the program of the models runs")
}

/// What a failed model said first: the line after the one that names the place.
fn complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let mut lines = said.lines().skip_while(|line| !line.contains("panicked at"));
    lines.nth(1).unwrap_or_default().to_owned()
}

/// Catches an ordering that was added, changed or removed, and not thought about here.
#[test]
fn every_weakening_is_killed_or_excused() {
    let sites = sites();
    assert_eq!(sites.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len(), sites.len(), "one ordering a name");
    let of = |(name, promise): &(String, String)| {
        let promise = ordering(promise).expect("an ordering that the models know");
        weaker(promise).iter().map(|to| (name.clone(), format!("{to:?}"))).collect::<Vec<_>>()
    };
    let possible: BTreeSet<_> = sites.iter().flat_map(of).collect();
    let listed = KILLED.iter().chain(EXCUSED).map(|(site, to, _)| ((*site).to_owned(), (*to).to_owned()));
    assert_eq!(
        possible,
        listed.clone().collect::<BTreeSet<_>>(),
        "in the sources on the left, listed here on the right"
    );
    assert_eq!(possible.len(), listed.count(), "listed twice");
}

/// Catches an ordering that could be dropped without anything noticing: of the source, or of the models.
#[test]
fn each_weakening_is_killed_by_its_model() {
    let mut survivors = Vec::new();
    println!("{:20} {:8} {:50} what it said", "site", "to", "killed by");
    for (site, to, name) in KILLED {
        let weakening: Weakening = format!("{site}={to}").parse().expect("a site and an ordering");
        let output = model(&[name, "--preemptions", "2", "--weaken", &weakening.to_string()]);
        let complaint = complaint(&output);
        println!("{site:20} {to:8} {name:50} {complaint}");
        if output.status.success() || complaint.is_empty() {
            survivors.push(weakening);
        }
    }
    assert!(survivors.is_empty(), "survived: {survivors:?}");
}

/// Catches a killer that fails by itself.
#[test]
fn the_models_that_kill_pass_when_nothing_is_weakened() {
    for name in KILLED.iter().map(|(_, _, name)| *name).collect::<BTreeSet<_>>() {
        let output = model(&[name, "--preemptions", "2"]);
        assert!(output.status.success(), "{name}: {}", complaint(&output));
    }
}

/// Catches an excuse that is none: a model fails after all, and belongs into `KILLED`. In campaigns only, for its
/// length.
#[cfg(not(debug_assertions))]
#[test]
fn no_model_kills_what_is_excused() {
    for (site, to, reason) in EXCUSED {
        println!("{site} -> {to}: {reason}");
        for model_of in loom_tests::models::ALL {
            let output = model(&[model_of.name, "--preemptions", "2", "--weaken", &format!("{site}={to}")]);
            assert!(output.status.success(), "{site} -> {to} is killed by {}: {}", model_of.name, complaint(&output));
        }
    }
}
