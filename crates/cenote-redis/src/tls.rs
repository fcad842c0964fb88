//! TLS by rustls.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Which servers are trusted.
#[derive(Clone, Default)]
pub(crate) enum Trust {
    /// Those that the operating system trusts.
    #[default]
    System,
    /// Those with a certificate of these roots, in PEM.
    Roots(Vec<u8>),
    /// Whatever this says.
    Config(Arc<ClientConfig>),
}

/// TLS for one server.
pub(crate) struct Tls(TlsConnector);

impl Tls {
    /// Returns a text that says what is wrong.
    pub(crate) fn new(host: &str, trust: &Trust) -> Result<Self, String> {
        server_name(host).map_err(|error| error.to_string())?;
        let config = match trust {
            Trust::Config(config) => Arc::clone(config),
            Trust::Roots(pem) => Arc::new(trusting(given_roots(pem)?)?),
            Trust::System => Arc::new(trusting(system_roots()?)?),
        };
        Ok(Self(config.into()))
    }

    pub(crate) async fn greet(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        self.0.connect(server_name(host)?, stream).await
    }
}

fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
    ServerName::try_from(host.to_owned()).map_err(wrong)
}

fn given_roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in the PEM text".to_owned());
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let why = found.errors.first().map(ToString::to_string);
    let why = why.unwrap_or_else(|| "there are none".to_owned());
    Err(format!(
        "no root certificates of the system: {why}; set `root_certificates`"
    ))
}

fn trusting(roots: RootCertStore) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
