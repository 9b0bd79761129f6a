//! [`Unproven`]: the connections before their proof of the secret. Anyone can make such a connection and be silent, so their number is bounded.
//!
//! Beyond the bound, the oldest connection of the address that has most of them is closed: a node proves itself in a few round trips, so an old one is
//! not a node's. If new ones had to wait instead, silent connections would keep nodes away. A flood closes a node's connection only if it comes from
//! the node's address, or from hundreds of addresses.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Weak};

use tokio::task::AbortHandle;

/// A node that is started makes some connections for each group, at once.
pub(crate) const MOST_UNPROVEN: usize = 512;

/// Held by a connection until it has proved itself.
pub(crate) type Place = Arc<()>;

/// The connections that have not proved themselves, the newest last.
#[derive(Default)]
pub(crate) struct Unproven(VecDeque<(IpAddr, Weak<()>, AbortHandle)>);

impl Unproven {
    /// Adds the connection of a task, which holds `place`. Closes another one if there are too many.
    pub(crate) fn add(&mut self, address: IpAddr, place: Weak<()>, task: AbortHandle) {
        self.0.retain(|(_, place, _)| place.strong_count() > 0);
        if self.0.len() >= MOST_UNPROVEN {
            self.close_one();
        }
        self.0.push_back((network(address), place, task));
    }

    fn close_one(&mut self) {
        let mut counts = HashMap::<IpAddr, usize>::new();
        self.0.iter().for_each(|(address, ..)| *counts.entry(*address).or_default() += 1);
        let most = counts.values().copied().max();
        let oldest = self.0.iter().position(|(address, ..)| counts.get(address).copied() == most);
        if let Some((.., task)) = oldest.and_then(|oldest| self.0.remove(oldest)) {
            task.abort();
        }
    }
}

/// The part of an address that a machine cannot choose by itself: of IPv6 the first 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn the_oldest_connection_of_the_address_with_most_is_closed() {
        // Catches silent connections of some machines that keep a node away, and a connection that is closed although it has proved itself.
        let (mut unproven, mut tasks, mut places) = (Unproven::default(), JoinSet::new(), Vec::new());
        let mut add = |address: String| {
            let place = Place::default();
            let task = tasks.spawn(pending::<()>());
            unproven.add(address.parse().unwrap(), Arc::downgrade(&place), task.clone());
            places.push(place);
            task
        };
        let settle = async || {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        };
        let nodes = ["10.0.0.1", "::ffff:10.0.0.2", "2001:db8::1"].map(|address| add(address.into()));
        // Three machines, one of which has many addresses.
        let address = |n: usize| if n % 3 < 2 { format!("10.0.1.{}", n % 3) } else { format!("2001:db8:0:1::{n:x}") };
        let flood: Vec<AbortHandle> = (0..2 * MOST_UNPROVEN).map(|n| add(address(n))).collect();
        settle().await;
        assert!(!nodes.iter().any(AbortHandle::is_finished));
        let (old, new) = flood.split_at(MOST_UNPROVEN + nodes.len());
        assert!(old.iter().all(AbortHandle::is_finished) && !new.iter().any(AbortHandle::is_finished));
        // The others have proved themselves, and given their places back.
        places.clear();
        unproven.add([127, 0, 0, 1].into(), Weak::new(), tasks.spawn(pending()));
        settle().await;
        assert!(unproven.0.len() == 1 && !nodes[0].is_finished() && !new[0].is_finished());
    }
}
