//! Run: cargo run -p cenote-examples --example shop
//!
//! How do I build a service on cenote? With ambient transactions across repositories, errors in
//! `problem+json`, readiness, load shedding and a graceful shutdown. It runs on SQLite, so there is
//! nothing to install. With `-- serve` it keeps running, on port 3000.

mod http_client;

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use cenote_sqlx::Db;
use cenote_tower::{Problem, Readiness, Stack, Tx, health_routes};
use sqlx::{Error as SqlError, Sqlite};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

type AnyError = Box<dyn Error + Send + Sync>;

// The repositories do not name the transaction, and know nothing of HTTP.

struct Accounts<'a>(&'a Db<Sqlite>);

impl Accounts<'_> {
    async fn pay(&self, owner: &str, amount: i64) -> Result<bool, SqlError> {
        let sql = "UPDATE accounts SET amount = amount - ?1 WHERE owner = ?2 AND amount >= ?1";
        let paid = sqlx::query(sql).bind(amount).bind(owner);
        Ok(paid.execute(self.0).await?.rows_affected() == 1)
    }
}

struct Stock<'a>(&'a Db<Sqlite>);

impl Stock<'_> {
    /// Takes one piece and returns its price, or `None` if there is none left.
    async fn take(&self, item: &str) -> Result<Option<i64>, SqlError> {
        let sql =
            "UPDATE stock SET pieces = pieces - 1 WHERE item = ? AND pieces > 0 RETURNING price";
        let price = sqlx::query_scalar(sql).bind(item);
        price.fetch_optional(self.0).await
    }

    async fn pieces(&self, item: &str) -> Result<Option<i64>, SqlError> {
        let pieces = sqlx::query_scalar("SELECT pieces FROM stock WHERE item = ?");
        pieces.bind(item).fetch_optional(self.0).await
    }
}

struct Orders<'a>(&'a Db<Sqlite>);

impl Orders<'_> {
    async fn add(&self, owner: &str, item: &str) -> Result<i64, SqlError> {
        let sql = "INSERT INTO orders (owner, item) VALUES (?, ?) RETURNING id";
        let id = sqlx::query_scalar(sql).bind(owner).bind(item);
        id.fetch_one(self.0).await
    }

    async fn count(&self) -> Result<i64, SqlError> {
        let count = sqlx::query_scalar("SELECT count(*) FROM orders");
        count.fetch_one(self.0).await
    }
}

/// Runs in a transaction, because it takes a `Tx`: a status of 400 or above rolls it back.
async fn buy(
    db: Tx<Sqlite>,
    Path((owner, item)): Path<(String, String)>,
) -> Result<(StatusCode, String), Problem> {
    let Some(price) = Stock(&db).take(&item).await? else {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            format!("no {item} left"),
        ));
    };
    let order = Orders(&db).add(&owner, &item).await?;
    if !Accounts(&db).pay(&owner, price).await? {
        let detail = format!("{item} costs {price}");
        return Err(Problem::new(StatusCode::PAYMENT_REQUIRED, detail));
    }
    Ok((StatusCode::CREATED, order.to_string()))
}

async fn pieces(State(db): State<Db<Sqlite>>, Path(item): Path<String>) -> Result<String, Problem> {
    match Stock(&db).pieces(&item).await? {
        Some(pieces) => Ok(pieces.to_string()),
        None => Err(Problem::new(StatusCode::NOT_FOUND, "no such item")),
    }
}

fn app(db: &Db<Sqlite>, readiness: Readiness) -> Router {
    let routes = Router::new()
        .route("/buy/{owner}/{item}", post(buy))
        .route("/stock/{item}", get(pieces))
        .with_state(db.clone());
    Stack::new(db)
        .transactions(|layer| layer.on_demand()) // for handlers with a `Tx`
        .shed(Duration::from_secs(5))
        .problems(|layer| layer.on_problem(|problem| eprintln!("{}", problem.report())))
        .wrap(routes)
        .merge(health_routes(readiness))
}

