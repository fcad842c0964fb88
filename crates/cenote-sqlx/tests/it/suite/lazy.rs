//! Transactions that begin with their first statement, and scopes whose transaction is over.

use std::time::Duration;

use cenote::scope::Scope;
use cenote_sqlx::TransactionOptions;
use tokio::sync::oneshot;

use super::Rig;

type Sqlx<T = ()> = Result<T, sqlx::Error>;

fn options() -> TransactionOptions {
    TransactionOptions::new()
}

#[tokio::test]
async fn no_connection_is_held_before_the_first_statement() {
    let rig = Rig::new("lazy_first").await;
    let begun = rig.db.pool().status().acquired;

    let work = rig.db.lazy_transaction(options()).run(async || {
        assert!(rig.db.in_transaction());
        rig.db.require_transaction()?;
        assert_eq!(rig.db.pool().status().acquired, begun);
        rig.insert(1).await?;
        rig.insert(2).await?;
        assert_eq!(rig.db.pool().status().acquired, begun + 1);
        Ok::<_, sqlx::Error>(())
    });
    work.await.unwrap();

    assert_eq!(rig.ids().await, [1, 2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn an_error_or_a_drop_rolls_back_what_the_first_statement_began() {
    let rig = Rig::new("lazy_undone").await;

    let failed = rig.db.lazy_transaction(options()).run(async || {
        rig.insert(1).await?;
        Err::<(), _>(sqlx::Error::RowNotFound)
    });
    assert!(matches!(failed.await, Err(sqlx::Error::RowNotFound)));
    let never = rig.db.lazy_transaction(options()).run(async || {
        rig.insert(2).await?;
        std::future::pending::<Sqlx>().await
    });
    let dropped = tokio::time::timeout(Duration::from_millis(200), never).await;

    assert!(dropped.is_err());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn without_a_statement_nothing_is_acquired() {
    let rig = Rig::new("lazy_nothing").await;
    let before = rig.db.pool().status().acquired;

    let nothing = rig.db.lazy_transaction(options()).run(async || Sqlx::Ok(7));

    assert_eq!(nothing.await.unwrap(), 7);
    assert_eq!(rig.db.pool().status().acquired, before);
}

#[tokio::test]
async fn statements_that_start_together_begin_one_transaction() {
    let rig = Rig::new("lazy_together").await;

    let failed = rig.db.lazy_transaction(options()).run(async || {
        let (one, two, three) = tokio::join!(rig.insert(1), rig.insert(2), rig.insert(3));
        one.and(two).and(three)?;
        assert_eq!(rig.db.pool().status().in_use, 1);
        Err::<(), _>(sqlx::Error::RowNotFound)
    });

    assert!(failed.await.is_err());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_lazy_transaction_inside_another_is_a_savepoint() {
    let rig = Rig::new("lazy_nested").await;

    let outer = rig.db.lazy_transaction(options()).run(async || {
        let inner = rig.db.lazy_transaction(options()).run(async || {
            rig.insert(1).await?;
            Err::<(), _>(sqlx::Error::RowNotFound)
        });
        assert!(inner.await.is_err());
        let inner = rig.db.transaction(async || rig.insert(2).await);
        inner.await?;
        let inner = rig.db.lazy_transaction(options());
        inner.run(async || rig.insert(3).await).await
    });
    outer.await.unwrap();

    assert_eq!(rig.ids().await, [2, 3]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_task_that_gets_the_scope_early_is_part_of_the_transaction() {
    let rig = Rig::new("lazy_handed_on").await;

    let (db, sql) = (
        rig.db.clone(),
        rig.sql("INSERT INTO {} (id, amount) VALUES (1, 1)"),
    );
    let failed = rig.db.lazy_transaction(options()).run(async || {
        let scope = Scope::current().unwrap();
        let work = async move { sqlx::query(sql).execute(&db).await.map(drop) };
        tokio::spawn(scope.run(work)).await.unwrap()?;
        assert_eq!(rig.db.pool().status().in_use, 1);
        Err::<(), _>(sqlx::Error::RowNotFound)
    });

    assert!(failed.await.is_err());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_that_cannot_begin_fails_the_statement_and_the_next_one_tries_again() {
    let rig = Rig::new("lazy_cannot_begin").await;

    let work = rig.db.lazy_transaction(options()).run(async || {
        rig.db.pool().breaker().trip();
        assert!(rig.insert(1).await.is_err());
        rig.db.pool().breaker().reset();
        rig.insert(2).await
    });
    work.await.unwrap();

    assert_eq!(rig.ids().await, [2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn on_demand_the_statements_before_the_demand_are_outside() {
    let rig = Rig::new("lazy_on_demand").await;

    let lazy = rig.db.lazy_transaction(options()).on_demand();
    let failed = lazy.run(async || {
        rig.insert(1).await?;
        assert!(!rig.db.in_transaction());
        assert!(rig.db.demand_transaction());
        rig.insert(2).await?;
        Err::<(), _>(sqlx::Error::RowNotFound)
    });

    assert!(failed.await.is_err());
    assert!(!rig.db.demand_transaction(), "there is none here");
    assert_eq!(rig.ids().await, [1]);
}

#[tokio::test]
async fn a_statement_after_the_end_is_refused_where_that_was_asked_for() {
    let rig = Rig::new("late").await;
    let strict = options().refuse_late();
    let scope = async || Sqlx::Ok(Scope::current().unwrap());
    let eager = rig.db.transaction_with(strict, scope).await.unwrap();
    let lazy = rig.db.lazy_transaction(strict).run(scope).await.unwrap();
    let lenient = rig.db.transaction(scope).await.unwrap();

    for scope in [eager, lazy] {
        let late = scope.run(rig.insert(1)).await.unwrap_err().to_string();
        assert!(late.contains("is over"), "{late}");
        let late = scope.run(rig.db.acquire()).await.map(drop);
        assert!(late.is_err());
        let late = scope.run(cenote::scope(rig.db.begin())).await.map(drop);
        assert!(late.is_err());
    }
    lenient.run(rig.insert(2)).await.unwrap();

    assert_eq!(rig.ids().await, [2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_statement_that_waits_for_the_commit_is_not_committed_by_itself() {
    let rig = Rig::new("late_race").await;
    let (db, sql) = (
        rig.db.clone(),
        rig.sql("INSERT INTO {} (id, amount) VALUES (9, 1)"),
    );
    let (end, ended) = oneshot::channel::<()>();

    let lazy = rig.db.lazy_transaction(options().refuse_late());
    let late = lazy.run(async || {
        rig.insert(1).await?;
        let held = rig.db.acquire().await?;
        let scope = Scope::current().unwrap();
        let late = tokio::spawn(scope.run(async move {
            let late = sqlx::query(sql).execute(&db).await;
            late.map(drop)
        }));
        // The task waits for the connection, and then the transaction ends.
        tokio::task::yield_now().await;
        tokio::spawn(async move {
            ended.await.unwrap();
            drop(held);
        });
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            end.send(()).unwrap();
        });
        Sqlx::Ok(late)
    });
    let late = late.await.unwrap();

    let late = late.await.unwrap();
    let expected: &[i32] = if late.is_ok() { &[1, 9] } else { &[1] };
    assert_eq!(rig.ids().await, expected);
    assert!(late.is_err(), "it came after the end");
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_statement_of_the_handle_is_reported_by_its_text_and_its_purpose() {
    let rig = Rig::with("reported", |builder| {
        builder.max_size(1).acquire_timeout(Duration::from_secs(2))
    })
    .await;
    let scope = Scope::new().labelled("POST /orders");
    let rows = scope.run(async {
        let sql = rig.sql("SELECT 1 UNION ALL SELECT 2");
        let mut rows = sqlx::query(sql).fetch(&rig.db);
        futures_util::StreamExt::next(&mut rows)
            .await
            .unwrap()
            .unwrap();
        let dry = tokio::spawn({
            let db = rig.db.clone();
            async move { db.acquire().await.map(drop).unwrap_err().to_string() }
        });
        dry.await.unwrap()
    });

    let report = rows.await;

    assert!(
        report.contains("held: 1 for up to") && report.contains("(POST /orders: SELECT 1 UNION"),
        "{report}"
    );
    assert!(!report.contains(".rs"), "{report}");
}

#[tokio::test]
async fn a_direct_call_of_the_executor_is_reported_by_its_line() {
    use sqlx::Executor;
    let rig = Rig::with("direct", |builder| builder.max_size(1)).await;

    let mut rows = (&rig.db).fetch_many(rig.sql("SELECT 1 UNION ALL SELECT 2"));
    let line = line!() - 1;
    futures_util::StreamExt::next(&mut rows)
        .await
        .unwrap()
        .unwrap();

    let site = rig.db.pool().leases()[0].site;
    assert_eq!((site.file(), site.line()), (file!(), line));
}
