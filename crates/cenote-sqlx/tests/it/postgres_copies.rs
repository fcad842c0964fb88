//! `COPY` on the handle, and what a dropped one leaves.

use std::time::Duration;

use cenote_sqlx::{Class, Db, Reset};
use cenote_testkit::{Proxy, Way};
use futures_util::{StreamExt, TryStreamExt};
use sqlx::Postgres;
use tokio::time::timeout;

use crate::world::postgres as world;

async fn table(name: &str, reset: Reset) -> Db<Postgres> {
    // A mixed-up answer must be seen, and not tried again.
    let db = Db::postgres(world::url()).retry_reads(false);
    let db = db.max_size(1).reset(reset);
    let db = db.clean_timeout(Duration::from_secs(20)).build().unwrap();
    let sql = format!("DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (a int, b text)");
    let sql = sqlx::AssertSqlSafe(sql);
    sqlx::raw_sql(sql).execute(&db).await.unwrap();
    db
}

async fn count(db: &Db<Postgres>, name: &str) -> i64 {
    let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {name}"));
    sqlx::query_scalar(sql).fetch_one(db).await.unwrap()
}

/// Asserts that answers belong to their questions.
async fn assert_in_step(db: &Db<Postgres>) {
    for number in 0..10_i32 {
        let read: i32 = sqlx::query_scalar("SELECT $1 + 1000")
            .bind(number)
            .fetch_one(db)
            .await
            .unwrap();
        assert_eq!(read, number + 1000, "the answer of another statement");
    }
    assert_eq!(db.pool().status().in_use, 0);
}

#[tokio::test]
async fn rows_are_copied_in_and_out_on_the_handle() {
    let db = table("cenote_copy", Reset::IfDirty).await;
    let mut copy = db
        .copy_in_raw("COPY cenote_copy FROM STDIN (FORMAT csv)")
        .await
        .unwrap();
    assert_eq!((copy.is_textual(), copy.num_columns()), (true, 2));
    assert_eq!(copy.column_is_textual(1), Some(true));
    assert_eq!(copy.column_is_textual(2), None);
    let label = db.pool().leases()[0].label.clone().unwrap();
    assert!(label.contains("COPY cenote_copy"), "{label}");

    copy.send(&b"1,one\n2,"[..]).await.unwrap();
    let long = "x".repeat(300_000);
    let rest = format!("two\n3,{long}\n");
    copy.read_from(rest.as_bytes()).await.unwrap();
    assert_eq!(copy.finish().await.unwrap(), 3);

    assert_eq!(db.pool().status().in_use, 0, "it is back at once");
    let data = db
        .copy_out_raw("COPY cenote_copy TO STDOUT (FORMAT csv)")
        .await
        .unwrap();
    assert_eq!(db.pool().status().in_use, 1, "the stream holds it");
    let data: Vec<_> = data.try_collect().await.unwrap();
    assert_eq!(
        data.concat(),
        format!("1,one\n2,two\n3,{long}\n").into_bytes()
    );
    assert_eq!(db.pool().status().opened, 1, "one connection for all");
    assert_in_step(&db).await;
}

#[tokio::test]
async fn a_copy_that_is_aborted_copies_nothing_and_keeps_its_connection() {
    let db = table("cenote_copy_aborted", Reset::IfDirty).await;
    let statement = "COPY cenote_copy_aborted FROM STDIN (FORMAT csv)";
    let mut copy = db.copy_in_raw(statement).await.unwrap();
    copy.send(&b"1,one\n"[..]).await.unwrap();

    copy.abort("for a reason").await.unwrap();

    assert_eq!(count(&db, "cenote_copy_aborted").await, 0);
    assert_eq!(db.pool().status().opened, 1);
    assert_in_step(&db).await;
}

