//! The metrics of the groups on this node, for Prometheus. All figures are there already, in openraft or the engine.

use mini_engine_server::replicated::Gauge;

use crate::local::Local;
use crate::space::table_bytes;

pub(crate) fn gauges(local: &Local) -> Vec<Gauge> {
    let mut of_groups = [
        ("cluster_is_leader", "Whether this node leads the group."),
        ("cluster_is_served", "Whether this node hears a leader, or leads and hears a majority."),
        ("cluster_term", "The term."),
        ("cluster_voters", "Members that vote."),
        ("cluster_log_last_index", "The index of the last log entry."),
        ("cluster_applied_index", "The index of the last applied log entry."),
    ]
    .map(|(name, help)| (name, help, Vec::new()));
    let mut of_members = Vec::new();
    let groups = local.groups();
    for (number, group) in groups.iter().flat_map(|groups| groups.here().as_ref().clone()) {
        let (found, is_leader) = (group.describe(), u64::from(group.leads().is_ok()));
        let (is_served, voters) = (u64::from(group.is_served()), found.membership.voters.len() as u64);
        let values = [is_leader, is_served, found.term, voters, found.last, found.applied];
        for ((.., samples), value) in of_groups.iter_mut().zip(values) {
            samples.push((format!("{{group=\"{number}\"}}"), value));
        }
        let lag =
            |(node, stored)| (format!("{{group=\"{number}\",member=\"{node}\"}}"), found.last.saturating_sub(stored));
        of_members.extend(found.matched.into_iter().map(lag));
    }
    let logs = local.parts.logs.db();
    let bytes = logs.metrics().memtable_bytes + table_bytes(logs);
    let others: [Gauge; 2] = [
        ("cluster_member_lag_entries", "On the leader: log entries that a member has not stored.", of_members),
        (
            "cluster_log_bytes",
            "Bytes of the logs of all groups, in memtables and tables.",
            vec![(String::new(), bytes)],
        ),
    ];
    of_groups.into_iter().chain(others).collect()
}
