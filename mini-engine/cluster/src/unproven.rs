//! [`Unproven`]: the connections before their proof of the secret. Anyone can make such a connection and be silent, so their number is bounded.
//!
//! Beyond a bound the oldest one is closed: a node proves itself in a few round trips, so an old one is not a node's. If new ones had to wait instead,
//! silent connections would keep nodes away. The bound for each address protects nodes from a flood of another address.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use tokio::task::AbortHandle;

/// A node that is started makes some connections for each group, at once.
const MOST_OF_ADDRESS: usize = 256;
pub(crate) const MOST_UNPROVEN: usize = 512;

/// Held by a connection until it has proved itself.
pub(crate) type Place = Arc<()>;

/// The connections that have not proved themselves, the newest last.
#[derive(Default)]
pub(crate) struct Unproven(VecDeque<(IpAddr, Weak<()>, AbortHandle)>);

impl Unproven {
    /// Adds the connection of a task, which holds `place`. Closes the oldest one of this address, or of all, if there are too many.
    pub(crate) fn add(&mut self, address: IpAddr, place: Weak<()>, task: AbortHandle) {
        self.0.retain(|(_, place, _)| place.strong_count() > 0);
        self.close_oldest(MOST_OF_ADDRESS, |of| of == address);
        self.close_oldest(MOST_UNPROVEN, |_| true);
        self.0.push_back((address, place, task));
    }

    fn close_oldest(&mut self, most: usize, counts: impl Fn(IpAddr) -> bool) {
        if self.0.iter().filter(|(address, ..)| counts(*address)).count() >= most
            && let Some(oldest) = self.0.iter().position(|(address, ..)| counts(*address))
            && let Some((.., task)) = self.0.remove(oldest)
        {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::Ipv4Addr;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn the_oldest_is_closed_and_no_address_takes_all_places() {
        // Catches silent connections that keep a node away, and a connection that is closed although it has proved itself.
        let (mut unproven, mut tasks, mut places) = (Unproven::default(), JoinSet::new(), Vec::new());
        let mut add = |address: u8| {
            let place = Place::default();
            let task = tasks.spawn(pending::<()>());
            unproven.add(Ipv4Addr::new(10, 0, 0, address).into(), Arc::downgrade(&place), task.clone());
            places.push(place);
            task
        };
        let settle = async || {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        };
        let node = add(1);
        let flood: Vec<AbortHandle> = (0..2 * MOST_OF_ADDRESS).map(|_| add(2)).collect();
        settle().await;
        assert!(!node.is_finished());
        let (old, new) = flood.split_at(MOST_OF_ADDRESS);
        assert!(old.iter().all(AbortHandle::is_finished) && !new.iter().any(AbortHandle::is_finished));
        let others: Vec<AbortHandle> = (0..MOST_OF_ADDRESS).map(|n| add(3 + (n % 200) as u8)).collect();
        settle().await;
        assert!(node.is_finished() && !others[0].is_finished());
        // The others have proved themselves, and given their places back.
        places.clear();
        unproven.add(Ipv4Addr::LOCALHOST.into(), Weak::new(), tasks.spawn(pending()));
        settle().await;
        assert!(unproven.0.len() == 1 && !new[0].is_finished() && !others[1].is_finished());
    }
}
