//! Transactions that functions are part of without knowing it.

use std::future::pending;
use std::sync::Mutex;

use cenote::scope::Scope;
use cenote_postgres::{Error, Pool, TransactionOptions};
use tokio::sync::Notify;

use crate::{Admin, backend, number, pool, url};

/// Drops work that never ends, after it has said so.
async fn drop_when(ready: &Notify, work: impl Future<Output = Result<(), Error>>) {
    tokio::select! {
        ended = work => panic!("it ended: {ended:?}"),
        () = ready.notified() => {}
    }
}

/// A table of its own for each test.
struct Table(String);

impl Table {
    async fn new(pool: &Pool, name: &str) -> Self {
        let table = Self(format!("cenote_pg_{name}_{}", std::process::id()));
        let sql = table.sql("drop table if exists {}; create table {} (a int)");
        pool.batch_execute(&sql).await.unwrap();
        table
    }

    fn sql(&self, text: &str) -> String {
        text.replace("{}", &self.0)
    }

    async fn insert(&self, pool: &Pool) -> Result<u64, Error> {
        pool.execute(&self.sql("insert into {} values (1)"), &[])
            .await
    }

    async fn rows(&self, pool: &Pool) -> i64 {
        number(pool, &self.sql("select count(*) from {}")).await
    }