async fn open(folder: &std::path::Path) -> Result<Db<Sqlite>, AnyError> {
    let url = format!("sqlite://{}/shop.db?mode=rwc", folder.display());
    let db = Db::sqlite(url).max_size(8).build()?;
    let tables = "CREATE TABLE IF NOT EXISTS accounts (owner TEXT PRIMARY KEY, amount INTEGER NOT NULL);
                  CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, pieces INTEGER NOT NULL, price INTEGER NOT NULL);
                  CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, item TEXT NOT NULL);
                  INSERT OR IGNORE INTO accounts VALUES ('ada', 1000), ('bob', 5);
                  INSERT OR IGNORE INTO stock VALUES ('chair', 3, 30), ('pen', 500, 1);";
    sqlx::raw_sql(tables).execute(&db).await?;
    Ok(db)
}

/// Serves until `end`, tells the load balancer, lets every request finish, and closes the pool.
async fn serve(
    listener: TcpListener,
    db: Db<Sqlite>,
    end: impl Future<Output = Duration> + Send + 'static,
) -> Result<(), AnyError> {
    let readiness = Readiness::new().pool(db.pool());
    let app = app(&db, readiness.clone());
    let drained = async move {
        let notice = end.await;
        readiness.drain(); // not ready, and still serving
        tokio::time::sleep(notice).await;
    };
    axum::serve(listener, app)
        .with_graceful_shutdown(drained)
        .await?;
    let leftover = db.pool().close_within(Duration::from_secs(10)).await;
    assert!(leftover.is_empty(), "a lease is still out: {leftover:?}");
    Ok(())
}

/// Waits for SIGTERM or Ctrl-C. Returns how long a load balancer may need to notice the drain.
async fn end() -> Duration {
    let mut terminated =
        signal(SignalKind::terminate()).expect("the signal handler can be installed");
    tokio::select! {
        _ = terminated.recv() => Duration::from_secs(5),
        _ = tokio::signal::ctrl_c() => Duration::ZERO,
    }
}

/// Visits the shop, and shuts it down while many customers are in it.
async fn visit(server: std::net::SocketAddr, end: oneshot::Sender<()>) -> Result<usize, AnyError> {
    let call = |method, path: &'static str| http_client::send(server, method, path);
    assert_eq!(call("GET", "/readyz").await?.0, 200);
    assert_eq!(call("POST", "/buy/ada/chair").await?, (201, "1".into()));
    let (status, body) = call("POST", "/buy/bob/chair").await?;
    println!("bob: {status} {body}");
    assert!(status == 402 && body.contains("chair costs 30"));
    assert_eq!(
        call("GET", "/stock/chair").await?.1,
        "2",
        "the chair of bob is back in stock"
    );
    assert_eq!(call("POST", "/buy/ada/table").await?.0, 404);

    let crowd: Vec<_> = (0..50)
        .map(|_| {
            tokio::spawn(async move { http_client::send(server, "POST", "/buy/ada/pen").await })
        })
        .collect();
    let mut end = Some(end);
    let mut bought = 0;
    for buyer in crowd {
        match buyer.await? {
            Ok((status, _)) => {
                assert_eq!(status, 201, "every request that came in was served");
                bought += 1;
            }
            // The server accepted no more connections, so nothing was bought.
            Err(refused) => assert!(end.is_none(), "{refused}"),
        }
        if let Some(end) = end.take_if(|_| bought == 10) {
            end.send(()).map_err(|()| "the server is gone")?;
        }
    }
    Ok(bought)
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let folder = tempfile::tempdir()?;
    let db = open(folder.path()).await?;
    if std::env::args().nth(1).as_deref() == Some("serve") {
        let listener = TcpListener::bind("127.0.0.1:3000").await?;
        println!("curl -X POST http://localhost:3000/buy/ada/chair");
        return serve(listener, db, end()).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (end, ended) = oneshot::channel();
    let visitors = tokio::spawn(visit(listener.local_addr()?, end));
    let ended = async {
        drop(ended.await);
        Duration::ZERO // no load balancer has to notice
    };
    serve(listener, db, ended).await?;
    let bought = visitors.await??;
    let again = open(folder.path()).await?;
    let orders = Orders(&again).count().await?;
    println!("{bought} pens were sold, and {orders} orders are in the books");
    assert_eq!(orders, i64::try_from(bought)? + 1);
    Ok(())
}
