//! [`House`]: what the connections of clients share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mini_engine_server::Limits;
use mini_engine_server::replicated::Front;
use tokio::sync::watch;

use super::budget::Budget;
use crate::local::Groups;
use crate::settings::Clients;

/// What the connections of clients share.
pub(super) struct House {
    pub(super) groups: Arc<Groups>,
    pub(super) front: Front,
    pub(super) budget: Budget,
    /// A client that says nothing for so long is disconnected.
    pub(super) idle: Option<Duration>,
}

impl House {
    pub(super) fn new(groups: Arc<Groups>, address: SocketAddr, clients: &Clients) -> Self {
        let Clients { password, without_password, limits, .. } = clients.clone();
        let settings = mini_engine_server::Settings {
            password,
            without_password,
            limits,
            ..mini_engine_server::Settings::default()
        };
        let Limits { buffer_bytes, idle_seconds, .. } = limits;
        let address = (address.ip().to_string(), address.port());
        let front = Front::new(settings, groups.all.len() as u16, address, groups.all[0].db());
        let idle = (idle_seconds > 0).then(|| Duration::from_secs(idle_seconds));
        Self { groups, front, budget: Budget::new(buffer_bytes), idle }
    }
}

/// Waits until the node stops.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The node is gone: it has stopped, too.
    drop(stop.wait_for(|stop| *stop).await);
}
