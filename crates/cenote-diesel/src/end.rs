//! Ends a statement whose future was dropped, on the server, when its connection is closed.
//!
//! The server does not notice a closed socket before it sends an answer. The connection is never
//! used again, so a request that comes late does no harm.

use std::any::Any;

/// Asks the server to end what it does for this connection. The pool limits the time. If the server
/// cannot be reached, the connection is closed all the same.
#[cfg_attr(
    not(any(feature = "mysql", feature = "postgres")),
    expect(unused_variables, reason = "no driver has such a request")
)]
pub(crate) async fn end_statement(connection: &mut (dyn Any + Send)) {
    #[cfg(feature = "postgres")]
    if let Some(connection) = connection.downcast_ref::<diesel_async::AsyncPgConnection>() {
        let token = connection.cancel_token();
        let _ = token.cancel_query(tokio_postgres::NoTls).await;
    }
    #[cfg(feature = "mysql")]
    if let Some(connection) = connection.downcast_ref::<diesel_async::AsyncMysqlConnection>() {
        let token = connection.cancel_token();
        let _ = token.cancel_query().await;
    }
}
