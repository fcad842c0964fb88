//! SeaORM on connections that the server kills, and on a server that is restarted.

use std::sync::Arc;
use std::time::Duration;

use cenote_servers::Server;
use cenote_sqlx::Class;
use futures_util::TryStreamExt;
use sea_orm::{
    ConnectionTrait, DbErr, QueryResult, RuntimeErr, Statement, StreamTrait, TransactionTrait,
};

use super::clock::eventually;
use super::kills::kill;
use super::restarts::blocking;
use super::{Db, LONGEST, Trial, world};

impl Trial {
    fn statement(&self, text: &str, values: impl IntoIterator<Item = i64>) -> Statement {
        let backend = ConnectionTrait::get_database_backend(&self.db);
        let sql = self.sql(text);
        let values = values.into_iter().map(sea_orm::Value::from);
        Statement::from_sql_and_values(backend, sql.as_str(), values)
    }

    async fn put(&self, db: &impl ConnectionTrait, id: i32) -> Result<(), DbErr> {
        let insert = "INSERT INTO {}.pairs (id, amount) VALUES (?, ?)";
        let insert = self.statement(insert, [i64::from(id); 2]);
        db.execute_raw(insert).await.map(drop)
    }

    async fn put_pair(&self, id: i32) -> Result<(), DbErr> {
        let outer = TransactionTrait::begin(&self.db).await?;
        self.put(&outer, id).await?;
        let inner = outer.begin().await?;
        self.put(&inner, -id).await?;
        inner.commit().await?;
        outer.commit().await?;
        self.acknowledge(id);
        Ok(())
    }

    /// Kills the connection that answers on `db`.
    async fn kill_it(&self, db: &impl ConnectionTrait) {
        let who = self.statement(world::WHO.unwrap(), []);
        let row: QueryResult = db.query_one_raw(who).await.unwrap().unwrap();
        kill(self, &[row.try_get_by_index(0).unwrap()]).await;
    }
}

/// Asserts that the error says that the connection is lost.
fn assert_broken(error: DbErr) {
    let (DbErr::Query(inner) | DbErr::Exec(inner)) = error else {
        panic!("not the error of a statement: {error:?}");
    };
    let RuntimeErr::SqlxError(inner) = inner else {
        panic!("not an error of sqlx: {inner:?}");
    };
    assert_eq!(Db::classify(&inner), Class::Broken, "{inner}");
}

#[tokio::test]
async fn a_commit_on_a_killed_connection_is_an_error_and_leaves_no_row() {
    let trial = Trial::new("orm_commit").await;

    let killed = TransactionTrait::begin(&trial.db).await.unwrap();
    trial.put(&killed, 1).await.unwrap();
    trial.kill_it(&killed).await;
    assert_broken(killed.commit().await.unwrap_err());
    let killed = TransactionTrait::begin(&trial.db).await.unwrap();
    trial.put(&killed, 2).await.unwrap();
    let nested = killed.begin().await.unwrap();
    trial.kill_it(&nested).await;
    assert_broken(nested.rollback().await.unwrap_err());
    assert!(trial.put(&killed, 3).await.is_err(), "ran on another one");
    assert!(killed.commit().await.is_err());

    for id in 1..=3 {
        assert!(!trial.has(id).await, "{id} is there");
    }
    trial.assert_recovered(10, Duration::ZERO).await;
}

#[tokio::test]
async fn a_callback_whose_connection_is_killed_returns_the_error_of_its_statement() {
    let trial = Arc::new(Trial::new("orm_callback").await);
    let shared = Arc::clone(&trial);

    let work = TransactionTrait::transaction::<_, (), DbErr>(&trial.db, |transaction| {
        Box::pin(async move {
            shared.put(transaction, 1).await?;
            shared.kill_it(transaction).await;
            shared.put(transaction, -1).await
        })
    });
    let error = work.await.unwrap_err();

    let sea_orm::TransactionError::Transaction(error) = error else {
        panic!("the failed rollback hides the cause: {error:?}");
    };
    assert_broken(error);
    trial.assert_recovered(10, Duration::ZERO).await;
}

#[tokio::test]
async fn a_stream_whose_connection_is_killed_ends_with_an_error() {
    let trial = Trial::new("orm_stream").await;
    let lease = trial.all().await;
    let victims: Vec<i64> = lease.iter().map(|(_, who)| *who).collect();
    drop(lease);

    let many = trial.statement(world::MANY, []);
    let total = trial.db.query_all_raw(many.clone()).await.unwrap().len();
    let mut rows = trial.db.stream_raw(many).await.unwrap();
    assert!(rows.try_next().await.unwrap().is_some());
    kill(&trial, &victims).await;
    let mut read = 1;
    let ended = loop {
        match rows.try_next().await {
            Ok(Some(_)) => read += 1,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };

    // The rest may have been on its way already.
    match ended {
        Ok(()) => assert_eq!(read, total),
        Err(error) => assert_broken(error),
    }
    assert!(
        rows.try_next().await.unwrap().is_none(),
        "it stays at its end"
    );
    drop(rows);
    trial.assert_recovered(10, Duration::ZERO).await;
}

#[tokio::test]
async fn a_restarted_server_loses_no_acknowledged_pair() {
    let server = world::start(&[]);
    let trial = Trial::on(server.url(), "orm_restart", |builder| builder).await;
    for id in 1..=5 {
        trial.put_pair(id).await.unwrap();
    }

    let open = TransactionTrait::begin(&trial.db).await.unwrap();
    trial.put(&open, 100).await.unwrap();
    let server = blocking(server, |server: &mut Server| server.stop().unwrap()).await;
    assert!(trial.put(&open, -100).await.is_err());
    assert!(open.commit().await.is_err());
    let down = trial.put_pair(6).await.unwrap_err();
    let _server = blocking(server, |server| server.restart().unwrap()).await;
    let mut id = 10;
    eventually("a pair is written again", async || {
        id += 1;
        trial.put_pair(id).await.is_ok()
    })
    .await;

    assert!(!matches!(down, DbErr::Custom(_)), "{down:?}");
    assert!(!trial.has(100).await);
    trial.db.pool().invalidate();
    trial.assert_recovered(1_000, LONGEST).await;
}