    async fn end(self, pool: &Pool) {
        pool.batch_execute(&self.sql("drop table {}"))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn statements_of_the_pool_are_part_of_the_transaction() {
    let (pool, beside) = (pool(2), pool(1));
    let table = Table::new(&beside, "ambient").await;

    let committed = pool.transaction(async || {
        table.insert(&pool).await?;
        let lease = pool.acquire().await?;
        lease
            .execute(&table.sql("insert into {} values (2)"), &[])
            .await?;
        drop(lease);
        assert_eq!(table.rows(&pool).await, 2);
        assert_eq!(table.rows(&beside).await, 0, "nothing is committed yet");
        assert!(pool.in_transaction() && !beside.in_transaction());
        assert_eq!(pool.status().in_use, 1);
        Ok::<_, Error>(7)
    });
    assert_eq!(committed.await.unwrap(), 7);
    let failed = pool.transaction(async || {
        table.insert(&pool).await?;
        Err::<(), _>(Error::Lost(String::from("changed my mind")))
    });
    assert!(failed.await.is_err());

    assert!(!pool.in_transaction());
    assert_eq!(table.rows(&pool).await, 2);
    table.end(&pool).await;
}

#[tokio::test]
async fn a_transaction_inside_is_a_savepoint() {
    let pool = pool(1);
    let table = Table::new(&pool, "nested").await;

    let outer = pool.transaction(async || {
        table.insert(&pool).await?;
        let inner = pool.transaction(async || {
            table.insert(&pool).await?;
            pool.query("select 1 / 0", &[]).await
        });
        assert!(inner.await.is_err());
        let inserted = Notify::new();
        let dropped = pool.transaction(async || {
            table.insert(&pool).await?;
            inserted.notify_one();
            pending::<Result<(), Error>>().await
        });
        drop_when(&inserted, dropped).await;
        let inner = pool.transaction(async || table.insert(&pool).await);
        inner.await
    });
    outer.await.unwrap();

    assert_eq!(table.rows(&pool).await, 2);
    assert_eq!(pool.status().opened, 1);
    table.end(&pool).await;
}

#[tokio::test]
async fn a_panic_rolls_back() {
    let pool = pool(1);
    let table = Table::new(&pool, "panic").await;
    let (inside, sql) = (pool.clone(), table.sql("insert into {} values (1)"));

    let panicked = tokio::spawn(async move {
        let work = async || {
            inside.execute(&sql, &[]).await?;
            panic!("planned");
            #[expect(unreachable_code, reason = "names the error")]
            Ok::<(), Error>(())
        };
        inside.transaction(work).await
    });

    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(table.rows(&pool).await, 0);
    table.end(&pool).await;
}

#[tokio::test]
async fn a_connection_that_breaks_fails_the_whole_transaction() {
    let server = cenote_servers::postgres::start().unwrap();
    let pool = crate::builder_at(server.url(), 2).build().unwrap();
    let admin = Admin::at(server.url()).await;
    let table = Table::new(&pool, "broken").await;

    let broken = pool.transaction(async || {
        table.insert(&pool).await?;
        let backend = backend(&pool.acquire().await?).await;
        admin.kill(backend).await;
        let lost = table.insert(&pool).await;
        assert!(lost.is_err(), "not on another connection");
        assert!(table.insert(&pool).await.is_err(), "and not later");
        Ok::<_, Error>(())
    });

    assert!(broken.await.is_err());
    assert_eq!(table.rows(&pool).await, 0);
}

#[tokio::test]
async fn a_transaction_dropped_while_its_connection_is_in_use_fails_the_one_around_it() {
    let pool = pool(2);
    let table = Table::new(&pool, "doomed").await;

    let outer = pool.transaction(async || {
        table.insert(&pool).await?;
        let (held, inserted) = (Mutex::new(None), Notify::new());
        let inner = pool.transaction(async || {
            table.insert(&pool).await?;
            let lease = pool.acquire().await?;
            *held.lock().unwrap() = Some(lease);
            inserted.notify_one();
            pending::<Result<(), Error>>().await
        });
        drop_when(&inserted, inner).await;
        drop(held);
        assert!(table.insert(&pool).await.is_err());
        Ok::<_, Error>(())
    });

    assert!(outer.await.is_err());
    assert_eq!(table.rows(&pool).await, 0);
    table.end(&pool).await;
}

#[tokio::test]
async fn a_task_that_gets_the_scope_is_part_of_the_transaction() {
    let pool = pool(2);
    let table = Table::new(&pool, "task").await;

    let failed = pool.transaction(async || {
        let scope = Scope::current().unwrap();
        let (inside, sql) = (pool.clone(), table.sql("insert into {} values (1)"));
        let task = tokio::spawn(scope.run(async move { inside.execute(&sql, &[]).await }));
        task.await.unwrap()?;
        assert_eq!(table.rows(&pool).await, 1);
        Err::<(), _>(Error::Lost(String::from("changed my mind")))
    });

    assert!(failed.await.is_err());
    assert_eq!(table.rows(&pool).await, 0);
    table.end(&pool).await;
}

#[tokio::test]
async fn options_are_used_and_a_failed_statement_forbids_the_commit() {
    let pool = pool(1);
    let options = TransactionOptions::new().read_only();

    let row = pool.transaction_with(options, async || {
        pool.query_one("show transaction_read_only", &[]).await
    });
    assert_eq!(row.await.unwrap().get::<_, &str>(0), "on");
    let swallowed = pool.transaction(async || {
        assert!(pool.query("select 1 / 0", &[]).await.is_err());
        Ok::<_, Error>(())
    });
    let error = swallowed.await.unwrap_err();

    let code = error.as_postgres().unwrap().code().unwrap();
    assert_eq!(code.code(), "25P02");
    assert_eq!(pool.status().opened, 1);
}

#[tokio::test]
async fn a_statement_dropped_inside_is_cancelled_before_the_next_one() {
    let pool = pool(1);
    let table = Table::new(&pool, "inside").await;
    let admin = Admin::at(url()).await;
    let late = async |sql: &'static str| {
        tokio::select! {
            ended = pool.query(sql, &[]) => panic!("it ended: {ended:?}"),
            () = admin.until_running("cenote_pg_inside */", true) => {}
        }
    };

    for inner in [
        "select pg_sleep(600) /* cenote_pg_inside */",
        "select generate_series(1, 2000000000) /* cenote_pg_inside */",
    ] {
        let cancelled = pool.transaction(async || {
            table.insert(&pool).await?;
            late(inner).await;
            Ok::<_, Error>(())
        });
        let error = cancelled.await.unwrap_err();
        let code = error.as_postgres().unwrap().code().unwrap();
        assert_eq!(code.code(), "25P02", "the transaction has failed: {error}");
        let given_up = pool.transaction(async || {
            late(inner).await;
            Err::<(), _>(Error::Lost(String::from("too slow")))
        });
        assert!(matches!(given_up.await, Err(Error::Lost(_))));
        let saved = pool.transaction(async || {
            let inner = pool.transaction(async || {
                late(inner).await;
                Err::<(), _>(Error::Lost(String::from("too slow")))
            });
            assert!(inner.await.is_err());
            table.insert(&pool).await
        });
        saved.await.unwrap();
    }

    assert_eq!(table.rows(&pool).await, 2);
    assert_eq!(pool.status().opened, 1);
    table.end(&pool).await;
}
