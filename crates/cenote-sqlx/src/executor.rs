//! sqlx's `Executor` for the handle, a session, a lease and a transaction.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::panic::Location;
use std::pin::pin;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::{Acquire, Database, Describe, Error, Execute, Executor, SqlStr};
use sqlx_core::ext::async_stream::{TryAsyncStream, Yielder};

use crate::command::Command;
use crate::db::Db;
use crate::dialect::{Dialect, Statements, Step};
use crate::lease::Lease;
use crate::session::{Progress, Session};
use crate::transaction::Transaction;
use crate::watchdog::{self, watched};

/// Sends the rows of `command` to `rows`, one by one. Notes in `sent` that there was one.
async fn feed<DB: Dialect>(
    session: &mut Session<DB>,
    mut command: Command<DB>,
    rows: &Yielder<Step<DB>>,
    sent: &mut bool,
) -> Result<(), Error> {
    watched!(session, session.start_command(&mut command))?;
    let spare = (DB::HEALS && command.can_be_stale()).then(|| command.copy());
    let mut end = steps(session, command, rows, sent).await;
    if let (Err(error), Some(spare)) = (&end, spare)
        && session.heals(error).await
    {
        end = steps(session, spare, rows, sent).await;
    }
    watched!(session, session.complete(end))
}

async fn steps<DB: Dialect>(
    session: &mut Session<DB>,
    command: Command<DB>,
    rows: &Yielder<Step<DB>>,
    sent: &mut bool,
) -> Result<(), Error> {
    let Session {
        connection,
        state,
        meter,
        watch,
        ..
    } = session;
    let mut steps = DB::fetch_many(connection, command);
    loop {
        let next = pin!(poll_fn(|context| steps.as_mut().poll_next(context)));
        // Not while the caller uses a row.
        let next = watchdog::over(watch.as_ref(), next).await;
        state.broken |= next.is_err();
        match next? {
            Some(Ok(step)) => {
                state.progress = Progress::BetweenRows;
                meter.stop();
                *sent = true;
                rows.r#yield(step).await;
                meter.start();
                state.progress = Progress::Running;
            }
            Some(Err(error)) => return Err(error),
            None => return Ok(()),
        }
    }
}

async fn prepare<DB: Dialect>(
    session: &mut Session<DB>,
    sql: SqlStr,
    parameters: &[DB::TypeInfo],
) -> Result<DB::Statement, Error> {
    watched!(session, async {
        session.start(sql.as_str()).await?;
        let result = <DB as Statements>::prepare(&mut session.connection, sql, parameters).await;
        session.complete(result).await
    })
}

async fn describe<DB: Dialect>(
    session: &mut Session<DB>,
    sql: SqlStr,
) -> Result<Describe<DB>, Error> {
    watched!(session, async {
        session.start(sql.as_str()).await?;
        let result = <DB as Statements>::describe(&mut session.connection, sql).await;
        session.complete(result).await
    })
}

/// Writes a method that runs a query, under the name that it has in `Session`. The last parameter
/// is tried before.
macro_rules! run {
    (
        $method:ident -> $output:ty,
        |$this:ident, $site:ident, $sql:ident| $lease:expr,
        $spare:expr
        $(, |$command:ident| $first:expr)?
    ) => {
        #[track_caller]
        fn $method<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<$output, Error>>
        where
            'c: 'e,
            E: 'q + Execute<'q, DB>,
        {
            let (command, $site) = (Command::new(query, DB::LANGUAGE), Location::caller());
            Box::pin(async move {
                let (command, $this) = (command?, self);
                $(
                    let $command = command;
                    let command: Command<DB> = match $first {
                        ControlFlow::Continue(command) => command,
                        ControlFlow::Break(result) => return result,
                    };
                )?
                let spare: Option<Command<DB>> = $spare($this, &command);
                let $sql = command.text();
                let result = $lease.session_for($sql).$method(command).await;
                match (result, spare) {
                    (Err(error), Some(command)) if DB::classify(&error).poisons() => {
                        let $sql = command.text();
                        $lease.session_for($sql).$method(command).await
                    }
                    (result, _) => result,
                }
            })
        }
    };
}

