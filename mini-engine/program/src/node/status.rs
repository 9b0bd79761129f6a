//! The output of `cluster status`: text for people, or JSON.

use std::io::{self, Write};

use indicatif::HumanBytes;
use mini_engine_cluster::{ClockOffset, Description, NodeStatus, Status};
use serde_json::{Value, json};

use crate::size::counted;

/// The milliseconds of error from which on they are shown behind the offset of a clock.
const LARGE_ERROR: u64 = 10;

/// Prints text for people.
pub(crate) fn print(status: &Status, out: &mut dyn Write) -> io::Result<()> {
    let nodes = counted(status.nodes.len() as u64, "node", "nodes");
    let groups = counted(u64::from(status.groups), "group", "groups");
    writeln!(out, "cluster {:016x}: {nodes}, {groups}", status.cluster)?;
    let lines: Vec<[String; 9]> = status.nodes.iter().map(|node| line(status, node)).collect();
    let head =
        ["node", "clients", "nodes", "groups", "role", "lag", "clock", "disk free", "version"].map(str::to_owned);
    let width = |column: usize| lines.iter().chain([&head]).map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 9] = std::array::from_fn(width);
    for line in [&head].into_iter().chain(&lines) {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    for group in 0..status.groups {
        let (first, last) = status.slots(group);
        let nodes: Vec<u64> = status.places.get(group).members().map(|(node, _)| node).collect();
        let place = format!("group {group}: slots {first}-{last}, nodes {}", list(&nodes));
        match status.leader(group).and_then(|leader| Some((leader, status.group(leader, group)?))) {
            Some((leader, found)) => writeln!(
                out,
                "{place}, leader node {leader}, term {}, {}",
                found.term,
                counted(found.last, "log entry", "log entries")
            )?,
            None => writeln!(out, "{place}, no leader")?,
        }
        if !status.has_majority(group) {
            writeln!(
                out,
                "warning: no majority of the voters of group {group} answers; without one it serves no requests"
            )?;
        }
    }
    for node in &status.nodes {
        if let Err(why) = &node.description {
            writeln!(out, "node {} is not there: {why}", node.node)?;
        }
        if node.description.as_ref().is_ok_and(|description| description.lacks_room) {
            writeln!(out, "warning: the disk of node {} is almost full", node.node)?;
        }
        for (group, found) in node.description.iter().flat_map(|description| &description.groups) {
            if found.refuses_growth {
                writeln!(
                    out,
                    "warning: group {group} accepts no writes that add data until keys are removed, disks have room, or --max-bytes is raised"
                )?;
            }
        }
        let ahead = status.clock_ahead(node);
        if ahead != 0 {
            let side = if ahead > 0 { "ahead" } else { "behind" };
            let seconds = ahead.unsigned_abs() / 1000;
            let leads = if led_by(status, node).is_empty() { "if it leads" } else { "it leads" };
            writeln!(
                out,
                "warning: the clock of node {} is {seconds} s {side}; {leads}, keys expire by it",
                node.node
            )?;
        }
    }
    Ok(())
}

fn line(status: &Status, node: &NodeStatus) -> [String; 9] {
    let unknown = || "-".to_owned();
    let groups = status.groups_of(node.node);
    let lags = groups.iter().map(|group| status.lag(node.node, *group));
    // The largest lag of the node's groups.
    let lag = lags.collect::<Option<Vec<_>>>().and_then(|lags| lags.into_iter().max());
    let description = node.description.as_ref().ok();
    let disk = description.and_then(|description| description.disk_free);
    let version = description.map(|Description { release, protocol, .. }| format!("{release} (protocol {protocol})"));
    [
        node.node.to_string(),
        node.member.clients.clone(),
        node.member.cluster.clone(),
        list(&groups),
        role(status, node),
        lag.map_or_else(unknown, |lag| lag.to_string()),
        node.clock.map_or_else(unknown, shown),
        disk.map_or_else(unknown, |bytes| HumanBytes(bytes).to_string()),
        version.unwrap_or_else(unknown),
    ]
}

fn shown(ClockOffset { millis, within }: ClockOffset) -> String {
    if within < LARGE_ERROR { format!("{millis:+} ms") } else { format!("{millis:+} ms ±{within}") }
}

fn led_by(status: &Status, node: &NodeStatus) -> Vec<u32> {
    (0..status.groups).filter(|group| status.leader(*group) == Some(node.node)).collect()
}

fn role(status: &Status, node: &NodeStatus) -> String {
    if node.description.is_err() {
        return "not there".into();
    }
    let (groups, led) = (status.groups_of(node.node), led_by(status, node));
    match (led.is_empty(), status.groups) {
        (true, _) if groups.is_empty() => "none".into(),
        (true, _) if status.votes(node.node) => "follower".into(),
        (true, _) => "learner".into(),
        (false, 1) => "leader".into(),
        (false, _) => format!("leader of {}", list(&led)),
    }
}

fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// The status as JSON, for programs.
pub(crate) fn to_json(status: &Status) -> Value {
    let nodes = status.nodes.iter().map(|node| {
        let description = node.description.as_ref().ok();
        let groups = status.groups_of(node.node).into_iter().map(|group| {
            let found = status.group(node.node, group);
            json!({
                "group": group,
                "is_leader": status.leader(group) == Some(node.node),
                "leader": found.and_then(|found| found.leader),
                "term": found.map(|found| found.term),
                "last": found.map(|found| found.last),
                "applied": found.map(|found| found.applied),
                "lag": status.lag(node.node, group),
                "refuses_growth": found.map(|found| found.refuses_growth),
            })
        });
        json!({
            "node": node.node,
            "clients": node.member.clients,
            "cluster": node.member.cluster,
            "error": node.description.as_ref().err(),
            "clock_offset_ms": node.clock.map(|offset| offset.millis),
            "clock_offset_within_ms": node.clock.map(|offset| offset.within),
            "clock_ahead_ms": status.clock_ahead(node),
            "disk_free": description.and_then(|description| description.disk_free),
            "lacks_room": description.map(|description| description.lacks_room),
            "version": description.map(|description| &description.release),
            "protocol": description.map(|description| [description.protocol.oldest, description.protocol.newest]),
            "groups": groups.collect::<Vec<_>>(),
        })
    });
    let groups = (0..status.groups).map(|group| {
        let (first, last) = status.slots(group);
        let nodes: Vec<u64> = status.places.get(group).members().map(|(node, _)| node).collect();
        json!({
            "group": group,
            "first_slot": first,
            "last_slot": last,
            "leader": status.leader(group),
            "nodes": nodes,
            "has_majority": status.has_majority(group),
        })
    });
    json!({
        "cluster": format!("{:016x}", status.cluster),
        "groups": groups.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
    })
}
