//! Run with `cargo run -p cenote-dashboard --example live_page`: a page of two pools under load.

use std::time::Duration;

use axum::Router;
use cenote::{Closures, Lease, Pool};
use cenote_dashboard::{Dashboard, Token};
use tokio::net::TcpListener;
use tokio::time::sleep;

/// Real programs read it from a file or from the environment.
const TOKEN: &str = "an-example-token-that-is-not-secret";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orders = pool("orders", 12)?;
    let reports = pool("reports", 4)?;
    for nth in 0..16 {
        tokio::spawn(serve_orders(orders.clone(), nth));
    }
    for _ in 0..6 {
        tokio::spawn(write_reports(reports.clone()));
    }

    let page = Dashboard::new().actions(Token::new(TOKEN)?).start();
    let app = Router::new().nest("/pools", page.routes());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("open http://{}/pools", listener.local_addr()?);
    println!("the token for actions is {TOKEN}");
    let stop = async move {
        // Without a signal it runs until it is killed.
        let _ = tokio::signal::ctrl_c().await;
        page.end();
    };
    axum::serve(listener, app)
        .with_graceful_shutdown(stop)
        .await?;
    Ok(())
}

fn pool(name: &str, max_size: usize) -> Result<Pool<Closures<()>>, cenote::ConfigError> {
    let open = async || {
        sleep(Duration::from_millis(30)).await;
        Ok::<_, &str>(())
    };
    let pool = Pool::from_fn(open).name(name).max_size(max_size);
    pool.leak_after(Duration::from_secs(10)).build()
}

async fn serve_orders(pool: Pool<Closures<()>>, nth: u64) {
    loop {
        if let Ok(_lease) = pool.acquire().await {
            sleep(Duration::from_millis(5 + 3 * nth)).await;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

async fn write_reports(pool: Pool<Closures<()>>) {
    loop {
        if let Ok(lease) = pool.acquire().await {
            Lease::label(&lease, "monthly report");
            sleep(Duration::from_millis(1_500)).await;
        }
    }
}