/// Writes the methods of `Executor`, given the expression that acquires a lease, and a function
/// that returns a copy of a command that may be tried on another connection. The last parameter is
/// tried before `execute`.
macro_rules! executor {
    (
        impl [$($generics:tt)*] for $type:ty,
        |$this:ident, $site:ident, $sql:ident| $lease:expr,
        $spare:expr
        $(, |$command:ident| $first:expr)?
    ) => {
        impl<$($generics)*> Executor<'c> for $type {
            type Database = DB;

            run!(
                execute -> DB::QueryResult,
                |$this, $site, $sql| $lease,
                $spare
                $(, |$command| $first)?
            );
            run!(fetch_all -> Vec<DB::Row>, |$this, $site, $sql| $lease, $spare);
            run!(fetch_optional -> Option<DB::Row>, |$this, $site, $sql| $lease, $spare);

            #[track_caller]
            fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step<DB>, Error>>
            where
                'c: 'e,
                E: 'q + Execute<'q, DB>,
            {
                let (command, $site) = (Command::new(query, DB::LANGUAGE), Location::caller());
                Box::pin(TryAsyncStream::new(move |rows| async move {
                    let (command, $this) = (command?, self);
                    let spare: Option<Command<DB>> = $spare($this, &command);
                    let mut sent = false;
                    let $sql = command.text();
                    let end = feed($lease.session_for($sql), command, &rows, &mut sent).await;
                    match (end, spare) {
                        (Err(error), Some(command)) if !sent && DB::classify(&error).poisons() => {
                            let $sql = command.text();
                            feed($lease.session_for($sql), command, &rows, &mut sent).await
                        }
                        (end, _) => end,
                    }
                }))
            }

            #[track_caller]
            fn prepare_with<'e>(
                self,
                sql: SqlStr,
                parameters: &'e [<DB as Database>::TypeInfo],
            ) -> BoxFuture<'e, Result<DB::Statement, Error>>
            where
                'c: 'e,
            {
                let $site = Location::caller();
                Box::pin(async move {
                    let $this = self;
                    let $sql = sql.as_str();
                    prepare($lease.session_for($sql), sql.clone(), parameters).await
                })
            }

            #[track_caller]
            fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<DB>, Error>>
            where
                'c: 'e,
            {
                let $site = Location::caller();
                Box::pin(async move {
                    let $this = self;
                    let $sql = sql.as_str();
                    describe($lease.session_for($sql), sql.clone()).await
                })
            }
        }
    };
}

executor!(
    impl ['c, DB: Dialect] for &'c Db<DB>,
    |db, site, sql| db.acquire_to(site, sql).await?,
    Db::spare,
    |command| db.in_group(site, command).await
);
executor!(
    impl ['c, DB: Dialect] for &'c mut Session<DB>,
    |session, _site, _sql| session,
    |_: &Session<DB>, _| None
);
executor!(
    impl ['c, DB: Dialect] for &'c mut Lease<DB>,
    |lease, _site, _sql| lease,
    |_: &Lease<DB>, _| None
);
executor!(
    impl ['c, DB: Dialect] for &'c mut Transaction<'_, DB>,
    |transaction, _site, _sql| transaction,
    |_: &Transaction<'_, DB>, _| None
);

// The two lifetimes are apart, as with sqlx's pool. Otherwise a future that migrates by `&db` could
// not be a `BoxFuture` for any lifetime, as frameworks ask for.
impl<'c, DB: Dialect> Acquire<'c> for &'_ Db<DB> {
    type Database = DB;
    type Connection = Lease<DB>;

    #[track_caller]
    fn acquire(self) -> BoxFuture<'c, Result<Lease<DB>, Error>> {
        let (db, site) = (self.clone(), Location::caller());
        Box::pin(async move { db.acquire_at(site).await })
    }

    /// Always an error: sqlx's transaction can hold a connection of sqlx's own pool only.
    fn begin(self) -> BoxFuture<'c, Result<sqlx::Transaction<'c, DB>, Error>> {
        Box::pin(async {
            Err(Error::InvalidArgument(String::from(
                "sqlx's transaction cannot hold a connection of this pool: use `Db::begin` or `Lease::begin_sqlx`, or pass `&mut lease` instead of `&db`",
            )))
        })
    }
}
