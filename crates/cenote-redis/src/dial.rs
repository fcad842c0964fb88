//! Connecting a socket. The crate `redis` can do that too, but keeps the task of the connection to
//! itself.

#[cfg(unix)]
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use redis::aio::AsyncStream;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use redis::{ConnectionAddr, ConnectionInfo, RedisResult};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use crate::build_error::BuildError;
#[cfg(feature = "rustls")]
use crate::tls::{Tls, Trust};

/// How long a silent connection is trusted. A blocking command has no other limit.
const KEEPALIVE: Duration = Duration::from_secs(30);

pub(crate) type Stream = Pin<Box<dyn AsyncStream + Send + Sync>>;

/// Where a server is, and how it is reached.
#[derive(Debug)]
pub(crate) enum Address {
    Tcp(String, u16),
    #[cfg(feature = "rustls")]
    Tls(String, u16, Tls),
    #[cfg(unix)]
    Unix(PathBuf),
}

impl Address {
    /// Reads the address of a server. `tls` says whether the URL asked for it.
    pub(crate) fn read(
        info: &ConnectionInfo,
        tls: bool,
        #[cfg(feature = "rustls")] trust: &Trust,
    ) -> Result<Self, BuildError> {
        let (host, port) = match info.addr() {
            ConnectionAddr::Tcp(host, port) if !tls => return Ok(Self::Tcp(host.clone(), *port)),
            ConnectionAddr::Tcp(host, port) => (host, *port),
            ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            } => (host, *port),
            ConnectionAddr::TcpTls { .. } => {
                let why = "certificates inside a `ConnectionInfo` cannot be read, and `insecure` \
                           is not supported: use `root_certificates` or `tls_config`";
                return Err(BuildError::Tls(why.to_owned()));
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => return Ok(Self::Unix(path.clone())),
            other => return Err(BuildError::Address(other.to_string())),
        };
        #[cfg(feature = "rustls")]
        return match Tls::new(host, trust) {
            Ok(tls) => Ok(Self::Tls(host.clone(), port, tls)),
            Err(why) => Err(BuildError::Tls(why)),
        };
        #[cfg(not(feature = "rustls"))]
        Err(BuildError::Tls(format!(
            "`{host}:{port}` needs the feature `rustls` of `cenote-redis`"
        )))
    }

    pub(crate) async fn dial(&self, settings: &TcpSettings) -> RedisResult<Stream> {
        Ok(match self {
            Self::Tcp(host, port) => Box::pin(tcp(host, *port, settings).await?),
            #[cfg(feature = "rustls")]
            Self::Tls(host, port, tls) => {
                let stream = tcp(host, *port, settings).await?;
                Box::pin(tls.greet(host, stream).await?)
            }
            #[cfg(unix)]
            Self::Unix(path) => Box::pin(UnixStream::connect(path).await?),
        })
    }
}

async fn tcp(host: &str, port: u16, settings: &TcpSettings) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // Always: many small commands share a lane.
    stream.set_nodelay(true)?;
    let usual = TcpKeepalive::new().with_time(KEEPALIVE);
    let socket = SockRef::from(&stream);
    socket.set_tcp_keepalive(settings.keepalive().unwrap_or(&usual))?;
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    if settings.user_timeout().is_some() {
        socket.set_tcp_user_timeout(settings.user_timeout())?;
    }
    Ok(stream)
}
