//! Pools that look like those of a shop on a busy day.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use cenote::status::Meter;
use cenote::{Closures, Lease, Pool};
use cenote_dashboard::{Dashboard, Token};
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::browser::Tab;

type Any = Pool<Closures<()>>;

/// How long the load runs before the pictures are taken, so that the charts have something to show.
const LOAD: u64 = 300;

pub(crate) struct Scene {
    pub(crate) address: String,
    pools: Vec<Any>,
}

impl Scene {
    pub(crate) async fn start() -> Self {
        let orders = build("orders", 16, 30);
        let pools = vec![
            orders.clone(),
            build("sessions", 40, 4),
            build("search", 8, 12),
            build("mail", 4, 60),
            build("billing", 6, 20),
            build("reports", 2, 20),
        ];
        serve(
            &pools[0],
            22,
            18,
            "SELECT * FROM orders WHERE id = $1",
            crate::scene::load_orders,
        );
        serve(&pools[1], 9, 3, "", load_plain);
        serve(&pools[2], 5, 25, "GET /products/_search", load_plain);
        serve(&pools[3], 1, 80, "", load_plain);
        let stuck = pools[5].clone();
        tokio::spawn(async move {
            let _first = stuck.acquire().await;
            let _second = stuck.acquire().await;
            for _ in 0..3 {
                let waiter = stuck.clone();
                tokio::spawn(async move {
                    loop {
                        let _ = waiter.acquire().await;
                    }
                });
            }
            std::future::pending::<()>().await;
        });
        tokio::spawn(async move {
            let forgotten = orders.acquire().await;
            if let Ok(lease) = &forgotten {
                Lease::label(lease, "export of all orders");
            }
            std::future::pending::<()>().await;
            drop(forgotten);
        });
        let broken = Pool::from_fn(async || {
            sleep(Duration::from_millis(20)).await;
            Err::<(), _>("connection refused: postgres://ledger:s3cret@10.0.4.7/ledger")
        });
        let broken = broken.name("ledger").max_size(8).build().unwrap();
        let asking = broken.clone();
        tokio::spawn(async move {
            loop {
                let _ = asking.acquire().await;
                sleep(Duration::from_millis(900)).await;
            }
        });

        let token = Token::new("a-token-for-pictures-of-the-page").unwrap();
        let routes = Dashboard::new().actions(token).routes();
        let app: Router = Router::new().nest("/pools", routes);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/pools", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let _kept = broken;
            axum::serve(listener, app).await
        });
        Self { address, pools }
    }

    /// Waits until the load has run for a while.
    pub(crate) async fn wait(&self, tab: &Tab) {
        tab.until("document.querySelectorAll('.pools tbody tr').length >= 7")
            .await;
        let seconds = std::env::var("CENOTE_SCENE_SECONDS").ok();
        let seconds = seconds.and_then(|it| it.parse().ok()).unwrap_or(LOAD);
        sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) fn hash(&self) -> String {
        format!("#/pool/{}", self.pools[0].number())
    }
}

fn build(name: &'static str, max_size: usize, open_ms: u64) -> Any {
    let pool = Pool::from_fn(move || async move {
        sleep(Duration::from_millis(open_ms)).await;
        Ok::<_, &str>(())
    });
    let pool = pool.name(name).max_size(max_size);
    let pool = pool.acquire_timeout(Duration::from_secs(2));
    pool.leak_after(Duration::from_secs(20)).build().unwrap()
}

static SEED: AtomicU64 = AtomicU64::new(7);

/// A number below `most`, as random as a picture needs.
fn random(most: u64) -> u64 {
    let next = SEED.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed);
    let mixed = (next ^ next >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 33) % most.max(1)
}

fn serve<F: Future<Output = ()> + Send + 'static>(
    pool: &Any,
    callers: u64,
    work_ms: u64,
    label: &'static str,
    load: impl Fn(Any, u64, &'static str) -> F,
) {
    for _ in 0..callers {
        tokio::spawn(load(pool.clone(), work_ms, label));
    }
}

pub(crate) async fn load_orders(pool: Any, work_ms: u64, label: &'static str) {
    loop {
        if random(12) == 0 {
            write_cart(&pool, work_ms).await;
        }
        if let Ok(lease) = pool.acquire().await {
            let meter = Meter::new("in statements");
            Lease::label_metered(&lease, label, &meter);
            meter.start();
            sleep(Duration::from_millis(work_ms + random(3 * work_ms))).await;
            if random(400) == 0 {
                Lease::discard(lease);
            }
        }
        // The load comes and goes.
        let wave = (SEED.load(Relaxed) >> 40) % 2;
        sleep(Duration::from_millis(random(20 + 40 * wave))).await;
    }
}

async fn write_cart(pool: &Any, work_ms: u64) {
    if let Ok(lease) = pool.acquire().await {
        Lease::label(&lease, "checkout");
        sleep(Duration::from_millis(random(20 * work_ms))).await;
    }
}

pub(crate) async fn load_plain(pool: Any, work_ms: u64, label: &'static str) {
    loop {
        if let Ok(lease) = pool.acquire().await {
            if !label.is_empty() {
                Lease::label(&lease, label);
            }
            sleep(Duration::from_millis(work_ms + random(2 * work_ms))).await;
        }
        sleep(Duration::from_millis(random(6 * work_ms))).await;
    }
}
