//! A pool of the second level, and its base, both on backends under control.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::second_level::{On, Upper};
use cenote::{AcquireError, Builder, Lease, LeaseEnd, Manager, Pool};
use cenote_testkit::clock::settle;
use cenote_testkit::{Backend, Fault, GatedManager, Thing};

/// Opens the things of a backend of its own on the resources of any base.
pub(crate) struct GatedUpper<B> {
    things: GatedManager,
    /// A failed open leaves the base alone.
    spares_base: bool,
    base: PhantomData<fn() -> B>,
}

impl<B: Manager + 'static> Upper for GatedUpper<B> {
    type Base = B;
    type Resource = Thing;
    type Error = Fault;

    async fn open(&self, _: &mut B::Resource) -> Result<Thing, Fault> {
        self.things.open().await
    }

    fn spoils_base(&self, _: &Fault) -> bool {
        !self.spares_base
    }

    async fn check(&self, thing: &mut Thing, _: &mut B::Resource) -> Result<(), Fault> {
        self.things.check(thing).await
    }

    fn is_broken(&self, thing: &mut Thing, _: &mut B::Resource, end: LeaseEnd) -> bool {
        self.things.is_broken(thing, end)
    }

    fn needs_cleaning(&self, thing: &mut Thing, _: &mut B::Resource) -> bool {
        self.things.needs_cleaning(thing)
    }

    async fn clean(&self, thing: &mut Thing, _: &mut B::Resource) -> Result<(), Fault> {
        self.things.clean(thing).await
    }

    async fn close(&self, thing: Thing, _: &mut B::Resource) -> Result<(), Fault> {
        self.things.close(thing).await
    }
}

pub(crate) type UpperPool<B> = Pool<On<GatedUpper<B>>>;

pub(crate) type UpperLease<B> = Lease<On<GatedUpper<B>>>;

/// Begins a pool on `base`. Returns the backend of the upper resources, too.
#[track_caller]
pub(crate) fn on<B: Manager + 'static>(
    base: &Pool<B>,
) -> (Arc<Backend>, Builder<On<GatedUpper<B>>>) {
    let (backend, upper) = upper(false);
    (backend, Pool::on(base, upper))
}

/// Returns an upper, and its backend.
pub(crate) fn upper<B>(spares_base: bool) -> (Arc<Backend>, GatedUpper<B>) {
    let backend = Arc::new(Backend::default());
    let upper = GatedUpper {
        things: GatedManager(Arc::clone(&backend)),
        spares_base,
        base: PhantomData,
    };
    (backend, upper)
}

/// A base resource that several users share.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) serial: u64,
    is_broken: Arc<AtomicBool>,
    _thing: Arc<Mutex<Thing>>,
}

impl Line {
    pub(crate) fn breaks(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }
}

/// The manager of lines.
#[derive(Debug)]
pub(crate) struct Lines(pub(crate) GatedManager);

impl Manager for Lines {
    type Resource = Line;
    type Error = Fault;

    async fn open(&self) -> Result<Line, Fault> {
        let thing = self.0.open().await?;
        Ok(Line {
            serial: thing.serial,
            is_broken: Arc::default(),
            _thing: Arc::new(Mutex::new(thing)),
        })
    }

    fn is_broken(&self, line: &mut Line, _: LeaseEnd) -> bool {
        line.is_broken.load(Ordering::Relaxed)
    }
}

/// A pool of up to `max_size` lines, and its backend.
pub(crate) fn lines(max_size: usize) -> (Arc<Backend>, Pool<Lines>) {
    let backend = Arc::new(Backend::default());
    let lines = Pool::builder(Lines(GatedManager(Arc::clone(&backend))));
    let lines = lines.name("lines").max_size(max_size).build();
    (backend, lines.expect("the settings are valid"))
}

/// Asserts that no slot was lost on either level: after the upper pool was closed, nothing of the
/// base is lent or queued, and all of it can be lent.
pub(crate) async fn assert_conserved<B: Manager + 'static>(base: &Pool<B>, pool: UpperPool<B>) {
    let left = pool.close_within(Duration::from_secs(600)).await;
    assert!(left.leases.is_empty() && left.unfinished == 0, "{left}");
    drop(pool);
    settle().await;
    let status = base.status();
    assert_eq!((status.in_use, status.waiting), (0, 0), "{status:#?}");
    let mut leases = Vec::new();
    let mut errors = 0;
    while leases.len() < status.max_size {
        match base.acquire_within(Duration::from_secs(60)).await {
            Ok(lease) => leases.push(lease),
            // An open that hung before may end only now.
            Err(AcquireError::Open { .. }) if errors < 3 => errors += 1,
            Err(error) => panic!("lease {} of the base: {error}", leases.len()),
        }
    }
    assert!(base.try_acquire().expect("it is open").is_none());
}
