//! The demo: many tasks on few SQLite connections for some seconds, with a live page. It then
//! checks that no write was lost or done twice.

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use cenote::Pool;
use tokio::task::JoinSet;

use crate::DemoArgs;
use crate::load::{self, Tally, now};
use crate::page::Page;
use crate::progress::Progress;
use crate::report::Summary;
use crate::sqlite::SqliteManager;

/// An error that ends the demo. The program only prints it.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Statements are short, so closing takes far less time.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Runs the demo and prints its summary. Returns an error also if the summary shows that something
/// is wrong.
pub(crate) async fn run(args: &DemoArgs) -> Result<(), Failure> {
    let folder = tempfile::Builder::new().prefix("cenote-demo-").tempdir()?;
    let manager = SqliteManager::new(folder.path().join("demo.db"), load::SCHEMA);
    let pool = Pool::builder(manager)
        .name("demo")
        .max_size(args.size.try_into()?)
        .build()?;
    load::seed(&pool).await?;
    let page = Page::start().await?;

    let started = now();
    let tally = put_under_load(&pool, args).await?;
    let took = started.elapsed();

    let books = load::read_books(&pool).await?;
    let before_close = pool.status();
    let leftover = pool.close_within(CLOSE_LIMIT).await;
    drop(page);
    let summary = Summary {
        tasks: args.tasks,
        took,
        tally,
        books,
        before_close,
        after_close: pool.status(),
        leftover,
    };
    folder.close()?;
    write!(io::stdout(), "{summary}")?;
    summary.verdict()
}

async fn put_under_load(pool: &Pool<SqliteManager>, args: &DemoArgs) -> Result<Tally, Failure> {
    let lasts = Duration::from_secs(args.seconds);
    let ends = now() + lasts;
    let mut workers = JoinSet::new();
    for _ in 0..args.tasks {
        workers.spawn(load::work(pool.clone(), ends));
    }
    let mut side_tasks = JoinSet::new();
    side_tasks.spawn(load::discard(pool.clone()));
    let progress = Progress::new(pool.clone(), lasts);
    side_tasks.spawn(progress.clone().keep_showing());

    let mut total = Tally::new()?;
    while let Some(tally) = workers.join_next().await {
        total.add(&tally??)?;
    }
    // They run until they are stopped.
    side_tasks.shutdown().await;
    progress.end();
    Ok(total)
}
