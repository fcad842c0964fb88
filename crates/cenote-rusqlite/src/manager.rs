//! The manager: how sessions are opened, checked, cleaned and closed.

use std::sync::Arc;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager, Severer};

use crate::error::SessionError;
use crate::session::Session;
use crate::template::{Role, Template};

/// The manager of sessions. [`Builder`](crate::Builder) makes it.
#[derive(Clone, Debug)]
pub struct Sqlite {
    pub(crate) template: Arc<Template>,
    pub(crate) role: Role,
}

impl Manager for Sqlite {
    type Resource = Session;
    type Error = SessionError;

    async fn open(&self) -> Result<Session, SessionError> {
        Session::open(Arc::clone(&self.template), self.role).await
    }

    fn classify(&self, error: &SessionError) -> ErrorClass {
        error.class()
    }

    async fn check(&self, session: &mut Session) -> Result<(), SessionError> {
        let checked = session.run(|desk| desk.check()).await;
        Ok(checked.ok_or(SessionError::Lost)??)
    }

    fn is_broken(&self, session: &mut Session, _: LeaseEnd) -> bool {
        session.is_broken()
    }

    fn needs_cleaning(&self, session: &mut Session) -> bool {
        session.is_running() || session.is_dirty()
    }

    fn must_stay(&self, session: &mut Session) -> bool {
        session.is_dirty()
    }

    async fn clean(&self, session: &mut Session) -> Result<(), SessionError> {
        session.settle().await;
        if session.is_dirty() {
            let cleaned = session.run(|desk| desk.clean()).await;
            cleaned.ok_or(SessionError::Lost)??;
        }
        match session.is_broken() {
            true => Err(SessionError::Lost),
            false => Ok(()),
        }
    }

    /// A closed pool that is [severed](cenote::Pool::sever) interrupts the closures that run.
    fn severer(&self, session: &mut Session) -> Option<Severer> {
        let brake = session.brake();
        Some(Box::new(move || brake.pull()))
    }

    async fn close(&self, session: Session) -> Result<(), SessionError> {
        session.end().await;
        Ok(())
    }
}
