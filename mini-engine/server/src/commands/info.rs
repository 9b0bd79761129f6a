//! INFO: the figures of the server and the database.

use std::fmt::Write;

use super::words::is;
use crate::groups::Standing;
use crate::protocol::reply::{Outcome, Reply};
use crate::protocol::request::Args;
use crate::state::context::Context;
use crate::state::databases::Database;
use crate::state::figures::{Facts, of_section};
use crate::state::keyspace::Keyspace;
use crate::state::shared::Shared;

/// All sections, in order; the sections that Redis has come first.
#[rustfmt::skip]
const SECTIONS: [&str; 13] = [
    "Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU", "Cluster", "Keyspace", "Writes", "Damage", "Engine", "Commandstats",
];

/// INFO [section ...]. Without arguments, shows all sections except the one about commands, as in Redis.
pub(super) fn info(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    let is_wanted = |section: &str| {
        let mut words = args.from(1);
        let is_default = section != "Commandstats";
        (words.len() == 0 && is_default)
            || words.any(|word| {
                is(word, section) || is(word, "all") || is(word, "everything") || is_default && is(word, "default")
            })
    };
    let (mut text, facts) = (String::new(), Facts::new(context.shared));
    for section in SECTIONS.into_iter().filter(|section| is_wanted(section)) {
        let gap = if text.is_empty() { "" } else { "\r\n" };
        // Writing to a string does not fail.
        write!(text, "{gap}# {section}\r\n").ok();
        for (name, value) in of_section(section, &facts) {
            write!(text, "{name}:{value}\r\n").ok();
        }
        match section {
            "Commandstats" => command_stats(facts.shared, &mut text),
            "Keyspace" => databases(&facts, &mut text),
            "Replication" => replication(&facts, &mut text),
            "Cluster" => {
                if let Some(standing) = facts.shared.standing() {
                    let lacks_room = u8::from(standing.lacks_room);
                    write!(text, "cluster_clock_ahead_ms:{}\r\n", standing.clock_ahead).ok();
                    write!(text, "cluster_lacks_room:{lacks_room}\r\n").ok();
                }
            }
            _ => {}
        }
    }
    Ok(Reply::Text(text))
}

/// The databases that exist, with the number of their keys. The numbers are estimates: the keys of database 0 include the unflushed keys of all
/// databases; those of the other databases are counted in tables only.
fn databases(Facts { shared, metrics, .. }: &Facts<'_>, text: &mut String) {
    let all = Database::all(&shared.keys.db, shared.settings.databases).unwrap_or_default();
    // A tombstone and the entries that it hides are not keys.
    let keys = |database: &Database| {
        database.stored.approximate_size().map_or(0, |size| size.entries.saturating_sub(2 * size.tombstones))
    };
    let others: Vec<_> = all.iter().skip(1).map(|database| (database.number, keys(database))).collect();
    let rest = metrics.estimated_keys.saturating_sub(others.iter().map(|(_, keys)| keys).sum());
    for (number, keys) in std::iter::once((0, rest)).chain(others) {
        write!(text, "db{number}:keys={keys},expires=0,avg_ttl=0\r\n").ok();
    }
}

/// A server of one node is a master without replicas.
fn replication(facts: &Facts<'_>, text: &mut String) {
    match facts.shared.standing() {
        Some(Standing { followers: None, leader, is_leader_heard, .. }) => {
            let (host, port) = leader.unwrap_or_default();
            let link = if is_leader_heard { "up" } else { "down" };
            write!(text, "role:slave\r\nmaster_host:{host}\r\nmaster_port:{port}\r\nmaster_link_status:{link}\r\n")
                .ok();
            text.push_str("slave_read_only:1\r\nconnected_slaves:0\r\n");
        }
        master => {
            let followers = master.and_then(|master| master.followers).unwrap_or(0);
            write!(text, "role:master\r\nconnected_slaves:{followers}\r\n").ok();
        }
    }
}

fn command_stats(shared: &Shared, text: &mut String) {
    for stat in shared.counters.stats.called() {
        let (name, calls, failed, micros) = (stat.name.to_lowercase(), stat.calls, stat.failed, stat.nanos / 1000);
        let each = stat.nanos as f64 / 1000.0 / calls as f64;
        // Writing to a string does not fail.
        write!(
            text,
            "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={each:.2},rejected_calls=0,failed_calls={failed}\r\n"
        )
        .ok();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::SECTIONS;
    use crate::state::figures::FIGURES;

    #[test]
    fn every_figure_is_in_a_section_and_has_a_name_of_its_own() {
        // Catches a figure that no INFO shows because of the name of its section, and a name that Prometheus would read twice.
        let mut names = BTreeSet::new();
        for figure in FIGURES {
            assert!(figure.info.is_none_or(|(section, _)| SECTIONS.contains(&section)), "{:?}", figure.info);
            let both =
                [figure.info.map(|(_, name)| ("INFO", name)), figure.metric.map(|[_, name, _]| ("metrics", name))];
            both.into_iter().flatten().for_each(|name| assert!(names.insert(name), "{name:?} twice"));
        }
    }
}
