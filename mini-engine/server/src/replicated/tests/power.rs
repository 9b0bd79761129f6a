//! A node that has lost power applies the entries again that its database has lost.

use proptest::prelude::*;

use super::*;

const REQUESTS: [&str; 9] = [
    "incr k",
    "incr l",
    "incrby m 5",
    "set k 1 px 30",
    "set l 7 px 10",
    "set m 2",
    "pexpire k 20",
    "persist l",
    "getdel m",
];

#[derive(Clone, Debug)]
enum Step {
    /// A request, this number of milliseconds after the previous one.
    Propose(u64, &'static str),
    /// An edit of the manifest that makes no entry durable, like the one at the end of a flush or a compaction.
    Edit,
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let propose = (0..20u64, prop::sample::select(&REQUESTS[..])).prop_map(|(after, line)| Step::Propose(after, line));
    prop_oneof![8 => propose, 1 => Just(Step::Edit), 1 => Just(Step::Flush)]
}

fn on(mem: &MemFs) -> Node {
    Node::open(mem.clone(), 1, Settings::default())
}

proptest! {
    #[test]
    fn a_node_that_lost_power_ends_as_the_others(steps in prop::collection::vec(step(), 1..40), seed in any::<u64>()) {
        // Catches a database that has kept a later instant than that of the surviving entries: when the entries are applied again, keys would have
        // expired that the other nodes still found.
        let (mem, mut at, mut log) = (MemFs::default(), LONG_AGO, Vec::new());
        let mut node = on(&mem);
        for (place, step) in steps.iter().enumerate() {
            match step {
                Step::Propose(after, line) => {
                    at += after;
                    log.push((at, *line, node.write(at, &[line])));
                }
                Step::Edit => drop(node.db.keyspace(&format!("edit {place}")).expect("a sound disk")),
                Step::Flush => node.db.flush().expect("a sound disk"),
            }
        }
        // Both nodes end at the instant of the last proposal; a proposal that does not read raises the instant only with the next one.
        node.propose(at, Vec::new());
        let expected = node.contents();
        let (left, _) = mem.disk().after_power_cut(seed);
        let mut node = on(&MemFs::on(left));
        for (at, line, replies) in log.iter().skip(node.applied as usize) {
            prop_assert_eq!(&node.write(*at, &[line]), replies, "{} at {}", line, at);
        }
        node.propose(at, Vec::new());
        prop_assert_eq!(node.contents(), expected);
    }
}
