//! [`Dialer`]: connects to nodes, with TLS if it is configured, proves that this side has the secret, and introduces a node.

use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error;
use crate::lock::lock;
use crate::settings::Security;
use crate::starts::Starts;
use crate::wire::frames::{Frames, Socket};
use crate::wire::handshake::{self, Audience, Terms};
use crate::wire::message::{Call, CallReply, Numbered, only};
use crate::wire::tls::{self, BetweenNodes};
use crate::wire::version;

/// Longer than connecting to a reachable node takes.
const CONNECT_DEADLINE: Duration = Duration::from_secs(3);

/// Connects to nodes, and accepts connections of nodes.
pub(crate) struct Dialer {
    credentials: Mutex<Arc<Credentials>>,
    /// Those of this node; a command has none.
    pub(crate) starts: Starts,
}

/// What a new connection needs.
pub(crate) struct Credentials {
    terms: Terms,
    tls: Option<BetweenNodes>,
}

impl Credentials {
    pub(crate) fn read(security: &Security) -> error::Result<Self> {
        security.check()?;
        // The empty key proves that there is no secret.
        let secrets = if security.secrets.is_empty() { vec![Vec::new()] } else { security.secrets.clone() };
        let tls = security.tls.as_ref().map(tls::between_nodes).transpose()?;
        Ok(Self { terms: Terms { secrets, versions: version::OWN }, tls })
    }
}

impl Dialer {
    pub(crate) fn new(security: &Security) -> error::Result<Self> {
        let credentials = Mutex::new(Arc::new(Credentials::read(security)?));
        Ok(Self { credentials, starts: Starts::default() })
    }

    /// Replaces the credentials of new connections.
    pub(crate) fn replace(&self, credentials: Credentials) {
        *lock(&self.credentials) = Arc::new(credentials);
    }

    fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(&lock(&self.credentials))
    }

    /// Connects to the node at `address`; if `audience` is given, the node must have this identity. Fails if one side refuses the other's starts.
    pub(crate) async fn connect(&self, address: &str, audience: Audience) -> Result<Frames> {
        self.starts.check()?;
        let Credentials { terms, tls } = &*self.credentials();
        let socket = timeout(CONNECT_DEADLINE, connect_in_time(address, tls.as_ref())).await??;
        let mut frames = Frames::new(socket);
        handshake::ask(&mut frames, terms, audience).await?;
        let Ok(own) = self.starts.introduction() else { return Ok(frames) };
        let introduced = async {
            frames.send(&Numbered { number: 0, body: Call::Introduce(own) }).await?;
            frames.receive::<Numbered<CallReply>>().await
        };
        let reply = timeout(handshake::DEADLINE, introduced).await??.body;
        self.starts.learn(&reply.find(only!(CallReply::Introduced))?).await.map(|()| frames)
    }

    /// Introduces this node to those at these addresses, on connections of their own. Nodes that do not answer in time are left out.
    pub(crate) async fn introduce(&self, addresses: impl Iterator<Item = &String>, deadline: Duration) {
        join_all(addresses.map(|address| timeout(deadline, self.connect(address, None)))).await;
    }

    /// Completes the handshake of an accepted connection. `own` is this node's identity.
    pub(crate) async fn accept(&self, stream: TcpStream, own: Audience) -> Result<Frames> {
        let Credentials { terms, tls } = &*self.credentials();
        stream.set_nodelay(true)?;
        let socket: Box<dyn Socket> = match tls {
            None => Box::new(stream),
            Some(tls) => Box::new(timeout(handshake::DEADLINE, tls.acceptor.accept(stream)).await??),
        };
        let mut frames = Frames::new(socket);
        handshake::answer(&mut frames, terms, own).await?;
        Ok(frames)
    }
}

async fn connect_in_time(address: &str, tls: Option<&BetweenNodes>) -> Result<Box<dyn Socket>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| Error::new(ErrorKind::InvalidInput, format!("{host} is no name of a host: {error}")))?;
    Ok(Box::new(tls.connector.connect(name, stream).await?))
}
