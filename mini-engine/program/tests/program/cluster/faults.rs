//! The faults of a cluster in a round.

use proof::Random;
use rustix::process::Signal;

use super::nodes::Cluster;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Kills nodes by SIGKILL, and starts them when the fault ends.
    Kill(Vec<usize>),
    /// Pauses a node by SIGSTOP, and continues it by SIGCONT.
    Pause(usize),
    /// Cuts all links between the node and the others.
    Isolate(usize),
    /// The first node cannot connect to the second.
    OneWay(usize, usize),
    /// Delays each sync of a node.
    SlowDisk(usize),
}

impl Fault {
    /// The faults of a round. The first rounds have faults that every cluster must survive; later rounds have one or two random faults.
    pub(super) fn draw(round: usize, random: &mut Random, leader: usize, nodes: usize) -> Vec<Fault> {
        match round {
            0 => vec![Fault::Kill(vec![leader])],
            1 => vec![Fault::Isolate(leader)],
            2 => vec![Fault::Kill((0..nodes).collect())],
            _ => {
                let first = Self::random(random, leader, nodes);
                let second = Self::random(random, leader, nodes);
                // A node has one fault at a time.
                let is_second = random.index(3) == 0 && !first.nodes().iter().any(|node| second.nodes().contains(node));
                if is_second { vec![first, second] } else { vec![first] }
            }
        }
    }

    fn random(random: &mut Random, leader: usize, nodes: usize) -> Fault {
        // Half of the faults affect the leader.
        let node = if random.index(2) == 0 { leader } else { random.index(nodes) };
        let other = (node + 1 + random.index(nodes - 1)) % nodes;
        match random.index(10) {
            0..3 => Fault::Kill(vec![node]),
            3 => Fault::Kill((0..nodes).collect()),
            4..6 => Fault::Pause(node),
            6..8 => Fault::Isolate(node),
            8 => Fault::OneWay(node, other),
            _ => Fault::SlowDisk(node),
        }
    }

    fn nodes(&self) -> Vec<usize> {
        match self {
            Self::Kill(nodes) => nodes.clone(),
            Self::Pause(node) | Self::Isolate(node) | Self::SlowDisk(node) => vec![*node],
            Self::OneWay(from, to) => vec![*from, *to],
        }
    }

    /// Whether the faults leave more than half of the nodes intact, so that the cluster must go on.
    pub(super) fn leave_majority(faults: &[Fault], nodes: usize) -> bool {
        let concerned: usize = faults.iter().map(|fault| fault.nodes().len()).sum();
        (nodes - concerned.min(nodes)) * 2 > nodes
    }

    pub(super) fn begin(&self, cluster: &mut Cluster) {
        match self {
            Self::Kill(nodes) => nodes.iter().for_each(|node| cluster.kill(*node)),
            Self::Pause(node) => cluster.nodes[*node].signal(Signal::STOP),
            Self::Isolate(node) => cluster.links.isolate(*node),
            Self::OneWay(from, to) => cluster.links.cut(*from, *to),
            Self::SlowDisk(node) => cluster.slow_disk(*node),
        }
    }

    pub(super) fn end(&self, cluster: &mut Cluster) {
        match self {
            Self::Kill(nodes) => nodes.iter().for_each(|node| cluster.start(*node)),
            Self::Pause(node) => cluster.nodes[*node].signal(Signal::CONT),
            Self::Isolate(_) | Self::OneWay(..) => cluster.links.mend(),
            Self::SlowDisk(_) => cluster.fast_disks(),
        }
    }
}
