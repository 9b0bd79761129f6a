//! How nodes authenticate each other: the options of `cluster`, and those of `serve`, which have the prefix `cluster-`.

use std::path::{Path, PathBuf};

use clap::Args;
use mini_engine_cluster::{ControlClient, NodeTls, Security};

use crate::failure::Failure;
use crate::password;

/// The options of a command that sends requests to nodes.
#[derive(Args)]
pub(crate) struct SecurityArgs {
    /// The secret of all nodes is in this file; during its change, the new one and the old one, each on a line
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Speak TLS, and show the certificate in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "tls_ca")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Trust certificates that these authorities have signed, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
}

impl SecurityArgs {
    pub(crate) fn client(&self) -> Result<ControlClient, Failure> {
        let security = read(self.secret_file.as_deref(), [&self.tls_cert, &self.tls_key, &self.tls_ca])?;
        Ok(ControlClient::new(&security)?)
    }
}

/// Reads the secret and the files of TLS: a certificate, its key, and the authorities.
pub(super) fn read(secret_file: Option<&Path>, tls: [&Option<PathBuf>; 3]) -> Result<Security, Failure> {
    let tls = match tls {
        [Some(certificates), Some(key), Some(authorities)] => {
            Some(NodeTls { certificates: certificates.clone(), key: key.clone(), authorities: authorities.clone() })
        }
        _ => None,
    };
    let secrets = secret_file.map(password::read_secrets).transpose()?.unwrap_or_default();
    Ok(Security { secrets, tls })
}
