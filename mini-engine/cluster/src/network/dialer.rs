//! [`Dialer`]: connects to nodes, with TLS if it is configured, and proves that this side has the secret.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error;
use crate::settings::Security;
use crate::wire::frames::{Frames, Socket};
use crate::wire::handshake::{self, Audience};
use crate::wire::tls::{self, BetweenNodes};

/// Longer than connecting to a reachable node takes.
const CONNECT_DEADLINE: Duration = Duration::from_secs(3);

/// Connects to nodes, and accepts connections of nodes.
pub(crate) struct Dialer {
    secret: Vec<u8>,
    tls: Option<BetweenNodes>,
}

impl Dialer {
    pub(crate) fn new(security: &Security) -> error::Result<Self> {
        let tls = security.tls.as_ref().map(tls::between_nodes).transpose()?;
        Ok(Self { secret: security.secret.clone().unwrap_or_default(), tls })
    }

    /// Connects to the node at `address`; if `audience` is given, the node must have this identity.
    pub(crate) async fn connect(&self, address: &str, audience: Audience) -> Result<Frames> {
        let socket = timeout(CONNECT_DEADLINE, self.connect_in_time(address)).await??;
        let mut frames = Frames::new(socket);
        handshake::ask(&mut frames, &self.secret, audience).await?;
        Ok(frames)
    }

    async fn connect_in_time(&self, address: &str) -> Result<Box<dyn Socket>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| Error::new(ErrorKind::InvalidInput, format!("{host} is no name of a host: {error}")))?;
        Ok(Box::new(tls.connector.connect(name, stream).await?))
    }

    /// Completes the handshake of an accepted connection. `own` is this node's identity.
    pub(crate) async fn accept(&self, stream: TcpStream, own: Audience) -> Result<Frames> {
        stream.set_nodelay(true)?;
        let socket: Box<dyn Socket> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(timeout(handshake::DEADLINE, tls.acceptor.accept(stream)).await??),
        };
        let mut frames = Frames::new(socket);
        handshake::answer(&mut frames, &self.secret, own).await?;
        Ok(frames)
    }
}
