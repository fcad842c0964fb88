//! Two tenants under row-level security, with cancels, kills and a bad network: no tenant sees a
//! row of the other. Its pauses are real, because they are for a real server and a real proxy.
//! `CENOTE_STATEMENTS=1000000` makes it longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cenote_sqlx::Db;
use cenote_testkit::{Proxy, Then, Way};
use sqlx::{AssertSqlSafe, Postgres, Row};
use tokio::time::timeout;

use crate::world;

const TASKS: usize = 8;
const TENANTS: [&str; 2] = ["red", "blue"];
const ROWS: &str = "SELECT tenant FROM cenote_tenants.orders";

/// Counts what the tasks did.
#[derive(Default)]
struct Counts {
    statements: AtomicUsize,
    answered: AtomicUsize,
    cut: AtomicUsize,
    failed: AtomicUsize,
}

/// A table with rows of both tenants, and a user who sees those of the tenant in the context.
const PREPARE: &str = "
    DROP SCHEMA IF EXISTS cenote_tenants CASCADE;
    CREATE SCHEMA cenote_tenants;
    DO $$ BEGIN CREATE ROLE cenote_tenant LOGIN; EXCEPTION WHEN duplicate_object THEN END $$;
    CREATE TABLE cenote_tenants.orders (tenant TEXT, item INTEGER);
    INSERT INTO cenote_tenants.orders
        SELECT tenant, n FROM unnest(ARRAY['red', 'blue']) AS tenant, generate_series(1, 5) AS n;
    ALTER TABLE cenote_tenants.orders ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON cenote_tenants.orders
        USING (tenant = current_setting('app.tenant', true));
    GRANT USAGE ON SCHEMA cenote_tenants TO cenote_tenant;
    GRANT SELECT ON cenote_tenants.orders TO cenote_tenant";

/// Runs the query of the tenant, and checks whose rows it returns.
async fn look(db: &Db<Postgres>, counts: &Counts, tenant: Option<&str>) -> Result<(), sqlx::Error> {
    counts.statements.fetch_add(1, Ordering::Relaxed);
    let rows = sqlx::query(ROWS).fetch_all(db).await?;
    let expected = if tenant.is_some() { 5 } else { 0 };
    assert_eq!(rows.len(), expected, "rows of {tenant:?}");
    for row in rows {
        let seen: &str = row.get(0);
        assert_eq!(Some(seen), tenant, "a row of the other tenant");
    }
    counts.answered.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Some statements of one tenant, inside and outside of transactions.
async fn work(
    db: &Db<Postgres>,
    counts: &Counts,
    tenant: Option<&'static str>,
    random: &mut fastrand::Rng,
) -> Result<(), sqlx::Error> {
    for _ in 0..random.usize(1..60) {
        match random.u32(..10) {
            0 => {
                let commits = random.bool();
                let transaction = db.transaction(async || {
                    look(db, counts, tenant).await?;
                    if random.bool() {
                        other(db, counts, random).await?;
                    }
                    look(db, counts, tenant).await?;
                    match commits {
                        true => Ok(()),
                        false => Err(sqlx::Error::RowNotFound),
                    }
                });
                match transaction.await {
                    Err(sqlx::Error::RowNotFound) | Ok(()) => {}
                    Err(error) => return Err(error),
                }
            }
            1 => other(db, counts, random).await?,
            _ => look(db, counts, tenant).await?,
        }
    }
    Ok(())
}

/// One statement as one of the tenants, inside the context of any other.
async fn other(
    db: &Db<Postgres>,
    counts: &Counts,
    random: &mut fastrand::Rng,
) -> Result<(), sqlx::Error> {
    let tenant = TENANTS[random.usize(..2)];
    let context = db.with_context([("app.tenant", tenant)]);
    context.run(look(db, counts, Some(tenant))).await
}

/// One scope: a tenant, or none, with a time limit that often cuts it off.
async fn scope(db: &Db<Postgres>, counts: &Counts, random: &mut fastrand::Rng) {
    let tenant = [None, Some(TENANTS[0]), Some(TENANTS[1])][random.usize(..3)];
    let limit = match random.u32(..8) {
        0 => Duration::from_micros(random.u64(..20_000)),
        _ => Duration::from_secs(5),
    };
    let work = work(db, counts, tenant, random);
    let done = match tenant {
        Some(tenant) => {
            let context = db.with_context([("app.tenant", tenant)]);
            timeout(limit, context.run(work)).await
        }
        None => timeout(limit, work).await,
    };
    match done {
        Ok(Ok(())) => {}
        Ok(Err(_)) => drop(counts.failed.fetch_add(1, Ordering::Relaxed)),
        Err(_) => drop(counts.cut.fetch_add(1, Ordering::Relaxed)),
    }
}

/// Breaks connections in one way or another, and lets the next ones through.
async fn strike(proxy: &Proxy, admin: &Db<Postgres>, random: &mut fastrand::Rng) {
    match random.u32(..5) {
        0 => proxy.reset(),
        1 => proxy.close(),
        2 => proxy.after(Way::ToClient, random.u64(..3000), Then::Reset),
        3 => proxy.after(Way::ToServer, random.u64(..3000), Then::Close),
        _ => {
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                        WHERE usename = 'cenote_tenant' ORDER BY random() LIMIT 2";
            sqlx::query(kill).execute(admin).await.unwrap();
        }
    }
    tokio::time::sleep(Duration::from_millis(random.u64(..20))).await;
    proxy.heal().unwrap();
    tokio::time::sleep(Duration::from_millis(random.u64(..1500))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tenant_sees_a_row_of_the_other_after_cancels_kills_and_faults() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let statements = std::env::var("CENOTE_STATEMENTS").ok();
    let statements = statements.map_or(100_000, |number| number.parse().unwrap());
    let admin = Db::postgres(world::postgres::url()).build().unwrap();
    sqlx::raw_sql(AssertSqlSafe(PREPARE))
        .execute(&admin)
        .await
        .unwrap();
    let proxy = Arc::new(Proxy::to_url(world::postgres::server()).await.unwrap());
    let url = world::as_user(&proxy.url(&world::postgres::url()), "cenote_tenant");
    let db = Db::postgres(url)
        .max_size(4)
        .clean_timeout(Duration::from_millis(500))
        .build()
        .unwrap();
    let (counts, over) = (
        Arc::new(Counts::default()),
        Arc::new(AtomicBool::new(false)),
    );

    let tasks = (0..TASKS).map(|number| {
        let (db, counts) = (db.clone(), counts.clone());
        let mut random = fastrand::Rng::with_seed(seed.wrapping_add(number as u64));
        tokio::spawn(async move {
            while counts.statements.load(Ordering::Relaxed) < statements {
                scope(&db, &counts, &mut random).await;
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let faults = {
        let (proxy, over) = (proxy.clone(), over.clone());
        let mut random = fastrand::Rng::with_seed(seed);
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                strike(&proxy, &admin, &mut random).await;
            }
        })
    };
    for task in tasks {
        task.await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    faults.await.unwrap();

    let seen = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let (answered, cut, failed) = (
        seen(&counts.answered),
        seen(&counts.cut),
        seen(&counts.failed),
    );
    println!("{answered} answered, {cut} scopes cut off, {failed} scopes failed");
    assert!(answered > statements / 2 && cut > 0 && failed > 0);
}
