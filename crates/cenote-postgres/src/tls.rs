//! TLS by rustls.

use rustls::ClientConfig;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::builder::Builder;

impl Builder {
    /// Uses TLS by rustls, with these settings, where `sslmode` asks for it: `prefer` (the default)
    /// uses it if the server has it, and `require` fails without it. The certificate of the server
    /// is always verified, by the rules of `config`.
    ///
    /// ```no_run
    /// use cenote_postgres::{Pool, rustls};
    ///
    /// # fn f(roots: rustls::RootCertStore) -> Result<Pool, cenote_postgres::BuildError> {
    /// let tls = rustls::ClientConfig::builder()
    ///     .with_root_certificates(roots)
    ///     .with_no_client_auth();
    /// Pool::from_url("postgres://app@db.example/shop?sslmode=require").rustls(tls).build()
    /// # }
    /// ```
    pub fn rustls(self, config: ClientConfig) -> Self {
        self.tls(MakeRustlsConnect::new(config))
    }
}
