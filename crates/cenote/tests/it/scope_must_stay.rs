//! The pin rule: the manager says whether a resource stays in its scope, and a handle goes by it.

use std::time::Duration;

use cenote::scope::{BindError, Bound, Handle, Scope};
use cenote::{CloseReason, LeaseEnd, Manager, Pool, scope};
use cenote_testkit::cut;

#[derive(Debug, Default)]
struct Session {
    in_transaction: bool,
    broken: bool,
    panics: bool,
    statements: usize,
}

struct Sessions;

impl Manager for Sessions {
    type Resource = Session;
    type Error = String;

    async fn open(&self) -> Result<Session, String> {
        Ok(Session::default())
    }

    fn is_broken(&self, session: &mut Session, end: LeaseEnd) -> bool {
        session.broken || end == LeaseEnd::Cancelled
    }

    fn must_stay(&self, session: &mut Session) -> bool {
        assert!(!session.panics, "must_stay panicked");
        session.in_transaction
    }
}

fn pool() -> Pool<Sessions> {
    let pool = Pool::builder(Sessions).max_size(3);
    let pool = pool.acquire_timeout(Duration::from_secs(1)).build();
    pool.expect("the settings are valid")
}

type Failed = BindError<String>;

#[tokio::test(start_paused = true)]
async fn a_resource_stays_as_long_as_its_manager_says_so() {
    let pool = pool();
    scope(async {
        drop(pool.bind().await?);
        assert_eq!(pool.status().in_use, 0);

        pool.bind().await?.in_transaction = true;
        assert_eq!(pool.status().in_use, 1);
        pool.bind().await?.statements += 1;
        pool.bind().await?.statements += 1;
        assert_eq!(pool.status().acquired, 2, "one resource served all");

        pool.bind().await?.in_transaction = false;
        assert_eq!(pool.status().in_use, 0);
        Ok::<_, Failed>(())
    })
    .await
    .unwrap();
    assert_eq!(pool.acquire().await.unwrap().statements, 2);
}

#[tokio::test(start_paused = true)]
async fn the_scope_ends_the_stay() {
    let pool = pool();
    scope(async {
        pool.bind().await.unwrap().in_transaction = true;
    })
    .await;

    assert_eq!((pool.status().in_use, pool.status().idle), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn outside_a_scope_the_manager_is_not_asked() {
    let pool = pool();
    let mut bound = pool.bind().await.unwrap();
    bound.in_transaction = true;
    bound.panics = true;

    drop(bound);

    assert_eq!((pool.status().in_use, pool.status().idle), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_pin_keeps_what_the_manager_would_let_go() {
    let pool = pool();
    scope(async {
        let mut bound = pool.bind().await?;
        Bound::pin(&mut bound);
        bound.in_transaction = true;
        drop(bound);
        let mut bound = pool.bind().await?;
        bound.in_transaction = false;
        drop(bound);
        assert_eq!(pool.status().in_use, 1, "it is pinned");

        let mut bound = pool.bind().await?;
        Bound::unpin(&mut bound);
        bound.in_transaction = true;
        drop(bound);
        assert_eq!(pool.status().in_use, 1, "it must stay");
        pool.bind().await?.in_transaction = false;
        assert_eq!(pool.status().in_use, 0);
        Ok::<_, Failed>(())
    })
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_broken_resource_leaves_a_scope_that_holds_it_unless_it_must_stay() {
    let pool = pool();
    let inside = async {
        let mut first = pool.bind().await?;
        let number = cenote::Lease::id(&first);
        (first.in_transaction, first.broken) = (true, true);
        drop(first);
        let mut same = pool.bind().await?;
        assert_eq!(
            cenote::Lease::id(&same),
            number,
            "its transaction is not over"
        );
        same.in_transaction = false;
        drop(same);
        assert_ne!(cenote::Lease::id(&*pool.bind().await?), number);
        Ok::<_, Failed>(())
    };

    Scope::new().hold().run_and_end(inside).await.unwrap();

    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_resource_that_must_stay_goes_back_where_the_seat_is_taken() {
    let pool = pool();
    scope(async {
        let (mut one, mut other) = (pool.bind().await?, pool.bind().await?);
        one.in_transaction = true;
        other.in_transaction = true;
        drop(one);
        drop(other);
        assert_eq!(pool.status().in_use, 1);
        Ok::<_, Failed>(())
    })
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_panics_when_asked_loses_the_resource_and_no_slot() {
    let pool = pool();
    scope(async {
        let mut bound = pool.bind().await?;
        Bound::pin(&mut bound);
        bound.panics = true;
        drop(bound);
        assert_eq!(pool.status().in_use, 0);
        Ok::<_, Failed>(())
    })
    .await
    .unwrap();
    assert_eq!(pool.status().total, 1, "the return itself went well");
}

#[tokio::test(start_paused = true)]
async fn a_handle_is_transparent_in_a_scope_and_holds_nothing_outside() {
    let pool = pool();
    let db = Handle::new(&pool);
    db.with(async |session| session.in_transaction = true)
        .await
        .unwrap();
    assert_eq!(db.pool().status().in_use, 0);

    scope(async {
        db.with(async |session| session.in_transaction = true)
            .await?;
        let other = db.clone();
        assert!(other.with(async |session| session.in_transaction).await?);
        let failed = db.try_with(async |_| Err::<(), _>("constraint")).await?;
        assert_eq!(failed, Err("constraint"));
        assert_eq!(
            pool.status().in_use,
            1,
            "an error of a statement ends nothing"
        );
        Ok::<_, Failed>(())
    })
    .await
    .unwrap();
    assert_eq!(pool.status().in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn a_use_that_is_cancelled_or_panics_is_judged_like_any_lease() {
    let pool = pool();
    let db = Handle::new(&pool);

    let hung = db.with(async |_| std::future::pending::<()>().await);
    assert!(cut(2, hung).await.is_none());
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1, "cancelled");

    let own = db.clone();
    let panicked = tokio::spawn(async move { own.with(async |_| panic!("on purpose")).await });
    assert!(panicked.await.is_err());
    assert_eq!(pool.status().closes.by(CloseReason::Discarded), 1);
    assert_eq!(pool.status().in_use, 0);
}
