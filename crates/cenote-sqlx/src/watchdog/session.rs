//! A session under watch.

use sqlx::Error;

use crate::dialect::Dialect;
use crate::session::Session;

/// Runs a future that uses the session, under its watch. If the watchdog fails it, the session is
/// broken.
macro_rules! watched {
    ($session:expr, $work:expr) => {{
        let watch = $session.watch.clone();
        let ended = {
            let work = std::pin::pin!($work);
            $crate::watchdog::over(watch.as_ref(), work).await
        };
        match ended {
            Ok(result) => result,
            Err(error) => $session.give_up(error).await,
        }
    }};
}
pub(crate) use watched;

impl<DB: Dialect> Session<DB> {
    /// Ends an operation that the watchdog has failed.
    pub(crate) async fn give_up<T>(&mut self, error: Error) -> Result<T, Error> {
        // Nothing more is sent over a broken connection.
        self.state.broken = true;
        self.complete(Err(error)).await
    }
}
