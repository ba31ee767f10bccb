//! TLS between nodes: the certificate of this node, and the authority of all certificates.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio_rustls::rustls::{ClientConfig, Error as RustlsError, RootCertStore, ServerConfig, crypto};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The file with the node's certificate, followed by those between it and the authority.
const CERTIFICATE: &str = "tls.crt";
/// The file with the key of the certificate.
const KEY: &str = "tls.key";
/// The file with the certificates of the authority.
const AUTHORITY: &str = "ca.crt";

/// The reason why TLS between nodes can't be used.
#[derive(Debug, thiserror::Error)]
pub enum NodeTlsError {
    /// A file can't be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// A file has no certificate.
    #[error("{} has no certificate", .0.display())]
    Empty(PathBuf),
    /// The files do not fit each other.
    #[error("{}: {source}", dir.display())]
    Unusable {
        /// The directory of the files.
        dir: PathBuf,
        /// What is wrong with them.
        source: RustlsError,
    },
}

/// TLS between nodes. A node that accepts a connection shows its certificate, and the other node
/// verifies it. The token of nodes then authenticates the request, so clients show no certificate.
#[derive(Clone)]
pub struct NodeTls {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    authority: Arc<Vec<Certificate<'static>>>,
}

impl fmt::Debug for NodeTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeTls").finish_non_exhaustive()
    }
}

impl NodeTls {
    /// Reads the files `tls.crt`, `tls.key` and `ca.crt` (PEM) of a directory, which are named as
    /// in a secret of Kubernetes.
    ///
    /// # Errors
    /// See [`NodeTlsError`].
    pub fn read(dir: &Path) -> Result<Self, NodeTlsError> {
        let unusable = |source| NodeTlsError::Unusable { dir: dir.to_owned(), source };
        let (chain, authority) = (certificates(&dir.join(CERTIFICATE))?, certificates(&dir.join(AUTHORITY))?);
        let path = dir.join(KEY);
        let key = PrivateKeyDer::from_pem_file(&path).map_err(|source| NodeTlsError::File { path, source })?;
        let mut roots = RootCertStore::empty();
        for certificate in &authority {
            roots.add(certificate.clone()).map_err(unusable)?;
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let server = server.and_then(|server| server.with_no_client_auth().with_single_cert(chain, key)).map_err(unusable)?;
        let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(unusable)?;
        let client = client.with_root_certificates(roots).with_no_client_auth();
        let authority = authority.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
        Ok(Self { server: Arc::new(server), client: Arc::new(client), authority: Arc::new(authority) })
    }

    /// Accepts connections of other nodes.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.server))
    }

    /// Connects to other nodes.
    pub(crate) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.client))
    }

    /// The configuration of clients that block.
    pub(crate) fn blocking(&self) -> TlsConfig {
        TlsConfig::builder().root_certs(RootCerts::Specific(Arc::clone(&self.authority))).build()
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, NodeTlsError> {
    let failed = |source| NodeTlsError::File { path: path.to_owned(), source };
    let found: Vec<_> = CertificateDer::pem_file_iter(path).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    if found.is_empty() { Err(NodeTlsError::Empty(path.to_owned())) } else { Ok(found) }
}
