//! Routes whose handlers run in a transaction.

use cenote::scope::Scope;
use cenote_sqlx::{Class, Db, Dialect, TransactionOptions};
use rocket::http::Status;
use rocket::route::{Handler, Outcome, Route};
use rocket::{Data, Request, error};
use rocket_db_pools::Database;

use crate::pool::Pool;

/// Runs the handler of each route, with its request guards, in a transaction of the database `D`,
/// which begins with its first statement.
///
/// Every `&db` of the same database in there is part of it, and so is the guard `Connection<D>`. It
/// is committed before the response is sent, if the status is below 400. A status of 4xx or 5xx, a
/// failed guard, a forward to the next route, and a panic roll it back. If the commit fails, the
/// response is that of the catcher for 500, or for 503 after a conflict with another transaction
/// or if the pool had nothing to lend.
///
/// Rocket does not stop a handler whose client has disconnected: the handler runs to its end and is
/// committed. A streaming body and a catcher run after the transaction.
///
/// ```
/// use cenote_sqlx::Db;
/// use rocket::{State, http::Status};
/// use rocket_db_pools::Database;
/// use sqlx::Sqlite;
///
/// #[derive(Database)]
/// #[database("orders")]
/// struct Orders(cenote_rocket::Pool<Db<Sqlite>>);
///
/// #[rocket::post("/order/<status>")]
/// async fn order(orders: &State<Orders>, status: u16) -> Result<Status, Status> {
///     let db: &Db<Sqlite> = orders;
///     let order = sqlx::query("INSERT INTO orders VALUES ('a chair')");
///     order.execute(db).await.map_err(|_| Status::InternalServerError)?;
///     Ok(Status::new(status))
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = rocket::Config::figment()
///     .merge(("databases.orders.url", "sqlite::memory:"))
///     .merge(("databases.orders.max_connections", 1));
/// let rocket = rocket::custom(config)
///     .attach(Orders::init())
///     .mount("/", cenote_rocket::transactional::<Orders, _>(rocket::routes![order]));
/// let client = rocket::local::asynchronous::Client::tracked(rocket).await?;
/// let db: &Db<Sqlite> = Orders::fetch(client.rocket()).expect("it is attached");
/// sqlx::query("CREATE TABLE orders (item TEXT)").execute(db).await?;
///
/// client.post("/order/201").dispatch().await;
/// client.post("/order/409").dispatch().await;
/// let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(db).await?;
/// assert_eq!(orders, 1);
/// # Ok(()) }
/// ```
pub fn transactional<D, DB>(routes: impl IntoIterator<Item = Route>) -> Vec<Route>
where
    D: Database<Pool = Pool<Db<DB>>>,
    DB: Dialect,
{
    let wrap = |mut route: Route| {
        route.handler = Box::new(Transactional {
            inner: route.handler,
            find: find::<D, DB>,
        });
        route
    };
    routes.into_iter().map(wrap).collect()
}

struct Transactional<DB: Dialect> {
    inner: Box<dyn Handler>,
    find: for<'r> fn(&'r Request<'_>) -> Option<&'r Db<DB>>,
}

impl<DB: Dialect> Clone for Transactional<DB> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            find: self.find,
        }
    }
}

fn find<'r, D, DB>(request: &'r Request<'_>) -> Option<&'r Db<DB>>
where
    D: Database<Pool = Pool<Db<DB>>>,
    DB: Dialect,
{
    D::fetch(request.rocket()).map(|database| &***database)
}

/// Why a transaction is not committed.
enum Undo<'r> {
    Outcome(Box<Outcome<'r>>),
    Sql(sqlx::Error),
}

impl From<sqlx::Error> for Undo<'_> {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

#[rocket::async_trait]
impl<DB: Dialect> Handler for Transactional<DB> {
    async fn handle<'r>(&self, request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r> {
        let Some(db) = (self.find)(request) else {
            return Outcome::Error(Status::InternalServerError); // `fetch` has told why
        };
        let route = request.route().map_or("", |route| route.uri.as_str());
        let scope = Scope::nested().labelled(format!("{} {route}", request.method()));
        let work = async || match self.inner.handle(request, data).await {
            Outcome::Success(response) if response.status().code < 400 => Ok(response),
            outcome => Err(Undo::Outcome(Box::new(outcome))),
        };
        let options = TransactionOptions::new().refuse_late();
        let work = db.lazy_transaction(options).run(work);
        match scope.run_and_end(work).await {
            Ok(response) => Outcome::Success(response),
            Err(Undo::Outcome(outcome)) => *outcome,
            Err(Undo::Sql(error)) => {
                error!("the transaction of this request was not committed: {error}");
                Outcome::Error(match cenote_sqlx::classify(&error) {
                    Class::Conflict | Class::Refused => Status::ServiceUnavailable,
                    _ => Status::InternalServerError,
                })
            }
        }
    }
}
