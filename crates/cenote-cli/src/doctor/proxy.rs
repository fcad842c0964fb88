//! Finds a proxy such as PgBouncer between the program and PostgreSQL, and its mode.
//!
//! PgBouncer passes statements on as they are, so no statement tells of it. Its work does:
//!
//! - Two clients that are connected at the same time get the same process of the server one after
//!   the other: connections are lent by the transaction.
//! - A transaction is refused: connections are lent by the statement.
//! - The server sees another port of the client than the client has: some proxy or router is in
//!   between.
//!
//! PgBouncer's own console gives the version and the mode if this user may look there.

use cenote_postgres::tokio_postgres::config::Host;
use cenote_postgres::tokio_postgres::{NoTls, SimpleQueryMessage};
use cenote_postgres::{Lease, Pool};
use tokio::net::TcpStream;

use super::finding::{Finding, Severity};
use crate::failure::{Failure, whole_story};
use crate::target::postgres::options;

/// Another client may get the freed connection first, so that a try shows nothing.
const TRIES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Session,
    Transaction,
    Statement,
}

pub(super) async fn look(url: &str, pool: &Pool) -> Result<Finding, Failure> {
    let mode = mode(pool).await?;
    let told = console(url).await;
    let name = match &told {
        Some(told) => told.clone(),
        None if mode != Mode::Session => "a proxy like PgBouncer".to_owned(),
        None => match port_differs(url).await {
            Some(true) => {
                "a proxy or a router (the server sees another port of this client)".to_owned()
            }
            Some(false) => {
                return Ok(Finding::ok(
                    "proxy",
                    "none: the server sees this client itself",
                ));
            }
            None => return Ok(Finding::ok("proxy", "none was seen")),
        },
    };
    Ok(match mode {
        Mode::Session => Finding::new(
            Severity::Note,
            "proxy",
            format!("{name} is in between; sessions keep their server connection"),
            "count the connections of the proxy against `max_connections`, and its own limits \
             (`default_pool_size`, `max_client_conn`) against `max_size` x instances",
        ),
        Mode::Transaction => Finding::new(
            Severity::Warning,
            "proxy",
            format!("{name} is in between and lends connections by the transaction"),
            "set `cancel_on_server(false)`, use `query_typed`, and do not rely on session state \
             (SET, LISTEN, advisory locks, temporary tables)",
        ),
        Mode::Statement => by_statement(&name),
    })
}

/// Returns the finding about a proxy that lends connections by the statement.
fn by_statement(name: &str) -> Finding {
    Finding::new(
        Severity::Problem,
        "proxy",
        format!(
            "{name} is in between and lends connections by the statement: it refuses transactions"
        ),
        "set its `pool_mode` to `transaction` or `session`",
    )
}

/// Returns whether an error comes from a proxy that lends connections by the statement.
fn is_by_statement(error: &Failure) -> bool {
    whole_story(&**error).contains("statement pooling mode")
}

async fn mode(pool: &Pool) -> Result<Mode, Failure> {
    let (first, second) = (pool.acquire().await?, pool.acquire().await?);
    for _ in 0..TRIES {
        match is_shared(&first, &second).await {
            Ok(true) => return Ok(Mode::Transaction),
            Ok(false) => {}
            Err(error) if is_by_statement(&error) => return Ok(Mode::Statement),
            Err(error) => return Err(error),
        }
    }
    Ok(Mode::Session)
}

/// Returns whether the second client gets the process of the server that the first one had.
async fn is_shared(first: &Lease, second: &Lease) -> Result<bool, Failure> {
    let before = process(first).await?;
    second.batch_execute("begin").await?;
    let inside = process(second).await?;
    second.batch_execute("rollback").await?;
    Ok(inside == before)
}

/// Returns the number of the server's process. It sends text, because a prepared statement may not
/// exist on the next server connection.
async fn process(lease: &Lease) -> Result<Option<String>, Failure> {
    let messages = lease.simple_query("select pg_backend_pid()").await?;
    Ok(messages.iter().find_map(first_column))
}

fn first_column(message: &SimpleQueryMessage) -> Option<String> {
    match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }
}

/// Asks the console of PgBouncer for its version.
async fn console(url: &str) -> Option<String> {
    let mut options = options(url).ok()?;
    options.dbname("pgbouncer");
    let (client, connection) = options.connect(NoTls).await.ok()?;
    let task = tokio::spawn(connection);
    let version = client.simple_query("SHOW VERSION").await;
    task.abort();
    let version = version.ok()?.iter().find_map(first_column)?;
    version.contains("PgBouncer").then_some(version)
}

/// Compares the port of a connection at both of its ends. `None`: they cannot be compared.
async fn port_differs(url: &str) -> Option<bool> {
    let options = options(url).ok()?;
    let Some(Host::Tcp(host)) = options.get_hosts().first() else {
        return None;
    };
    let port = options.get_ports().first().copied().unwrap_or(5432);
    let stream = TcpStream::connect((host.as_str(), port)).await.ok()?;
    let here = stream.local_addr().ok()?.port();
    let (client, connection) = options.connect_raw(stream, NoTls).await.ok()?;
    let task = tokio::spawn(connection);
    let row = client.query_one("select inet_client_port()", &[]).await;
    task.abort();
    let there: Option<i32> = row.ok()?.try_get(0).ok()?;
    Some(there? != i32::from(here))
}
