//! [`House`]: what the connections of clients share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mini_engine::Db;
use mini_engine_server::Limits;
use mini_engine_server::replicated::Front;
use tokio::sync::watch;

use super::budget::Budget;
use crate::group::{Group, Refused};
use crate::local::{Groups, Here};
use crate::settings::Clients;

/// What the connections of clients share.
pub(super) struct House {
    pub(super) groups: Arc<Groups>,
    logs: Db,
    pub(super) front: Front,
    pub(super) budget: Budget,
    /// A client that says nothing for so long is disconnected.
    pub(super) idle: Option<Duration>,
    /// Below this sum of bytes, requests are read also from a client that has not taken its replies.
    pub(super) read_ahead_bytes: usize,
}

impl House {
    /// As long as no group is on this node, INFO describes `logs`.
    pub(super) fn new(groups: Arc<Groups>, logs: Db, address: SocketAddr, clients: &Clients) -> Self {
        let Clients { password, without_password, limits, .. } = clients.clone();
        let settings = mini_engine_server::Settings {
            password,
            without_password,
            limits,
            ..mini_engine_server::Settings::default()
        };
        let Limits { buffer_bytes, idle_seconds, .. } = limits;
        let address = (address.ip().to_string(), address.port());
        let front = Front::new(settings, groups.identity.groups as u16, address, logs.clone());
        let idle = (idle_seconds > 0).then(|| Duration::from_secs(idle_seconds));
        let (budget, read_ahead_bytes) = (Budget::new(buffer_bytes), limits.read_ahead_bytes());
        let house = Self { groups, logs, front, budget, idle, read_ahead_bytes };
        house.describe_present();
        house
    }

    /// A group of which this node shows everything that was acknowledged before the call.
    pub(super) async fn settled(&self, number: u32) -> Result<Arc<Group>, Refused> {
        let group = self.groups.get(number).ok_or(Refused::NotLeader(None))?;
        group.settle().await.map(|()| group)
    }

    /// From now on INFO describes the present database of the first group that is here.
    pub(super) fn describe_present(&self) {
        let here = self.groups.here();
        self.front.use_db(here.values().next().map_or_else(|| self.logs.clone(), |group| group.db()));
    }

    /// Waits until that is another one: a snapshot has replaced it, or a group has come or gone since `changes` was looked at.
    pub(super) async fn changed(&self, changes: &mut watch::Receiver<Here>) {
        let here = self.groups.here();
        let replaced = async {
            match here.values().next() {
                Some(group) => group.replaced().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = replaced => {}
            // Its end is that of the node.
            _ = changes.changed() => {}
        }
    }
}

/// Waits until the node stops.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The node is gone: it has stopped, too.
    drop(stop.wait_for(|stop| *stop).await);
}
