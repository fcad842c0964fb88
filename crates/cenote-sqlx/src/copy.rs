//! `COPY` of PostgreSQL on the handle.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::postgres::PgCopyIn;
use sqlx::{Error, PgConnection, Postgres};
use sqlx_core::bytes::Bytes;
use sqlx_core::ext::async_stream::{TryAsyncStream, Yielder};
use tokio::io::{AsyncRead, ReadBuf};

use crate::db::Db;
use crate::error::lost;
use crate::lease::Lease;
use crate::session::Session;
use crate::watchdog::{Watch, over, watched};

/// How much is read from a source at once.
const CHUNK: usize = 64 * 1024;

impl Db<Postgres> {
    /// Begins a `COPY .. FROM STDIN`, on a connection that is held until the [`CopyIn`] ends.
    /// Inside a transaction it is part of that.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = cenote_servers::postgres::find()?;
    /// # let db = cenote_sqlx::Db::postgres(server.url()).build()?;
    /// # sqlx::raw_sql("DROP TABLE IF EXISTS cenote_copied; CREATE TABLE cenote_copied (a INTEGER)").execute(&db).await?;
    /// let mut copy = db.copy_in_raw("COPY cenote_copied FROM STDIN (FORMAT csv)").await?;
    /// copy.send(&b"1\n2\n"[..]).await?.send(&b"3\n"[..]).await?;
    /// assert_eq!(copy.finish().await?, 3);
    ///
    /// let sum: i64 = sqlx::query_scalar("SELECT sum(a) FROM cenote_copied").fetch_one(&db).await?;
    /// assert_eq!(sum, 6);
    /// # sqlx::query("DROP TABLE cenote_copied").execute(&db).await?;
    /// # Ok(()) }
    /// # #[cfg(not(feature = "postgres"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future, or the `CopyIn`, copies nothing. The connection is closed.
    #[track_caller]
    pub fn copy_in_raw(
        &self,
        statement: &str,
    ) -> impl Future<Output = Result<CopyIn, Error>> + Send {
        let site = Location::caller();
        async move {
            let lease = self.acquire_to(site, statement).await?;
            let desk = Arc::new(Mutex::default());
            let job = serve(lease, statement.to_owned(), Arc::clone(&desk));
            let mut copy = CopyIn {
                job: Some(Box::pin(job)),
                desk,
                asked: true,
                columns: Vec::new(),
                textual: false,
            };
            copy.answer().await?;
            let layout = copy.lock().layout.take();
            (copy.textual, copy.columns) = layout.unwrap_or_default();
            Ok(copy)
        }
    }

    /// Begins a `COPY .. TO STDOUT`, and returns its data. The stream holds its connection until it
    /// is dropped. Inside a transaction it is part of that.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = cenote_servers::postgres::find()?;
    /// # let db = cenote_sqlx::Db::postgres(server.url()).build()?;
    /// use futures_util::TryStreamExt;
    ///
    /// let data = db.copy_out_raw("COPY (VALUES (1), (2)) TO STDOUT (FORMAT csv)").await?;
    /// let data: Vec<_> = data.try_collect().await?;
    /// assert_eq!(data.concat(), b"1\n2\n");
    /// # Ok(()) }
    /// # #[cfg(not(feature = "postgres"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// If the stream is dropped before its end, its connection is closed.
    #[track_caller]
    pub fn copy_out_raw(
        &self,
        statement: &str,
    ) -> impl Future<Output = Result<BoxStream<'static, Result<Bytes, Error>>, Error>> + Send {
        let site = Location::caller();
        async move {
            let mut lease = self.acquire_to(site, statement).await?;
            let statement = statement.to_owned();
            let mut data: BoxStream<'static, _> =
                Box::pin(TryAsyncStream::new(move |data| async move {
                    let session = lease.session_for(&statement);
                    watched!(session, session.start(&statement))?;
                    let result = read(session, &statement, &data).await;
                    watched!(session, session.complete(result))
                }));
            // The first item only says that the copy has begun.
            match poll_fn(|context| data.as_mut().poll_next(context)).await {
                Some(Err(error)) => Err(error),
                _ => Ok(data),
            }
        }
    }
}

/// Reads the data of a `COPY .. TO STDOUT`, after an empty item that says that it has begun. The
/// driver cannot go on with a copy that was dropped or has failed to begin, so the session counts
/// as broken until the end.
async fn read(
    session: &mut Session<Postgres>,
    statement: &str,
    data: &Yielder<Bytes>,
) -> Result<(), Error> {
    let Session {
        connection,
        state,
        watch,
        ..
    } = session;
    let watch = watch.as_ref();
    state.broken = true;
    let mut copy = over(watch, pin!(connection.copy_out_raw(statement))).await??;
    data.r#yield(Bytes::new()).await;
    loop {
        let next = pin!(poll_fn(|context| copy.as_mut().poll_next(context)));
        match over(watch, next).await? {
            Some(Ok(chunk)) => data.r#yield(chunk).await,
            Some(Err(error)) => {
                // The driver has read the answer to its end.
                state.broken = false;
                return Err(error);
            }
            None => {
                state.broken = false;
                return Ok(());
            }
        }
    }
}

/// A `COPY .. FROM STDIN` that has begun, from [`Db::copy_in_raw`]. It copies nothing unless it is
/// [finished](CopyIn::finish).
#[must_use = "a copy that is not finished copies nothing"]
pub struct CopyIn {
    /// Has the connection, and does what is asked for at the desk. `None`: it is over.
    job: Option<BoxFuture<'static, ()>>,
    desk: Arc<Mutex<Desk>>,
    /// Whether an answer is missing, because its caller was dropped.
    asked: bool,
    textual: bool,
    columns: Vec<bool>,
}

