//! The context that a session has, and how it gets the one of its caller.
//!
//! # Invariants
//! - **C1 certain**: `known` is the context of the session, or it is `None`.
//! - **C2 nothing forgotten**: every setting that may differ from that of a new session because of
//!   a context is in `touched`.
//!
//! [`Session::fit_context`] is the only writer that makes `known` certain, after the server has
//! answered. The tests of tenants check what follows from both.

use std::collections::BTreeSet;
use std::sync::Arc;

use sqlx::Error;

use super::{Settings, current};
use crate::dialect::Dialect;
use crate::session::Session;

/// What is known about the context of a session.
#[derive(Debug)]
pub(crate) struct Applied {
    known: Option<Arc<Settings>>,
    touched: BTreeSet<String>,
    /// Whether it was applied in a transaction, whose rollback would undo it.
    in_transaction: bool,
}

impl Default for Applied {
    fn default() -> Self {
        Self {
            known: Some(Arc::default()),
            touched: BTreeSet::new(),
            in_transaction: false,
        }
    }
}

impl Applied {
    /// Returns whether the session has no setting of a context.
    pub(crate) fn is_none(&self) -> bool {
        self.touched.is_empty()
    }

    /// Something may have changed the settings.
    pub(crate) fn doubt(&mut self) {
        self.known = None;
    }

    /// A transaction or a part of it has ended.
    pub(crate) fn transaction_ended(&mut self) {
        if self.in_transaction {
            self.known = None;
        }
    }
}

impl<DB: Dialect> Session<DB> {
    /// Returns whether the session may have another context than its caller.
    pub(crate) fn is_out_of_context(&self) -> bool {
        let wanted = current(&self.template);
        let applied = &self.state.context;
        match wanted {
            None => !applied.is_none(),
            wanted => applied.known != wanted,
        }
    }

    /// Prepares the session for a caller that uses the connection itself.
    pub(crate) async fn fit_caller(&mut self) -> Result<(), Error> {
        self.make_ready().await?;
        self.fit_settings().await?;
        self.fit_context().await
    }

    /// Gives the session the context of the caller, if it has another one.
    pub(crate) async fn fit_context(&mut self) -> Result<(), Error> {
        if !self.is_out_of_context() {
            return Ok(());
        }
        if self.template.pooled {
            let text = "a context belongs to a session, and the proxy lends sessions by the \
                        transaction: set it in a transaction (`set_config(.., true)`)";
            return Err(Error::InvalidArgument(String::from(text)));
        }
        let wanted = current(&self.template).unwrap_or_default();
        let before = self.state.context.touched.clone();
        let gone = before.iter().filter(|name| !wanted.contains_key(*name));
        let gone: Vec<&str> = gone.map(String::as_str).collect();
        let sql = DB::context(&wanted, &gone, &self.template.settings.texts())?;
        let in_transaction = self.is_in_transaction();
        let applied = &mut self.state.context;
        applied.known = None;
        applied.in_transaction = in_transaction;
        applied.touched.extend(wanted.keys().cloned());
        if let Err(error) = self.run(&sql).await {
            // A statement that fails sets nothing. But a setting that cannot be set back would
            // make every later caller fail.
            self.state.broken |= !gone.is_empty() && !in_transaction;
            self.state.context.touched = before;
            return Err(error);
        }
        let applied = &mut self.state.context;
        applied.touched = wanted.keys().cloned().collect();
        applied.known = Some(wanted);
        Ok(())
    }
}