#[tokio::test]
async fn a_copy_of_wrong_data_is_an_error_and_keeps_its_connection() {
    let db = table("cenote_copy_wrong", Reset::IfDirty).await;
    let statement = "COPY cenote_copy_wrong FROM STDIN (FORMAT csv)";
    let mut copy = db.copy_in_raw(statement).await.unwrap();
    copy.send(&b"one,1\n"[..]).await.unwrap();

    let error = copy.finish().await.unwrap_err();

    assert!(error.to_string().contains("integer"), "{error}");
    assert_eq!(count(&db, "cenote_copy_wrong").await, 0);
    assert_eq!(db.pool().status().opened, 1);
    assert_in_step(&db).await;
}

#[tokio::test]
async fn a_copy_that_cannot_begin_is_an_error_at_once() {
    let db = table("cenote_copy_not", Reset::Never).await;
    for wrong in ["COPY cenote_no_such FROM STDIN", "SELECT 1, 2", "nonsense"] {
        assert!(db.copy_in_raw(wrong).await.is_err(), "{wrong}");
        assert_in_step(&db).await;
        assert!(db.copy_out_raw(wrong).await.is_err(), "{wrong}");
        assert_in_step(&db).await;
    }
    assert!(
        db.copy_out_raw("COPY cenote_no_such TO STDOUT")
            .await
            .is_err()
    );
    assert_in_step(&db).await;
}

