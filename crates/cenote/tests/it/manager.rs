//! The manager: two ways to write one, what it may leave out, and that only `open`'s error reaches
//! a caller.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cenote::event::{Callback, CallbackFailed};
use cenote::{AcquireError, Builder, Lease, Manager, Observer, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Recorder, Rig, Thing};

use crate::support::text::chain;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The backend of both kinds of manager.
#[derive(Default)]
struct World {
    down: AtomicBool,
    dead: AtomicBool,
    checks: AtomicUsize,
    closes: AtomicUsize,
}

struct Token(Arc<World>);

#[derive(Debug)]
struct No(&'static str);

impl fmt::Display for No {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for No {}

async fn open(world: Arc<World>) -> Result<Token, No> {
    if world.down.load(Ordering::Relaxed) {
        Err(No("it is down"))
    } else {
        Ok(Token(world))
    }
}

async fn check(token: &mut Token) -> bool {
    token.0.checks.fetch_add(1, Ordering::Relaxed);
    !token.0.dead.load(Ordering::Relaxed)
}

async fn close(token: Token) {
    token.0.closes.fetch_add(1, Ordering::Relaxed);
}

struct Written(Arc<World>);

impl Manager for Written {
    type Resource = Token;
    type Error = No;

    async fn open(&self) -> Result<Token, No> {
        open(Arc::clone(&self.0)).await
    }

    async fn check(&self, token: &mut Token) -> Result<(), No> {
        if check(token).await {
            Ok(())
        } else {
            Err(No("the check returned false"))
        }
    }

    async fn close(&self, token: Token) -> Result<(), No> {
        close(token).await;
        Ok(())
    }
}

/// One life of a pool: fails, opens, checks, discards, closes. Returns all that was observed.
async fn live<M: Manager<Resource = Token> + 'static>(
    build: impl FnOnce(Arc<World>) -> Builder<M>,
) -> (Vec<String>, usize, usize) {
    let world = Arc::new(World::default());
    let recorder = Arc::new(Recorder::default());
    let builder = build(Arc::clone(&world)).name("life").max_size(2);
    let pool = builder
        .observer(recorder.clone())
        .build()
        .expect("the settings are valid");
    world.down.store(true, Ordering::Relaxed);
    let failed = pool.acquire().await.map(drop).expect_err("it is down");
    assert!(chain(&failed).contains(&"it is down".to_owned()));
    world.down.store(false, Ordering::Relaxed);
    let both = (take(&pool).await, take(&pool).await);
    drop(both);
    advance(10 * SECOND).await;
    world.dead.store(true, Ordering::Relaxed);
    let fresh = take(&pool).await;
    Lease::discard(fresh);
    let last = take(&pool).await;
    pool.close();
    drop(last);
    settle().await;
    let checks = world.checks.load(Ordering::Relaxed);
    let closes = world.closes.load(Ordering::Relaxed);
    (recorder.lines(), checks, closes)
}

async fn take<M: Manager + 'static>(pool: &Pool<M>) -> Lease<M> {
    pool.acquire().await.expect("the pool has a resource")
}

#[tokio::test(start_paused = true)]
async fn both_ways_to_write_a_manager_behave_alike() {
    let written = live(|world| Pool::builder(Written(world))).await;
    let given = live(|world| {
        Pool::from_fn(move || open(Arc::clone(&world)))
            .check_with(check)
            .close_with(close)
    })
    .await;

    assert_eq!(written, given);
    assert_eq!((written.1, written.2), (2, 4));
}

struct Plain;

impl Manager for Plain {
    type Resource = Arc<()>;
    type Error = io::Error;

