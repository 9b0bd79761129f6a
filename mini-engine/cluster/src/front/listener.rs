//! Lets clients in.

use std::io::{Error, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mini_engine_server::replicated::{Cause, keep_alive};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::connection::Connection;
use super::house::{House, stopped};
use crate::error;
use crate::local::Local;
use crate::settings::Clients;
use crate::wire::frames::Socket;
use crate::wire::tls;

/// A client has so long to begin with TLS.
const TLS_DEADLINE: Duration = Duration::from_secs(10);
/// Connections have so long for the requests that are under way when the node stops.
const LAST_REQUESTS: Duration = Duration::from_secs(6);
/// A pause after a failure to accept: it is want of handles, mostly.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause between looks for something to log.
const TICK: Duration = Duration::from_millis(500);
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";
const NO_CLUSTER: &[u8] =
    b"-CLUSTERDOWN The cluster is down: this node is in no cluster yet; `mini-engine cluster init` makes one\r\n";

/// How clients get in.
pub(crate) struct Doors {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) settings: Clients,
    pub(crate) stop: watch::Receiver<bool>,
}

/// Serves clients until the doors' `stop` says so, and then their last requests.
pub(crate) async fn run(local: Arc<Local>, doors: Doors) -> error::Result<()> {
    let tls = doors.settings.tls.as_ref().map(tls::for_clients).transpose()?;
    let (mut stop, mut becomes) = (doors.stop.clone(), local.watch());
    let (mut house, mut changes, mut connections) = (None::<Arc<House>>, None, JoinSet::new());
    let mut ticks = interval(TICK);
    loop {
        if house.is_none()
            && let Some(groups) = local.groups()
        {
            changes = Some(groups.watch());
            let logs = local.parts.logs.db().clone();
            house = Some(Arc::new(House::new(groups, logs, doors.address, &doors.settings)));
        }
        let changed = async {
            match (&house, &mut changes) {
                (Some(house), Some(changes)) => house.changed(changes).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stopped(&mut stop) => break,
            () = changed => house.iter().for_each(|house| house.describe_present()),
            _ = becomes.changed(), if house.is_none() => {}
            _ = ticks.tick() => log_news(house.as_deref()),
            Some(_) = connections.join_next() => {}
            accepted = doors.listener.accept() => match accepted {
                Ok((stream, peer)) if connections.len() >= doors.settings.limits.clients => {
                    let why = format_args!("there are already {} clients", connections.len());
                    house.iter().for_each(|house| house.front.note(Cause::Clients, &peer.to_string(), why));
                    turn_away(stream, tls.is_some());
                }
                Ok((stream, peer)) => {
                    let client = Client { stream, addresses: [peer, doors.address].map(|address| address.to_string()) };
                    connections.spawn(let_in(client, house.clone(), tls.clone(), doors.stop.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection of a client");
                    sleep(PAUSE).await;
                }
            },
        }
    }
    drop(doors);
    timeout(LAST_REQUESTS, async { while connections.join_next().await.is_some() {} }).await.ok();
    connections.shutdown().await;
    log_news(house.as_deref());
    Ok(())
}

/// Logs who was refused or disconnected.
fn log_news(house: Option<&House>) {
    house.into_iter().flat_map(|house| house.front.news()).for_each(|line| tracing::warn!("{line}"));
}

/// Ends a connection that is one too many, at once: it must not take a file handle any longer.
fn turn_away(stream: TcpStream, is_tls: bool) {
    if let (false, Ok(mut stream)) = (is_tls, stream.into_std()) {
        // Whoever does not read it learns from the end of the connection.
        stream.write_all(TOO_MANY).ok();
    }
}

struct Client {
    stream: TcpStream,
    addresses: [String; 2],
}

async fn let_in(client: Client, house: Option<Arc<House>>, tls: Option<TlsAcceptor>, stop: watch::Receiver<bool>) {
    let peer = client.addresses[0].clone();
    let served = async {
        client.stream.set_nodelay(true)?;
        keep_alive(&client.stream)?;
        let mut socket: Box<dyn Socket> = match tls {
            None => Box::new(client.stream),
            Some(tls) => {
                let shaken = timeout(TLS_DEADLINE, tls.accept(client.stream)).await?;
                Box::new(shaken.inspect_err(|error| {
                    if error.kind() == ErrorKind::InvalidData {
                        let why = format_args!("TLS: {error}");
                        house.iter().for_each(|house| house.front.note(Cause::Handshake, &peer, why));
                    }
                })?)
            }
        };
        match house {
            Some(house) => Connection::run(house, socket, client.addresses, stop).await,
            None => {
                timeout(TLS_DEADLINE, socket.write_all(NO_CLUSTER)).await??;
                timeout(TLS_DEADLINE, socket.shutdown()).await?
            }
        }
    };
    let ended: Result<(), Error> = served.await;
    if let Err(error) = ended {
        tracing::debug!(peer, %error, "a client's connection has ended");
    }
}
