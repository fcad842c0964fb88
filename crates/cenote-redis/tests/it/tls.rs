//! TLS that is asked for is used on every connection, or the open fails.

use std::fs;

use cenote::Manager;
use cenote::error::ErrorClass;
use cenote_redis::{BuildError, Builder, Pool};
use cenote_servers::{Certificate, Server};
use redis::AsyncCommands;
use tempfile::TempDir;

use crate::patient;

/// A certificate in a folder of its own.
struct Own {
    certificate: Certificate,
    _folder: TempDir,
}

impl Own {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            certificate: Certificate::make(folder.path()).unwrap(),
            _folder: folder,
        }
    }

    fn pem(&self) -> Vec<u8> {
        fs::read(&self.certificate.crt).unwrap()
    }

    /// Starts a server that has it, and returns its URL for TLS.
    fn server(&self) -> (Server, String) {
        cenote_servers::redis::start_with_tls(&self.certificate).unwrap()
    }
}

#[tokio::test]
async fn a_trusted_server_is_used_by_tls() {
    let own = Own::new();
    let (_server, url) = own.server();
    let pool: Builder = patient(&url).root_certificates(own.pem());
    let mut pool = pool.build().unwrap();

    let () = pool.set("k", "v").await.unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let value: String = lease.get("k").await.unwrap();

    assert_eq!(value, "v");
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_denied() {
    let (own, other) = (Own::new(), Own::new());
    let (_server, url) = own.server();
    let pool = patient(&url)
        .root_certificates(other.pem())
        .build()
        .unwrap();

    let error = pool.acquire().await.unwrap_err();

    let cenote::AcquireError::Open {
        error: cenote::OpenError::Failed(cause),
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(error.to_string().contains("certificate"), "{error}");
    assert_eq!(pool.pool().manager().classify(cause), ErrorClass::Denied);
}

#[tokio::test]
async fn a_server_without_tls_is_not_used_without_it() {
    let server = cenote_servers::redis::start().unwrap();
    let url = server.url().replace("redis://", "rediss://");
    let pool = patient(&url).root_certificates(Own::new().pem());
    // The server waits for the rest of what it takes for a command.
    let pool = pool
        .open_timeout(std::time::Duration::from_millis(500))
        .build()
        .unwrap();

    assert!(pool.acquire().await.is_err());
}

#[test]
fn trust_needs_roots() {
    let error = Pool::from_url("rediss://localhost")
        .root_certificates("")
        .build()
        .unwrap_err();

    assert!(matches!(error, BuildError::Tls(_)), "{error}");
}