    async fn open(&self) -> Result<Arc<()>, io::Error> {
        Ok(Arc::new(()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_only_opens_is_alive_clean_and_closes_by_drop() {
    let pool = Pool::builder(Plain)
        .max_size(1)
        .check_on_return(true)
        .check_after_idle(Duration::ZERO)
        .build()
        .unwrap();
    let lease = pool.acquire().await.unwrap();
    let watched = Arc::downgrade(&*lease);

    drop(lease);
    settle().await;
    assert_eq!(pool.status().idle, 1);
    let again = pool.acquire().await.unwrap();
    assert_eq!((Lease::id(&again), pool.status().closes.total()), (1, 0));
    Lease::discard(again);
    settle().await;

    assert_eq!(watched.strong_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_closures_needs_no_more_than_a_factory() {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(Arc::new(())))
        .max_size(1)
        .check_after_idle(Duration::ZERO)
        .build()
        .unwrap();
    let watched = Arc::downgrade(&*pool.acquire().await.unwrap());

    let again = pool.acquire().await.unwrap();
    assert_eq!(Lease::uses(&again), 2);
    Lease::discard(again);
    settle().await;

    assert_eq!(watched.strong_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_factory_may_fail_with_an_error_of_any_type() {
    let by_type = Pool::from_fn(async || Err::<(), _>(io::Error::other("by type")));
    let by_text = Pool::from_fn(async || Err::<(), _>("by text".to_owned()));
    let by_str = Pool::from_fn(async || Err::<(), _>("by str"));
    let by_box = Pool::from_fn(async || Err::<(), Box<dyn Error + Send + Sync>>("by box".into()));

    for (builder, text) in [
        (by_type, "by type"),
        (by_text, "by text"),
        (by_str, "by str"),
        (by_box, "by box"),
    ] {
        let pool = builder.build().unwrap();
        let error = pool.acquire().await.map(drop).unwrap_err();
        assert!(matches!(error, AcquireError::Open { .. }));
        assert_eq!(chain(&error).last().unwrap(), text);
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_factory_can_be_downcast_to_its_type() {
    let pool = Pool::from_fn(async || Err::<(), _>(io::Error::from(io::ErrorKind::NotConnected)))
        .build()
        .unwrap();

    let error = pool.acquire().await.map(drop).unwrap_err();

    let io: &io::Error = error.source().unwrap().downcast_ref().unwrap();
    assert_eq!(io.kind(), io::ErrorKind::NotConnected);
}

#[tokio::test(start_paused = true)]
async fn a_factory_that_panics_before_it_returns_a_future_is_reported_as_well() {
    let pool =
        Pool::from_fn(|| -> std::future::Ready<Result<(), io::Error>> { panic!("no future") })
            .max_size(1)
            .build()
            .unwrap();

    for _ in 0..2 {
        let error = pool.acquire().await.map(drop).unwrap_err();
        assert!(error.to_string().contains("no future"), "{error}");
    }

    assert_eq!(pool.status().open_failed, 2);
}

#[tokio::test(start_paused = true)]
async fn only_the_error_of_open_reaches_a_caller() {
    use Call::{BeforeAcquire, BeforeRelease, Check, Clean, Close, IsBroken, NeedsCleaning};

    let calls = [
        Check,
        Clean,
        Close,
        IsBroken,
        NeedsCleaning,
        BeforeAcquire,
        BeforeRelease,
    ];
    for call in calls {
        for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
            let rig = Rig::new(|pool| {
                pool.max_size(2)
                    .acquire_timeout(60 * SECOND)
                    .check_after_idle(Duration::ZERO)
                    .before_acquire(async |thing: &mut Thing| thing.pass(BeforeAcquire).await)
                    .before_release(async |thing: &mut Thing| thing.pass(BeforeRelease).await)
            });
            rig.backend.always(call, gate);
            for _ in 0..5 {
                let lease = rig.pool.acquire().await;
                let mut lease = lease.unwrap_or_else(|error| panic!("{call:?} {gate:?}: {error}"));
                lease.dirty = true;
                drop(lease);
                settle().await;
            }
            rig.pool.invalidate();
            advance(10 * SECOND).await;
            rig.assert_full_service().await;
        }
    }
}

#[derive(Default)]
struct Failures(std::sync::Mutex<Vec<(Callback, String)>>);

impl Observer for Failures {
    fn callback_failed(&self, event: &CallbackFailed<'_>) {
        let seen = (event.callback, event.message.to_owned());
        self.0
            .lock()
            .expect("no holder of the lock panics")
            .push(seen);
    }
}

#[tokio::test(start_paused = true)]
async fn each_callback_has_its_time_limit() {
    let limits = [
        (Call::Check, 110 * MS),
        (Call::BeforeAcquire, 110 * MS),
        (Call::Clean, 220 * MS),
        (Call::BeforeRelease, 220 * MS),
        (Call::Close, 330 * MS),
    ];
    for (call, limit) in limits {
        let failures = Arc::new(Failures::default());
        let rig = Rig::new(|pool| {
            pool.max_size(1)
                .check_timeout(110 * MS)
                .clean_timeout(220 * MS)
                .close_timeout(330 * MS)
                .check_after_idle(Duration::ZERO)
                .observer(failures.clone())
                .before_acquire(async |thing: &mut Thing| thing.pass(Call::BeforeAcquire).await)
                .before_release(async |thing: &mut Thing| thing.pass(Call::BeforeRelease).await)
        });
        rig.backend.once(call, Gate::Hang);
        let mut lease = rig.acquire().await;
        lease.dirty = true;
        drop(lease);
        settle().await;
        if call == Call::Close {
            rig.pool.invalidate();
        }
        let _waiting = (rig.pool.status().idle == 1).then(|| rig.wait());

        advance(limit - MS).await;
        assert!(failures.0.lock().unwrap().is_empty(), "{call:?}");
        advance(2 * MS).await;

        let seen = failures.0.lock().unwrap().clone();
        assert_eq!(seen.len(), 1, "{call:?}");
        assert_eq!(format!("{:?}", seen[0].0), format!("{call:?}"));
        assert!(seen[0].1.contains("took longer than"), "{seen:?}");
    }
}
