//! The demo: a small shop on few connections, with a live page and six scenes. It then checks that
//! no write was lost or done twice.
//!
//! Without a URL the shop is in a SQLite file of its own. On the server of a user it is in a place
//! of its own, which is removed in the end.

mod crowd;
mod interrupt;
mod live;
mod load;
mod page;
mod place;
mod report;
mod scenes;
mod shop;
mod sqlite;
mod stage;
mod wired;

use std::time::Duration;

use cenote::Pool;
use cenote::breaker::ConsecutiveFailures;
use cenote::config::Nested;

use crate::args::DemoArgs;
use crate::clock::now;
use crate::failure::{Failure, Verdict, usage, whole_story};
use crate::out;
use crate::target::Target;

use crowd::Crowd;
use interrupt::Interrupt;
use live::Live;
use page::Page;
use report::Summary;
use shop::{Shop, SqliteShop};
use stage::Stage;
use wired::Wired;

/// Statements are short, so closing takes far less time.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Runs the demo and prints its summary. Returns an error also if the summary shows that something
/// is wrong. An interrupt ends the scenes, and the pool is drained.
pub(crate) async fn run(args: &DemoArgs) -> Result<Verdict, Failure> {
    let Some(url) = &args.url else {
        let folder = tempfile::Builder::new().prefix("cenote-demo-").tempdir()?;
        let shop = SqliteShop::new(folder.path().join("demo.db"));
        let verdict = open(async { Ok(shop) }, args).await?;
        folder.close()?;
        return Ok(verdict);
    };
    match Target::parse(url)? {
        Target::Sqlite(_) => Err(usage(
            "the demo makes a SQLite file of its own: leave `--url` out, or name a server",
        )),
        #[cfg(feature = "postgres")]
        Target::Postgres(url) => open(shop::PostgresShop::connect(url), args).await,
        #[cfg(feature = "mysql")]
        Target::Mysql(url) => open(shop::MysqlShop::connect(url), args).await,
        #[cfg(feature = "redis")]
        Target::Redis(url) => open(shop::RedisShop::connect(url), args).await,
    }
}

/// Makes a shop, plays the scenes in it and removes it, whatever has happened.
async fn open<S: Shop>(
    connecting: impl Future<Output = Result<S, Failure>>,
    args: &DemoArgs,
) -> Result<Verdict, Failure> {
    let mut interrupt = Interrupt::listen()?;
    let shop = tokio::select! {
        shop = connecting => shop?,
        () = interrupt.heard() => return Ok(Verdict::Interrupted),
    };
    let lasts = Duration::from_secs(args.seconds);
    let pool = Pool::builder(Wired::new(shop))
        .name("demo")
        .max_size(args.size.try_into()?)
        .leak_after(scenes::leak_after(lasts))
        .nested(Nested::Report)
        .breaker(scenes::breaker(ConsecutiveFailures::new(3), lasts))
        .build()?;
    let shop = &pool.manager().shop;
    place::make(shop).await?;
    let summary = play(&pool, args, interrupt).await;
    // After an error it is still open, and statements could hold locks.
    pool.close_within(CLOSE_LIMIT).await;
    let removed = place::remove(shop).await;
    let summary = summary.map_err(|error| match &removed {
        Ok(()) => error,
        Err(removed) => format!("{}; {removed}", whole_story(&*error)).into(),
    })?;
    match args.json {
        true => out::print_json(&summary.to_json())?,
        false => out::print(&summary.to_string())?,
    }
    removed?;
    summary.verdict().map(|()| Verdict::Fine)
}

/// Plays the scenes, and closes the pool.
async fn play<S: Shop>(
    pool: &Pool<Wired<S>>,
    args: &DemoArgs,
    mut interrupt: Interrupt,
) -> Result<Summary, Failure> {
    let shop = &pool.manager().shop;
    place::stock(shop).await?;
    let page = Page::start().await?;
    let lasts = Duration::from_secs(args.seconds);
    let started = now();
    let stage = Stage {
        live: Live::start(pool, lasts),
        pool: pool.clone(),
        crowd: Crowd::gather(pool, args.tasks),
        lasts,
        tasks: args.tasks,
    };
    stage.welcome();
    let mut results = tokio::select! {
        results = scenes::play(&stage) => results?,
        () = interrupt.heard() => vec![stage.interrupted()],
    };
    let before_close = pool.status();
    let (drained, leftover) = scenes::drain(&stage, CLOSE_LIMIT).await;
    results.push(drained);
    let tally = stage.crowd.leave().await?;
    stage.live.end();
    let took = started.elapsed();
    drop(page);
    Ok(Summary {
        shop: shop.place().map(|place| place.to_string()),
        tasks: args.tasks,
        took,
        tally,
        books: place::books(shop).await?,
        results,
        before_close,
        after_close: pool.status(),
        leftover,
    })
}
