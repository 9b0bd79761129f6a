//! A cluster under load suffers faults, round after round. Afterwards it has every acknowledged write, and all nodes have the same data.
//!
//! `CLUSTER_ROUNDS=n` sets the number of rounds, `KILL_SEED=n` repeats the choices of a run, and `CLUSTER_HISTORY=DIR` keeps the
//! histories for `mini-engine/cluster/check/run DIR`, which checks whether they are linearizable.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use proof::Random;
use proof::environment::number;

use super::client::{get, reader};
use super::faults::Fault;
use super::history::Op;
use super::load::{CLIENTS, Load, Worker};
use super::nodes::Cluster;
use crate::support::{check_says, kill_seed, wait_for};

const ROUNDS: u64 = 3;
const NODES: usize = 3;
/// The most acknowledged writes before a fault, and the number in each wait for the cluster to go on.
const BEFORE: usize = 500;
const ONWARD: u64 = 50;
/// The longest duration of a fault.
const LONGEST_MILLIS: usize = 1500;

/// Waits until `writes` more writes are acknowledged.
fn wait_onward(load: &Load, cluster: &mut Cluster, writes: u64, what: &str) {
    let before = load.acknowledged.load(Ordering::Relaxed);
    wait_for(what, || {
        cluster.nodes.iter_mut().for_each(|node| _ = node.runs());
        load.acknowledged.load(Ordering::Relaxed) >= before + writes
    });
}

/// Causes faults of the cluster while its clients work.
fn harm(load: &Load, cluster: &mut Cluster, random: &mut Random) -> Vec<Fault> {
    wait_onward(load, cluster, 1 + random.index(BEFORE) as u64, "the cluster works before a fault");
    let leader = cluster.leader_of("probe");
    let faults = Fault::draw(load.round, random, leader, NODES);
    faults.iter().for_each(|fault| fault.begin(cluster));
    thread::sleep(Duration::from_millis(random.index(LONGEST_MILLIS) as u64));
    if Fault::leave_majority(&faults, NODES) {
        wait_onward(load, cluster, ONWARD, &format!("the others go on beside {faults:?}"));
    }
    faults.iter().for_each(|fault| fault.end(cluster));
    wait_onward(load, cluster, ONWARD, &format!("the cluster goes on after {faults:?}"));
    faults
}

/// Checks that every acknowledged write is stored.
fn check(load: &Load, cluster: &Cluster, workers: &[Worker], context: &str) {
    let mut client = cluster.client();
    for key in load.shared_keys() {
        load.operate(&mut client, CLIENTS, &key, Op::Get);
    }
    for worker in workers {
        let (found, range) = (client.must::<Option<i64>>(&["GET", &worker.counter()]), worker.counted());
        let found = found.unwrap_or(0);
        assert!(range.contains(&found), "{context}: {}: expected {range:?}, found {found}", worker.counter());
        for number in &worker.written[worker.earlier..] {
            let key = worker.key(*number);
            assert_eq!(client.get(&key), Some(number.to_string()), "{context}: {key}");
        }
    }
}

/// Checks that every node has the leader's data, once it has caught up.
fn check_same(load: &Load, cluster: &Cluster, workers: &[Worker]) {
    let mut client = cluster.client();
    let lines = workers.iter().flat_map(|worker| worker.written[worker.earlier..].iter().map(|n| worker.key(*n)));
    let others = workers.iter().flat_map(|worker| [worker.counter(), worker.brief()]);
    let keys: Vec<String> = load.shared_keys().chain(others).chain(lines).collect();
    for address in cluster.addresses() {
        let mut reader = reader(address);
        for key in &keys {
            // Keys that expire meanwhile expire on all nodes at the next request to the leader.
            wait_for("a node shows what the leader shows", || {
                get(&mut reader, key).is_ok_and(|found| found == client.get(key))
            });
        }
    }
    let checked = cluster.admin(&format!("check {}", cluster.nodes[0].advertised)).text();
    check_says(&checked, "replicas|equal");
}

#[test]
fn no_acknowledged_write_is_lost_whatever_stops() {
    // Catches an acknowledgement before a majority has the write, an entry that is applied twice or not on every node, a vote that a kill takes back,
    // and a cluster that does not go on.
    let seed = kill_seed();
    let mut random = Random(seed);
    let rounds = number("CLUSTER_ROUNDS").unwrap_or(ROUNDS) as usize;
    let mut cluster = Cluster::new(NODES, 1 + random.index(2));
    let mut workers: Vec<Worker> = (0..CLIENTS).map(|number| Worker::new(number, seed)).collect();
    let mut sums = [0; 2];
    for round in 0..rounds {
        let load = Load::new(round, cluster.addresses());
        let faults = thread::scope(|threads| {
            for worker in &mut workers {
                let load = &load;
                threads.spawn(move || worker.run(load));
            }
            let harmed = catch_unwind(AssertUnwindSafe(|| harm(&load, &mut cluster, &mut random)));
            // Also if the test fails.
            load.stop.store(true, Ordering::Relaxed);
            harmed.unwrap_or_else(|panic| resume_unwind(panic))
        });
        let counts = [&load.acknowledged, &load.unknown].map(|count| count.load(Ordering::Relaxed));
        let context = format!("round {round}: {faults:?}: {} writes acknowledged, {} unknown", counts[0], counts[1]);
        println!("{context}");
        check(&load, &cluster, &workers, &context);
        check_same(&load, &cluster, &workers);
        if round + 1 < rounds {
            workers.iter_mut().for_each(|worker| worker.earlier = worker.written.len());
        } else {
            // The last check covers the keys of all rounds.
            workers.iter_mut().for_each(|worker| worker.earlier = 0);
            check_same(&load, &cluster, &workers);
            check(&load, &cluster, &workers, &context);
        }
        load.history.end();
        sums = [sums[0] + counts[0], sums[1] + counts[1]];
    }
    println!("{rounds} rounds: {} writes acknowledged, 0 lost, {} of unknown outcome", sums[0], sums[1]);
    for node in 0..NODES {
        assert!(cluster.end(node), "{}", cluster.nodes[node].said());
    }
}
