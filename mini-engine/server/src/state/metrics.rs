//! The metrics in the text format of Prometheus. They contain only numbers and names of commands: no key and no value of a client.

use std::fmt::{Display, Write};

use mini_engine::LevelMetrics;

use super::command_stats::CommandStat;
use super::figures::{COUNTER, FIGURES, Facts, GAUGE};
use super::refused::Cause;
use super::shared::Shared;

/// All metrics.
pub(crate) fn text(shared: &Shared) -> String {
    let (facts, mut text) = (Facts::new(shared), String::new());
    for figure in FIGURES {
        if let Some(metric) = figure.metric {
            family(&mut text, metric, [(String::new(), (figure.value)(&facts))]);
        }
    }
    of_server(&facts, &mut text);
    let of_levels = |value: fn(&LevelMetrics) -> u64| {
        let levels = facts.metrics.levels.iter().enumerate();
        levels.map(move |(level, metrics)| (format!("{{level=\"{level}\"}}"), value(metrics)))
    };
    family(&mut text, [GAUGE, "level_tables", "Tables of a level."], of_levels(|level| level.tables));
    family(&mut text, [GAUGE, "level_bytes", "Bytes of the tables of a level."], of_levels(|level| level.bytes));
    text
}

/// The metrics that concern the server and have labels, or are there only in a cluster.
fn of_server(facts: &Facts<'_>, text: &mut String) {
    let shared = facts.shared;
    if let Some(standing) = shared.standing() {
        let ahead = [(String::new(), standing.clock_ahead as f64 / 1000.0)];
        family(
            text,
            [GAUGE, "cluster_clock_ahead_seconds", "By how much the clock is ahead of most nodes' clocks."],
            ahead,
        );
        let lacks = [(String::new(), u8::from(standing.lacks_room))];
        family(text, [GAUGE, "cluster_lacks_room", "Whether there is no room for more data of a group."], lacks);
    }
    for (name, help, samples) in shared.cluster.iter().flat_map(|cluster| cluster.gauges()) {
        family(text, [GAUGE, name, help], samples);
    }
    let cpu = ["user", "system"].map(|mode| format!("{{mode=\"{mode}\"}}")).into_iter().zip(facts.cpu_seconds());
    family(text, [COUNTER, "cpu_seconds_total", "Time that the process has computed."], cpu);
    let counted = |(reason, cause)| (format!("{{reason=\"{reason}\"}}"), shared.counters.refused.count(cause));
    let refusals = Cause::REFUSALS.map(counted);
    family(text, [COUNTER, "refused_total", "Connections and passwords that were refused."], refusals);
    let disconnections = Cause::DISCONNECTIONS.map(counted);
    family(text, [COUNTER, "disconnected_total", "Clients that were disconnected."], disconnections);
    let of_commands = |value: fn(&CommandStat) -> String| {
        let stats = shared.counters.stats.called();
        stats.map(move |stat| (format!("{{command=\"{}\"}}", stat.name.to_lowercase()), value(stat)))
    };
    let calls = of_commands(|stat| stat.calls.to_string());
    family(text, [COUNTER, "commands_total", "Commands that were carried out."], calls);
    let failed = of_commands(|stat| stat.failed.to_string());
    family(text, [COUNTER, "command_errors_total", "Commands that were answered with an error."], failed);
    let seconds = of_commands(|stat| (stat.nanos as f64 / 1e9).to_string());
    family(text, [COUNTER, "command_seconds_total", "Time that commands took, without waits for a sync."], seconds);
}

/// Appends a metric of this type, name and description, with a sample for each set of labels.
fn family(text: &mut String, [kind, name, help]: [&str; 3], samples: impl IntoIterator<Item = (String, impl Display)>) {
    // Writing to a string does not fail.
    write!(text, "# HELP mini_engine_{name} {help}\n# TYPE mini_engine_{name} {kind}\n").ok();
    for (labels, value) in samples {
        writeln!(text, "mini_engine_{name}{labels} {value}").ok();
    }
}
