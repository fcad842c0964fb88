//! A real server of Rocket.

use std::net::SocketAddr;
use std::ops::Deref;

use cenote_sqlx::Db;
use rocket::fairing::AdHoc;
use rocket::figment::Figment;
use rocket::{Build, Ignite, Rocket, Shutdown};
use rocket_db_pools::Database;
use sqlx::Postgres;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::handlers::routes;
use crate::rig::Rig;

#[derive(Database)]
#[database("orders")]
pub(crate) struct Orders(cenote_rocket::Pool<Db<Postgres>>);

/// Serves on a free port until it is dropped.
pub(crate) struct Server {
    pub(crate) client: Client,
    shutdown: Shutdown,
    task: JoinHandle<Result<Rocket<Ignite>, rocket::Error>>,
}

impl Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// The configuration of a server on a free port, which writes no log.
pub(crate) fn config() -> Figment {
    rocket::Config::figment()
        .merge(("address", "127.0.0.1"))
        .merge(("port", 0))
        .merge(("log_level", "off"))
        .merge(("shutdown.ctrlc", false))
}

/// The configuration of a server whose database is that of the rig, with four connections.
pub(crate) fn config_of(rig: &Rig) -> Figment {
    config()
        .merge(("databases.orders.url", rig.url()))
        .merge(("databases.orders.max_connections", 4))
        .merge(("databases.orders.connect_timeout", 30))
        .merge(("databases.orders.pool.clean_timeout", "30s"))
}

/// Serves the handlers, and connects the rig to the database of the server.
pub(crate) async fn serve(config: Figment, rig: &Rig) -> Server {
    let rocket = rocket::custom(config)
        .manage(rig.clone())
        .attach(Orders::init())
        .mount("/", routes())
        .mount("/in", cenote_rocket::transactional::<Orders, _>(routes()));
    let (server, db) = launch(rocket).await;
    rig.connect(db).await;
    server
}

async fn launch(rocket: Rocket<Build>) -> (Server, Db<Postgres>) {
    let (send, receive) = oneshot::channel();
    let tell = AdHoc::on_liftoff("tell", |rocket| {
        Box::pin(async move {
            let config = rocket.config();
            let address = SocketAddr::new(config.address, config.port);
            let db: &Db<Postgres> = Orders::fetch(rocket).unwrap();
            let _ = send.send((address, db.clone(), rocket.shutdown()));
        })
    });
    let task = tokio::spawn(rocket.attach(tell).launch());
    let (address, db, shutdown) = receive.await.expect("the launch succeeds");
    let server = Server {
        client: Client(address),
        shutdown,
        task,
    };
    (server, db)
}

impl Server {
    /// Stops it, and waits until it has ended.
    pub(crate) async fn stop(self) -> Result<Rocket<Ignite>, rocket::Error> {
        self.shutdown.notify();
        self.task.await.unwrap()
    }
}
