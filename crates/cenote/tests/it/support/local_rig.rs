//! A local pool on a gated backend, whose resources are really not `Send`.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use cenote::LeaseEnd;
use cenote::Manager;
use cenote::local::{LocalBuilder, LocalLease, LocalManager, LocalPool};
use cenote_testkit::{Backend, Fault, GatedManager, Recorder, Thing};
use tokio::task::LocalSet;

/// User code that a test puts in some callback. It is called once.
pub(crate) type Callback = Rc<RefCell<Option<Box<dyn FnOnce()>>>>;

/// A resource that shares data of its thread.
pub(crate) struct Part {
    pub(crate) thing: Thing,
    pub(crate) uses: Rc<Cell<u64>>,
    dropped: Callback,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.thing.fmt(f)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        call(&self.dropped);
    }
}

pub(crate) struct Parts {
    gated: GatedManager,
    uses: Rc<Cell<u64>>,
    /// Called by the destructor of a resource.
    pub(crate) dropped: Callback,
    /// Called by `is_broken`.
    pub(crate) inspected: Callback,
}

fn call(callback: &Callback) {
    let call = callback.borrow_mut().take();
    if let Some(call) = call {
        call();
    }
}

impl LocalManager for Parts {
    type Resource = Part;
    type Error = Fault;

    async fn open(&self) -> Result<Part, Fault> {
        Ok(Part {
            thing: Manager::open(&self.gated).await?,
            uses: Rc::clone(&self.uses),
            dropped: Rc::clone(&self.dropped),
        })
    }

    async fn check(&self, part: &mut Part) -> Result<(), Fault> {
        Manager::check(&self.gated, &mut part.thing).await
    }

    fn is_broken(&self, part: &mut Part, end: LeaseEnd) -> bool {
        call(&self.inspected);
        Manager::is_broken(&self.gated, &mut part.thing, end)
    }

    fn needs_cleaning(&self, part: &mut Part) -> bool {
        Manager::needs_cleaning(&self.gated, &mut part.thing)
    }

    async fn clean(&self, part: &mut Part) -> Result<(), Fault> {
        Manager::clean(&self.gated, &mut part.thing).await
    }

    async fn close(&self, part: Part) -> Result<(), Fault> {
        let closed = self.gated.0.pass(cenote_testkit::Call::Close).await;
        drop(part);
        closed
    }
}

pub(crate) struct LocalRig {
    pub(crate) pool: LocalPool<Parts>,
    pub(crate) backend: Arc<Backend>,
    pub(crate) recorder: Arc<Recorder>,
}

impl LocalRig {
    pub(crate) fn new(build: impl FnOnce(LocalBuilder<Parts>) -> LocalBuilder<Parts>) -> Self {
        let backend = Arc::new(Backend::default());
        let recorder = Arc::new(Recorder::default());
        let parts = Parts {
            gated: GatedManager(Arc::clone(&backend)),
            uses: Rc::default(),
            dropped: Rc::default(),
            inspected: Rc::default(),
        };
        let pool = build(LocalPool::builder(parts).observer(recorder.clone()));
        let pool = pool.build().expect("the test's settings are valid");
        Self {
            pool,
            backend,
            recorder,
        }
    }

    pub(crate) fn with_max_size(max_size: usize) -> Self {
        Self::new(|pool| pool.max_size(max_size))
    }

    pub(crate) async fn acquire(&self) -> LocalLease<Parts> {
        self.pool.acquire().await.expect("the pool has a resource")
    }
}

/// Runs a test in a `LocalSet`.
pub(crate) async fn in_set<T>(test: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(test).await
}
