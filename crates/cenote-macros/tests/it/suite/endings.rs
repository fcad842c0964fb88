//! How a transactional function ends: commit or rollback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cenote_sqlx::transactional;
use tokio::sync::Notify;

use super::{Done, Problem, Rig};

const NOTHING: [i32; 0] = [];

impl Rig {
    #[transactional(self.db)]
    async fn insert_both(&self, first: i32, second: i32) -> Result<&'static str, sqlx::Error> {
        assert!(self.db.in_transaction());
        self.insert(first).await?;
        self.insert(second).await?;
        Ok("done")
    }

    #[transactional(self.db)]
    async fn insert_unless_sold_out(&self, id: i32) -> Result<(), Problem> {
        self.insert(id).await?;
        if id > 9 {
            return Err(Problem::SoldOut);
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_function_that_ends_well_is_committed() {
    let rig = Rig::new("commit").await;

    assert_eq!(rig.insert_both(1, 2).await.unwrap(), "done");

    assert!(!rig.db.in_transaction());
    assert_eq!(rig.ids().await, [1, 2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn an_error_of_the_question_mark_rolls_back() {
    let rig = Rig::new("question_mark").await;

    let error = rig.insert_both(1, 1).await.unwrap_err();

    assert!(error.as_database_error().unwrap().is_unique_violation());
    assert_eq!(rig.ids().await, NOTHING);
    rig.assert_clean().await;
}

#[tokio::test]
async fn an_early_return_with_an_error_rolls_back() {
    let rig = Rig::new("early").await;

    let error = rig.insert_unless_sold_out(10).await.unwrap_err();
    rig.insert_unless_sold_out(1).await.unwrap();

    assert!(matches!(error, Problem::SoldOut));
    assert_eq!(rig.ids().await, [1]);
    rig.assert_clean().await;
}

#[transactional(rig.db)]
async fn insert_and_panic(rig: Arc<Rig>) -> Done {
    rig.insert(1).await?;
    panic!("on purpose");
}

#[tokio::test]
async fn a_panic_rolls_back() {
    let rig = Arc::new(Rig::new("panic").await);

    let task = tokio::spawn(insert_and_panic(rig.clone()));

    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(rig.ids().await, NOTHING);
    rig.assert_clean().await;
}

#[transactional(rig.db)]
async fn insert_and_hang(rig: &Rig, inserted: &Notify) -> Done {
    rig.insert(1).await?;
    inserted.notify_one();
    std::future::pending().await
}

#[tokio::test]
async fn a_future_that_is_dropped_rolls_back() {
    let rig = Rig::new("dropped").await;
    let inserted = Notify::new();

    tokio::select! {
        end = insert_and_hang(&rig, &inserted) => panic!("the function ended: {end:?}"),
        () = inserted.notified() => {}
    }

    assert_eq!(rig.ids().await, NOTHING);
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_aborted_rolls_back() {
    let rig = Arc::new(Rig::new("aborted").await);
    let inserted = Arc::new(Notify::new());
    let (inner, tell) = (rig.clone(), inserted.clone());
    let task = tokio::spawn(async move { insert_and_hang(&inner, &tell).await });
    inserted.notified().await;

    task.abort();

    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(rig.ids().await, NOTHING);
    rig.assert_clean().await;
}

/// Records that it was dropped.
#[derive(Debug)]
struct Success<'a>(&'a AtomicBool);

impl Drop for Success<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[transactional(rig.db)]
async fn violate_a_deferred_constraint<'a>(
    rig: &Rig,
    dropped: &'a AtomicBool,
) -> Result<Success<'a>, Problem> {
    rig.insert(1).await?;
    rig.run("INSERT INTO {}_late VALUES (7)").await?;
    Ok(Success(dropped))
}

#[tokio::test]
async fn a_commit_that_fails_is_the_functions_error_and_the_success_is_dropped() {
    let rig = Rig::new("no_commit").await;
    let late = "CREATE TABLE {}_late (id INTEGER REFERENCES {} (id) DEFERRABLE INITIALLY DEFERRED)";
    rig.run(late).await.unwrap();
    let dropped = AtomicBool::new(false);

    let error = violate_a_deferred_constraint(&rig, &dropped)
        .await
        .unwrap_err();

    let Problem::Database(error) = error else {
        panic!("not the error of the commit: {error}");
    };
    let error = error.as_database_error().unwrap();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert!(dropped.load(Ordering::Relaxed));
    assert_eq!(rig.ids().await, NOTHING);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_that_cannot_begin_is_the_functions_error_and_the_body_is_not_run() {
    let rig = Rig::new("no_begin").await;
    rig.db.pool().close();

    let error = insert_and_panic(Arc::new(rig)).await.unwrap_err();

    assert!(matches!(error, sqlx::Error::PoolClosed), "{error}");
}

#[transactional(rig.db)]
async fn roll_back_by_sql(rig: &Rig) -> Result<(), Problem> {
    rig.insert(1).await?;
    rig.run("ROLLBACK").await?;
    Err(Problem::SoldOut)
}

#[tokio::test]
async fn a_rollback_with_nothing_to_roll_back_does_not_hide_the_first_error() {
    let rig = Rig::new("no_rollback").await;

    let error = roll_back_by_sql(&rig).await.unwrap_err();

    assert!(matches!(error, Problem::SoldOut), "{error:?}");
    assert_eq!(rig.ids().await, NOTHING);
    rig.assert_clean().await;
}

#[tokio::test]
async fn the_lease_of_a_transaction_shows_the_line_of_the_attribute() {
    #[transactional(rig.db)]
    async fn look(rig: &Rig) -> Result<(&'static str, u32), sqlx::Error> {
        rig.insert(1).await?;
        let held = rig.db.pool().leases().remove(0);
        Ok((held.site.file(), held.site.line()))
    }
    let line = line!() - 6;
    let rig = Rig::new("site").await;

    assert_eq!(look(&rig).await.unwrap(), (file!(), line));
}