/// Where the owner of a copy and its job meet.
#[derive(Default)]
struct Desk {
    request: Option<Request>,
    answer: Option<Result<u64, Error>>,
    /// Whether the data is text, and which columns are.
    layout: Option<(bool, Vec<bool>)>,
}

enum Request {
    Send(Vec<u8>),
    Finish,
    Abort(String),
}

impl CopyIn {
    /// Returns whether the server expects text or CSV.
    pub fn is_textual(&self) -> bool {
        self.textual
    }

    /// Returns the number of columns that the server expects.
    pub fn num_columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns whether the server expects text in this column, or `None` if there is no such one.
    pub fn column_is_textual(&self, column: usize) -> Option<bool> {
        self.columns.get(column).copied()
    }

    /// Sends a part of the data. Parts need not end where rows end.
    ///
    /// # Cancel safety
    /// If this future is dropped after its first poll, the data is sent by the next call.
    pub async fn send(&mut self, data: impl Deref<Target = [u8]>) -> Result<&mut Self, Error> {
        self.ask(Request::Send(data.to_vec())).await?;
        Ok(self)
    }

    /// Reads `source` to its end, and sends everything.
    ///
    /// # Cancel safety
    /// If this future is dropped, a part of the source was read and sent.
    pub async fn read_from(
        &mut self,
        mut source: impl AsyncRead + Unpin,
    ) -> Result<&mut Self, Error> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = poll_fn(|context| {
                let mut buffer = ReadBuf::new(&mut chunk);
                let read = Pin::new(&mut source).poll_read(context, &mut buffer);
                read.map_ok(|()| buffer.filled().len())
            });
            let read = read.await?;
            if read == 0 {
                return Ok(self);
            }
            self.send(&chunk[..read]).await?;
        }
    }

    /// Ends the copy, and returns the number of rows that were copied.
    ///
    /// # Cancel safety
    /// If this future is dropped, the rows may be copied or not.
    pub async fn finish(mut self) -> Result<u64, Error> {
        self.ask(Request::Finish).await
    }

    /// Ends the copy without copying anything. The reason goes to the log of the server.
    ///
    /// # Cancel safety
    /// If this future is dropped, nothing is copied, and the connection is closed.
    pub async fn abort(mut self, reason: impl Into<String>) -> Result<(), Error> {
        self.ask(Request::Abort(reason.into())).await.map(drop)
    }

    async fn ask(&mut self, request: Request) -> Result<u64, Error> {
        if self.asked {
            self.answer().await?;
        }
        self.lock().request = Some(request);
        self.asked = true;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<u64, Error> {
        let answer = poll_fn(|context| {
            let over = match &mut self.job {
                Some(job) => job.as_mut().poll(context).is_ready(),
                None => true,
            };
            if over {
                self.job = None;
            }
            match self.lock().answer.take() {
                Some(answer) => Poll::Ready(answer),
                None if over => Poll::Ready(Err(lost("the copy is over"))),
                None => Poll::Pending,
            }
        });
        let answer = answer.await;
        self.asked = false;
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        lock(&self.desk)
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The job of a [`CopyIn`]: it owns the lease, which the driver's own type borrows.
async fn serve(mut lease: Lease<Postgres>, statement: String, desk: Arc<Mutex<Desk>>) {
    let session = lease.session_for(&statement);
    let result = match watched!(session, session.start(&statement)) {
        Ok(()) => {
            let result = write(session, &statement, &desk).await;
            watched!(session, session.complete(result))
        }
        Err(error) => Err(error),
    };
    drop(lease);
    lock(&desk).answer = Some(result);
}

/// Does the requests until the copy ends. The driver cannot go on with a copy that was dropped, so
/// the session counts as broken until then.
async fn write(
    session: &mut Session<Postgres>,
    statement: &str,
    desk: &Mutex<Desk>,
) -> Result<u64, Error> {
    let Session {
        connection,
        state,
        watch,
        ..
    } = session;
    state.broken = true;
    let result = write_all(connection, watch.as_ref(), statement, desk).await;
    // After an error of the server the driver has read the answer to its end. The class of any
    // other error says that the connection is lost.
    state.broken = false;
    result
}

async fn write_all(
    connection: &mut PgConnection,
    watch: Option<&Arc<Watch<Postgres>>>,
    statement: &str,
    desk: &Mutex<Desk>,
) -> Result<u64, Error> {
    let mut copy = over(watch, pin!(connection.copy_in_raw(statement))).await??;
    let columns = (0..copy.num_columns()).map(|column| copy.column_is_textual(column));
    let layout = (copy.is_textual(), columns.collect());
    lock(desk).layout = Some(layout);
    loop {
        lock(desk).answer = Some(Ok(0));
        match next(desk).await {
            Request::Send(data) => over(watch, pin!(send(&mut copy, &data))).await??,
            Request::Finish => return over(watch, pin!(copy.finish())).await?,
            Request::Abort(reason) => {
                return over(watch, pin!(copy.abort(reason))).await?.map(|()| 0);
            }
        }
    }
}

async fn send(copy: &mut PgCopyIn<&mut PgConnection>, data: &[u8]) -> Result<(), Error> {
    copy.send(data).await.map(drop)
}

/// Waits for the next request. The owner polls the job after each.
async fn next(desk: &Mutex<Desk>) -> Request {
    poll_fn(|_| match lock(desk).request.take() {
        Some(request) => Poll::Ready(request),
        None => Poll::Pending,
    })
    .await
}

impl fmt::Debug for CopyIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyIn")
            .field("columns", &self.columns.len())
            .finish_non_exhaustive()
    }
}
