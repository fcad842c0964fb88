//! What a session knows about transactions that SQL text began.

use sqlx::Error;

use super::{Progress, Session};
use crate::dialect::Dialect;
use crate::reading::Effect;

impl<DB: Dialect> Session<DB> {
    pub(crate) fn is_begun_by_sql(&self) -> bool {
        let open = self.state.by_sql;
        open || self.state.soon.is_some_and(|soon| soon.leaves_open(open))
    }

    /// Asks the server whether SQL text has begun a transaction, if that is possible.
    pub(crate) async fn ask_about_sql(&mut self) -> Result<(), Error> {
        if self.depth() > 0 || !self.is_begun_by_sql() && !self.state.doubt {
            return Ok(());
        }
        self.state.progress = Progress::Running;
        self.state.soon = None;
        let asked = DB::is_open(&mut self.connection).await;
        self.state.by_sql = self.complete(asked).await?;
        self.state.doubt = false;
        Ok(())
    }

    /// Records that no transaction is open.
    pub(crate) fn forget_transactions(&mut self) {
        self.state.open = 0;
        self.state.by_sql = false;
        self.state.doubt = false;
        self.state.soon = None;
    }

    /// Records what the text that ran says about a transaction.
    pub(super) fn note_sql(&mut self, succeeded: bool) {
        let Some(soon) = self.state.soon.take() else {
            return;
        };
        if succeeded {
            self.state.by_sql = soon.leaves_open(self.state.by_sql);
            self.state.doubt |= soon.doubtful;
        } else {
            // A single statement that fails begins nothing. Of several, the first may have begun.
            self.state.by_sql |= soon.effect == Effect::Opens && soon.statements > 1;
            self.state.doubt |= soon.doubtful || soon.effect != Effect::Keeps;
        }
    }
}
