//! A manager that makes one mistake.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use cenote::{LeaseEnd, Manager};
use cenote_testkit::conformance::Conformance;
use tokio::task::yield_now;

/// No call of the fake takes time, except one that hangs.
const LIMIT: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    GivesUpDirty,
    CannotOpen,
    OpensForever,
    RefusesNew,
    CondemnsNew,
    MissesDeath,
    HangsOnDeath,
    CondemnsOthers,
    MissesDirt,
    LeavesDirt,
    CannotClean,
    CondemnsCleaned,
    BornDirty,
    JamsOpen,
    JamsCheck,
    JamsClean,
    JamsClose,
    CannotClose,
    ClosesForever,
    HangsOnDeadClose,
    KeepsClosed,
    KeepsDropped,
    DirtHasNoEffect,
}

/// What the fake shares with its resources.
#[derive(Default)]
struct Backend {
    count: AtomicUsize,
    /// A call was dropped that must not be, and the next ones hang.
    jammed: AtomicBool,
    any_killed: AtomicBool,
}

pub(crate) struct Session {
    is_dead: bool,
    is_dirty: bool,
    was_cleaned: bool,
    backend: Arc<Backend>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.backend.count.fetch_sub(1, SeqCst);
    }
}

pub(crate) struct Fake {
    mistake: Mistake,
    backend: Arc<Backend>,
}

/// Returns the suite for a fake with this mistake, with all closures.
pub(crate) fn suite(mistake: Mistake) -> Conformance<Fake> {
    let fake = Fake::new(mistake);
    let backend = Arc::clone(&fake.backend);
    Conformance::new(fake)
        .limit(LIMIT)
        .kill(async |session: &mut Session| {
            session.is_dead = true;
            session.backend.any_killed.store(true, SeqCst);
        })
        .dirty(
            async move |session: &mut Session| {
                session.is_dirty = mistake != Mistake::DirtHasNoEffect;
            },
            async |session: &mut Session| session.is_dirty,
        )
        .count(async move || backend.count.load(SeqCst))
}

impl Fake {
    pub(crate) fn new(mistake: Mistake) -> Self {
        Self {
            mistake,
            backend: Arc::default(),
        }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    /// Awaits twice. If it is dropped meanwhile and makes this mistake, later opens hang.
    async fn step(&self, mistake: Mistake) {
        let jams = self.makes(mistake);
        self.backend.jammed.fetch_or(jams, SeqCst);
        yield_now().await;
        yield_now().await;
        if jams {
            self.backend.jammed.store(false, SeqCst);
        }
    }
}

impl Manager for Fake {
    type Resource = Session;
    type Error = &'static str;

    async fn open(&self) -> Result<Session, &'static str> {
        if self.makes(Mistake::CannotOpen) {
            return Err("refused");
        }
        if self.makes(Mistake::OpensForever) || self.backend.jammed.load(SeqCst) {
            return pending().await;
        }
        if self.makes(Mistake::KeepsDropped) {
            self.backend.count.fetch_add(1, SeqCst);
            self.step(Mistake::None).await;
            self.backend.count.fetch_sub(1, SeqCst);
        }
        self.step(Mistake::JamsOpen).await;
        self.backend.count.fetch_add(1, SeqCst);
        Ok(Session {
            is_dead: false,
            is_dirty: self.makes(Mistake::BornDirty),
            was_cleaned: false,
            backend: Arc::clone(&self.backend),
        })
    }

    async fn check(&self, session: &mut Session) -> Result<(), &'static str> {
        self.step(Mistake::JamsCheck).await;
        let others = self.makes(Mistake::CondemnsOthers);
        if self.makes(Mistake::RefusesNew) || (others && session.backend.any_killed.load(SeqCst)) {
            return Err("not fit");
        }
        if !session.is_dead || self.makes(Mistake::MissesDeath) {
            return Ok(());
        }
        if self.makes(Mistake::HangsOnDeath) {
            return pending().await;
        }
        Err("not connected")
    }

    fn is_broken(&self, session: &mut Session, _: LeaseEnd) -> bool {
        let condemned = self.makes(Mistake::CondemnsCleaned) && session.was_cleaned;
        let given_up = self.makes(Mistake::GivesUpDirty) && session.is_dirty;
        self.makes(Mistake::CondemnsNew) || condemned || given_up
    }

    fn needs_cleaning(&self, session: &mut Session) -> bool {
        session.is_dirty && !self.makes(Mistake::MissesDirt)
    }

    async fn clean(&self, session: &mut Session) -> Result<(), &'static str> {
        self.step(Mistake::JamsClean).await;
        if self.makes(Mistake::CannotClean) {
            return Err("no rollback");
        }
        session.is_dirty = self.makes(Mistake::LeavesDirt);
        session.was_cleaned = true;
        Ok(())
    }

    async fn close(&self, session: Session) -> Result<(), &'static str> {
        self.step(Mistake::JamsClose).await;
        let hangs = self.makes(Mistake::HangsOnDeadClose) && session.is_dead;
        if hangs || self.makes(Mistake::ClosesForever) {
            return pending().await;
        }
        if self.makes(Mistake::KeepsClosed) {
            self.backend.count.fetch_add(1, SeqCst);
        }
        drop(session);
        if self.makes(Mistake::CannotClose) {
            return Err("no goodbye");
        }
        Ok(())
    }
}
