//! TLS between nodes, with rustls: both sides present a certificate, signed by one of the given authorities.

use std::sync::Arc;

use mini_engine_server::replicated::{certificates, private_key, unusable};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::error::Result;
use crate::settings::NodeTls;

/// The TLS configurations of a node, as a client and as a server.
#[derive(Clone)]
pub(crate) struct BetweenNodes {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) connector: TlsConnector,
}

pub(crate) fn between_nodes(files: &NodeTls) -> Result<BetweenNodes> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(&files.authorities)? {
        roots.add(authority).map_err(unusable(&files.authorities))?;
    }
    let (roots, provider) = (Arc::new(roots), Arc::new(rustls::crypto::ring::default_provider()));
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
        .build()
        .map_err(unusable(&files.authorities))?;
    let (certificates, key) = (certificates(&files.certificates)?, private_key(&files.key)?);
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder.with_client_cert_verifier(verifier).with_single_cert(certificates.clone(), key.clone_key())
        })
        .map_err(unusable(&files.certificates))?;
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_root_certificates(roots).with_client_auth_cert(certificates, key))
        .map_err(unusable(&files.certificates))?;
    Ok(BetweenNodes { acceptor: TlsAcceptor::from(Arc::new(server)), connector: TlsConnector::from(Arc::new(client)) })
}