#[tokio::test]
async fn a_copy_that_is_dropped_copies_nothing_and_leaves_nothing() {
    for reset in [Reset::IfDirty, Reset::Never] {
        let db = table("cenote_copy_dropped", reset).await;
        let statement = "COPY cenote_copy_dropped FROM STDIN (FORMAT csv)";
        let mut copy = db.copy_in_raw(statement).await.unwrap();
        copy.send(&b"1,one\n"[..]).await.unwrap();

        drop(copy);

        assert_in_step(&db).await;
        assert_eq!(count(&db, "cenote_copy_dropped").await, 0);
        let many = "COPY (SELECT generate_series(1, 1000000)) TO STDOUT";
        let mut data = db.copy_out_raw(many).await.unwrap();
        assert_eq!(data.next().await.unwrap().unwrap(), "1\n");
        drop(data);
        timeout(Duration::from_secs(20), assert_in_step(&db))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_raw_copy_that_is_dropped_does_not_mix_up_answers() {
    for reset in [Reset::IfDirty, Reset::Never, Reset::Always] {
        let db = table("cenote_copy_raw", reset).await;
        let mut lease = db.acquire().await.unwrap();
        let mut copy = lease
            .copy_in_raw("COPY cenote_copy_raw FROM STDIN (FORMAT csv)")
            .await
            .unwrap();
        copy.send(&b"1,one\n"[..]).await.unwrap();

        drop(copy);
        drop(lease);

        assert_in_step(&db).await;
        assert_eq!(count(&db, "cenote_copy_raw").await, 0);
    }
}

#[tokio::test]
async fn a_copy_is_part_of_the_transaction_around_it() {
    let db = table("cenote_copy_part", Reset::IfDirty).await;
    let fill = async || {
        let mut copy = db.copy_in_raw("COPY cenote_copy_part FROM STDIN").await?;
        copy.send(&b"1\tone\n"[..]).await?;
        copy.finish().await
    };
    let failed: Result<(), sqlx::Error> = db
        .transaction(async || {
            fill().await?;
            Err(sqlx::Error::RowNotFound)
        })
        .await;
    assert!(failed.is_err());
    assert_eq!(count(&db, "cenote_copy_part").await, 0);

    assert_eq!(db.transaction(fill).await.unwrap(), 1);
    assert_eq!(count(&db, "cenote_copy_part").await, 1);

    let lost: Result<(), sqlx::Error> = db
        .transaction(async || {
            fill().await?;
            let copy = db.copy_in_raw("COPY cenote_copy_part FROM STDIN").await?;
            drop(copy);
            Ok(())
        })
        .await;
    assert!(lost.is_err(), "a dropped copy has failed the transaction");
    assert_eq!(count(&db, "cenote_copy_part").await, 1);
    assert_in_step(&db).await;
}

#[tokio::test]
async fn a_send_that_is_cut_off_is_not_half_sent() {
    let db = table("cenote_copy_cut", Reset::IfDirty).await;
    let mut copy = db
        .copy_in_raw("COPY cenote_copy_cut FROM STDIN (FORMAT csv)")
        .await
        .unwrap();
    let long = "x".repeat(1_000_000);
    let rows: String = (0..32).map(|row| format!("{row},{long}\n")).collect();

    let cut = timeout(Duration::ZERO, copy.send(rows.as_bytes())).await;
    assert!(cut.is_err(), "the socket cannot take all of it at once");
    copy.send(&b"-1,last\n"[..]).await.unwrap();

    assert_eq!(copy.finish().await.unwrap(), 33);
    assert_in_step(&db).await;
}

/// A handle behind a proxy, with a watchdog that does not wait for long, and the proxy.
async fn watched(name: &str) -> (Db<Postgres>, Proxy) {
    drop(table(name, Reset::IfDirty).await);
    let url = world::url();
    let proxy = Proxy::to_url(&url).await.unwrap();
    let db = Db::postgres(proxy.url(&url)).max_size(1);
    let db = db.silent_after(Duration::from_millis(300)).build().unwrap();
    sqlx::query("SELECT 1").execute(&db).await.unwrap();
    (db, proxy)
}

/// Asserts that the copy ends with an error that names the silence, and that the handle works.
async fn assert_silenced<T>(
    copy: impl Future<Output = Result<T, sqlx::Error>>,
    db: &Db<Postgres>,
    proxy: &Proxy,
) {
    let ended = timeout(Duration::from_secs(20), copy).await;

    let error = ended.expect("it ends").map(drop).unwrap_err();
    assert_eq!(Db::<Postgres>::classify(&error), Class::Broken, "{error}");
    let text = error.to_string();
    assert!(text.contains("the server waits for this client"), "{text}");
    proxy.reset();
    assert_in_step(db).await;
}

#[tokio::test]
async fn a_copy_whose_server_never_hears_its_end_fails_with_the_reason() {
    let (db, proxy) = watched("cenote_copy_lost_end").await;
    let copy = db.copy_in_raw("COPY cenote_copy_lost_end FROM STDIN (FORMAT csv)");
    let mut copy = copy.await.unwrap();
    copy.send(&b"1,one\n"[..]).await.unwrap();
    proxy.forget(Way::Both);

    assert_silenced(copy.finish(), &db, &proxy).await;

    assert_eq!(count(&db, "cenote_copy_lost_end").await, 0);
}

#[tokio::test]
async fn a_copy_whose_data_does_not_arrive_fails_with_the_reason() {
    let (db, proxy) = watched("cenote_copy_choked").await;
    let copy = db.copy_in_raw("COPY cenote_copy_choked FROM STDIN (FORMAT csv)");
    let mut copy = copy.await.unwrap();
    proxy.freeze(Way::ToServer);

    let endless = async {
        let line = format!("1,{}\n", "x".repeat(1_000_000));
        loop {
            copy.send(line.as_bytes()).await?;
        }
        #[expect(unreachable_code, reason = "it says what the block returns")]
        Ok::<(), sqlx::Error>(())
    };
    assert_silenced(endless, &db, &proxy).await;
}

#[tokio::test]
async fn a_copy_whose_data_stops_coming_fails_with_the_reason() {
    let (db, proxy) = watched("cenote_copy_muted").await;
    let sql = "COPY (SELECT repeat('x', 100000) FROM generate_series(1, 300)) TO STDOUT";
    let mut data = db.copy_out_raw(sql).await.unwrap();
    data.next().await.unwrap().unwrap();
    proxy.freeze(Way::ToClient);

    let rest = async {
        while data.try_next().await?.is_some() {}
        Ok::<(), sqlx::Error>(())
    };
    let ended = assert_silenced(rest, &db, &proxy);

    ended.await;
}

#[tokio::test]
async fn a_copy_that_cannot_begin_fails_with_the_reason() {
    let (db, proxy) = watched("cenote_copy_unheard").await;
    proxy.forget(Way::Both);

    let copy = db.copy_in_raw("COPY cenote_copy_unheard FROM STDIN (FORMAT csv)");

    assert_silenced(copy, &db, &proxy).await;
}
